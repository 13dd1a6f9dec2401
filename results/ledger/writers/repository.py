"""Repositories of a store: each call is one transaction, repeated while the database does not answer."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Table

from results.ledger.writers.access import Access
from results.ledger.writers.lease import Lease

T = TypeVar("T")
P = ParamSpec("P")


class Repository:
    """Base of the repositories; their calls write under the lease of the store, which may be regained meanwhile."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def _lease(self) -> Lease:
        """Returns the lease of the store. Raises RuntimeError where it never had one."""
        if self._access.lease is None:
            raise RuntimeError("this store has no lease")
        return self._access.lease


Own = TypeVar("Own", bound=Repository)


def writes(method: Callable[Concatenate[Own, Connection, P], T]) -> Callable[Concatenate[Own, P], T]:
    """Returns a method whose connection is that of a transaction of its own. The method may be called several times."""
    return _in_transaction("write to", method)


def reads(
    table: Table, empty: Callable[[], Any]
) -> Callable[[Callable[Concatenate[Own, Connection, P], T]], Callable[Concatenate[Own, P], T]]:
    """Returns a decorator as `writes`, for reading; `empty` makes the answer where a ledger lacks the table."""

    def decorate(method: Callable[Concatenate[Own, Connection, P], T]) -> Callable[Concatenate[Own, P], T]:
        @wraps(method)
        def read(self: Own, connection: Connection, /, *args: P.args, **options: P.kwargs) -> Any:
            return method(self, connection, *args, **options) if self._access.has(table) else empty()

        return _in_transaction("read", read)

    return decorate


def _in_transaction(
    action: str, method: Callable[Concatenate[Own, Connection, P], T]
) -> Callable[Concatenate[Own, P], T]:
    @wraps(method)
    def call(self: Own, /, *args: P.args, **options: P.kwargs) -> T:
        def work() -> T:
            with self._access.transaction(action) as connection:
                return method(self, connection, *args, **options)

        return self._access.again(work)

    return call
