"""What README and docs say is true: code runs, links lead somewhere, CI calls the command that the README names."""

import re
import tomllib
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from epsearch.study.kinds import KINDS
from epsearch.testing import failures, stream_checks
from search_spaces.published.pack import packs
from tests.support import option_tables
from trainers.hyperparameters import OF_EVERY_METHOD
from trainers.methods import METHODS, PLUGGED, Losses, Penalty, hyperparameters
from trainers.streams import DataError

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")),
    *sorted((ROOT / "docs").glob("*.md")),
]


def blocks(page, language):
    text = page.read_text(encoding="utf-8")
    return [
        code for name, code in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE) if name == language
    ]


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Runs the Python of a page in an empty folder; what it prints is what its lines promise."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "cache"))

    def run(page, code=None):
        code = "\n".join(blocks(ROOT / "docs" / page, "python")) if code is None else code
        names = {}
        exec(compile(code, page, "exec"), names)
        printed = capsys.readouterr().out.splitlines()
        assert printed and printed == promises(code)
        return names

    return run


def promises(code):
    """What the lines that print say that they print."""
    lines = [line.strip() for line in code.splitlines() if line.strip().startswith("print(")]
    return [re.search(r"^print\(.*\)  # ([^:\n]+):", line)[1] for line in lines]


@pytest.mark.slow
def test_the_page_on_python_runs(run):
    run("python.md")


def test_the_page_on_adding_a_method_runs(run, tmp_path):
    before = dict(METHODS)
    with patch.dict(METHODS):
        run("adding-a-method.md")
        assert METHODS.keys() - before.keys() == {"average", "dark", "l2", "replay"}
    assert before == METHODS
    assert not list(tmp_path.iterdir())


def test_the_page_on_adding_a_stream_runs_and_its_stream_keeps_the_contract(run, tmp_path):
    factory = run("adding-a-stream.md")["factory"]
    assert failures(stream_checks(factory)) == {}
    with pytest.raises(DataError, match=r"^examples-per-task must lie in 1…1442, got 1443$"):
        factory(range(3), 1443)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_page_on_testing_plug_ins_runs(run):
    plugged = dict(PLUGGED)
    with patch.dict(PLUGGED):
        run("testing-plugins.md")
    assert PLUGGED.keys() == plugged.keys()


TOUR = ROOT / "docs" / "tour.md"


def test_the_program_of_the_tour_runs(run):
    run("tour.md", next(code for code in blocks(TOUR, "python") if code.startswith("import ")))


def stops():
    """File -> lines of code that the tour quotes from it."""
    page = TOUR.read_text(encoding="utf-8")
    parts = re.findall(r"^### \d+\. .*?\]\(([^)]+)\)\n(.*?)(?=^##|\Z)", page, flags=re.DOTALL | re.MULTILINE)
    quotes = {file: "".join(re.findall(r"```python\n(.*?)```", part, flags=re.DOTALL)) for file, part in parts}
    return {file: [line for line in code.splitlines() if line.strip() != "…"] for file, code in quotes.items()}


@pytest.mark.parametrize("file", stops())
def test_lines_that_the_tour_quotes_are_those_of_the_code(file):
    code = (TOUR.parent / file).read_text(encoding="utf-8").splitlines()
    assert stops()[file] and [line for line in stops()[file] if line not in code] == []


METHODS_PAGE = ROOT / "docs" / "methods.md"
OWN = hyperparameters().keys() - {one.name for one in OF_EVERY_METHOD}


def sections():
    """Method -> its section on the page of methods."""
    text = METHODS_PAGE.read_text(encoding="utf-8")
    parts = re.split(r"^##+ ", text, flags=re.MULTILINE)
    return {found[1]: part for part in parts if (found := re.match(r"`(\w+)`: ", part))}


def overview():
    """Method -> (memory, state, hyperparameters, first task) in the table of the page."""
    lines = re.findall(r"^\| `(\w+)` \|(.*)\|$", METHODS_PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: [cell.strip() for cell in rest.split("|")] for name, rest in lines if name in METHODS}


def test_every_method_has_a_section():
    assert sections().keys() == METHODS.keys()


@pytest.mark.parametrize("method", METHODS)
def test_the_overview_of_methods_is_that_of_the_code(method):
    memory, state, own, first_task = overview()[method]
    known = METHODS[method]
    assert memory == (known.memory or "none")
    start = torch.zeros(1, 4)
    taught = isinstance(known.rule, Losses) and known.rule.taught
    assert int(state) == (len(known.rule.start(start)) if isinstance(known.rule, Penalty) else taught)
    assert tuple(re.findall(r"`(\w+)`", own)) == known.names
    assert first_task == ("shared" if known.first_task_is_sgd else "its own")


def test_every_hyperparameter_of_a_method_stands_beside_its_option():
    text = METHODS_PAGE.read_text(encoding="utf-8")
    table = text.split("### Options")[1].split("\n\n")[1]
    named = set(re.findall(r"`(\w+)`", "\n".join(line.split("|")[1] for line in table.splitlines())))
    assert named == {name for method in METHODS.values() for name in method.names} | {"lr"}
    flags = {option.flag for kind in KINDS.values() for option in kind.options().values()}
    assert set(re.findall(r"`(--[a-z-]+)", text)) <= flags


@pytest.mark.parametrize("method", METHODS)
def test_a_methods_section_names_only_hyperparameters_that_it_has(method):
    named = OWN & set(re.findall(r"`(\w+)(?:=\S+)?`", sections()[method]))
    assert named <= set(METHODS[method].names)


def test_ci_calls_the_readmes_test_command():
    plain = [line.strip() for block in blocks(ROOT / "README.md", "") for line in block.splitlines()]
    assert "uv run pytest" in plain
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1].startswith("./check -m ")
    assert (ROOT / "check").read_text(encoding="utf-8").splitlines()[-1] == 'uv run pytest "$@"'
    assert any(line.endswith("uv run epsearch run") and "pip install uv" in line for line in plain)


def test_readme_and_contributing_name_every_marker_and_ci_runs_all_but_campaigns_and_exhaustive_cases():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    markers = {line.partition(":")[0] for line in options["markers"] if "(" not in line}  # few(n) only marks cases
    skipped = {"cuda"}  # where there is no GPU; nobody has to ask for them
    for page in ("README.md", "CONTRIBUTING.md"):
        assert markers <= set(
            re.findall(r"`(?:-m |uv run pytest -m )?(\w+)`", (ROOT / page).read_text(encoding="utf-8"))
        )
    (left_out,) = (option for option in options["addopts"] if option.startswith("-m "))
    assert set(left_out.removeprefix("-m not ").split(" and not ")) == markers - skipped
    *_, asked = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert asked == './check -m "not (exhaustive or fuzz)"', "the default tests, too: one run collects them once"


def test_readme_counts_the_packs_that_there_are():
    (count,) = re.findall(r"\[(\d+) packs\]", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert int(count) == len(packs())


def test_every_epsearch_command_in_the_docs_parses(epsearch_parser):
    for page in PAGES:
        for line in re.findall(r"uv run epsearch (run .*)", page.read_text(encoding="utf-8")):
            epsearch_parser(re.split(r"[`>]", line)[0].split()[1:])


@pytest.fixture
def epsearch_parser():
    from typer.main import get_command

    from epsearch.cli import app, join_arguments

    command = get_command(app).commands["run"]
    return lambda arguments: command.make_context("run", join_arguments(arguments))


def test_lines_that_the_page_on_clusters_quotes_are_those_of_the_code():
    """Every part between two … stands in the code, or in a test that compares the whole line."""
    page = (ROOT / "docs" / "cluster-failures.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"\| what you see \|.*?\n\n", page, flags=re.DOTALL)
    quotes = re.findall(r"^\| `([^`]+)`", table, flags=re.MULTILINE)
    rooms = (ROOT / name for name in ("epsearch", "results", "tests/epsearch"))
    code = "\n".join(path.read_text(encoding="utf-8") for room in rooms for path in room.rglob("*.py"))
    assert quotes and [part for quote in quotes for part in quote.split("…") if part not in code] == []


def test_tables_of_options_are_those_of_the_code():
    """`python -m tests.support.option_tables` writes them."""
    pages = [path.read_text(encoding="utf-8") for path in option_tables.PAGES]
    names = [name for page in pages for _, name, _ in option_tables.BETWEEN.findall(page)]
    assert sorted(names) == sorted(option_tables.tables())
    assert [option_tables.written(page) for page in pages] == pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), target
