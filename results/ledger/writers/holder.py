"""Holder of a lease: a process, of which others on its machine can tell whether it exists."""

import json
import os
import socket
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from uuid import uuid4

PROC = Path("/proc")
"""Where Linux describes its processes; replaced in tests."""
ENDED = ("Z", "X", "x")
"""States of a process that has ended, until its parent reads its status."""


@dataclass(frozen=True)
class Holder:
    """A process. What is unknown of it, as outside of Linux, is "" or 0, and then it is never `gone`."""

    host: str
    """Name of its machine, for people: two machines may have the same."""
    boot: str
    """Random identifier of this start of the machine."""
    namespace: str
    """Its PID namespace: a container has processes of the same numbers as the machine, and others."""
    pid: int
    """Its number in the namespace; a process that has ended leaves its number to others."""
    started: int
    """When it started, in clock ticks since the machine did."""
    acquisition: str = field(default="", compare=False)
    """Random text of one acquisition of a lease, by which a repeated try knows itself again."""

    def __str__(self) -> str:
        if self.pid < 1:
            return "an unknown process"
        return f"pid {self.pid} on host {self.host if self.host.isprintable() else repr(self.host)}"

    @classmethod
    def from_json(cls, text: str) -> "Holder":
        """Returns the holder that a ledger names, or UNKNOWN, also for one that another version has written."""
        try:
            values = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            return UNKNOWN
        kinds = {name: type(value) for name, value in asdict(UNKNOWN).items()}
        as_written = isinstance(values, dict) and {name: type(value) for name, value in values.items()} == kinds
        return cls(**values) if as_written else UNKNOWN

    def to_json(self) -> str:
        """Returns it as JSON, which `from_json` reads."""
        return json.dumps(asdict(self))

    def acquiring(self) -> "Holder":
        """Returns the same process with another `acquisition`."""
        return replace(self, acquisition=uuid4().hex)

    def gone(self) -> bool:
        """Returns whether its process certainly no longer exists, which only another process near it can know."""
        near = here()
        if not (near.boot and self.started) or (self.boot, self.namespace) != (near.boot, near.namespace):
            return False
        try:
            _, state, threads, started = _process(str(self.pid))
        except (FileNotFoundError, ProcessLookupError):
            return not _may_exist(self.pid)
        except (OSError, ValueError, IndexError):
            return False
        # The first thread of a process may have ended before the others.
        return started != self.started or (state in ENDED and threads <= 1)


UNKNOWN = Holder("", "", "", 0, 0)
"""A holder of whom nothing can be read."""


def here() -> Holder:
    """Returns the process that calls this."""
    host, pid = socket.gethostname(), os.getpid()
    try:
        number, _, _, started = _process("self")
        # Not so where /proc is that of another namespace, whose numbers say nothing about our processes.
        if number == pid:
            boot = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
            return Holder(host, boot, os.readlink(PROC / "self/ns/pid"), pid, started)
    except (OSError, ValueError, IndexError):  # no Linux
        pass
    return Holder(host, "", "", pid, 0)


def _process(name: str) -> tuple[int, str, int, int]:
    """Returns number, state, number of threads and start of a process of Linux.

    Raises OSError, and ValueError or IndexError for another form of its file.
    """
    # A program's name stands in brackets and may contain any bytes, also brackets and spaces.
    head, _, tail = (PROC / name / "stat").read_bytes().rpartition(b")")
    values = tail.split()  # from the third field on
    return int(head.split()[0]), values[0].decode(), int(values[17]), int(values[19])


def _may_exist(pid: int) -> bool:
    """Returns False where the system knows no such process; /proc may hide those of other users."""
    try:
        os.kill(pid, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
