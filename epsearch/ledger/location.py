"""Location of the ledger: --storage, else EPSEARCH_STORAGE, else a file in --out."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from epsearch.failures.errors import UsageError, brief
from epsearch.operating_system import overwrite_arguments
from results.ledger.url import HIDDEN, LedgerUrl

VARIABLE = "EPSEARCH_STORAGE"
FILE = "epsearch.sqlite"
COMPANIONS = r"(\.v\d+(\.part)?)?(-(wal|shm|journal))?"  # of SQLite, and of the copies of older ledgers
# The URL within `hide_storage`.
_held: ContextVar[str | None] = ContextVar("_held", default=None)


def ledger_url(out: Path, storage: LedgerUrl | None = None) -> LedgerUrl:
    """Returns the URL of the ledger: `storage`, else that of EPSEARCH_STORAGE, else of a file in the out folder."""
    return storage or _from_environment() or LedgerUrl.of_file((out / FILE).absolute())


def check_no_file_of(storage: LedgerUrl, out: Path, name: str) -> None:
    """Raises UsageError where the folder of a study, OUT/NAME, would be a file of a ledger.

    SQLite would take it for its journal, and then no study of the ledger could be read.
    """
    files = [FILE]  # also with --storage, as other studies may have a ledger here
    if storage.file is not None and storage.file.parent.resolve() == out.resolve():
        files.append(storage.file.name)
    for file in files:
        if re.fullmatch(re.escape(file.casefold()) + COMPANIONS, name.casefold()):
            raise UsageError(f"name {brief(name)} is a file of the ledger {file}; choose another name")


def storage(value: Any, name: str = "storage") -> LedgerUrl:
    """Parses a URL; one with a masked password means that of EPSEARCH_STORAGE.

    name: of the option, for messages. Raises UsageError where the environment has no such URL, or another one.
    """
    url = LedgerUrl.of(value if isinstance(value, LedgerUrl) else str(value))
    if not url.masked:
        return url
    own = _from_environment()
    if own is None:
        raise UsageError(
            f"{name} {url} has {HIDDEN} for its password, which is never written down; "
            f"set {VARIABLE} to the URL with the password, or give --storage"
        )
    if own.without_password != url.without_password:
        raise UsageError(f"{name} is {url}, but {VARIABLE} is another URL; make them one, or give --storage")
    return own


def _from_environment() -> LedgerUrl | None:
    """Returns the URL of EPSEARCH_STORAGE, also within `hide_storage`."""
    url = os.environ.get(VARIABLE) or _held.get()
    return LedgerUrl(url, VARIABLE) if url else None


@contextmanager
def hide_storage(arguments: Sequence[str] = ()) -> Iterator[None]:
    """Hides EPSEARCH_STORAGE from child processes, and passwords from `ps`, as a context manager.

    Passwords among this process's arguments are overwritten with stars, also for Ray, which stores them.
    """
    overwrite_arguments(
        {secret for argument in arguments if "://" in argument for secret in LedgerUrl(argument).secrets}
    )
    url = os.environ.pop(VARIABLE, None)
    token = _held.set(url or _held.get())  # a nested block finds no variable
    try:
        yield
    finally:
        _held.reset(token)
        if url is not None:
            os.environ[VARIABLE] = url
