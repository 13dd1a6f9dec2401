"""PostgreSQL: servers that restart, vanish from the network, or are silent."""

from functools import cache
from typing import Any

from sqlalchemy import URL, Engine, event

from results.ledger.dialects.engine import make_engine
from results.ledger.errors import StoreError, StoreGone, StoreUnavailable
from results.ledger.url import LedgerUrl

ENCODING = "UTF8"
"""Of a PostgreSQL database: others lack letters, or do not know which bytes are which."""

CONNECT_SECONDS, SILENT_SECONDS = 10, 60
"""Longest waits for a connection to PostgreSQL, and for the answer to one statement."""
IDLE_SECONDS = 30
"""After which PostgreSQL ends a transaction of a program that was stopped, so that others get its locks."""
KEEP_ALIVE = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives": 1,
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 4,
    "tcp_user_timeout": 1000 * SILENT_SECONDS,
}
"""Options of libpq by which a server that has vanished from the network is noticed; the URL may have others."""


# Classes of SQLSTATE: connection lost, rolled back for another's sake, too many connections, shut down or starting up;
# a transaction that was idle for too long; no lock in time.
GONE = ("08", "40", "53300", "57P0", "25P03", "25P04", "55P03")
CANCELLED, BY_A_PERSON = "57014", "user request"
"""Of a statement that took too long, or that an administrator has cancelled, which only the words tell apart."""
UNAVAILABLE = ("53", "57", "58")  # no disk or memory left, ended by an operator, an error of its system
PASSING = (
    *("starting up", "shutting down", "in recovery mode", "accepting connections"),
    *("terminating connection", "too many c", "connection slots"),
)


def to_use(place: URL, url: LedgerUrl) -> Engine:
    """Returns an engine for a PostgreSQL database that refuses one which does not store every text."""
    options: dict[str, Any] = {name: value for name, value in KEEP_ALIVE.items() if name not in place.query}
    options |= {"client_encoding": ENCODING}  # whatever PGCLIENTENCODING says
    # A connection of the pool may be older than the server's last restart, so each is tried before it is used.
    engine = make_engine(place, url, pool_pre_ping=True, hide_parameters=True, connect_args=options)

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, arguments: Any, options: Any) -> Any:
        return _connection_class().connect(*arguments, **options)

    # Before SQLAlchemy's own first look at the server, which fails where text has no encoding.
    @event.listens_for(engine, "connect", insert=True)
    def check(connection: Any, _record: Any) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding not in (None, ENCODING):
            connection.close()
            raise StoreError(
                f"the database of the ledger {url} has the encoding {encoding}; allowed: {ENCODING}, as of "
                f"CREATE DATABASE … ENCODING '{ENCODING}' TEMPLATE template0"
            )
        connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'")
        connection.commit()

    return engine


@cache
def _connection_class() -> Any:
    """Returns psycopg's class of connections with a limit to every wait: a server may be silent without closing."""
    import psycopg
    from psycopg.errors import _WaitTimeout

    class _BoundedConnection(psycopg.Connection[Any]):
        def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
            try:
                return super().wait(gen, interval, SILENT_SECONDS if timeout is None else timeout)
            except _WaitTimeout:
                if timeout is not None:
                    raise
                self.pgconn.finish()  # a late answer must not be read as that to another statement
                raise psycopg.OperationalError(f"the server has not answered for {SILENT_SECONDS} s") from None

    return _BoundedConnection


def kind(cause: BaseException) -> type[StoreError]:
    """Returns the class of an error: whether the server failed, and whether it may answer again."""
    # By name, because psycopg need not be installed.
    if type(cause).__module__.split(".")[0] != "psycopg":
        return StoreError
    state = getattr(cause, "sqlstate", None) or ""
    if not state and any(kind.__name__ in ("OperationalError", "InterfaceError") for kind in type(cause).__mro__):
        # No connection, or one that broke. What the server itself refuses is FATAL, and mostly permanent.
        refused = "FATAL" in str(cause) and not any(words in str(cause) for words in PASSING)
        return StoreError if refused else StoreGone
    if state.startswith(GONE) or (state == CANCELLED and BY_A_PERSON not in str(cause)):
        return StoreGone
    return StoreUnavailable if state.startswith(UNAVAILABLE) else StoreError
