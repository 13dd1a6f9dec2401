"""Leases changed behind the program's back, where time would have to pass or another machine would have to be there."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from sqlalchemy import event, select

from results.ledger import schema
from results.ledger.store import Store, StoreError
from results.ledger.writers.errors import LeaseHeld, LeaseLost
from results.ledger.writers.holder import Holder

FAR = Holder("far", "another boot", "pid:[1]", 4711, 99)


def change(store: Store, statement: str) -> None:
    with store.transaction("write to") as connection:
        assert connection.exec_driver_sql(statement).rowcount > 0


def expire(store: Store) -> None:
    """As if an hour had passed for the leases that have not been released."""
    change(store, "UPDATE epsearch_leases SET expires = expires - 3600 WHERE expires > 0")


def content(store: Store) -> dict[str, list[str]]:
    """All rows of every table."""
    with store.transaction("read") as connection:
        return {
            table.name: sorted(map(repr, connection.execute(select(table)).all()))
            for table in schema.TABLES_OF[schema.VERSION]
        }


def waits_for_nobody(store: Store) -> None:
    """What would have to wait for another transaction fails."""
    impatient = "SET lock_timeout = '1ms'" if store._engine.name == "postgresql" else "PRAGMA busy_timeout = 1"
    event.listen(store._engine, "begin", lambda connection: connection.exec_driver_sql(impatient))


def has_to_wait(*works: Callable[[], object]) -> None:
    for work in works:
        with pytest.raises(StoreError, match=r"lock") as caught:
            work()
        assert not isinstance(caught.value, (LeaseHeld, LeaseLost))


def answer(child: subprocess.Popen[str]) -> str:
    """The next line that a process says."""
    assert child.stdout is not None
    return child.stdout.readline()


def tell(child: subprocess.Popen[str], line: str) -> None:
    assert child.stdin is not None
    child.stdin.write(f"{line}\n")
    child.stdin.flush()
