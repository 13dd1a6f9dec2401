"""Names and paths that look like rich's markup, or its emoji codes, are printed as they are."""

import ast
import contextlib
import errno
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.text import Text

from epsearch.preparation.build import build
from epsearch.status import StudyStatus
from epsearch.study.kinds import Search
from epsearch.terminal import lists
from epsearch.terminal.consoles import PlainConsole, facts
from results.ledger.store import Store
from tests.epsearch.conftest import SMALL

ODD = "[/red][bold]:cat:[link=x]"
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "shown",
    [
        ODD,
        lists.datasets([dict.fromkeys(("name", "title", "status", "where"), ODD)]),
        lists.studies([StudyStatus(name=ODD, kind="run", dataset=ODD, summary=ODD, chosen={ODD: 0.1}, score=0.5)]),
        lists.checks([{"subject": ODD, "ok": True, "detail": ODD}]),
        facts({ODD: ODD}),
    ],
    ids=lambda shown: type(shown).__name__,
)
def test_what_looks_like_markup_is_text(shown):
    console = PlainConsole(file=io.StringIO(), width=1000)
    console.print(shown)
    text = console.file.getvalue()
    assert ODD in text and text.count("[/red]") == text.count(":cat:") == text.count("[link=x]")


@pytest.mark.slow
def test_a_folder_that_looks_like_markup(epsearch, tmp_path):
    """A study of such a folder, in such a folder, in every command that shows it."""
    out = tmp_path / ODD
    out.mkdir(parents=True)
    own = {"dataset": f"folder:{tmp_path}/{ODD}", "network": "reduced_resnet18", "out": out, "name": "odd"}
    study = build(Search, {name: value for name, value in SMALL.items() if name != "numeric_path"} | own)
    with Store.open(study.storage) as store:
        stream = {"examples_per_task": 60}
        kept = {"study": study.identity(), "stream": stream, "numeric_path": "cpu-float32-mkl", "seal": {}}
        store.save_study("odd", kept)
    for command in ("list", "show"):
        answer = epsearch(command, "--out", out)
        assert answer.status == 0, answer.err
        assert f"folder:{tmp_path}/{ODD}" in answer.out.replace("\n", "")
    answer = epsearch("report", "--out", out)
    assert answer.status == 2 and "no finished round yet" in answer.err
    answer = epsearch("run", "--dataset", f"folder:{tmp_path}/none/{ODD}", "--out", out)
    assert answer.status == 2 and ODD in answer.err


class Closed(io.StringIO):
    def write(self, text):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def test_a_closed_pipe_is_an_error_that_can_be_told():
    with pytest.raises(BrokenPipeError):
        PlainConsole(file=Closed()).print("one line")


@pytest.mark.slow
def test_no_other_console_is_made():
    """Every text goes through a console of ours, and none asks for markup."""
    for path in (ROOT / "epsearch").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                assert name != "Console" and name != "from_markup", path
                assert not any(keyword.arg == "markup" for keyword in node.keywords) or path.name == "consoles.py", path


def test_a_list_of_studies_has_the_columns_that_fit_and_never_cuts_a_name():
    name = "permuted_digits-970b86"
    best = {"chosen": {"epsilon": 0.25}, "score": 0.5, "created": "2025-01-01T00:00:00"}
    rows = [StudyStatus(name=name, kind="run", dataset="permuted_digits", summary="finished", **best)]
    for width, last in ((200, "created (UTC)"), (80, "dataset"), (60, "command"), (10, "study")):
        console = PlainConsole(file=io.StringIO(), width=width)
        console.print(lists.studies(rows), crop=False)
        titles, line, *rest = console.file.getvalue().splitlines()
        assert titles.rstrip().endswith(last) and (name in line or width < 2 * len(name))
        assert rest == [] if width == 200 else any(line.startswith("no room") for line in rest)


def test_one_long_name_or_choice_hides_no_column_of_others():
    many = {"lr": 0.253774, "memory": 25, "epsilon": 0.528895}
    rows = [
        StudyStatus(name=name, kind="run", dataset="permuted_digits", summary="finished", chosen=chosen, score=0.5)
        for name, chosen in (("short", {"epsilon": 0.25}), ("a" * 100, {"epsilon": 1.0}), ("three", many))
    ]
    for part in (rows[:2], rows[::2]):
        console = PlainConsole(file=io.StringIO(), width=80)
        console.print(lists.studies(part), crop=False)
        titles, short, *rest = console.file.getvalue().splitlines()
        assert titles.split()[:5] == ["study", "state", "best", "A_T", "%"] and max(map(len, [short, *rest])) <= 80
        assert short.split()[:6] == ["short", "finished", "ε", "=", "0.25", "50.00"]
        folded = "".join("".join(line.split()) for line in rest)
        assert folded.count("a") > 100 or "ε=0.528895" in folded


@pytest.mark.parametrize("shown", ["a\x1b[31mb\x9b2J", Text("a\x1b[31mb\x9b2J"), facts({"name": "a\x1b[31mb\x9b2J"})])
def test_what_would_steer_a_terminal_is_shown_as_an_escape(shown):
    console = PlainConsole(file=io.StringIO(), width=200)
    console.print(shown)
    text = console.file.getvalue()
    assert r"a\x1b[31" in text and text.replace("\n", "").isprintable()


def on_a_terminal(folder, *arguments, **environment):
    """What a command writes on a terminal of 80 columns."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    plain = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-m", "epsearch", *map(str, arguments)]
    surroundings = plain | {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT)} | environment
    with subprocess.Popen(command, cwd=folder, env=surroundings, stdin=other, stdout=other, stderr=other) as program:
        os.close(other)
        written = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(main, 65536):
                written += part
    os.close(main)
    return program.returncode, written.decode()


@pytest.mark.slow
def test_a_training_fits_a_terminal_of_80_columns_without_colours(small_options, tmp_path):
    status, text = on_a_terminal(tmp_path, "run", *small_options, NO_COLOR="1")
    assert status == 0 and "members" in text
    assert not re.search(r"\x1b\[[0-9;]*\b[349]\d[0-9;]*m", text)  # bold is no colour
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text))
    assert max(map(len, lines)) <= 80
    assert all(line.isprintable() for line in lines)
    status, text = on_a_terminal(tmp_path, "list")
    assert status == 0 and "\x1b[1m" in text
    assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text.splitlines()) <= 80


@pytest.mark.slow
def test_a_log_has_no_control_characters(epsearch, small_options, monkeypatch):
    """Neither of the training nor of the tables, however a terminal would show them."""
    monkeypatch.setenv("TERM", "xterm-256color")
    answer = epsearch("run", *small_options, "--repeats", "1", "--seeds", "1", "--certify", "0")
    assert answer.status == 0 and "members" in answer.err
    for text in (answer.out, answer.err, epsearch("list").out, epsearch("show").out, epsearch("report").out):
        assert text and all(line.isprintable() for line in text.splitlines())
