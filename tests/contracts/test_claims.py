"""Of members that several studies need, each is trained by the one that claimed it, as long as that has its lease."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from sqlalchemy import select

from results.ledger import schema
from results.ledger.database import KEYS_PER_QUERY
from results.ledger.record import Certificate, RunRecord, Summary
from results.ledger.store import Store, StoreError
from results.ledger.writers import claims, lease
from tests.support.leases import FAR, change, content, has_to_wait, waits_for_nobody
from tests.support.limits import HANGS
from tests.support.synthetic import record

MEMBERS = [record(seed=seed) for seed in range(6)]
KEYS = sorted(member.key for member in MEMBERS)
MANY = [f"{number:064x}" for number in range(3 * KEYS_PER_QUERY)]


@pytest.fixture(autouse=True)
def both(store: Store, other: Store) -> None:
    """Two runs that have a study each."""
    store.leases.acquire("one", FAR)
    other.leases.acquire("two", FAR)


@pytest.mark.slow
def test_of_what_two_studies_need_each_trains_what_it_claimed(store: Store, other: Store) -> None:
    third = len(MANY) // 3
    assert store.claims.claim(MANY[: 2 * third]) == set(MANY[: 2 * third])
    assert other.claims.claim(MANY[third:]) == set(MANY[2 * third :])
    assert other.claims.claim(MANY[third:]) == set(MANY[2 * third :])  # it still has them
    assert store.claims.claimants(MANY) == dict.fromkeys(MANY[: 2 * third], "one") | dict.fromkeys(
        MANY[2 * third :], "two"
    )
    assert store.claims.claim([]) == set() and store.claims.claimants([]) == {} and store.claims.claimants(KEYS) == {}
    assert all(len(rows) != 1 for name, rows in content(store).items() if name == "epsearch_claims")


def test_claims_are_read_by_who_only_reads(url: str, store: Store) -> None:
    with Store.read(url) as reader:
        assert reader.claims.claimants(KEYS) == {}
        store.claims.claim(KEYS[:2])
        assert reader.claims.claimants(KEYS) == dict.fromkeys(KEYS[:2], "one")


@pytest.mark.parametrize("end", ["over", "released", "taken over"])
def test_claims_end_with_the_lease(store: Store, other: Store, end: str) -> None:
    store.claims.claim(KEYS)
    assert other.claims.claim(KEYS) == set()
    if end == "released":
        store.leases.release()
    else:
        change(store, "UPDATE epsearch_leases SET expires = 1 WHERE name = 'one'")
    if end == "taken over":
        assert store.leases.acquire("one", FAR).token == 2
    assert other.claims.claimants(KEYS) == {}
    assert other.claims.claim(KEYS[:3]) == set(KEYS[:3])
    assert other.claims.claimants(KEYS) == dict.fromkeys(KEYS[:3], "two")


def test_claims_go_with_their_study_and_their_lease_alone(url: str, store: Store, other: Store) -> None:
    """Whoever takes a study over drops what was claimed for it; whoever lost it then gives back nothing of theirs."""

    def studies() -> list[tuple[str, int]]:
        with store.transaction("read") as connection:
            rows = connection.execute(select(schema.claims)).all()
            return sorted((row.study, row.token) for row in rows)

    store.claims.claim(KEYS[:1])
    other.claims.claim(KEYS[1:2])
    change(store, "UPDATE epsearch_leases SET expires = 1 WHERE name = 'one'")
    with Store.open(url) as third:
        third.leases.acquire("one", FAR)
        assert studies() == [("two", 1)]
        third.claims.claim(KEYS[2:3])
        store.leases.release()
        assert studies() == [("one", 2), ("two", 1)]
        third.leases.release()
    assert studies() == [("two", 1)]


def test_claims_of_a_lease_that_is_renewed_are_live_again(store: Store, other: Store) -> None:
    store.claims.claim(KEYS)
    change(store, "UPDATE epsearch_leases SET expires = 1 WHERE name = 'one'")
    assert other.claims.claim(KEYS[:1]) == set(KEYS[:1])
    assert store.leases.renew()
    assert other.claims.claim(KEYS) == set(KEYS[:1])
    assert store.claims.claim(KEYS) == set(KEYS[1:])


def test_what_has_a_record_is_not_claimed(store: Store) -> None:
    store.add(MEMBERS[:2])
    known = {member.key for member in MEMBERS[:2]}
    assert store.claims.claim(KEYS) == set(KEYS) - known
    assert set(store.claims.claimants(KEYS)) == set(KEYS) - known


def test_what_has_a_damaged_record_is_trained_again(store: Store) -> None:
    store.add(MEMBERS[:1])
    change(store, "UPDATE epsearch_runs SET steps = 7")
    assert store.claims.claim(KEYS) == set(KEYS)
    assert store.add(MEMBERS[:1]) == 1 and MEMBERS[0].key not in store.claims.claimants(KEYS)


@pytest.mark.parametrize("leased", [True, False])
def test_a_claim_goes_with_the_record_that_comes(store: Store, other: Store, leased: bool) -> None:
    """Whoever has claimed it: a study that has been certain of its claims for too long trains what others do, too."""
    store.claims.claim(KEYS)
    if not leased:
        other.lease = None
    other.add(MEMBERS[:1])
    assert set(store.claims.claimants(KEYS)) == set(KEYS) - {MEMBERS[0].key}
    store.add(MEMBERS)
    assert content(store)["epsearch_claims"] == []


def test_a_claim_stays_where_the_record_does_not_come(store: Store) -> None:
    store.claims.claim(KEYS)
    with pytest.raises(ValueError, match="JSON"):
        store.add(MEMBERS, Summary("one", "", "begun", None, float("nan"), False))
    assert set(store.claims.claimants(KEYS)) == set(KEYS)
    store.certify([Certificate(KEYS[0], 0.0, 0.0, "")])
    assert set(store.claims.claimants(KEYS)) == set(KEYS)


def test_claims_change_in_one_transaction_at_a_time(store: Store, other: Store) -> None:
    """So that no record comes between the look for records and the claim, and nobody waits in a circle."""
    waits_for_nobody(other)
    with store._writing() as connection:
        claims.lock(connection)
        has_to_wait(
            lambda: other.claims.claim(KEYS[:1]), lambda: other.add(MEMBERS[1:2]), lambda: other.leases.release()
        )
        assert other.claims.claimants(KEYS) == {}
    assert other.claims.claim(KEYS[:1]) == set(KEYS[:1])


@pytest.mark.slow
def test_many_studies_claim_and_write_at_once(url: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any order of keys; no key is claimed by two, and none waits for another that waits for it."""
    monkeypatch.setattr(lease, "LEASE_SECONDS", float(HANGS))
    together, problems, claimed = threading.Barrier(6), list[Exception](), dict[int, set[str]]()

    def work(number: int, wanted: Sequence[str], mine: Sequence[RunRecord]) -> None:
        try:
            with Store.open(url) as own:
                own.leases.acquire(f"study {number}", FAR)
                together.wait(HANGS)
                claimed[number] = own.claims.claim(wanted[: len(wanted) // 2])
                own.add(mine)
                claimed[number] |= own.claims.claim(wanted)
                if number == 0:
                    own.leases.release()
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
    owners = store.claims.claimants([*MANY, *KEYS])
    assert owners == {key: f"study {number}" for number, keys in claimed.items() for key in keys if key not in KEYS}
