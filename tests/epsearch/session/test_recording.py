"""What a listener is told is kept for other programs: all of it in order, of progress the newest, now and then."""

from types import SimpleNamespace

import pytest

from epsearch.events import Progress
from epsearch.session import recording
from epsearch.session.recording import MOST_WAITING, Recorder
from tests.support.events import Recorded

STUDY = SimpleNamespace(name="mine", device="cpu", runner="local")
NOW = Progress("narrowing", 1, 4, "best –", 10, 5.0, None, 2.0)
LATER = NOW._replace(member_steps=20)


@pytest.fixture
def clock(monkeypatch):
    """The time in seconds, to be changed."""
    now = [100.0]
    monkeypatch.setattr(recording, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_what_is_told_is_handed_on_and_kept_in_order(clock, monkeypatch):
    monkeypatch.setattr(recording, "in_words", lambda plan: {"members": plan})
    events = Recorded()
    recorder = Recorder(events)
    recorder.begin(STUDY, "all of it")
    recorder.plan(lambda: "four")
    recorder.note("a line")
    recorder.warning("a worse one")
    recorder.decoded(1, 2)
    recorder.records(["one", "two"])
    recorder.progress(NOW)
    assert (events.headings, events.plans, events.notes) == ([("mine", "all of it")], ["four"], ["a line"])
    assert (events.warnings, events.images, events.stored) == (["a worse one"], [(1, 2)], ["one", "two"])
    assert events.seen == [NOW]
    assert recorder.take() == [
        ("begin", {"heading": "all of it", "device": "cpu", "runner": "local"}),
        ("plan", {"lines": {"members": "four"}}),
        ("note", {"line": "a line"}),
        ("warning", {"line": "a worse one"}),
        ("records", {"stored": 2}),
        ("progress", NOW._asdict()),
    ]
    assert recorder.take() == recorder.take(all_of_it=True) == []


def test_of_progress_the_newest_is_taken_once_a_second(clock):
    recorder = Recorder(Recorded())
    recorder.progress(NOW)
    recorder.progress(LATER)
    assert recorder.take() == [("progress", LATER._asdict())]
    recorder.progress(NOW)
    clock[0] += 0.99
    assert recorder.take() == []
    clock[0] += 0.01
    assert recorder.take() == [("progress", NOW._asdict())]
    recorder.progress(LATER)
    assert recorder.take() == [] and recorder.take(all_of_it=True) == [("progress", LATER._asdict())]


def test_what_could_not_be_written_comes_first_but_for_progress(clock):
    recorder = Recorder(Recorded())
    for line in "ab":
        recorder.note(line)
    recorder.progress(NOW)
    rows = recorder.take()
    assert len(rows) == 3
    recorder.note("c")
    recorder.give_back(rows)
    assert [row[1]["line"] for row in recorder.take(all_of_it=True)] == ["a", "b", "c"]


def test_of_too_many_the_oldest_are_lost(clock):
    """Also of those that could not be written, while the database does not answer."""
    recorder = Recorder(Recorded())
    for number in range(MOST_WAITING + 5):
        recorder.note(str(number))
    rows = recorder.take()
    assert [row[1]["line"] for row in rows] == [str(number) for number in range(5, MOST_WAITING + 5)]
    recorder.note("new")
    recorder.give_back(rows)
    rows = recorder.take()
    assert len(rows) == MOST_WAITING and rows[0][1]["line"] == "6" and rows[-1][1]["line"] == "new"


def test_a_training_is_stopped_from_outside_or_by_the_listener():
    recorder = Recorder(Recorded())
    assert not recorder.stop_wanted()
    recorder.stop = True
    assert recorder.stop_wanted() and Recorder(Recorded(stop_after=0)).stop_wanted()


def test_a_plan_that_nobody_wants_is_not_made():
    class Plain(Recorded):
        def plan(self, make):
            """Makes none."""

    recorder = Recorder(Plain())
    recorder.plan(lambda: pytest.fail("it takes seconds"))
    assert recorder.take() == []
