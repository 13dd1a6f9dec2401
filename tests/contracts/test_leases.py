"""One writer per study: leases, and what they fence; the test moves `expires` where time would have to pass."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import Connection, select

from results.ledger.errors import StoreGone
from results.ledger.record import Certificate, Summary
from results.ledger.retry import RetryPolicy
from results.ledger.store import Store, StoreError
from results.ledger.writers import leases
from results.ledger.writers.errors import LeaseHeld, LeaseLost
from results.ledger.writers.holder import UNKNOWN, Holder, here
from results.ledger.writers.lease import CLOCKS, Lease
from results.ledger.writers.lease import now as clock
from results.ledger.writers.states import LeaseState
from tests.support.holders import another_process, dead, killed, needs_proc
from tests.support.leases import FAR, answer, change, content, expire, has_to_wait, tell, waits_for_nobody
from tests.support.limits import HANGS
from tests.support.synthetic import process, record

MEMBERS = [record(seed=seed) for seed in range(6)]
KEYS = sorted(member.key for member in MEMBERS)
A_DAY = 86_400


def held(store: Store, name: str = "demo", holder: Holder | None = None) -> LeaseHeld:
    before = content(store)
    with pytest.raises(LeaseHeld) as caught:
        store.leases.acquire(name, here() if holder is None else holder)
    assert content(store) == before and "\n" not in str(caught.value)
    return caught.value


def test_a_clock_before_1970_is_one(store: Store, other: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a machine whose clock was never set: a lease is held, renewed, written under and released."""
    for name in CLOCKS:
        monkeypatch.setitem(CLOCKS, name, "(-300000000.0)")
    store.leases.acquire("demo", here())
    held(other)
    assert store.leases.renew()
    assert store.add(MEMBERS[:1]) == 1
    store.leases.release()
    assert not store.leases.renew()
    assert other.leases.acquire("demo", here()).token == 2


@pytest.mark.slow
def test_a_study_has_one_holder(store: Store, other: Store) -> None:
    assert store.lease is None
    lease = store.leases.acquire("demo", here())
    assert lease == Lease("demo", 1) == store.lease
    assert held(other).holder == here()
    held(store)  # the same process has it once
    assert other.lease is None and store.lease == lease
    assert other.leases.acquire("another", here()) == Lease("another", 1)


def test_who_has_it_is_said(store: Store, other: Store) -> None:
    store.leases.acquire("demo", FAR)
    error = held(other)
    error_again = type(error)(*error.args)  # as pickle makes it
    for one in (error, error_again):
        assert one.study == "demo" and one.holder == FAR and one.seconds > 0 and isinstance(one, StoreError)
        wanted = f"(lease for another {math.ceil(one.seconds)} s)"
        assert str(one) == f"study 'demo' is being trained by pid 4711 on host far {wanted}"


def test_a_holder_of_another_version_is_unknown(store: Store, other: Store) -> None:
    store.leases.acquire("demo", here())
    change(store, "UPDATE epsearch_leases SET holder = '{\"container\": 7}'")
    error = held(other)
    assert error.holder == UNKNOWN and str(error).startswith("study 'demo' is being trained by an unknown process (le")


def test_the_clock_is_the_databases(store: Store) -> None:
    with store.transaction("read") as connection:
        now = connection.execute(select(clock(connection))).scalar_one()
    assert isinstance(now, float) and abs(now - time.time()) < A_DAY


def test_a_lease_that_is_over_is_free(store: Store, other: Store) -> None:
    store.leases.acquire("demo", FAR)
    expire(store)
    assert other.leases.acquire("demo", here()) == Lease("demo", 2)
    assert held(store, holder=FAR).holder == here()


def test_an_expiry_that_nobody_wrote_is_over(store: Store, other: Store) -> None:
    store.leases.acquire("demo", FAR)
    change(store, "UPDATE epsearch_leases SET expires = 1e300")
    assert other.leases.acquire("demo", here()) == Lease("demo", 2)


def test_tokens_grow_and_never_repeat(store: Store, other: Store) -> None:
    ends: list[Callable[[Store], None]] = [lambda store: store.leases.release(), expire] * 3
    tokens = []
    for number, end in enumerate(ends):
        one = (store, other)[number % 2]
        tokens.append(one.leases.acquire("demo", FAR).token)
        end(one)
    assert tokens == [1, 2, 3, 4, 5, 6]


@needs_proc
def test_the_lease_of_a_process_that_has_ended_is_free_at_once(store: Store, other: Store) -> None:
    with another_process() as (child, holder):
        store.leases.acquire("demo", holder)
        assert held(other).holder == holder
        killed(child)
        assert other.leases.acquire("demo", here()) == Lease("demo", 2)
    assert held(store).holder == here()


@needs_proc
def test_of_two_that_see_the_same_dead_one_the_first_has_it(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.leases.acquire("demo", dead())
    store.lease, current, first = None, leases.state_of, [other]

    def overtaken(connection: Connection, name: str) -> LeaseState | None:
        there = current(connection, name)
        if first:
            assert first.pop().leases.acquire("demo", FAR) == Lease("demo", 2)
        return there

    monkeypatch.setattr(leases, "state_of", overtaken)
    with pytest.raises(LeaseHeld) as caught:
        store.leases.acquire("demo", here())
    assert caught.value.holder == FAR and not first


@needs_proc
@pytest.mark.parametrize(
    "elsewhere", [{"boot": "another"}, {"namespace": "pid:[1]"}, {"boot": "", "started": 0}], ids=str
)
def test_nothing_is_known_of_processes_elsewhere(store: Store, other: Store, elsewhere: dict[str, str | int]) -> None:
    holder = replace(dead(), **elsewhere)  # type: ignore[arg-type]
    store.leases.acquire("demo", holder)
    assert held(other).holder == holder


def test_a_lost_answer_takes_it_once(store: Store, other: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database commits and is gone before it says so."""
    original, lost = store.transaction, [True]

    @contextmanager
    def losing(action: str) -> Iterator[object]:
        with original(action) as connection:
            yield connection
        if lost:
            lost.clear()
            raise StoreGone("the answer was lost")

    monkeypatch.setattr(store, "transaction", losing)
    store.retries = RetryPolicy(60, sleep=lambda seconds: None, clock=lambda: 0.0)
    lease = store.leases.acquire("demo", here())
    assert not lost and lease == store.lease and store.leases.renew()
    held(other)


def test_a_lease_is_renewed_as_long_as_nobody_has_taken_it(store: Store, other: Store) -> None:
    store.leases.acquire("demo", FAR)
    assert store.leases.renew()
    expire(store)
    assert store.add(MEMBERS[:1]) == 1  # which is nobody else's business so far
    assert store.leases.renew()
    held(other)
    expire(store)
    other.leases.acquire("demo", FAR)
    before = content(store)
    assert not store.leases.renew()
    store.leases.release()
    assert content(store) == before
    assert other.leases.renew()


def test_a_lease_that_is_released_is_free_and_writes_no_more(store: Store, other: Store) -> None:
    store.leases.acquire("demo", FAR)
    store.leases.release()
    store.leases.release()
    assert not store.leases.renew()
    with pytest.raises(LeaseLost) as caught:
        store.add(MEMBERS)
    assert caught.value.released
    assert str(caught.value) == "study 'demo' was released by this run; nothing of this one was written since"
    assert store.all_runs() == []
    assert other.leases.acquire("demo", here()) == Lease("demo", 2)
    with pytest.raises(LeaseLost, match="taken over"):
        store.add(MEMBERS)


def summed_up(store: Store, status: str) -> Summary:
    row = store.study("demo")
    assert row is not None
    return Summary("demo", row.checksum, status, None, None, False)


def change_study(store: Store) -> None:
    row = store.study("demo")
    assert row is not None
    store.change_study(row, {"repeats": 6})


WRITES: dict[str, Callable[[Store], object]] = {
    "add": lambda store: store.add(MEMBERS),
    "add what is there": lambda store: store.add(MEMBERS[:1], summed_up(store, "late")),
    "certify": lambda store: store.certify([Certificate(KEYS[0], 0.0, 0.0, "")], summed_up(store, "late")),
    "sum_up": lambda store: store.sum_up(summed_up(store, "late")),
    "sum_up the same": lambda store: store.sum_up(summed_up(store, "begun")),
    "save_study": lambda store: store.save_study("demo", {"repeats": 5}),
    "change_study": change_study,
    "claim": lambda store: store.claims.claim(KEYS),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_who_has_lost_a_lease_writes_nothing(store: Store, other: Store, write: Callable[[Store], object]) -> None:
    store.save_study("demo", {"repeats": 5})
    store.leases.acquire("demo", FAR)
    store.add(MEMBERS[:1], summed_up(store, "begun"))
    expire(store)
    other.leases.acquire("demo", here())
    before = content(store)
    with pytest.raises(LeaseLost) as caught:
        write(store)
    assert str(caught.value) == (
        "study 'demo' has been taken over by another run; nothing of this one was written since"
    )
    assert not caught.value.released and isinstance(caught.value, StoreError)
    assert content(store) == before


def test_a_study_of_another_name_is_saved_in_any_case(store: Store, other: Store) -> None:
    store.leases.acquire("demo", FAR)
    expire(store)
    other.leases.acquire("demo", here())
    store.save_study("another", {"repeats": 5})
    with pytest.raises(LeaseLost):
        store.save_study("demo", {"repeats": 5})
    assert [study.name for study in store.studies()] == ["another"]


def test_nobody_takes_a_lease_while_its_holder_writes(store: Store, other: Store) -> None:
    """The row is locked from the first statement on, also when the lease has expired in the meantime."""
    other.lease = store.leases.acquire("demo", FAR)
    expire(store)
    waits_for_nobody(other)
    with store._writing():
        has_to_wait(lambda: other.leases.acquire("demo", here()), other.leases.renew, other.leases.release)
    assert held(other).seconds > 50  # whoever writes renews in the same transaction
    expire(store)
    assert other.leases.acquire("demo", here()) == Lease("demo", 2)


RACER = """
from dataclasses import replace
from results.ledger.writers import lease
from results.ledger.writers.holder import Holder, here
from results.ledger.writers.errors import LeaseHeld
lease.LEASE_SECONDS = {seconds}  # none is over before the end
print(flush=True)
while name := input():
    try:
        print(store.leases.acquire(name, here()).token, flush=True)
    except LeaseHeld:
        print(0, flush=True)
"""


@pytest.mark.slow
@needs_proc
def test_of_eight_processes_that_try_at_once_one_wins(url: str, store: Store) -> None:
    """A lease that is new, over, or of a process that has ended."""
    names, ended = [f"{kind} {number}" for number in range(5) for kind in ("new", "over", "ended")], dead()
    for name in names:
        if not name.startswith("new"):
            store.leases.acquire(name, ended if name.startswith("ended") else FAR)
            if name.startswith("over"):
                store.leases.release()
    racers = [process(url, *RACER.format(seconds=HANGS).splitlines()) for _ in range(8)]
    try:
        for racer in racers:
            assert answer(racer) == "\n"
        for name in names:
            for racer in racers:
                tell(racer, name)
            won = sorted(int(answer(racer)) for racer in racers)
            assert won == [0] * 7 + [1 if name.startswith("new") else 2], name
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
