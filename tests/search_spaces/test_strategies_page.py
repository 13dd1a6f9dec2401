"""The Python on the page about strategies runs and prints what it promises, and the page names every strategy."""

import re
from pathlib import Path

import optuna
import pytest

from search_spaces import STRATEGIES

PAGE = (Path(__file__).parents[2] / "docs" / "strategies.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize("code", BLOCKS)
def test_the_python_prints_what_it_promises(code, capsys):
    level = optuna.logging.get_verbosity()
    try:
        exec(compile(code, "strategies.md", "exec"), {})
    finally:
        optuna.logging.set_verbosity(level)
    (promised,) = re.findall(r"^print\(.*\)  # ([^:\n]+):", code, flags=re.MULTILINE)
    assert capsys.readouterr().out.strip() == promised


def test_it_names_every_strategy():
    assert [name for name in re.findall(r"^\| `([a-z-]+)` \|", PAGE, flags=re.MULTILINE)] == list(STRATEGIES)
