"""One writer per study: leases, what they fence, and claims; the test moves `expires` where time would have to pass."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import event, select

from results.ledger import schema
from results.ledger.certificate import Certificate
from results.ledger.database import KEYS_PER_QUERY
from results.ledger.errors import StoreGone
from results.ledger.record import RunRecord, Summary
from results.ledger.retry import Patience
from results.ledger.store import Store, StoreError
from results.ledger.writers import claims, leases
from results.ledger.writers.errors import LeaseHeld, LeaseLost
from results.ledger.writers.holder import UNKNOWN, Holder, here
from results.ledger.writers.leases import Lease
from tests.support.holders import another_process, dead, killed, needs_proc
from tests.support.limits import HANGS
from tests.support.synthetic import process, record

FAR = Holder("far", "another boot", "pid:[1]", 4711, 99)
MEMBERS = [record(seed=seed) for seed in range(6)]
KEYS = sorted(member.key for member in MEMBERS)
MANY = [f"{number:064x}" for number in range(3 * KEYS_PER_QUERY)]
A_DAY = 86_400


@pytest.fixture
def other(url: str, store: Store) -> Iterator[Store]:
    """Another run's store at the same ledger."""
    with Store.open(url) as opened:
        yield opened


def change(store: Store, statement: str) -> None:
    with store._transaction("write to") as connection:
        assert connection.exec_driver_sql(statement).rowcount > 0


def expire(store: Store) -> None:
    """As if an hour had passed for the leases that have not been released."""
    change(store, "UPDATE epsearch_leases SET expires = expires - 3600 WHERE expires > 0")


def content(store: Store) -> dict[str, list[str]]:
    """All rows of every table."""
    with store._transaction("read") as connection:
        return {
            table.name: sorted(map(repr, connection.execute(select(table)).all()))
            for table in schema.TABLES_OF[schema.VERSION]
        }


def held(store: Store, name: str = "demo", holder: Holder | None = None) -> LeaseHeld:
    before = content(store)
    with pytest.raises(LeaseHeld) as caught:
        store.acquire(name, here() if holder is None else holder)
    assert content(store) == before and "\n" not in str(caught.value)
    return caught.value


def test_a_study_has_one_holder(store: Store, other: Store) -> None:
    assert store.lease is None
    lease = store.acquire("demo", here())
    assert lease == Lease("demo", 1) == store.lease
    assert held(other).holder == here()
    held(store)  # the same process has it once
    assert other.lease is None and store.lease == lease
    assert other.acquire("another", here()) == Lease("another", 1)


def test_who_has_it_is_said(store: Store, other: Store) -> None:
    store.acquire("demo", FAR)
    error = held(other)
    error_again = type(error)(*error.args)  # as pickle makes it
    for one in (error, error_again):
        assert one.study == "demo" and one.holder == FAR and one.seconds > 0 and isinstance(one, StoreError)
        wanted = f"(lease for another {math.ceil(one.seconds)} s)"
        assert str(one) == f"study 'demo' is being trained by pid 4711 on host far {wanted}"


def test_a_holder_of_another_version_is_unknown(store: Store, other: Store) -> None:
    store.acquire("demo", here())
    change(store, "UPDATE epsearch_leases SET holder = '{\"container\": 7}'")
    error = held(other)
    assert error.holder == UNKNOWN and str(error).startswith("study 'demo' is being trained by an unknown process (le")


def test_the_clock_is_the_databases(store: Store) -> None:
    with store._transaction("read") as connection:
        now = connection.execute(select(leases.now(connection))).scalar_one()
    assert isinstance(now, float) and abs(now - time.time()) < A_DAY


def test_a_lease_that_is_over_is_free(store: Store, other: Store) -> None:
    store.acquire("demo", FAR)
    expire(store)
    assert other.acquire("demo", here()) == Lease("demo", 2)
    assert held(store, holder=FAR).holder == here()


def test_an_expiry_that_nobody_wrote_is_over(store: Store, other: Store) -> None:
    store.acquire("demo", FAR)
    change(store, "UPDATE epsearch_leases SET expires = 1e300")
    assert other.acquire("demo", here()) == Lease("demo", 2)


def test_tokens_grow_and_never_repeat(store: Store, other: Store) -> None:
    ends: list[Callable[[Store, Lease], None]] = [Store.release, lambda one, lease: expire(one)] * 3
    tokens = []
    for number, end in enumerate(ends):
        one = (store, other)[number % 2]
        tokens.append((lease := one.acquire("demo", FAR)).token)
        end(one, lease)
    assert tokens == [1, 2, 3, 4, 5, 6]


@needs_proc
def test_the_lease_of_a_process_that_has_ended_is_free_at_once(store: Store, other: Store) -> None:
    with another_process() as (child, holder):
        store.acquire("demo", holder)
        assert held(other).holder == holder
        killed(child)
        assert other.acquire("demo", here()) == Lease("demo", 2)
    assert held(store).holder == here()


@needs_proc
@pytest.mark.parametrize(
    "elsewhere", [{"boot": "another"}, {"namespace": "pid:[1]"}, {"boot": "", "started": 0}], ids=str
)
def test_nothing_is_known_of_processes_elsewhere(store: Store, other: Store, elsewhere: dict[str, str | int]) -> None:
    holder = replace(dead(), **elsewhere)  # type: ignore[arg-type]
    store.acquire("demo", holder)
    assert held(other).holder == holder


def test_a_lost_answer_takes_it_once(store: Store, other: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database commits and is gone before it says so."""
    original, lost = store._transaction, [True]

    @contextmanager
    def losing(action: str) -> Iterator[object]:
        with original(action) as connection:
            yield connection
        if lost:
            lost.clear()
            raise StoreGone("the answer was lost")

    monkeypatch.setattr(store, "_transaction", losing)
    store.patience = Patience(60, sleep=lambda seconds: None, clock=lambda: 0.0)
    lease = store.acquire("demo", here())
    assert not lost and lease == store.lease and store.renew(lease)
    held(other)


def test_a_lease_is_renewed_as_long_as_nobody_has_taken_it(store: Store, other: Store) -> None:
    lease = store.acquire("demo", FAR)
    assert store.renew(lease)
    expire(store)
    assert store.add(MEMBERS[:1]) == 1  # which is nobody else's business so far
    assert store.renew(lease)
    held(other)
    expire(store)
    second = other.acquire("demo", FAR)
    before = content(store)
    assert not store.renew(lease)
    store.release(lease)
    assert content(store) == before
    assert other.renew(second)


def test_a_lease_that_is_released_is_free_and_writes_no_more(store: Store, other: Store) -> None:
    lease = store.acquire("demo", FAR)
    store.release(lease)
    store.release(lease)
    assert not store.renew(lease)
    with pytest.raises(LeaseLost) as caught:
        store.add(MEMBERS)
    assert caught.value.released
    assert str(caught.value) == "study 'demo' was released by this run; nothing of this one was written since"
    assert store.all_runs() == []
    assert other.acquire("demo", here()) == Lease("demo", 2)
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
    "claim": lambda store: store.claim(Lease("demo", 1), KEYS),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_who_has_lost_a_lease_writes_nothing(store: Store, other: Store, write: Callable[[Store], object]) -> None:
    store.save_study("demo", {"repeats": 5})
    store.acquire("demo", FAR)
    store.add(MEMBERS[:1], summed_up(store, "begun"))
    expire(store)
    other.acquire("demo", here())
    before = content(store)
    with pytest.raises(LeaseLost) as caught:
        write(store)
    assert str(caught.value) == (
        "study 'demo' has been taken over by another run; nothing of this one was written since"
    )
    assert not caught.value.released and isinstance(caught.value, StoreError)
    assert content(store) == before


def test_a_study_of_another_name_is_saved_in_any_case(store: Store, other: Store) -> None:
    store.acquire("demo", FAR)
    expire(store)
    other.acquire("demo", here())
    store.save_study("another", {"repeats": 5})
    with pytest.raises(LeaseLost):
        store.save_study("demo", {"repeats": 5})
    assert [study.name for study in store.studies()] == ["another"]


def waits_for_nobody(store: Store) -> None:
    """What would have to wait for another transaction fails."""
    impatient = "SET lock_timeout = '1ms'" if store._engine.name == "postgresql" else "PRAGMA busy_timeout = 1"
    event.listen(store._engine, "begin", lambda connection: connection.exec_driver_sql(impatient))


def has_to_wait(*works: Callable[[], object]) -> None:
    for work in works:
        with pytest.raises(StoreError, match=r"lock") as caught:
            work()
        assert not isinstance(caught.value, (LeaseHeld, LeaseLost))


def test_nobody_takes_a_lease_while_its_holder_writes(store: Store, other: Store) -> None:
    """The row is locked from the first statement on, also when the lease has expired in the meantime."""
    lease = store.acquire("demo", FAR)
    expire(store)
    waits_for_nobody(other)
    with store._writing():
        has_to_wait(lambda: other.acquire("demo", here()), lambda: other.renew(lease), lambda: other.release(lease))
    assert held(other).seconds > 50  # whoever writes renews in the same transaction
    expire(store)
    assert other.acquire("demo", here()) == Lease("demo", 2)


def test_claims_change_in_one_transaction_at_a_time(store: Store, other: Store, both: tuple[Lease, Lease]) -> None:
    """So that no record comes between the look for records and the claim, and nobody waits in a circle."""
    waits_for_nobody(other)
    with store._writing() as connection:
        claims.lock(connection)
        has_to_wait(
            lambda: other.claim(both[1], KEYS[:1]), lambda: other.add(MEMBERS[1:2]), lambda: other.release(both[1])
        )
        assert other.claimed(KEYS) == {}
    assert other.claim(both[1], KEYS[:1]) == set(KEYS[:1])


RACER = """
from dataclasses import replace
from results.ledger.writers import leases
from results.ledger.writers.holder import Holder, here
from results.ledger.writers.errors import LeaseHeld
leases.LEASE_SECONDS = {seconds}  # none is over before the end
print(flush=True)
while name := input():
    try:
        print(store.acquire(name, here()).token, flush=True)
    except LeaseHeld:
        print(0, flush=True)
"""


@needs_proc
def test_of_eight_processes_that_try_at_once_one_wins(url: str, store: Store) -> None:
    """A lease that is new, over, or of a process that has ended."""
    names, ended = [f"{kind} {number}" for number in range(5) for kind in ("new", "over", "ended")], dead()
    for name in names:
        if not name.startswith("new"):
            lease = store.acquire(name, ended if name.startswith("ended") else FAR)
            if name.startswith("over"):
                store.release(lease)
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


def answer(racer: object) -> str:
    return racer.stdout.readline()  # type: ignore[attr-defined, no-any-return]


def tell(racer: object, line: str) -> None:
    racer.stdin.write(f"{line}\n")  # type: ignore[attr-defined]
    racer.stdin.flush()  # type: ignore[attr-defined]


@pytest.fixture
def both(store: Store, other: Store) -> tuple[Lease, Lease]:
    return store.acquire("one", FAR), other.acquire("two", FAR)


def test_of_what_two_studies_need_each_trains_what_it_claimed(
    store: Store, other: Store, both: tuple[Lease, Lease]
) -> None:
    one, two = both
    third = len(MANY) // 3
    assert store.claim(one, MANY[: 2 * third]) == set(MANY[: 2 * third])
    assert other.claim(two, MANY[third:]) == set(MANY[2 * third :])
    assert other.claim(two, MANY[third:]) == set(MANY[2 * third :])  # it still has them
    assert store.claimed(MANY) == dict.fromkeys(MANY[: 2 * third], "one") | dict.fromkeys(MANY[2 * third :], "two")
    assert store.claim(one, []) == set() and store.claimed([]) == {} and store.claimed(KEYS) == {}
    assert all(len(rows) != 1 for name, rows in content(store).items() if name == "epsearch_claims")


def test_claims_are_read_by_who_only_reads(url: str, store: Store) -> None:
    with Store.read(url) as reader:
        assert reader.claimed(KEYS) == {}
        store.claim(store.acquire("demo", FAR), KEYS[:2])
        assert reader.claimed(KEYS) == dict.fromkeys(KEYS[:2], "demo")


@pytest.mark.parametrize("end", ["over", "released", "taken over"])
def test_claims_end_with_the_lease(store: Store, other: Store, both: tuple[Lease, Lease], end: str) -> None:
    one, two = both
    store.claim(one, KEYS)
    assert other.claim(two, KEYS) == set()
    if end == "released":
        store.release(one)
    else:
        change(store, "UPDATE epsearch_leases SET expires = 1 WHERE name = 'one'")
    if end == "taken over":
        assert store.acquire("one", FAR).token == 2
    assert other.claimed(KEYS) == {}
    assert other.claim(two, KEYS[:3]) == set(KEYS[:3])
    assert other.claimed(KEYS) == dict.fromkeys(KEYS[:3], "two")


def test_claims_of_a_lease_that_is_renewed_are_live_again(
    store: Store, other: Store, both: tuple[Lease, Lease]
) -> None:
    one, two = both
    store.claim(one, KEYS)
    change(store, "UPDATE epsearch_leases SET expires = 1 WHERE name = 'one'")
    assert other.claim(two, KEYS[:1]) == set(KEYS[:1])
    assert store.renew(one)
    assert other.claim(two, KEYS) == set(KEYS[:1])
    assert store.claim(one, KEYS) == set(KEYS[1:])


def test_what_has_a_record_is_not_claimed(store: Store, both: tuple[Lease, Lease]) -> None:
    store.add(MEMBERS[:2])
    known = {member.key for member in MEMBERS[:2]}
    assert store.claim(both[0], KEYS) == set(KEYS) - known
    assert set(store.claimed(KEYS)) == set(KEYS) - known


def test_what_has_a_damaged_record_is_trained_again(store: Store, both: tuple[Lease, Lease]) -> None:
    store.add(MEMBERS[:1])
    change(store, "UPDATE epsearch_runs SET steps = 7")
    assert store.claim(both[0], KEYS) == set(KEYS)
    assert store.add(MEMBERS[:1]) == 1 and MEMBERS[0].key not in store.claimed(KEYS)


@pytest.mark.parametrize("leased", [True, False])
def test_a_claim_goes_with_the_record_that_comes(
    store: Store, other: Store, both: tuple[Lease, Lease], leased: bool
) -> None:
    """Whoever has claimed it: a study that has been certain of its claims for too long trains what others do, too."""
    store.claim(both[0], KEYS)
    if not leased:
        other.lease = None
    other.add(MEMBERS[:1])
    assert set(store.claimed(KEYS)) == set(KEYS) - {MEMBERS[0].key}
    store.add(MEMBERS)
    assert content(store)["epsearch_claims"] == []


def test_a_claim_stays_where_the_record_does_not_come(store: Store, both: tuple[Lease, Lease]) -> None:
    store.save_study("demo", {})
    store.claim(both[0], KEYS)
    with pytest.raises(ValueError, match="JSON"):
        store.add(MEMBERS, replace(summed_up(store, "begun"), score=float("nan")))
    assert set(store.claimed(KEYS)) == set(KEYS)
    store.certify([Certificate(KEYS[0], 0.0, 0.0, "")])
    assert set(store.claimed(KEYS)) == set(KEYS)


def test_many_studies_claim_and_write_at_once(url: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any order of keys; no key is claimed by two, and none waits for another that waits for it."""
    monkeypatch.setattr(leases, "LEASE_SECONDS", float(HANGS))
    together, problems, claimed = threading.Barrier(6), list[Exception](), dict[int, set[str]]()

    def work(number: int, wanted: Sequence[str], mine: Sequence[RunRecord]) -> None:
        try:
            with Store.open(url) as own:
                lease = own.acquire(f"study {number}", FAR)
                together.wait(HANGS)
                claimed[number] = own.claim(lease, wanted[: len(wanted) // 2])
                own.add(mine)
                claimed[number] |= own.claim(lease, wanted)
                if number == 0:
                    own.release(lease)
                    claimed[number] = set()
        except (StoreError, threading.BrokenBarrierError) as error:
            problems.append(error)
            together.abort()

    threads = []
    for number in range(6):
        first = number * len(MANY) // 6
        wanted = [*MANY[first:], *MANY[:first], *KEYS][:: 1 if number % 2 else -1]
        threads.append(threading.Thread(target=work, args=(number, wanted, MEMBERS[:: 1 if number % 2 else -1])))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    everything = [key for keys in claimed.values() for key in keys if key not in KEYS]
    assert len(everything) == len(set(everything))
    owners = store.claimed([*MANY, *KEYS])
    assert owners == {key: f"study {number}" for number, keys in claimed.items() for key in keys if key not in KEYS}
