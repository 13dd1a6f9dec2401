"""A training on a terminal, and where there is none."""

import io
from dataclasses import replace

import pytest
from rich.console import Console
from rich.text import Text

from epsearch.events import Began, Decoded, Note, Planned, Progress, Warned, stops
from epsearch.preparation.build import build
from epsearch.study.kinds import Search
from epsearch.terminal import listener
from epsearch.terminal.listener import Terminal


@pytest.fixture
def now(monkeypatch):
    """A clock: a list of the one second that it is."""
    time = [100.0]
    monkeypatch.setattr(listener.time, "monotonic", lambda: time[0])
    return time


@pytest.fixture
def printed():
    return Console(file=io.StringIO(), width=200)


@pytest.fixture
def drawn():
    return Console(file=io.StringIO(), width=200, force_terminal=True)


def began(study, heading):
    return Began(study.name, heading, study.device, study.runner, study)


def progress(stage="repeat 1 of 5", best="best –", seconds=5.0):
    return Progress(stage, 3, 10, best, 1000, 1234.5, 65.0, seconds)


def test_without_a_terminal_new_stages_are_lines(now, printed):
    with Terminal(printed) as events:
        events(began(build(Search, {"name": "mine"}), "5 repeats × 11 ε"))
        events(progress())
        events(progress())
        now[0] += listener.PLAIN_SECONDS + 1
        events(progress())
        events(progress("evaluation", "best ε 0.07185 (A_T 91.30 %)"))
    heading, *lines = printed.file.getvalue().splitlines()
    assert heading.startswith("epsearch mine · 5 repeats × 11 ε; all examples a task; ")
    assert [line.split(" · ")[0] for line in lines] == ["repeat 1 of 5", "repeat 1 of 5", "evaluation"]
    parts = "3/10 members · best ε 0.07185 (A_T 91.30 %) · 1,234 steps/s · ETA 1:05 · elapsed 0:05"
    assert lines[-1] == f"evaluation · {parts}"


def test_unknown_parts_are_left_out(now, printed):
    with Terminal(printed) as events:
        events(replace(progress(best=""), speed=None, eta=None))
    assert printed.file.getvalue() == "repeat 1 of 5 · 3/10 members · elapsed 0:05\n"


def test_tasks_of_plug_in_trainers_are_counted(now, printed):
    with Terminal(printed) as events:
        events(replace(progress(), tasks=7, tasks_wanted=40, speed=0.025))
    assert " · 3/10 members · 7/40 tasks · best – · 1.5 tasks/min · ETA 1:05 · " in printed.file.getvalue()


def test_a_terminal_sees_one_live_line_whose_clock_goes_on(now, drawn):
    with Terminal(drawn) as events:
        events(progress())
        events._live.refresh()
        now[0] += 60
        events._live.refresh()
    text = drawn.file.getvalue()
    assert "repeat 1 of 5" in text and "ETA 1:05 · elapsed 0:05" in text and "ETA 0:05 · elapsed 1:05" in text


def test_decoding_is_a_bar_on_a_terminal(drawn):
    with Terminal(drawn) as events:
        events(Decoded(5, 80))
        events(Decoded(80, 80))
        events(Note("behind it"))
    text = drawn.file.getvalue()
    assert "decoding" in text and "80/80" in text and text.rstrip().endswith("behind it")


def test_decoding_is_a_line_now_and_then_elsewhere(now, printed):
    with Terminal(printed) as events:
        events(Decoded(5, 80))
        now[0] += 31
        events(Decoded(40, 80))
        events(Decoded(60, 80))
    assert printed.file.getvalue() == "decoding  40/80 images  ETA 31 s\n"


def test_quiet_prints_warnings_alone(printed):
    with Terminal(printed, quiet=True) as events:
        events(began(build(Search, {}), "5 repeats × 11 ε"))
        events(Note("one member takes 1 GiB"))
        events(Decoded(5, 80))
        events(Planned(lambda: pytest.fail("nobody reads it")))
        events(progress())
        events(Warned("damaged"))
    assert printed.file.getvalue() == "damaged\n"


def test_ctrl_c_is_a_signal_and_asked_for_nowhere_else(printed):
    assert not stops(Terminal(printed))


def test_a_narrow_terminal_sees_what_matters_most(now):
    """Speed goes first, then the clock, then the best; a line that is still too long ends with an ellipsis."""
    best = "best ε = 0.07185 (A_T 91.30 %)"
    whole = f"repeat 1 of 5 · 3/10 members · {best} · 1,234 steps/s · ETA 1:05 · elapsed 0:05"
    for width, line in {
        len(whole): whole,
        len(whole) - 1: f"repeat 1 of 5 · 3/10 members · {best} · ETA 1:05 · elapsed 0:05",
        74: f"repeat 1 of 5 · 3/10 members · {best} · ETA 1:05",
        60: "repeat 1 of 5 · 3/10 members · ETA 1:05",
        30: "repeat 1 of 5 · 3/10 members …",
    }.items():
        console = Console(file=io.StringIO(), width=width, force_terminal=True)
        drawn = listener._Line()
        drawn.update(progress(best=best))
        console.print(drawn, highlight=False)
        assert console.file.getvalue().splitlines() == [line]


def test_a_terminal_breaks_lines_between_words(now, printed):
    narrow = Console(file=io.StringIO(), width=40, force_terminal=True)
    study = build(Search, {"name": "mine", "examples_per_task": 400})
    for console in (narrow, printed):
        with Terminal(console) as events:
            events(began(study, "narrowing: 1 repeat × 3 ε × 1 seed on 2 tasks, then 1 task"))
    lines = [Text.from_ansi(line).plain for line in narrow.file.getvalue().splitlines()]
    assert len(lines) > 2 and max(map(len, lines)) <= 40
    assert " ".join(line.strip() for line in lines) == printed.file.getvalue().strip()
    assert "1 task; 400 examples a task; " in printed.file.getvalue()
