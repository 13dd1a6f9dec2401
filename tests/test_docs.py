"""What README and docs say is true: code runs, links lead somewhere, CI calls the command that the README names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_readmes_python_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(ROOT / "README.md", "python")
    exec(compile(code, "README.md", "exec"), {})
    promised = re.search(r"print\(.*\)  # (\(.*?\))", code)[1]
    assert capsys.readouterr().out.strip() == promised


def test_ci_calls_the_readmes_test_command():
    plain = [line.strip() for block in blocks(ROOT / "README.md", "") for line in block.splitlines()]
    assert "uv run pytest" in plain
    assert "uv run pytest" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert any(line.endswith("uv run epsearch run") and "pip install uv" in line for line in plain)


def test_every_epsearch_command_in_the_docs_parses(epsearch_parser):
    seen = 0
    for page in PAGES:
        for line in re.findall(r"uv run epsearch (run .*)", page.read_text(encoding="utf-8")):
            epsearch_parser(re.split(r"[`>]", line)[0].split()[1:])
            seen += 1
    assert seen >= 2


@pytest.fixture
def epsearch_parser():
    from typer.main import get_command

    from epsearch.cli import app

    command = get_command(app).commands["run"]
    return lambda arguments: command.make_context("run", list(arguments))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target
