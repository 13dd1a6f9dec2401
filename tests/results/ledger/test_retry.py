"""A database that has gone is waited for, with a clock of the test's own; what it does twice is done once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from results.ledger.database import one_line_errors
from results.ledger.errors import StoreError, StoreGone, StoreUnavailable
from results.ledger.retry import RetryPolicy
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from tests.support.synthetic import record

URL = "postgresql://me:secret@host/db"


class Clock:
    """Time that passes by sleeping only."""

    def __init__(self) -> None:
        self.now, self.told = 0.0, list[str]()

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def retries(self, seconds: float) -> RetryPolicy:
        return RetryPolicy(seconds, self.told.append, self.sleep, lambda: self.now)


def failing(times: int, error: Exception) -> Callable[[], str]:
    left = iter([error] * times)

    def work() -> str:
        for one in left:
            raise one
        return "done"

    return work


def test_it_is_tried_again_until_the_database_answers() -> None:
    clock = Clock()
    assert clock.retries(100).again(failing(5, StoreGone("cannot write"))) == "done"
    assert 0 < clock.now <= 100 and clock.told == ["cannot write; trying again for up to 100 s"]


def test_retries_end() -> None:
    clock = Clock()
    with pytest.raises(StoreGone, match="cannot write"):
        clock.retries(100).again(failing(1000, StoreGone("cannot write")))
    assert 80 < clock.now <= 100


@pytest.mark.parametrize("error", [StoreUnavailable("the disk is full"), StoreError("no"), ValueError("no")])
def test_what_will_not_pass_is_not_tried_again(error: Exception) -> None:
    clock = Clock()
    with pytest.raises(type(error)):
        clock.retries(100).again(failing(1, error))
    assert clock.now == 0 and clock.told == []


@pytest.fixture
def restarts(store: Store) -> Callable[[int, str], list[str]]:
    """Lets a ledger's database go away: so many of its statements, from now on, fail before or after they are done."""

    def go(times: int, moment: str) -> list[str]:
        met: list[str] = []

        def lost(connection: object, cursor: object, statement: str, *rest: object) -> None:
            if len(met) < times:
                met.append(statement)
                raise of_psycopg("server closed the connection unexpectedly")

        event.listen(store._engine, f"{moment}_cursor_execute", lost)
        return met

    return go


def of_psycopg(reason: str, state: str | None = None) -> OperationalError:
    """What SQLAlchemy makes of an error of psycopg, which need not be installed."""
    kind = type("OperationalError", (Exception,), {"__module__": "psycopg", "sqlstate": state})
    return OperationalError("insert", {}, kind(reason))


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_ledger_survives_a_restart(store: Store, restarts: Callable[..., list[str]], moment: str) -> None:
    clock = Clock()
    store.retries = clock.retries(60)
    met = restarts(3, moment)
    assert store.add(one for one in [record(seed=0), record(seed=1)]) == 2
    assert len(met) == 3 and clock.now > 0
    assert len(store.get(key for key in [record(seed=0).key])) == 1 and len(store.all_runs()) == 2


def test_a_change_whose_answer_was_lost_is_no_conflict(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database commits and is gone before it says so."""
    store.save_study("mine", {"seeds": 1})
    store.retries = Clock().retries(60)
    (row,) = store.studies()
    original, lost = store.transaction, [True]

    def transaction(action: str) -> object:
        class Losing:
            def __enter__(self) -> object:
                self.inner = original(action)
                return self.inner.__enter__()

            def __exit__(self, *error: object) -> None:
                self.inner.__exit__(*error)  # type: ignore[arg-type]
                if action == "write to" and lost.pop() if lost else False:
                    raise StoreGone("the answer was lost")

        return Losing()

    monkeypatch.setattr(store, "transaction", transaction)
    store.change_study(row, {"seeds": 2})
    assert not lost and store.studies()[0].config == {"seeds": 2}


@pytest.mark.parametrize(
    ("reason", "state", "kind"),
    [
        ("connection refused", None, StoreGone),
        ("FATAL:  the database system is starting up", None, StoreGone),
        ("FATAL:  the database system is not yet accepting connections", None, StoreGone),
        ("FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute", None, StoreGone),
        ('FATAL:  password authentication failed for user "me"', None, StoreError),
        ('FATAL:  database "db" does not exist', None, StoreError),
        ("terminating connection due to administrator command", "57P01", StoreGone),
        ("connection failure", "08006", StoreGone),
        ("deadlock detected", "40P01", StoreGone),
        ("too many connections", "53300", StoreGone),
        ("disk full", "53100", StoreUnavailable),
        ("permission denied for table epsearch_runs", "42501", StoreError),
    ],
)
def test_what_a_database_says_of_itself(reason: str, state: str | None, kind: type[StoreError]) -> None:
    with pytest.raises(StoreError) as caught, one_line_errors(LedgerUrl(URL), "write to"):
        raise of_psycopg(reason, state)
    assert type(caught.value) is kind and "secret" not in str(caught.value)


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """As SQLite sees it when it may not make its file larger."""
    with Store.open(f"sqlite:///{tmp_path}/ledger.db") as store:
        store.add([record(seed=0)])
        store._engine.dispose()
        event.listen(store._engine, "connect", lambda raw, _: raw.execute("PRAGMA max_page_count=1"))
        with pytest.raises(StoreUnavailable, match=r"cannot write to the ledger .* is full"):
            store.add(record(seed=seed) for seed in range(200))
        assert len(store.all_runs()) == 1
