"""The log of evaluations: a file of JSON lines, for all ledgers of a user.

A line is the content of a member of an evaluation without its seed, and the time when the first such member was stored.
The file is $EPSEARCH_LOOKS, else it lies in the user's data folder of the operating system. A service has none: its
ledger counts for all of its users.
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
from trainers.operating_system import lock

VARIABLE = "EPSEARCH_LOOKS"
NONE = "none"  # its value without a log
WAIT_SECONDS = 10.0  # seconds for which another process may hold the lock, which takes it for milliseconds
POLL_SECONDS = 0.02
NOT_A_CHOICE = ("seed", "order", "numeric_path", "transfer", "protocol")

Run = tuple[dict[str, Any], str]
"""(content of an evaluated member without NOT_A_CHOICE; ISO-8601 time)."""


class EvaluationLog:
    """A log file; without one, the log is empty. Errors are reported, and never end a study."""

    def __init__(self, file: Path | None = None) -> None:
        self._file, self.trouble = file, ""
        """Why the file could not be used; "" where it could."""

    def read(self) -> list[Run]:
        """Returns the entries of the file, in its order, without lines that are torn or foreign."""
        if self._file is None:
            return []
        try:
            if not stat.S_ISREG(self._file.stat().st_mode):
                raise OSError("it is no regular file")
            return list(_runs(self._file.read_bytes()))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._note_error(self._file, error)
            return []

    def add(self, records: Iterable[RunRecord]) -> None:
        """Appends the evaluated members that the file lacks; the user is notified of an error once."""
        evaluated: dict[str, str] = {}
        for record in sorted(records, key=lambda record: record.created):
            if record.phase == "eval":
                evaluated.setdefault(_text(record.content), record.created)
        if self._file is None or self.trouble or not evaluated:
            return
        try:
            self._append(self._file, evaluated)
        except OSError as error:
            self._note_error(self._file, error)
            notify(f"{self.trouble}; choices evaluated now are counted in this ledger alone")

    def _append(self, file: Path, evaluated: Mapping[str, str]) -> None:
        """Writes the lines that are missing. Raises OSError."""
        if not file.is_absolute():  # an unknown home remains ~, which would become a folder here
            raise FileNotFoundError("no home folder is known")
        file.parent.mkdir(parents=True, exist_ok=True)
        with _open_locked(file) as handle:
            present = _whole(handle)
            stored = {_text(run) for run, _ in _runs(present)}
            lines = [
                json.dumps({"when": when, "run": json.loads(text)}, ensure_ascii=False)
                for text, when in evaluated.items()
                if text not in stored
            ]
            if lines:
                # On new lines, after a torn line of a killed process.
                torn = "\n" if present and not present.endswith(b"\n") else ""
                _write(handle, f"{torn}{chr(10).join(lines)}\n".encode())

    def _note_error(self, file: Path, error: OSError) -> None:
        self.trouble = f"the log of evaluations {on_one_line(file)} cannot be used ({error.strerror or error})"


def user_log() -> EvaluationLog:
    """Returns the log of $EPSEARCH_LOOKS, else that of this user."""
    named = os.environ.get(VARIABLE)
    if named == NONE:
        return EvaluationLog()
    return EvaluationLog(Path(named).absolute() if named else user_data_path("epsearch") / "looks.jsonl")


def _text(content: Mapping[str, Any]) -> str:
    """Returns the content in a line, equal for members that differ only in their seed."""
    return json.dumps({name: value for name, value in content.items() if name not in NOT_A_CHOICE}, sort_keys=True)


def _runs(content: bytes) -> Iterator[Run]:
    """Yields the lines that can be read."""
    for line in content.splitlines():
        with suppress(ValueError, LookupError, TypeError, RecursionError):
            entry = json.loads(line)
            run, when = entry["run"], entry["when"]
            first, end = run["stream"]["tasks"]
            kinds = (when, str), (run["method"], str), (run["config"], dict), (first, int), (end, int)
            if "epsilon" in run and all(isinstance(value, kind) for value, kind in kinds):
                yield run, when


@contextmanager
def _open_locked(file: Path) -> Iterator[int]:
    """Opens the file, to which no other process writes meanwhile. Raises OSError."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0), 0o600)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is no regular file")
        _lock(handle)
        yield handle
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    """Locks a file until it is closed. Raises TimeoutError where another process, perhaps stopped, holds the lock."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            lock(handle, wait=False)  # without locks, lines of two processes that write at once may be lost
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError("another process keeps it locked") from None
        except OSError:  # a file system without locks: no other process gets one, either
            return
        time.sleep(POLL_SECONDS)


def _whole(handle: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    with os.fdopen(os.dup(handle), "rb") as file:
        return file.read()


def _write(handle: int, content: bytes) -> None:
    """Writes the content, and flushes it to the disk. Raises OSError."""
    with os.fdopen(os.dup(handle), "ab") as file:
        file.write(content)
    os.fsync(handle)
