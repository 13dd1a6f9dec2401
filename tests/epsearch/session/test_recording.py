"""What a listener is told is kept for other programs: all of it in order, of progress the newest, now and then."""

from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest

from epsearch.events import Began, Decoded, Note, Planned, Progress, Stored, Tick, Warned
from epsearch.session import recording
from epsearch.session.recording import MOST_WAITING, Recorder
from tests.support.events import Recorded

NOW = Progress("narrowing", 1, 4, "best –", 10, 5.0, None, 2.0)
LATER = replace(NOW, member_steps=20)


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
    recorder(Began("mine", "all of it", "cpu", "local"))
    recorder(Planned(lambda: "four"))
    recorder(Note("a line"))
    recorder(Warned("a worse one"))
    recorder(Decoded(1, 2))
    recorder(Stored(["one", "two"]))
    recorder(NOW)
    assert (events.headings, events.plans, events.notes[1:]) == ([("mine", "all of it")], ["four"], ["a line"])
    assert (events.warnings, events.images, events.stored) == (["a worse one"], [(1, 2)], ["one", "two"])
    assert events.seen == [NOW]
    assert recorder.take() == [
        ("begin", {"heading": "all of it", "device": "cpu", "runner": "local"}),
        ("plan", {"lines": {"members": "four"}}),
        ("note", {"line": "a line"}),
        ("warning", {"line": "a worse one"}),
        ("records", {"stored": 2}),
        ("progress", asdict(NOW)),
    ]
    assert recorder.take() == recorder.take(all_rows=True) == []


def test_of_progress_the_newest_is_taken_once_a_second(clock):
    recorder = Recorder(Recorded())
    recorder(NOW)
    recorder(LATER)
    assert recorder.take() == [("progress", asdict(LATER))]
    recorder(NOW)
    clock[0] += 0.99
    assert recorder.take() == []
    clock[0] += 0.01
    assert recorder.take() == [("progress", asdict(NOW))]
    recorder(LATER)
    assert recorder.take() == [] and recorder.take(all_rows=True) == [("progress", asdict(LATER))]


def test_what_could_not_be_written_comes_first_but_for_progress(clock):
    recorder = Recorder(Recorded())
    for line in "ab":
        recorder(Note(line))
    recorder(NOW)
    rows = recorder.take()
    assert len(rows) == 3
    recorder(Note("c"))
    recorder.give_back(rows)
    assert [row[1]["line"] for row in recorder.take(all_rows=True)] == ["a", "b", "c"]


def test_of_too_many_the_oldest_are_lost(clock):
    """Also of those that could not be written, while the database does not answer."""
    recorder = Recorder(Recorded())
    for number in range(MOST_WAITING + 5):
        recorder(Note(str(number)))
    rows = recorder.take()
    assert [row[1]["line"] for row in rows] == [str(number) for number in range(5, MOST_WAITING + 5)]
    recorder(Note("new"))
    recorder.give_back(rows)
    rows = recorder.take()
    assert len(rows) == MOST_WAITING and rows[0][1]["line"] == "6" and rows[-1][1]["line"] == "new"


def test_a_training_is_stopped_from_outside_or_by_the_listener():
    recorder = Recorder(Recorded())
    assert not recorder(Tick())
    recorder.stop = True
    assert recorder(Tick()) and Recorder(Recorded(stop_after=0))(Tick())


def test_a_plan_that_nobody_wants_is_not_made():
    class Plain(Recorded):
        def plan(self, event):
            """Makes none."""

    recorder = Recorder(Plain())
    recorder(Planned(lambda: pytest.fail("it takes seconds")))
    assert recorder.take() == []
