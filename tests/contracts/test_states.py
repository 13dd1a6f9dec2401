"""The states of a study: which follow which, who changes them, and what a study is called that nobody trains."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from results.ledger.retry import RetryPolicy
from results.ledger.store import Store, StoreError
from results.ledger.writers.errors import LeaseHeld, LeaseLost, NotAllowed, StudyCancelled
from results.ledger.writers.holder import here
from results.ledger.writers.lease import Lease
from results.ledger.writers.states import (
    CANCELLED,
    CANCELLING,
    FAILED,
    FINISHED,
    FOLLOWS,
    INTERRUPTED,
    QUEUED,
    RUNNING,
    LeaseState,
)
from tests.support.holders import another_process, killed, needs_proc
from tests.support.leases import FAR, change, content, expire
from tests.support.synthetic import record

ENDED = (CANCELLED, FAILED, FINISHED)


def current(store: Store) -> LeaseState:
    found = store.leases.state_of("demo")
    assert found is not None and replace(store.leases.states()["demo"], seconds=found.seconds) == found
    return found


def told(store: Store) -> list[tuple[str, str]]:
    """The states that its events say."""
    return [(one.data["state"], one.data["reason"]) for one in store.events.read("demo") if one.kind == "state"]


def put(store: Store, state: str) -> None:
    """Lets a study that FAR trains be in a state, whatever may follow what."""
    store.leases.acquire("demo", FAR)
    change(store, f"UPDATE epsearch_leases SET state = '{state}', changed = 7")


def test_the_table_knows_every_state() -> None:
    assert INTERRUPTED not in FOLLOWS and all(before <= set(FOLLOWS) for before in FOLLOWS.values())
    assert {state for state in FOLLOWS if not any(state in before for before in FOLLOWS.values())} == set(ENDED)
    assert {state for state, before in FOLLOWS.items() if CANCELLING in before} == set(ENDED), "it goes on no more"


@pytest.mark.parametrize(("before", "state"), [*product(FOLLOWS, repeat=2)])
def test_under_one_lease_a_state_follows_those_of_the_table(store: Store, before: str, state: str) -> None:
    put(store, before)
    if before in FOLLOWS[state]:
        store.leases.enter(state, "what\nwas wrong: \x00\udc80")
        assert (current(store).state, current(store).reason) == (state, "what was wrong:   ")
        assert current(store).changed > 7 and told(store) == [(RUNNING, ""), (state, "what was wrong:   ")]
    elif before == state:
        store.leases.enter(state, "again")
        assert (current(store).state, current(store).changed, told(store)) == (state, 7, [(RUNNING, "")])
    else:
        rows = content(store)
        with pytest.raises(NotAllowed) as caught:
            store.leases.enter(state)
        assert str(caught.value) == f"study 'demo' is {before} and cannot become {state}"
        assert isinstance(caught.value, StoreError) and content(store)["epsearch_events"] == rows["epsearch_events"]
        assert current(store).state == before and current(store).changed == 7


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("before", FOLLOWS)
def test_whoever_acquires_a_study_runs_it_unless_it_was_cancelled(
    store: Store, other: Store, before: str, resume: bool
) -> None:
    put(store, before)
    with pytest.raises(LeaseHeld):
        other.leases.acquire("demo", here(), resume)
    expire(store)
    rows = content(store)
    if not resume and before in (CANCELLED, CANCELLING):
        with pytest.raises(StudyCancelled) as caught:
            other.leases.acquire("demo", here(), resume)
        assert str(caught.value) == "study 'demo' was cancelled; `epsearch resume demo` takes it up again"
        assert content(store) == rows and other.lease is None and isinstance(caught.value, StoreError)
    else:
        assert other.leases.acquire("demo", here(), resume) == Lease("demo", 2)
        assert (current(store).state, current(store).reason) == (RUNNING, "") and current(store).changed > 7
        assert told(store) == [(RUNNING, "")] * 2


def test_a_study_that_nobody_has_trained_has_no_state(store: Store) -> None:
    store.save_study("demo", {})
    assert store.leases.state_of("demo") is None and store.leases.states() == {} and store.leases.cancel("demo") is None
    assert content(store)["epsearch_leases"] == content(store)["epsearch_events"] == []
    assert store.leases.acquire("demo", here(), resume=False) == Lease("demo", 1)


def test_a_store_without_a_lease_enters_nothing(store: Store) -> None:
    for work in (
        store.leases.renew,
        store.leases.release,
        lambda: store.leases.enter(RUNNING),
        lambda: store.events.append([]),
    ):
        with pytest.raises(RuntimeError, match="no lease"):
            work()


@pytest.mark.parametrize("state", FOLLOWS)
def test_a_study_is_interrupted_where_nobody_trains_it(store: Store, state: str) -> None:
    put(store, state)
    assert current(store).held and current(store).now == state
    expire(store)
    assert not current(store).held and current(store).state == state and current(store).seconds <= 0
    assert current(store).now == (INTERRUPTED if state in (RUNNING, CANCELLING) else state)


@pytest.mark.slow
@needs_proc
def test_a_study_is_interrupted_as_soon_as_its_process_is_gone(store: Store) -> None:
    with another_process() as (child, holder):
        store.leases.acquire("demo", holder)
        assert current(store).now == RUNNING and current(store).seconds > 0
        killed(child)
        assert current(store).now == INTERRUPTED and current(store).state == RUNNING
        after = store.leases.cancel("demo")
        assert after is not None and after.now == CANCELLED


@pytest.mark.parametrize("before", [RUNNING, CANCELLING])
@pytest.mark.parametrize("end", ENDED)
def test_a_study_that_is_trained_is_asked_to_stop(store: Store, other: Store, before: str, end: str) -> None:
    """Whoever trains it goes on writing, and says how it ended."""
    put(store, before)
    after = other.leases.cancel("demo")
    assert after is not None and (after.state, after.token, after.held) == (CANCELLING, 1, True)
    assert after.changed == 7 if before == CANCELLING else after.changed > 7
    other.leases.cancel("demo")  # once more changes nothing
    assert store.add([record()]) == 1
    store.leases.enter(end)
    store.leases.release()
    assert (current(store).state, current(store).now) == (end, end)
    asked = [(CANCELLING, "")] if before == RUNNING else []
    assert told(store) == [(RUNNING, ""), *asked, (end, "")]


@pytest.mark.parametrize("over", [True, False])
@pytest.mark.parametrize("before", FOLLOWS)
def test_what_is_queued_or_left_over_is_cancelled_at_once(store: Store, other: Store, before: str, over: bool) -> None:
    put(store, before)
    if over:
        expire(store)
    rows = content(store)
    after = other.leases.cancel("demo")
    assert after is not None
    if before in ENDED:
        assert content(store) == rows and after.state == before
    elif over or before == QUEUED:
        assert (after.state, after.token, after.held) == (CANCELLED, 2, False) and after.changed > 7
        assert told(store) == [(RUNNING, ""), (CANCELLED, "")]
        before_writes = content(store)
        with pytest.raises(LeaseLost):  # whoever was only stopped, or waited for its turn
            store.leases.enter(RUNNING)
        with pytest.raises(LeaseLost):
            store.add([record()])
        assert not store.leases.renew() and content(store) == before_writes
    else:
        assert (after.state, after.token, after.held) == (CANCELLING, 1, True)


def test_who_was_cancelled_while_it_was_stopped_does_not_regain_its_study(store: Store, other: Store) -> None:
    put(store, RUNNING)
    store.retries = RetryPolicy(60, sleep=lambda seconds: None, clock=lambda: 0.0)
    expire(store)
    other.leases.cancel("demo")
    with pytest.raises(StudyCancelled):
        store.add([record()])
    assert current(store).state == CANCELLED and store.all_runs() == []


def test_a_cancelled_writer_that_was_taken_over_cannot_write(store: Store, other: Store) -> None:
    put(store, RUNNING)
    other.leases.cancel("demo")
    expire(store)
    with pytest.raises(StudyCancelled):
        other.leases.acquire("demo", here(), resume=False)
    assert other.leases.acquire("demo", here()) == Lease("demo", 2)
    before = content(store)
    for state in FOLLOWS:
        with pytest.raises(LeaseLost):
            store.leases.enter(state)
    for work in (
        lambda: store.add([record()]),
        lambda: store.events.append([("note", {})]),
        lambda: store.claims.claim(["00ff"]),
    ):
        with pytest.raises(LeaseLost):
            work()
    assert content(store) == before and current(store).state == RUNNING


def test_only_the_one_that_trains_a_study_is_told_to_stop(store: Store, other: Store) -> None:
    put(store, RUNNING)
    assert not store.leases.cancelling()
    expire(store)
    other.leases.acquire("demo", here())
    store.leases.cancel("demo")
    assert other.leases.cancelling() and not store.leases.cancelling()


@pytest.mark.parametrize("end", ENDED)
def test_a_study_that_has_ended_runs_again_by_another_acquisition_alone(store: Store, other: Store, end: str) -> None:
    store.leases.acquire("demo", FAR)
    store.leases.enter(end, "why")
    for state in FOLLOWS.keys() - {end}:
        with pytest.raises(NotAllowed):
            store.leases.enter(state)
    after = other.leases.cancel("demo")
    assert after is not None and (after.state, after.reason) == (end, "why")
    store.leases.release()
    assert other.leases.cancel("demo") is not None and (current(store).state, current(store).reason) == (end, "why")
    other.leases.acquire("demo", here())
    assert (current(store).state, current(store).reason) == (RUNNING, "")
    assert told(store) == [(RUNNING, ""), (end, "why"), (RUNNING, "")]


def test_who_only_reads_sees_how_studies_stand(url: str, store: Store) -> None:
    with Store.read(url) as reader:
        assert reader.leases.states() == {} and reader.leases.state_of("demo") is None
        store.leases.acquire("demo", FAR)
        store.leases.enter(QUEUED)
        assert current(reader).holder == FAR and current(reader).now == QUEUED


@pytest.mark.parametrize(
    ("column", "junk"),
    [("state", "'[/red]'"), ("changed", "1e308"), ("changed", "-1"), ("expires", "1e308"), ("holder", "'['")],
)
def test_what_is_damaged_of_a_lease_says_nothing(store: Store, other: Store, column: str, junk: str) -> None:
    """It has no checksum, and is no result; so it never keeps anybody from going on."""
    store.leases.acquire("demo", FAR)
    change(store, f"UPDATE epsearch_leases SET {column} = {junk}")
    found = current(store)
    assert found.state == RUNNING and 0 <= found.changed < 1e11 and found.seconds < 200
    expire(store)
    assert other.leases.cancel("demo") is not None and other.leases.acquire("demo", here()).token > 1
