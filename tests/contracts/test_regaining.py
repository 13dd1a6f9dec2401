"""A run whose lease was taken over stores what it trained once the other one has ended; the tests have a clock."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from results.ledger.retry import RetryPolicy
from results.ledger.store import Store, StoreError
from results.ledger.writers.errors import LeaseLost
from results.ledger.writers.holder import here
from results.ledger.writers.lease import Lease
from results.ledger.writers.states import CANCELLED, FINISHED
from tests.support.leases import FAR, content, expire
from tests.support.limits import HANGS
from tests.support.synthetic import record

MEMBERS = [record(seed=seed) for seed in range(6)]
KEYS = {member.key for member in MEMBERS}


class Clock:
    """Time that passes by sleeping only; in the third second something happens."""

    def __init__(self, happens: Callable[[], object] = lambda: None) -> None:
        self.now, self.told, self.happens = 0.0, list[str](), happens

    def sleep(self, seconds: float) -> None:
        before, self.now = self.now, self.now + seconds
        if before < 3 <= self.now:
            self.happens()

    def retries(self, seconds: float = 60) -> RetryPolicy:
        return RetryPolicy(seconds, self.told.append, self.sleep, lambda: self.now)


@pytest.fixture
def lost(store: Store, other: Store) -> Callable[[], None]:
    """Store has lost its lease to the other one; it is called when that is to end."""
    store.leases.acquire("demo", FAR)
    expire(store)
    other.leases.acquire("demo", here())

    def end() -> None:
        other.add(MEMBERS[:2])
        other.leases.enter(FINISHED)
        other.leases.release()

    return end


def test_what_was_trained_is_stored_when_the_other_one_has_ended(
    store: Store, other: Store, lost: Callable[[], None]
) -> None:
    clock = Clock(lost)
    store.retries = clock.retries()
    assert store.add(MEMBERS) == len(MEMBERS) - 2, "what the other one has stored is recognised"
    assert {one.key for one in store.all_runs()} == KEYS
    assert 3 <= clock.now < 60 and store.lease == Lease("demo", 3)
    (told,) = clock.told
    assert told.startswith("study 'demo' is being trained by pid") and told.endswith(
        "; waiting for up to 60 s to store results"
    )
    current = store.leases.state_of("demo")
    assert current is not None and (current.state, current.token) == (FINISHED, 3)  # as the other one left it
    assert store.leases.renew() and not other.leases.renew()


WRITES: dict[str, Callable[[Store], object]] = {
    "claim": lambda store: store.claims.claim([*KEYS, "00ff"]),
    "enter": lambda store: store.leases.enter(FINISHED),
    "add": lambda store: store.add(MEMBERS),
    "save_study": lambda store: store.save_study("demo", {"repeats": 5}),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_every_call_goes_on_under_the_lease_that_it_got_back(
    store: Store, other: Store, lost: Callable[[], None], write: Callable[[Store], object]
) -> None:
    store.retries = Clock(lost).retries()
    write(store)
    assert store.lease == Lease("demo", 3) and store.leases.renew()
    store.events.append([("note", {})])
    assert store.events.read("demo")[-1].token == 3
    store.leases.release()
    assert other.leases.acquire("demo", here()) == Lease("demo", 4), "the one that it got back was given back"


def test_one_that_is_free_again_is_taken_at_once(store: Store, lost: Callable[[], None]) -> None:
    clock = Clock()
    store.retries = clock.retries()
    lost()
    assert store.add(MEMBERS) == len(MEMBERS) - 2 and clock.now == 0 and clock.told == []


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_retries_end(store: Store, lost: Callable[[], None], seconds: float) -> None:
    clock = Clock()
    store.retries = clock.retries(seconds)
    before = content(store)
    with pytest.raises(LeaseLost) as caught:
        store.add(MEMBERS)
    assert not caught.value.released
    assert seconds - 2 < clock.now <= seconds and content(store) == before and len(clock.told) == (seconds > 0)


@pytest.mark.parametrize("taken", [True, False])
def test_after_its_own_release_a_store_regains_nothing(store: Store, other: Store, taken: bool) -> None:
    clock = Clock()
    store.retries = clock.retries()
    store.leases.acquire("demo", FAR)
    store.leases.release()
    if taken:
        other.leases.acquire("demo", here())
        other.leases.release()
    before = content(store)
    with pytest.raises(LeaseLost) as caught:
        store.add(MEMBERS)
    assert caught.value.released is not taken and clock.now == 0 and content(store) == before
    store.leases.acquire("demo", FAR)
    expire(store)
    other.leases.acquire("demo", here())
    other.leases.release()
    assert store.add(MEMBERS) == len(MEMBERS), "another one that it acquires is regained again"


def test_a_study_that_the_other_one_was_told_to_cancel_stays_cancelled(
    store: Store, other: Store, lost: Callable[[], None]
) -> None:
    def cancelled() -> None:
        store.leases.cancel("demo")
        other.leases.enter(CANCELLED)
        other.leases.release()

    store.retries = Clock(cancelled).retries()
    with pytest.raises(StoreError, match="was cancelled; `epsearch resume demo`"):
        store.add(MEMBERS)
    assert store.all_runs() == []


def test_threads_that_lost_it_together_regain_it_once(store: Store, lost: Callable[[], None]) -> None:
    together, added, problems = threading.Barrier(len(MEMBERS)), list[int](), list[Exception]()
    lost()
    store.retries = Clock().retries()

    def work(number: int) -> None:
        together.wait(HANGS)
        try:
            added.append(store.add([MEMBERS[number]]))
        except StoreError as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(MEMBERS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == [] and sorted(added) == [0, 0, 1, 1, 1, 1] and store.lease == Lease("demo", 3)
