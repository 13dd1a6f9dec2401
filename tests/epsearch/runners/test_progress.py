"""The progress line: speed, time to go, and what is printed without a terminal."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from epsearch.preparation.build import build
from epsearch.runners import progress
from epsearch.runners.progress import Monitor, clock
from epsearch.study.kinds import Study


class Clock:
    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


def loop(stage="repeat 1 of 5", known=0, wanted=10, remaining=1000, best="best ε –"):
    return SimpleNamespace(
        study=build(Study, {}),
        stage=stage,
        stage_members=lambda: (known, wanted),
        headline=lambda: best,
        heading=lambda: "5 repeats × 11 ε",
        remaining_work=lambda: remaining,
        notes=[],
    )


@pytest.fixture
def printed():
    return Console(file=io.StringIO(), width=200)


def test_speed_and_eta_count_from_the_first_report(monkeypatch, printed):
    clock_ = Clock(monkeypatch)
    monitor = Monitor(loop(), printed)
    assert monitor.speed() is None and monitor.eta() is None
    clock_.now += 40  # the workers start
    monitor.steps(10)
    assert monitor.speed() is None
    clock_.now += 5
    monitor.steps(50)
    assert monitor.speed() == 10 and monitor.eta() == (1000 - 60) / 10
    monitor.update(loop(remaining=900))
    assert monitor.eta() == 90
    assert monitor.member_steps == 60 and monitor.seconds == 45


def test_time_to_go_counts_what_steps_take(monkeypatch, printed):
    """Steps of another weight: 100 of weight 5 are half of the 1,000 that were to do."""
    clock_ = Clock(monkeypatch)
    monitor = Monitor(loop(), printed)
    for _ in range(2):
        clock_.now += 10
        monitor.steps(50, 5.0)
    assert monitor.speed() == 5 and monitor.eta() == pytest.approx(500 / 25)


def test_speed_is_that_of_the_last_minute(monkeypatch, printed):
    clock_ = Clock(monkeypatch)
    monitor = Monitor(loop(), printed)
    for second in range(200):
        clock_.now += 1
        monitor.steps(10 if second < 100 else 30)
    assert monitor.speed() == 30


def test_without_a_terminal_new_stages_are_lines(monkeypatch, printed):
    clock_ = Clock(monkeypatch)
    best = "best ε 0.07185 (A_T 91.30 %)"
    with Monitor(loop(), printed) as monitor:
        monitor.update(loop())
        clock_.now += 31
        monitor.steps(1)
        monitor.update(loop("evaluation", best=best))
    heading, *lines = printed.file.getvalue().splitlines()
    assert "5 repeats × 11 ε; all examples a task" in heading
    assert [line.split("  ·  ")[0] for line in lines] == ["repeat 1 of 5", "repeat 1 of 5", "evaluation"]
    assert "best ε 0.07185 (A_T 91.30 %)" in lines[-1]


def test_quiet_prints_nothing(printed):
    with Monitor(loop(), printed, quiet=True) as monitor:
        monitor.update(loop("evaluation"))
    assert printed.file.getvalue() == ""


def test_a_terminal_sees_one_live_line():
    console = Console(file=io.StringIO(), width=200, force_terminal=True)
    with Monitor(loop(), console) as monitor:
        monitor.steps(5)
    assert "repeat 1 of 5" in console.file.getvalue()


def test_clock():
    assert [clock(0.4), clock(65), clock(3723)] == ["0:00", "1:05", "1:02:03"]


def test_what_workers_say_is_printed_once(monkeypatch, printed):
    Clock(monkeypatch)
    busy = loop()
    with Monitor(busy, printed) as monitor:
        busy.notes += ["4 members do not fit", "4 members do not fit"]
        monitor.update(busy)
        monitor.update(busy)
    assert printed.file.getvalue().count("4 members do not fit") == 1
