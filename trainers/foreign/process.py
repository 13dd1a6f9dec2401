"""The process of a plug-in trainer: messages, limits, output, exit status.

One thread does all of it, and waits for nothing without looking at the limits: neither for a message, nor for a trainer
that does not read what it is sent.
"""

import os
import secrets
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from numpy.typing import NDArray

import trainers
from trainers.foreign import output_log, process_tree
from trainers.foreign.messages import AT_ONCE, Malformed, Message, packed, plain, take_message
from trainers.operating_system import CAN_FORK, SYSTEM
from trainers.plugins.calls import ForeignError

Progress = Callable[[int], None]
"""Called with the tasks that were reported since the last call, several times a second with 0; may raise to stop."""

REPORT_SECONDS = 0.2
LOOK_SECONDS = 0.25  # between two looks at the memory
LOOK_SHARE = 20  # a look may take a twentieth of the time: with many workers there are thousands of processes
GRACE = 5.0  # seconds that a process has to end once it has closed its pipe
LEAVE = 20.0  # seconds that the guard has to end everything
DRAINED = 16  # reads at most of what a process has printed by its end: another one may hold the pipe open
TAIL = 2**16  # bytes of the output that are kept
LAST_LINES, LAST_CHARACTERS = 3, 300  # of them in a message
HERE = Path(trainers.__file__).parents[1]
LIBRARIES = ("site-packages", "dist-packages")
THREADS = ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "VECLIB_MAXIMUM", "NUMBA")
MARK = "TRAINER_OF_EPSEARCH"  # the variable by which all that a trainer has started is found
SECRETS = "EPSEARCH_"  # begins the names of variables with URLs, passwords and tokens: no trainer needs them


@dataclass(frozen=True)
class Limits:
    """Limits of the process of one learner; None for no limit."""

    seconds: float | None = None
    """From its start to its last report, with all imports and tests."""
    bytes: int | None = None
    """Resident memory of the process and of all that it has started, looked at a few times a second."""


@dataclass
class Observations:
    """Observations of a run besides its result, filled as it goes on, and complete where it fails."""

    begun: float | None = None
    """Seconds until the trainer was called; None where it was not."""
    tasks: list[float] = field(default_factory=list)
    """Seconds until each task was reported, tests included."""
    peak: int = 0
    """Bytes of resident memory: the most that its process has had, or that all of it had at a look."""
    ahead: int = 0
    """How often it asked for a task before its turn; each was refused."""
    refusal: str = ""
    """What was said to the first of these."""


class Process:
    """Starts one; a context, which leaves nothing of it behind. what: whose it is, for messages.

    log: a file for its output, None for none. where: what it is doing, for messages. folder: an empty one, for files
    that go with it.

    Raises ForeignError, in one line, wherever it ends by itself, breaks a limit or sends what is no message.
    """

    def __init__(
        self,
        what: str,
        environment: Mapping[str, str],
        limits: Limits,
        progress: Progress | None = None,
        log: Path | None = None,
    ) -> None:
        if not CAN_FORK:
            raise ForeignError(f"{what} needs a system that forks processes, as Linux and macOS, got {SYSTEM}")
        self._what, self._limits, self._progress = what, limits, progress
        self._log, self._logged = log, False
        self.where = "while it was imported"
        self.folder, self._mark = Path(tempfile.mkdtemp(prefix="epsearch-")), secrets.token_hex(8)
        self._started = self._reported = time.monotonic()
        self._look = self._started + LOOK_SECONDS
        self.peak = 0
        self._incoming, self._outgoing, self._output = bytearray(), bytearray(), bytearray()
        self._seen: set[Any] = set()
        self._closed_at = 0.0  # when the process was seen to have closed its pipe
        self._status: int | None = None
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self._printed, printed = os.pipe()
        self._life, life = socket.socketpair()
        try:
            arguments = [str(one) for one in (requests, answers, life.fileno(), os.getpid(), self.folder)]
            self._guard = subprocess.Popen(
                [sys.executable, "-P", "-m", "trainers.foreign.child", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                env={**environment, **self._own_variables()},
                pass_fds=(requests, answers, life.fileno()),
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise
        finally:
            for end in (requests, answers, printed):
                os.close(end)
            life.close()
        self._selector = selectors.DefaultSelector()
        for one in (self._answers, self._printed, self._life.fileno()):
            self._selector.register(one, selectors.EVENT_READ)
        for one in (self._requests, self._answers, self._printed, self._life.fileno()):
            os.set_blocking(one, False)

    def __enter__(self) -> "Process":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()
        self._life.close()  # the guard ends all that is below it, and itself
        self._guard.send_signal(signal.SIGCONT)  # it may have been stopped
        try:
            self._guard.wait(LEAVE)
        except subprocess.TimeoutExpired:
            self._seen.update(process_tree.descendants(self._guard.pid))
            self._guard.kill()
            self._guard.wait()
        if self._guard.returncode != 0:  # the trainer has killed or stopped its guard, and what it started may be left
            left = [one for one in self._seen if one.is_running()]
            process_tree.end(
                lambda: [*process_tree.marked(MARK, self._mark), *(one for one in left if one.is_running())]
            )
        self._drain()
        if self._log is not None and self._logged:
            with suppress(OSError):
                output_log.cut(self._log)
        self._close()

    def _own_variables(self) -> dict[str, str]:
        """Variables of this process's family alone: by the first it is found, temporary files go with the folder."""
        temporary = self.folder / "tmp"
        temporary.mkdir()
        return {MARK: self._mark, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))}

    def send(self, header: Mapping[str, Any], *arrays: NDArray[Any]) -> None:
        """Sends a message, as far as the process reads it; `receive` goes on."""
        self._outgoing += packed(header, *arrays)
        self._write()

    def receive(self) -> Message:
        """Returns the next message. Raises what `progress` does, too."""
        while True:
            try:
                message = take_message(self._incoming)
            except Malformed as error:
                raise self.broken(error) from error
            if message is not None:
                return message
            self._tick()
            came = self._wait()
            if self._status is not None and not came:  # what was written before the end has been read by now
                raise self.failed(f"{_ending(self._status)} {self.where}")
            if self._closed_at and time.monotonic() - self._closed_at > GRACE:
                raise self.failed(f"{_ending(os.EX_IOERR)} {self.where}")

    def broken(self, error: Malformed) -> ForeignError:
        """Returns the error for a malformed message."""
        return self.failed(f"wrote into the pipe to epsearch what is no message: {plain(str(error))}")

    def failed(self, what: str, output: bool = True) -> ForeignError:
        """Returns the error of the process; `what` follows its name."""
        self._drain()
        words = self._last_words() if output else ""
        return self.error(f"{self._what} {what}{words}")

    def error(self, line: str) -> ForeignError:
        """Returns an error with a line, and the file of its output if it has printed anything."""
        self._drain()
        return ForeignError(f"{line}; its output: {self._log}" if self._logged else line)

    def advance(self, tasks: int) -> None:
        """Tells `progress`."""
        self._reported = time.monotonic()
        if self._progress is not None:
            self._progress(tasks)

    def _wait(self) -> bool:
        """Until something comes, or can be sent, or the limits are to be looked at; whether anything did."""
        ready = self._selector.select(REPORT_SECONDS / 2 if self._status is None else 0)
        for key, _ in ready:
            if key.fd == self._requests:
                self._write()
            else:
                self._read(key.fd)
        return bool(ready)

    def _read(self, end: int) -> None:
        try:
            some = os.read(end, AT_ONCE)
        except BlockingIOError:
            return
        except ConnectionError:
            some = b""
        if not some:
            self._selector.unregister(end)
        if end == self._answers:
            self._incoming += some
            self._closed_at = self._closed_at if some else time.monotonic()
        elif end == self._printed:
            self._print(some)
        else:
            self._status = int(some) if some else self._guard.wait()

    def _print(self, some: bytes) -> None:
        """Keeps the end of its output, and writes all of it to the log."""
        self._output += some
        del self._output[:-TAIL]
        if self._log is not None and some:
            self._logged = output_log.append(self._log, some)

    def _drain(self) -> None:
        """Reads what it has printed by now."""
        for _ in range(DRAINED):
            try:
                some = os.read(self._printed, AT_ONCE)
            except OSError:
                return
            if not some:
                return
            self._print(some)

    def _write(self) -> None:
        """Sends what can be sent at once, and listens for when more can be."""
        try:
            while self._outgoing:
                with memoryview(self._outgoing) as whole:
                    sent = os.write(self._requests, whole[:AT_ONCE])
                del self._outgoing[:sent]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # it has ended, which is seen elsewhere, or has closed the pipe
            self._outgoing.clear()
        listening = self._requests in self._selector.get_map()
        if self._outgoing and not listening:
            self._selector.register(self._requests, selectors.EVENT_WRITE)
        elif listening and not self._outgoing:
            self._selector.unregister(self._requests)

    def _tick(self) -> None:
        """Tells `progress`, and looks at the limits."""
        now = time.monotonic()
        if now - self._reported >= REPORT_SECONDS:
            self.advance(0)
        if self._limits.seconds is not None and now - self._started > self._limits.seconds:
            raise self.failed(f"took longer than {self._limits.seconds:g} s, {self.where}")
        if now < self._look:
            return
        self.weigh()
        self._look = time.monotonic() + max(LOOK_SECONDS, LOOK_SHARE * (time.monotonic() - now))

    @property
    def seconds(self) -> float:
        """Since its start."""
        return time.monotonic() - self._started

    def weigh(self) -> None:
        """Looks at its memory, of which `peak` has the most. Raises ForeignError where that is more than it may be."""
        found = process_tree.descendants(self._guard.pid)
        self._seen = {*found, *(one for one in self._seen if one.is_running())}
        taken = process_tree.resident(found)
        self.peak = max(self.peak, taken, process_tree.highest(found))
        if self._limits.bytes is not None and taken > self._limits.bytes:
            raise self.failed(f"took more than {_gib(self._limits.bytes)} of memory, {self.where}")

    def _last_words(self) -> str:
        """Returns the end of its output, for a message; "" where there was none."""
        lines = [line.strip() for line in self._output.decode(errors="replace").splitlines() if line.strip()]
        return f"; its last output: {plain(' | '.join(lines[-LAST_LINES:]), LAST_CHARACTERS)}" if lines else ""

    def _close(self) -> None:
        for end in (self._requests, self._answers, self._printed):
            os.close(end)
        self._life.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def environment(device: str, threads: int) -> dict[str, str]:
    """Returns the environment of a training process on "cpu" or "cuda" with `threads` threads, without secrets."""
    made = {name: value for name, value in os.environ.items() if not name.startswith(SECRETS)}
    made |= {f"{name}_NUM_THREADS": str(threads) for name in THREADS}
    made |= {"PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1"}  # else the last lines before a sudden end are lost
    if device == "cpu":
        made["CUDA_VISIBLE_DEVICES"] = ""
    if HERE.name not in LIBRARIES:  # where it is not installed, as from a checkout; libraries are found by themselves
        made["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(HERE)]))
    return made


def _ending(status: int) -> str:
    """Returns how a process ended, in words.

    >>> _ending(3), _ending(-9)
    ('ended by itself with status 3', 'was killed by signal 9 (SIGKILL)')
    """
    if status == os.EX_IOERR:  # as it does where it finds its end of a pipe closed
        return "closed its pipe to epsearch"
    if status >= 0:
        return f"ended by itself with status {status}"
    names = {one.value: f" ({one.name})" for one in signal.Signals}
    return f"was killed by signal {-status}{names.get(-status, '')}"


def _gib(size: int) -> str:
    """Returns bytes for people.

    >>> _gib(2**31)
    '2.0 GiB'
    """
    return f"{size / 2**30:.1f} GiB"
