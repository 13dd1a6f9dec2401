"""The process of a plug-in trainer: messages, limits, output, exit status.

One thread does all of it, and waits for nothing without looking at the limits: neither for a message, nor for a trainer
that does not read what it is sent.
"""

import os
import selectors
import shutil
import signal
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
from trainers.foreign.guard import PREFIX, ForkServer, Guard
from trainers.foreign.messages import AT_ONCE, Malformed, Message, pack, plain, take_message
from trainers.operating_system import CAN_FORK, SYSTEM
from trainers.plugins.calls import ForeignError

Progress = Callable[[int], None]
"""Called with the tasks that were reported since the last call, several times a second with 0; may raise to stop."""

REPORT_SECONDS = 0.2
LOOK_SECONDS = 0.25  # between two looks at the memory
LOOK_SHARE = 20  # a look may take a twentieth of the time: with many workers there are thousands of processes
GRACE = 5.0  # seconds that a process has to end once it has closed its pipe
DRAINED = 16  # reads at most of what a process has printed by its end: another one may hold the pipe open
TAIL = 2**16  # bytes of the output that are kept
LAST_LINES, LAST_CHARACTERS = 3, 300  # of them in a message
HERE = Path(trainers.__file__).parents[1]
LIBRARIES = ("site-packages", "dist-packages")
THREADS = ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "VECLIB_MAXIMUM", "NUMBA")
ENDS = "its import ends the process that is to be copied"
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

    closely: bool = True
    """True if its memory is read after every task, too."""
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
    capability: str = ""
    """The instructions of the processor that its torch uses; "" where it had not imported torch when it was called."""
    copied: bool = False
    """True if its process is a copy of a server."""
    imported: float = 0.0
    """Seconds that it waited for a server to import it, which later learners do not."""
    import_seconds: float = 0.0
    """Seconds that the server took in all; more than `imported` where it began with the declaration. 0 if none did."""
    anew: str = ""
    """Why its process is no copy of a server; "" where it is one, or was not to be."""


class Process:
    """Starts one; a context, which leaves nothing of it behind. what: whose it is, for messages.

    log: a file for its output, None for none. where: what it is doing, for messages. folder: an empty one, for files
    that go with it. server: what its process is to be a copy of; None for a new one, as also where it cannot be copied.

    Raises ForeignError, in one line, wherever it ends by itself, breaks a limit or sends what is no message.
    """

    def __init__(
        self,
        what: str,
        environment: Mapping[str, str],
        limits: Limits,
        progress: Progress | None = None,
        log: Path | None = None,
        server: ForkServer | None = None,
    ) -> None:
        if not CAN_FORK:
            raise ForeignError(f"{what} needs a system that forks processes, as Linux and macOS, got {SYSTEM}")
        self._what, self._limits, self._progress = what, limits, progress
        self._environment, self._server = environment, server
        self._log, self._logged = log, False
        self.where = "while it was imported"
        self._started = self._reported = time.monotonic()
        self._look = self._started + LOOK_SECONDS
        self.peak, self.anew = 0, ""
        self.imported = self.import_seconds = 0.0  # as of `Observations`
        self._incoming, self._outgoing, self._output = bytearray(), bytearray(), bytearray()
        self._closed_at = 0.0  # when the process was seen to have closed its pipe
        self._status: int | None = None
        self._begun = False  # whether there is a process of the trainer
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self._printed, printed = os.pipe()
        self._ends: tuple[int, ...] = (requests, answers, printed)  # of the trainer, until there is one
        self._selector = selectors.DefaultSelector()
        for pipe in (self._answers, self._printed):
            self._selector.register(pipe, selectors.EVENT_READ)
        for pipe in (self._requests, self._answers, self._printed):
            os.set_blocking(pipe, False)
        try:
            if server is None:
                self._start()
            else:
                self._take(server)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> "Process":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()
        self._guard.leave(kind is None and self._begun)
        self._drain()
        if self._log is not None and self._logged:
            with suppress(OSError):
                output_log.cut(self._log)
        self._close()

    @property
    def copied(self) -> bool:
        """True for a copy of a server."""
        return self._server is not None

    @property
    def folder(self) -> Path:
        """The folder of this process alone."""
        return self._guard.folder

    def _start(self, folder: Path | None = None) -> None:
        """Starts a new process. folder: as of the guard."""
        self._guard = Guard("trainers.foreign.child", self._environment, self._ends[2], self._ends[:2], folder=folder)
        self._selector.register(self._guard.life, selectors.EVENT_READ)
        self._hand_over()

    def _take(self, server: ForkServer) -> None:
        """Takes a server and has it copied, now or once it has imported the trainer."""
        self._guard = server
        for end in (server.life, server.control, *(() if server.loaded else (server.printed,))):
            self._selector.register(end, selectors.EVENT_READ)
        if server.loaded:
            self._print(server.output)
            server.begin()

    def _refuse(self, why: str) -> None:
        """Gives a server up, for a new process, which has all of its time."""
        assert self._server is not None
        server, self._server, self.anew = self._server, None, why
        for end in (server.life, server.control, server.printed):
            with suppress(KeyError):
                self._selector.unregister(end)
        with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as aside:
            # Files that go with the process stay where they are, although the server takes its folder along.
            files = [path.name for path in server.folder.iterdir() if path.is_file()]
            for name in files:
                shutil.move(server.folder / name, aside)
            server.end()
            server.folder.mkdir(mode=0o700)
            for name in files:
                shutil.move(Path(aside) / name, server.folder)
        if why:
            server.refuse(why)
        self._started = time.monotonic()
        self._start(server.folder)

    def _hand_over(self) -> None:
        """Closes the pipes' ends of the trainer's process, which has them now, and sends what waits."""
        for end in self._ends:
            os.close(end)
        self._ends, self._begun = (), True
        self._write()

    def _go_on(self) -> None:
        """Goes on with an answer of the server."""
        assert self._server is not None
        server, answer = self._server, self._server.answer()
        if answer is None:
            self._refuse("" if server.loaded else ENDS)
        elif "trainer" in answer:
            server.watch(answer["trainer"])
            self._hand_over()
            self._selector.unregister(server.control)
        elif answer.get("why"):
            self._refuse(f"its import {answer['why']}")
        elif "why" in answer and answer["why"] is None:
            self._refuse("")
        elif answer:
            self._end_import(answer["process"], answer["seconds"])

    def _end_import(self, process: int, seconds: float) -> None:
        server = self._server
        assert server is not None
        if server.printed in self._selector.get_map():
            self._selector.unregister(server.printed)
            server.read(output_log.MOST)
        server.end_import(process)
        self.imported, self.import_seconds = self.seconds, seconds
        self._print(server.output)
        server.begin()

    def _follow_guard(self) -> None:
        """Goes on with the lines of the guard."""
        said = self._guard.lines()
        if said is None and not self._begun:
            self._record_loss()
            return
        if said is None:
            self._selector.unregister(self._guard.life)
            self._status = self._guard.status()
            return
        for words in said:
            match words:
                case ["begun"]:
                    assert self._server is not None
                    try:
                        self._server.fork(self._ends)
                    except OSError:
                        self._refuse("")
                        return
                case ["trainer", status]:
                    self._status = int(status)
                case ["server", *_]:
                    self._record_loss()
                    return

    def _record_loss(self) -> None:
        """Records that the server has ended; a copy of it goes on."""
        assert self._server is not None
        self._server.alive = False
        if not self._begun:
            self._refuse("" if self._server.loaded else ENDS)

    def send(self, header: Mapping[str, Any], *arrays: NDArray[Any]) -> None:
        """Sends a message, as far as the process reads it; `receive` goes on."""
        self._outgoing += pack(header, *arrays)
        if self._begun:
            self._write()

    def receive(self) -> Message:
        """Returns the next message. Raises what `progress` does, too."""
        while True:
            try:
                message = take_message(self._incoming)
            except Malformed as error:
                raise self.malformed_error(error) from error
            if message is not None:
                return message
            self._tick()
            came = self._wait()
            if self._status is not None and not came:  # what was written before the end has been read by now
                raise self.failure(f"{_ending(self._status)} {self.where}")
            if self._closed_at and time.monotonic() - self._closed_at > GRACE:
                raise self.failure(f"{_ending(os.EX_IOERR)} {self.where}")

    def malformed_error(self, error: Malformed) -> ForeignError:
        """Returns the error for a malformed message."""
        return self.failure(f"wrote into the pipe to epsearch what is no message: {plain(str(error))}")

    def failure(self, what: str, output: bool = True) -> ForeignError:
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
        """Waits until something comes, or can be sent, or the limits are due; returns whether anything did."""
        ready = self._selector.select(REPORT_SECONDS / 2 if self._status is None else 0)
        for key, _ in ready:
            if key.fd not in self._selector.get_map():  # no longer, since one of the others
                continue
            if key.fd == self._requests:
                self._write()
            else:
                self._read(key.fd)
        return bool(ready)

    def _read(self, end: int) -> None:
        if end == self._guard.life.fileno():
            self._follow_guard()
        elif self._server is not None and end == self._server.control.fileno():
            self._go_on()
        elif self._server is not None and end == self._server.printed:
            if not self._server.read(output_log.MOST):
                self._selector.unregister(end)
        else:
            self._read_pipe(end)

    def _read_pipe(self, end: int) -> None:
        try:
            chunk = os.read(end, AT_ONCE)
        except BlockingIOError:
            return
        except ConnectionError:
            chunk = b""
        if not chunk:
            self._selector.unregister(end)
        if end == self._answers:
            self._incoming += chunk
            self._closed_at = self._closed_at if chunk else time.monotonic()
        else:
            self._print(chunk)

    def _print(self, chunk: bytes) -> None:
        """Keeps the end of its output, and writes all of it to the log."""
        self._output += chunk
        del self._output[:-TAIL]
        if self._log is not None and chunk:
            self._logged = output_log.append(self._log, chunk)

    def _drain(self) -> None:
        """Reads its output so far."""
        if self._server is not None and not self._server.loaded:
            self._print(self._server.output)
            self._server.output = b""
        for _ in range(DRAINED):
            try:
                chunk = os.read(self._printed, AT_ONCE)
            except OSError:
                return
            if not chunk:
                return
            self._print(chunk)

    def _write(self) -> None:
        """Sends as much as the pipe takes at once, and listens for when it takes more."""
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
            raise self.failure(f"took longer than {self._limits.seconds:g} s, {self.where}")
        if now < self._look:
            return
        self.weigh()
        self._look = time.monotonic() + max(LOOK_SECONDS, LOOK_SHARE * (time.monotonic() - now))

    @property
    def seconds(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self._started

    def weigh(self) -> None:
        """Looks at its memory, of which `peak` has the most. Raises ForeignError where that is more than it may be."""
        processes = self._guard.below()
        taken = process_tree.resident_memory(processes)
        self.peak = max(self.peak, taken, process_tree.highest(processes))
        if self._limits.bytes is not None and taken > self._limits.bytes:
            raise self.failure(f"took more than {_gib(self._limits.bytes)} of memory, {self.where}")

    def _last_words(self) -> str:
        """Returns the end of its output, for a message; "" where there was none."""
        lines = [line.strip() for line in self._output.decode(errors="replace").splitlines() if line.strip()]
        return f"; its last output: {plain(' | '.join(lines[-LAST_LINES:]), LAST_CHARACTERS)}" if lines else ""

    def _close(self) -> None:
        for end in (self._requests, self._answers, self._printed, *self._ends):
            os.close(end)


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
    """Returns in words how a process ended.

    >>> _ending(3), _ending(-9)
    ('ended by itself with status 3', 'was killed by signal 9 (SIGKILL)')
    """
    if status == os.EX_IOERR:  # as it does where it finds its end of a pipe closed
        return "closed its pipe to epsearch"
    if status >= 0:
        return f"ended by itself with status {status}"
    names = {number.value: f" ({number.name})" for number in signal.Signals}
    return f"was killed by signal {-status}{names.get(-status, '')}"


def _gib(size: int) -> str:
    """Returns bytes for people.

    >>> _gib(2**31)
    '2.0 GiB'
    """
    return f"{size / 2**30:.1f} GiB"
