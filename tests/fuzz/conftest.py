"""What the campaigns share: a seed, sizes, and the figures that docs/reliability.md shows."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

Figures = Callable[..., None]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The cache folder of a campaign, and where its crash reports would lie."""
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def figures(capsys: pytest.CaptureFixture[str]) -> Figures:
    """Prints the counts of a campaign; adds them to the JSON file that EPSEARCH_FUZZ_FIGURES names, if it names one."""

    def note(campaign: str, **counts: object) -> None:
        with capsys.disabled():
            print(f"\n{campaign}: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
        if path := os.environ.get("EPSEARCH_FUZZ_FIGURES"):
            file = Path(path)
            known = json.loads(file.read_text()) if file.exists() else {}
            file.write_text(json.dumps(known | {campaign: counts}, indent=1, ensure_ascii=False) + "\n")

    return note
