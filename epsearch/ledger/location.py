"""Location of the ledger: --storage, else EPSEARCH_STORAGE, else a file in --out. Its password is hidden."""

import ctypes
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from epsearch.failures.errors import UsageError, brief
from results.ledger.url import HIDDEN, LedgerUrl

VARIABLE = "EPSEARCH_STORAGE"
FILE = "epsearch.sqlite"
BESIDE = r"(\.v\d+(\.part)?)?(-(wal|shm|journal))?"  # of SQLite, and of the copies of older ledgers
ARG_START = 45  # the field of /proc/self/stat, counted behind the process's name
# The URL while the variable is gone from the environment.
_held: ContextVar[str | None] = ContextVar("_held", default=None)


def ledger_url(out: Path, storage: LedgerUrl | None = None) -> LedgerUrl:
    """Returns the URL of the ledger: `storage`, else that of EPSEARCH_STORAGE, else of a file in the out folder."""
    return storage or _from_environment() or LedgerUrl.of_file((out / FILE).absolute())


def check_no_file_of(storage: LedgerUrl, out: Path, name: str) -> None:
    """Raises UsageError where the folder of a study, OUT/NAME, would be a file of a ledger there.

    SQLite takes what has the name of its journal for that, and then no study of the ledger can be read.
    """
    files = [FILE]  # also where this study's ledger is elsewhere: others have theirs here
    if storage.file is not None and storage.file.parent.resolve() == out.resolve():
        files.append(storage.file.name)
    for file in files:
        if re.fullmatch(re.escape(file.casefold()) + BESIDE, name.casefold()):
            raise UsageError(f"name {brief(name)} is a file of the ledger {file}; choose another name")


def storage(value: Any, name: str = "storage") -> LedgerUrl:
    """Parses a URL. One with a masked password, as files have it, stands for that of EPSEARCH_STORAGE.

    name: as messages call the option. Raises UsageError where the environment has no such URL, or another one.
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
    """The URL of EPSEARCH_STORAGE, also while no process that is started may inherit it."""
    url = os.environ.get(VARIABLE) or _held.get()
    return LedgerUrl(url, VARIABLE) if url else None


@contextmanager
def kept_within(arguments: Sequence[str] = ()) -> Iterator[None]:
    """Within it, processes that are started do not inherit EPSEARCH_STORAGE, and no password can be seen.

    Passwords among this process's own arguments are stars wherever the system shows them: in `ps`, and in what Ray
    keeps of its driver.
    """
    _hide({secret for argument in arguments if "://" in argument for secret in LedgerUrl(argument).secrets})
    url = os.environ.pop(VARIABLE, None)
    token = _held.set(url or _held.get())  # within another such block the variable has gone already
    try:
        yield
    finally:
        _held.reset(token)
        if url is not None:
            os.environ[VARIABLE] = url


def _hide(secrets: set[str]) -> None:
    """Overwrites them in the memory from which Linux answers; there is no such place elsewhere.

    A password that cannot be hidden is no reason to refuse the command: what fails here is left as it is.
    """
    with suppress(OSError, ValueError, IndexError):
        start = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[ARG_START])
        line = Path("/proc/self/cmdline").read_bytes()
        # The longest first: a shorter one may be a part of it, whose rest would stay.
        for secret in sorted(map(os.fsencode, secrets), key=len, reverse=True):
            # More than once where it is given twice.
            while (place := line.find(secret)) >= 0:
                ctypes.memset(start + place, ord("*"), len(secret))
                line = line[:place] + b"*" * len(secret) + line[place + len(secret) :]
