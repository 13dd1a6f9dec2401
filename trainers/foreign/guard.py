"""Guard processes of plug-in trainers, as epsearch sees them: it starts them, hears them, and ends them."""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainers.foreign import process_tree
from trainers.foreign.messages import AT_ONCE
from trainers.operating_system import readable

LEAVE = 20.0  # seconds that a guard has to end everything
MARK = "TRAINER_OF_EPSEARCH"  # the variable by which all that a trainer has started is found
PREFIX = "epsearch-"  # of folders
COPY, PREPARE = b"f", b"p"  # requests to a server
JOB, TEMPORARY = "job", "tmp"  # in a guard's folder: what a server is to import, and temporary files


class Guard:
    """A guard, with a folder of its own and all that it starts. module: its code.

    folder: one that is there; None to make one. printed: a pipe for its output and that of all below it. ends: of
    pipes that it takes over, before those of its own. It says "trainer STATUS" over `life` when the trainer has ended
    by itself, and goes when that is closed.
    """

    def __init__(
        self,
        module: str,
        environment: Mapping[str, str],
        printed: int,
        ends: Sequence[int],
        job: Any = None,
        folder: Path | None = None,
    ) -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix=PREFIX))
        self._mark = secrets.token_hex(8)
        temporary = self.folder / TEMPORARY
        temporary.mkdir()
        if job is not None:
            (self.folder / JOB).write_text(json.dumps(job), encoding="utf-8")
        self._seen: set[Any] = set()
        self._incoming = b""
        self.server = 0
        """Process that is copied for the trainer, and is no part of it; 0 without one."""
        self.life, life = socket.socketpair()
        variables = {MARK: self._mark, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))}
        handed = [*ends, life.fileno()]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, *map(str, handed), str(os.getpid()), str(self.folder)],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                env={**environment, **variables},
                pass_fds=handed,
                start_new_session=True,
            )
        except BaseException:
            self.life.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        finally:
            life.close()
        self.life.setblocking(False)

    def lines(self) -> list[list[str]] | None:
        """Returns the words of each line that it has said since the last call; None once it has gone."""
        try:
            chunk = self.life.recv(AT_ONCE)
        except BlockingIOError:
            chunk = b"\n"
        except ConnectionError:
            chunk = b""
        *whole, self._incoming = (self._incoming + chunk).split(b"\n")
        said = [line.decode().split() for line in whole if line]
        return said if chunk or said else None

    def status(self) -> int:
        """Returns the exit status of one that has gone."""
        return self._process.wait()

    def below(self) -> list[Any]:
        """Returns the processes of the trainer, with all their descendants."""
        processes = process_tree.descendants(self._process.pid)
        self._seen = {*processes, *(process for process in self._seen if process.is_running())}
        return [process for process in processes if process.pid != self.server]

    def leave(self, reusable: bool) -> None:
        """Ends the guard, whose trainer is no longer needed. reusable: whether nothing has gone wrong."""
        self.end()

    def end(self) -> None:
        """Ends all processes below it, and itself."""
        self.life.close()
        self._process.send_signal(signal.SIGCONT)  # it may have been stopped
        try:
            self._process.wait(LEAVE)
        except subprocess.TimeoutExpired:
            self._seen.update(process_tree.descendants(self._process.pid))
            self._process.kill()
            self._process.wait()
        if self._process.returncode != 0:
            # The trainer has killed or stopped its guard, and processes that it started may be left.
            left = [process for process in self._seen if process.is_running()]
            process_tree.end(
                lambda: [
                    *process_tree.find_marked(MARK, self._mark),
                    *(process for process in left if process.is_running()),
                ]
            )
        shutil.rmtree(self.folder, ignore_errors=True)


class ForkServer(Guard):
    """A guard with a server: a process that has imported a trainer, and is copied for one learner after another.

    keep: is called with it when it can be used for another learner. refuse: with the reason why it cannot be copied,
    in words that follow "its import". Lines of its guard besides: "server STATUS" when the server has ended, "begun"
    and "cleared" as answers to `begin` and `leave`. It is a trainer's own from `begin` to `leave`. loaded: whether its
    import is over, which goes on after a declaration.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        job: Mapping[str, Any],
        keep: Callable[["ForkServer"], bool],
        refuse: Callable[[str], None],
    ) -> None:
        self._keep, self.refuse = keep, refuse
        self.output = b""
        """Output of the import, its last bytes."""
        self._declares = job["kind"] == "declare"
        self.loaded = self.alive = False
        self.control, control = socket.socketpair()
        self.printed, printed = os.pipe()
        try:
            begun = {"begun": time.time(), **job}
            super().__init__("trainers.foreign.forking", environment, printed, [control.fileno()], begun)
        except BaseException:
            self.control.close()
            os.close(self.printed)
            raise
        finally:
            control.close()
            os.close(printed)
        self.alive = True
        self._answers = b""
        self.control.setblocking(False)
        os.set_blocking(self.printed, False)

    def answer(self) -> Mapping[str, Any] | None:
        """Returns the next answer of the server; {} where none is complete, None once it has gone."""
        try:
            chunk = self.control.recv(AT_ONCE)
        except BlockingIOError:
            chunk = None
        except ConnectionError:
            chunk = b""
        self._answers += chunk or b""
        line, end, rest = self._answers.partition(b"\n")
        if not end:
            return None if chunk == b"" else {}
        self._answers = rest
        return dict(json.loads(line))

    def begin(self) -> None:
        """Asks the guard to look after the next trainer."""
        self._tell("begin")

    def end_import(self, process: int) -> None:
        """Tells the guard that the import is over. process: the server."""
        self.server, self.loaded = process, True
        self._tell("imported")

    def fork(self, ends: Sequence[int]) -> None:
        """Asks the server for a copy. ends: of the pipes for its requests, answers, output. Raises OSError."""
        socket.send_fds(self.control, [COPY], ends)

    def watch(self, trainer: int) -> None:
        """Says to the guard which process the copy is."""
        self._tell(f"trainer {trainer}")

    def read(self, most: int) -> bool:
        """Keeps the last `most` bytes of the output of the import; returns False at its end."""
        try:
            chunk = os.read(self.printed, AT_ONCE)
        except BlockingIOError:
            return True
        self.output = (self.output + chunk)[-most:]
        return bool(chunk)

    def usable(self) -> bool:
        """Returns whether the server is there."""
        said = self.lines() if self.alive else None
        self.alive = said is not None and not any(words[0] == "server" for words in said)
        return self.alive

    def leave(self, reusable: bool) -> None:
        """Keeps the server, if it can be used again, once all else below its guard has been ended.

        After a declaration it goes on to import what a learner needs besides.
        """
        if not (reusable and self.alive and self._clear() and self._prepare() and self._keep(self)):
            self.end()

    def end(self) -> None:
        """Ends the server, the guard, and all processes below it."""
        if self.control.fileno() < 0:  # it has been ended
            return
        self.alive = False
        self.control.close()
        os.close(self.printed)
        super().end()

    def _prepare(self) -> bool:
        """Asks for the other imports of learners after a declaration; returns whether the server is there."""
        if self._declares:
            self._declares = self.loaded = False
            self.server = 0
            try:
                self.control.send(PREPARE)
            except OSError:
                return False
        return True

    def _clear(self) -> bool:
        self._tell("clear")
        until = time.monotonic() + LEAVE
        while (left := until - time.monotonic()) > 0 and readable(self.life.fileno(), left):
            said = self.lines()
            if said is None or ["server"] in [words[:1] for words in said]:
                return False
            if ["cleared"] in said:
                return True
        return False

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # it has gone, which is seen elsewhere
            self.life.send(f"{line}\n".encode())
