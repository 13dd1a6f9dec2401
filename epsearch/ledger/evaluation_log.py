"""What this user's ledgers have evaluated, in a file of JSON lines: another ledger does not forget it.

A line is what determines a member of an evaluation, but for its seed, and when the first such member was stored. The
file is $EPSEARCH_LOOKS, else it lies where the operating system keeps a user's data. A service has none: its ledger
counts for all of its users.
"""

import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

from results.labels import on_one_line
from results.ledger.record import RunRecord
from trainers.notes import notify

try:
    import fcntl
except ImportError:  # as on Windows, where lines of two processes that write at once may be lost
    fcntl = None  # type: ignore[assignment]

VARIABLE = "EPSEARCH_LOOKS"
NONE = "none"  # its value where nothing is to be kept
PATIENCE = 10.0  # seconds for which another process may hold the lock, which takes it for milliseconds
POLL_SECONDS = 0.02
NOT_A_CHOICE = ("seed", "numeric_path", "transfer", "protocol")

Run = tuple[dict[str, Any], str]
"""(what determines an evaluated member, but for NOT_A_CHOICE; ISO-8601 time)."""


class Looks:
    """The file; without one nothing is kept, and nothing known. What fails costs one line, never a study."""

    def __init__(self, file: Path | None = None) -> None:
        self._file, self.trouble = file, ""
        """Why the file could not be used; "" where it could."""

    def read(self) -> list[Run]:
        """What the file knows, in its order. Lines that are torn or foreign count for nothing."""
        if self._file is None:
            return []
        try:
            if not stat.S_ISREG(self._file.stat().st_mode):
                raise OSError("it is no regular file")
            return list(_runs(self._file.read_bytes()))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._failed(self._file, error)
            return []

    def add(self, records: Iterable[RunRecord]) -> None:
        """Appends the members that were evaluated, unless the file knows them; a machine's fault is told of once."""
        found: dict[str, str] = {}
        for record in sorted(records, key=lambda record: record.created):
            if record.phase == "eval":
                found.setdefault(_text(record.content), record.created)
        if self._file is None or self.trouble or not found:
            return
        try:
            self._append(self._file, found)
        except OSError as error:
            self._failed(self._file, error)
            notify(f"{self.trouble}; choices evaluated now are counted in this ledger alone")

    def _append(self, file: Path, found: Mapping[str, str]) -> None:
        """Writes the lines that are missing. Raises OSError."""
        if not file.is_absolute():  # a home that is not known is left as ~, which would become a folder here
            raise FileNotFoundError("no home folder is known")
        file.parent.mkdir(parents=True, exist_ok=True)
        with _locked(file) as handle:
            there = _whole(handle)
            known = {_text(run) for run, _ in _runs(there)}
            lines = [
                json.dumps({"when": when, "run": json.loads(text)}, ensure_ascii=False)
                for text, when in found.items()
                if text not in known
            ]
            if lines:
                # Behind a line that a killed process has left torn, on a line of their own.
                torn = "\n" if there and not there.endswith(b"\n") else ""
                _write(handle, f"{torn}{chr(10).join(lines)}\n".encode())

    def _failed(self, file: Path, error: OSError) -> None:
        self.trouble = f"the file of looks {on_one_line(file)} cannot be used ({error.strerror or error})"


def user_looks() -> Looks:
    """Those of $EPSEARCH_LOOKS, else of this user."""
    named = os.environ.get(VARIABLE)
    if named == NONE:
        return Looks()
    return Looks(Path(named).absolute() if named else user_data_path("epsearch") / "looks.jsonl")


def _text(content: Mapping[str, Any]) -> str:
    """What a line keeps, the same for members that differ in their seed alone."""
    return json.dumps({name: one for name, one in content.items() if name not in NOT_A_CHOICE}, sort_keys=True)


def _runs(content: bytes) -> Iterator[Run]:
    """The lines that can be read."""
    for line in content.splitlines():
        with suppress(ValueError, LookupError, TypeError, RecursionError):
            found = json.loads(line)
            run, when = found["run"], found["when"]
            first, end = run["stream"]["tasks"]
            kinds = (when, str), (run["method"], str), (run["config"], dict), (first, int), (end, int)
            if "epsilon" in run and all(isinstance(value, kind) for value, kind in kinds):
                yield run, when


@contextmanager
def _locked(file: Path) -> Iterator[int]:
    """The open file, which no other process writes to meanwhile. Raises OSError."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0), 0o600)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is no regular file")
        _lock(handle)
        yield handle
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    """Until it is closed. Raises TimeoutError where another process does not end: it may have been stopped."""
    deadline = time.monotonic() + PATIENCE
    while fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError("another process keeps it locked") from None
        except OSError:  # a file system without locks: nobody else gets one, either
            return
        time.sleep(POLL_SECONDS)


def _whole(handle: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    with os.fdopen(os.dup(handle), "rb") as file:
        return file.read()


def _write(handle: int, content: bytes) -> None:
    """All of it, and onto the disk. Raises OSError."""
    with os.fdopen(os.dup(handle), "ab") as file:
        file.write(content)
    os.fsync(handle)
