"""A training is followed by what the ledger says of it; what happens there happens while the watcher sleeps."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from epsearch import UsageError
from epsearch.control import watching
from epsearch.control.watching import watch
from results.ledger.record import Summary
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from results.ledger.writers.holder import here
from results.ledger.writers.states import CANCELLED, CANCELLING, FAILED, FINISHED, QUEUED, RUNNING
from tests.support.events import Recorded
from tests.support.leases import FAR, expire

PROGRESS = {"stage": "narrowing", "known": 1, "wanted": 4, "headline": "", "member_steps": 1} | dict.fromkeys(
    ("speed", "eta", "seconds"), 1.0
)
BEGIN = ("begin", {"heading": "all of it", "device": "cpu", "runner": "local"})


def progress(steps):
    return "progress", PROGRESS | {"member_steps": steps}


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


@pytest.fixture
def store(url):
    with Store.open(url) as opened:
        opened.save_study("mine", {})
        yield opened


@pytest.fixture
def watched(url, monkeypatch):
    """Watches the study; each of the steps happens in one sleep. (what is seen at the end, the listener)."""

    def watched(*steps):
        left, events = list(steps), Recorded()

        def sleep(seconds):
            assert left, "it goes on although the training is over"
            left.pop(0)()

        monkeypatch.setattr(watching, "time", SimpleNamespace(sleep=sleep))
        seen = watch("mine", LedgerUrl.of(url), Path("runs"), events)
        assert left == []
        return seen, events

    return watched


def test_it_ends_with_the_training(store, watched):
    store.leases.acquire("mine", here())
    store.leases.enter(QUEUED)

    def cancelled():
        store.events.append([("warning", {"line": "third"})])
        store.leases.enter(CANCELLED)
        store.leases.release()

    seen, events = watched(
        lambda: store.events.append([BEGIN, progress(1), ("note", {"line": "first"})]),
        lambda: store.leases.enter(RUNNING),
        lambda: store.events.append([progress(2), progress(3), ("note", {"line": "second"})]),
        lambda: store.leases.cancel("mine"),
        lambda: None,
        cancelled,
    )
    assert (seen.state, seen.summary) == (CANCELLED, "")
    states = [f"mine is {state}" for state in (RUNNING, CANCELLING, CANCELLED)]
    assert events.notes[:2] == ["mine is running", "mine is queued"]
    assert events.notes[2:] == ["mine · all of it; cpu, local runner", "first", states[0], "second", *states[1:]]
    assert [now.member_steps for now in events.seen] == [1, 2, 3] and events.warnings == ["third"]


def test_of_what_is_over_the_last_run_is_told(store, watched):
    for number in range(2):
        store.leases.acquire("mine", here())
        store.events.append([BEGIN, ("note", {"line": f"run {number}"}), progress(number), progress(10 + number)])
        store.leases.enter(FAILED, f"no luck {number}")
        store.sum_up(Summary("mine", store.study("mine").checksum, "1 of 4 members trained", None, None, False))
        store.leases.release()
    seen, events = watched()
    assert (seen.state, seen.summary) == (FAILED, "1 of 4 members trained")
    assert events.notes == ["mine · all of it; cpu, local runner", "run 1", "mine is failed: no luck 1"]
    assert [now.member_steps for now in events.seen] == [11]


def test_what_another_version_has_written_is_left_out(store, watched):
    store.leases.acquire("mine", here())
    junk = [
        ("begin", {}),
        ("plan", {"lines": ["a"]}),
        ("progress", {"more": 1}),
        ("note", {}),
        ("guess", {"line": "x"}),
    ]
    store.events.append(
        [BEGIN, *junk, ("plan", {"lines": {"members": "4", "time": "an hour"}}), ("note", {"line": "last"})]
    )
    store.leases.enter(FINISHED)
    store.leases.release()
    _, events = watched()
    assert events.notes == ["members: 4; time: an hour", "last", "mine is finished"]
    assert events.seen == events.warnings == []


def test_a_training_whose_process_is_gone_is_over(store, watched):
    store.leases.acquire("mine", FAR)
    expire(store)
    seen, _ = watched()
    assert seen.state == "interrupted"


def test_what_is_not_there_or_was_never_trained_cannot_be_watched(store, url, watched):
    with pytest.raises(UsageError, match=r"^study 'mine' has never been trained: there is nothing to watch$"):
        watched()
    with pytest.raises(UsageError, match=r"^no study 'mene'; known: mine; did you mean 'mine'\?$"):
        watch("mene", LedgerUrl.of(url), Path("runs"), Recorded())
