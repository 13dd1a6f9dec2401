"""What a listener is told of a training that goes on."""

from types import SimpleNamespace

import pytest

from epsearch.events import Progress
from epsearch.loop.estimates import Eta, MemberCounts
from epsearch.preparation.build import build
from epsearch.runners import eta, overheads, progress
from epsearch.runners.progress import Monitor
from epsearch.session import session
from epsearch.study.kinds import Search
from tests.support.events import Recorded


class Clock:
    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


def loop(stage="repeat 1 of 5", known=0, wanted=10, remaining=1000, best="best ε –", done=False, certified=0):
    return SimpleNamespace(
        study=build(Search, {"name": "mine"}),
        stage=stage,
        stage_members=lambda: (known, wanted),
        headline=lambda: best,
        heading=lambda: "5 repeats × 11 ε",
        work_of=lambda counts: (remaining / 2, remaining, remaining),
        counts=lambda: MemberCounts(known, wanted - known, 0, 0, 0, 0, certified),
        notes=[],
        stored=[],
        done=done,
    )


def test_what_is_told_when(monkeypatch):
    clock_, events = Clock(monkeypatch), Recorded()
    monitor = Monitor(loop(), events)
    assert events.headings == [("mine", "5 repeats × 11 ε")]
    assert events.seen == [Progress("repeat 1 of 5", 0, 10, "best ε –", 0, None, None, 0.0)]
    clock_.now += 40  # the workers start
    monitor.steps(10, 10.0)
    clock_.now += 5
    assert monitor.seconds_left is None, "before there is a speed"
    monitor.steps(25, 50.0)
    assert events.seen[-1] == Progress("repeat 1 of 5", 0, 10, "best ε –", 35, 5.0, 94.0, 45.0, 44.0, 94.0)
    assert monitor.seconds_left == 94.0, "with every round that may come"
    monitor.update(loop("evaluation", 3, 4, 900, "best ε 0.07185"))
    assert events.seen[-1] == Progress("evaluation", 3, 4, "best ε 0.07185", 35, 5.0, 90.0, 45.0, 45.0, 90.0)
    assert monitor.member_steps == 35 and monitor.seconds == 45 and len(events.seen) == 4


def test_until_there_is_a_speed_the_plan_is_believed(monkeypatch):
    clock_, events = Clock(monkeypatch), Recorded()
    monitor = Monitor(loop(), events, Eta(60.0, 50.0, 70.0, 20.0, 5.0, 1.0), "starting Ray (about 0:20)", None, 5.0)
    clock_.now += 22
    monitor.steps(10, 10.0)
    clock_.now += 5
    monitor.steps(25, 50.0)
    first, second, third = events.seen
    assert (first.stage, first.eta) == ("starting Ray (about 0:20)", 60.0)
    assert (second.eta_low, second.eta_high) == (50.0 - 22, 70.0 - 22)
    assert (second.stage, second.eta) == ("repeat 1 of 5", 60.0 - 22)
    assert third.eta == (1000 - 60) / 10 + 5.0, "the report comes behind"
    clock_.now += 3
    assert monitor.at_work == 5.0 and monitor.beginning == 22.0


@pytest.mark.slow
def test_a_run_without_a_plan_ends_with_its_report(small_study, monkeypatch):
    """The time to go ends with what reports took here, not with nothing."""
    monkeypatch.setattr(overheads, "expected_seconds", {overheads.REPORT: 1234.0}.get)
    monkeypatch.setattr(eta, "LEAST_SECONDS", 1e-6)
    events = Recorded()
    events.plan = lambda make: None
    session.train(small_study(runner="local"), events)
    told = [one.eta for one in events.seen if one.eta is not None]
    assert events.seen[0].eta is None and told[-1] == 1234.0 and all(one >= 1234.0 for one in told)


def test_members_that_are_trained_once_more_are_a_stage_of_their_own(monkeypatch):
    Clock(monkeypatch)
    events = Recorded()
    monitor = Monitor(loop("evaluation", 3, 4, certified=2), events)
    monitor.steps(10, 10.0)
    monitor.update(loop("evaluation", 4, 4, certified=2))
    assert [one.stage for one in events.seen] == ["evaluation", "evaluation", "2 members once more, alone"]


def test_of_a_study_that_is_finished_nothing_goes_on(monkeypatch):
    Clock(monkeypatch)
    events = Recorded()
    Monitor(loop(done=True), events)
    assert len(events.headings) == 1 and events.seen == []


def test_what_workers_say_and_what_was_stored_is_told_once(monkeypatch):
    Clock(monkeypatch)
    busy, events = loop(), Recorded()
    monitor = Monitor(busy, events)
    for number in range(2):
        for _ in range(2):
            busy.notify("4 members do not fit")
        busy.stored += [f"record {number}"]
        monitor.update(busy)
        monitor.update(busy)
    assert events.notes == ["4 members do not fit"] and events.stored == ["record 0", "record 1"]


def test_tasks_of_plug_in_trainers_are_counted(monkeypatch):
    """Also those of members under way; not of certificates, nor of members of a later stage."""
    Clock(monkeypatch)
    events, own = Recorded(), loop(known=1, wanted=3)
    own.study = SimpleNamespace(foreign=True, name="mine", device="cpu", runner="local")
    own.stage_tasks = lambda: ("cv", 4)
    monitor = Monitor(own, events)

    def job(number, phase="cv", certify=None):
        return SimpleNamespace(number=number, phase=phase, certify=certify, limits="some")

    def shown():
        return events.seen[-1].tasks, events.seen[-1].tasks_wanted

    assert shown() == (4, 12)
    for each in (job(1), job(2), job(2), job(3, "eval"), job(4, "cv", "a certificate")):
        monitor.steps(1, 1.0, each)
    assert shown() == (4 + 3, 12) and str(events.seen[-1]) == "repeat 1 of 5: 1/3 members, 7/12 tasks, best ε –"
    own.stage_members = lambda: (2, 3)
    monitor.update(own, [2])
    assert shown() == (8 + 1, 12)
    monitor.update(loop("evaluation", 3, 4))
    assert shown() == (None, None), "of epsearch's own methods"


def test_a_listener_that_wants_to_stop_is_believed_once_and_for_all(monkeypatch):
    Clock(monkeypatch)
    answers = iter([False, True, False])
    events = Recorded()
    monkeypatch.setattr(events, "stop_wanted", lambda: next(answers))
    monitor = Monitor(loop(), events)
    assert [monitor.stopping for _ in range(4)] == [False, True, True, True]
