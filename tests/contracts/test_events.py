"""Events: numbered over all studies, none given twice, and a reader that goes on from the last one misses none."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import delete

from results.ledger import schema
from results.ledger.store import Store
from results.ledger.writers import events
from results.ledger.writers.errors import LeaseLost
from results.ledger.writers.holder import here
from tests.support.leases import FAR, answer, change, content, expire, tell
from tests.support.limits import HANGS
from tests.support.synthetic import process

AWKWARD = {"text": "a\nb \x00 \udc80 ε", "numbers": [0.1, 1e308, -1], "nothing": None}


def ids(store: Store, name: str = "demo") -> list[int]:
    return [one.id for one in store.events.read(name)]


def test_what_is_noted_comes_back(store: Store) -> None:
    lease = store.leases.acquire("demo", here())
    store.events.append([("note", AWKWARD), ("warning", {})])
    store.events.append([])
    begun, note, warning = store.events.read("demo")
    assert (begun.kind, begun.data) == ("state", {"state": "running", "reason": ""})
    assert (note.kind, note.data, note.study, note.token) == ("note", AWKWARD, "demo", lease.token)
    assert warning.data == {} and begun.time <= note.time == warning.time
    assert store.events.read("another") == []
    with pytest.raises(ValueError, match="JSON"):
        store.events.append([("progress", {"done": 1}), ("progress", {"done": float("nan")})])
    assert len(store.events.read("demo")) == 3


def test_a_reader_goes_on_from_the_last_one(url: str, store: Store) -> None:
    store.leases.acquire("demo", here())
    with Store.read(url) as reader:
        (begun,) = reader.events.read("demo")
        assert reader.events.read("demo", begun.id) == []
        store.events.append([("note", {"n": n}) for n in range(5)])
        behind = reader.events.read("demo", begun.id)
        assert [one.data for one in behind] == [{"n": n} for n in range(5)]
        assert reader.events.read("demo", begun.id, most=2) == behind[:2] and reader.events.read("demo", most=0) == []
        assert reader.events.read("demo", behind[1].id, most=2) == behind[2:4]


def test_numbers_grow_over_all_studies(store: Store, other: Store) -> None:
    store.leases.acquire("demo", here())
    other.leases.acquire("another", here())
    numbers = [*ids(store), *ids(store, "another")]
    for one, name in [(store, "demo"), (other, "another"), (store, "demo")]:
        one.events.append([("note", {}), ("note", {})])
        numbers += ids(store, name)[-2:]
    assert numbers == sorted(set(numbers)) and len(numbers) == 8


def test_no_number_is_given_twice(url: str, store: Store) -> None:
    """Also not after the newest ones were deleted, and by whoever opens the ledger next."""
    store.leases.acquire("demo", here())
    store.events.append([("note", {})] * 3)
    last = ids(store)[-1]
    with store.transaction("write to") as connection:
        connection.execute(delete(schema.events).where(schema.events.c.id > 1))
    store.events.append([("note", {})])
    assert ids(store)[-1] == last + 1
    change(store, "DELETE FROM epsearch_events")
    with Store.open(url) as again:
        again.leases.acquire("another", here())
        assert ids(again, "another") == [last + 2]


def test_the_last_ones_of_a_study_are_kept_and_those_of_others_stay(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "KEPT", 10)
    other.leases.acquire("another", here())
    other.events.append([("note", {})] * 3)
    before = ids(other, "another")
    store.leases.acquire("demo", here())
    seen = ids(store)
    for turn in range(12):
        store.events.append([("note", {"n": 2 * turn}), ("note", {"n": 2 * turn + 1})])
        seen += ids(store)[-2:]
        assert ids(store) == seen[-10:] and ids(other, "another") == before
    store.events.append([("note", {"many": n}) for n in range(25)])
    assert [one.data for one in store.events.read("demo")] == [{"many": n} for n in range(15, 25)]
    assert ids(other, "another") == before


@pytest.mark.slow
def test_ten_thousand_are_kept(store: Store) -> None:
    lease = store.leases.acquire("demo", here())
    row = {"study": "demo", "token": lease.token, "kind": "note", "data": "{}", "time": 1.0}
    with store.transaction("write to") as connection:
        connection.execute(schema.events.insert(), [row] * 10_500)
    store.events.append([("note", {"the": "last"})])
    found = store.events.read("demo")
    assert len(found) == 10_000 == events.KEPT and found[-1].data == {"the": "last"}


@pytest.mark.parametrize("junk", ["'{'", "'[]'", "'NaN'", "''", "'null'"])
def test_damaged_ones_are_left_out(store: Store, junk: str) -> None:
    store.leases.acquire("demo", here())
    store.events.append([("note", {"n": n}) for n in range(4)])
    _, first, *rest = ids(store)
    change(store, f"UPDATE epsearch_events SET data = {junk} WHERE id IN ({first}, {rest[0]})")
    change(store, f"UPDATE epsearch_events SET time = 1e308 WHERE id = {rest[1]}")
    assert [one.data for one in store.events.read("demo", 1)] == [{"n": 3}]
    assert [one.data for one in store.events.read("demo", 1, most=1)] == [{"n": 3}], "a reader goes on behind them"


def test_values_of_other_types_are_left_out(store: Store) -> None:
    if store._engine.name != "sqlite":
        pytest.skip("this database keeps the types of its columns")
    store.leases.acquire("demo", here())
    store.events.append([("note", {})] * 3)
    for column, number in (("kind", 2), ("time", 3), ("token", 4)):
        change(store, f"UPDATE epsearch_events SET {column} = x'00ff' WHERE id = {number}")
    assert ids(store) == [1]


@pytest.mark.slow
def test_who_has_lost_its_lease_notes_nothing(store: Store, other: Store) -> None:
    store.leases.acquire("demo", FAR)
    expire(store)
    store.events.append([("note", {})])  # nobody has taken it
    expire(store)
    other.leases.acquire("demo", here())
    before = content(store)
    with pytest.raises(LeaseLost):
        store.events.append([("note", {})])
    other.leases.release()
    with pytest.raises(LeaseLost):
        other.events.append([("note", {})])
    assert content(store)["epsearch_events"] == before["epsearch_events"]


WRITER = """
from results.ledger.writers import lease
from results.ledger.writers.holder import here
lease.LEASE_SECONDS = {seconds}  # none is over before the end
name, count = input().split()
store.leases.acquire(name, here())
print(flush=True)
input()
for number in range(int(count)):
    store.events.append([("note", {{"number": number}})] * (1 + number % 3))
    store.add([record(seed=number)])
print("done", flush=True)
"""
EACH = 20


@pytest.mark.slow
def test_a_reader_misses_none_while_four_processes_write(url: str, store: Store) -> None:
    """It asks for what is behind the last one that it saw of any study."""
    names = [f"study-{number}" for number in range(4)]
    writers = [process(url, *WRITER.format(seconds=HANGS).splitlines()) for _ in names]
    try:
        for writer, name in zip(writers, names, strict=True):
            tell(writer, f"{name} {EACH}")
        for writer in writers:
            assert answer(writer) == "\n"
        for writer in writers:
            tell(writer, "go")
        seen: dict[int, str] = {}
        with Store.read(url) as reader:
            at_work = True
            while at_work:
                at_work = any(writer.poll() is None for writer in writers)
                # All studies in one transaction, as one reader of them all sees them.
                with reader.transaction("read") as connection:
                    last = max(seen, default=0)
                    rows = connection.execute(
                        schema.events.select().where(schema.events.c.id > last).order_by(schema.events.c.id)
                    ).all()
                seen |= {row.id: f"{row.study} {row.kind} {json.loads(row.data).get('number')}" for row in rows}
        assert [writer.communicate()[0] for writer in writers] == ["done\n"] * 4
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    stored = {one.id: one for name in names for one in store.events.read(name)}
    assert seen.keys() == stored.keys()
    for name in names:
        numbers = [one.data["number"] for one in store.events.read(name) if one.kind == "note"]
        assert numbers == [number for number in range(EACH) for _ in range(1 + number % 3)]
