"""A study that is held: how its end is kept in the ledger, whatever ended it, and what is done meanwhile."""

import math
import time
from threading import Event

import pytest

from epsearch.events import Note, Progress, stops
from epsearch.failures import stopping
from epsearch.failures.errors import Interrupted, TimeSpent, TrainingFailed
from epsearch.session import lease, recording
from epsearch.session.lease import StudyLease, acquire
from results.ledger.errors import StoreGone
from results.ledger.retry import RetryPolicy
from results.ledger.store import Store
from results.ledger.writers.holder import here
from results.ledger.writers.states import CANCELLED, CANCELLING, FAILED, FINISHED, RUNNING
from tests.support.events import Recorded
from tests.support.limits import HANGS


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


@pytest.fixture
def store(url, monkeypatch):
    monkeypatch.setattr(lease, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(recording, "PROGRESS_SECONDS", math.inf)
    with Store.open(url) as opened:
        opened.leases.acquire("mine", here(), begin=False)
        yield opened


def until(there):
    deadline = time.monotonic() + HANGS
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.01)


ENDS = {
    "done": (None, False, FINISHED),
    "an error": (ValueError("no"), False, FAILED),
    "stopped by the listener": (Interrupted(), False, RUNNING),
    "time": (TimeSpent("stopped"), False, RUNNING),
    "Ctrl-C": (KeyboardInterrupt(), False, RUNNING),
    "the system": (SystemExit(1), False, RUNNING),
    "cancelled": (Interrupted(), True, CANCELLED),
    "cancelled when all was done": (None, True, FINISHED),
    "cancelled when it failed": (TrainingFailed("no"), True, FAILED),
}


@pytest.mark.parametrize(("error", "cancelled", "state"), ENDS.values(), ids=ENDS)
def test_an_end_is_kept_and_the_study_is_free(store, error, cancelled, state):
    held = StudyLease(store, Recorded())
    held.runs()
    if cancelled:
        store.leases.cancel("mine")
        until(lambda: stops(held.listener))
    for steps in range(3):  # of progress all but the last may be left out
        held.listener(Progress("narrowing", 1, 4, "", steps, None, None, 1.0))
    held.listener(Note("the last words"))
    held.end(error)
    there = store.leases.state_of("mine")
    assert (there.state, there.held, bool(there.reason)) == (state, False, state == FAILED)
    events = store.events.read("mine")
    assert "the last words" in [event.data.get("line") for event in events]
    assert [event.data["member_steps"] for event in events if event.kind == "progress"][-1] == 2


@pytest.mark.parametrize(("before", "state"), [(None, FINISHED), (Interrupted(), RUNNING)])
def test_what_ends_before_it_begins_leaves_the_state_as_it_was(store, url, before, state):
    held = StudyLease(store, Recorded())
    held.runs()
    held.end(before)
    with Store.open(url) as again:
        again.leases.acquire("mine", here(), begin=False)
        StudyLease(again, Recorded()).end(ValueError("refused"))
        there = again.leases.state_of("mine")
    assert (there.state, there.reason, there.held) == (state, "", False)


def test_why_it_failed_is_one_line_without_how_to_go_on(store, monkeypatch):
    trains = Event()
    trains.set()
    monkeypatch.setattr(stopping, "TRAINS", trains)
    held = StudyLease(store, Recorded())
    held.runs()
    held.end(TrainingFailed("out of\nluck"))
    assert store.leases.state_of("mine").reason == "out of luck"


def test_events_wait_for_a_database_that_has_gone(store, monkeypatch):
    """They are written later, in their order, and the lease is looked after meanwhile."""
    note, failures = store.events.append, [StoreGone("gone")] * 3

    def sometimes(rows):
        if failures:
            held.listener(Note(f"number {4 - len(failures)}"))
            raise failures.pop()
        note(rows)

    monkeypatch.setattr(store.events, "append", sometimes)
    held = StudyLease(store, Recorded())
    held.listener(Note("number 0"))
    until(lambda: len([event for event in store.events.read("mine") if event.kind == "note"]) == 4)
    held.end(None)
    lines = [event.data["line"] for event in store.events.read("mine") if event.kind == "note"]
    assert lines == [f"number {number}" for number in range(4)]


@pytest.mark.slow
def test_an_end_waits_for_no_database(store, monkeypatch):
    """The lease is over by itself."""
    held = StudyLease(store, Recorded())
    held.runs()
    store.retries = RetryPolicy(HANGS, sleep=lambda seconds: pytest.fail("it waits"))

    def gone(action):
        raise StoreGone("gone")

    with monkeypatch.context() as away:
        away.setattr(store, "transaction", gone)
        held.end(None)
    assert store.leases.state_of("mine").state == RUNNING


def test_what_cannot_be_kept_of_an_end_keeps_nobody_from_releasing(store, monkeypatch):
    held = StudyLease(store, Recorded())
    held.runs()

    def gone(state, reason):
        raise StoreGone("gone")

    with monkeypatch.context() as away:
        away.setattr(store.leases, "enter", gone)
        held.end(None)
    assert not store.leases.state_of("mine").held


def test_it_is_cancelled_from_outside_only_when_somebody_asks(store):
    held = StudyLease(store, Recorded())
    held.runs()
    for number in range(3):  # it has looked by then
        held.listener(Note(str(number)))
        until(lambda number=number: str(number) in [event.data.get("line") for event in store.events.read("mine")])
    assert not stops(held.listener)
    assert store.leases.cancel("mine").state == CANCELLING
    until(lambda: stops(held.listener))
    held.end(Interrupted())


def test_whoever_waits_says_so_once(store, url, monkeypatch):
    class Patient(Recorded):
        looks = 0

        def stop_wanted(self):
            self.looks += 1
            if self.looks == 3:
                store.leases.release()
            return False

    monkeypatch.setattr(lease, "POLL_SECONDS", 0.0)
    events = Patient()
    with Store.open(url) as other:
        acquire(other, "mine", events, wait=True)
        assert other.lease.token == 2 and events.looks == 3 and len(events.warnings) == 1
