"""The guard process of a server that is copied for one learner of a plug-in trainer after another (Linux).

`python -m trainers.foreign.forking CONTROL LIFE PARENT FOLDER`: an end of a socket pair to the server, and then as for
`child`, whose guard this is in all else. The server imports the trainer. Each copy of it is adopted by the guard, and
so stands where the trainer of `child` stands: a server that ends takes no copy with it. On "clear" the guard ends all
that is below it but the server, and empties the folder, in which only empty folders of the import stay.
"""

import os
import shutil
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from trainers.foreign import guarding, process_tree
from trainers.foreign.guard import TEMPORARY
from trainers.foreign.messages import AT_ONCE
from trainers.foreign.shared_memory import SharedMemory
from trainers.operating_system import readable


def main(arguments: list[str]) -> None:
    """Runs the guard process of a server, as the module says."""
    control, life, parent = (int(number) for number in arguments[:3])
    folder = Path(arguments[3])
    if not process_tree.become_subreaper():
        return  # nobody would look after copies
    memory = SharedMemory()
    guard, server = os.getpid(), os.fork()
    if server == 0:
        os.close(life)
        guarding.run(partial(_serve, control, guard, folder), guard, memory)
    os.close(control)
    guarding.silence()
    signal.signal(signal.SIGTERM, guarding.leave)
    watch = _Watch(server, life, parent, folder, memory)
    try:
        watch.go_on()
    finally:
        guarding.end(guard, watch.memory)
        shutil.rmtree(folder, ignore_errors=True)


def _serve(control: int, guard: int, folder: Path) -> None:
    from trainers.foreign.inside.server import serve

    serve(control, guard, folder)


class _Watch:
    """Looks after a server and its copies."""

    def __init__(self, server: int, life: int, parent: int, folder: Path, memory: SharedMemory) -> None:
        self._server, self._life, self._parent, self._folder, self.memory = server, life, parent, folder, memory
        self._trainer = 0  # 0 without one
        self._ended: dict[int, int] = {}  # since "begin": process -> status
        self._incoming = b""
        self._made: list[Path] = []  # folders of the import, once it is over

    def go_on(self) -> None:
        """Returns when all of it is to be ended."""
        while os.getppid() == self._parent:
            if self.memory.grows():
                self.memory.record(process.pid for process in process_tree.descendants(os.getpid()))
            self._reap()
            if readable(self._life, guarding.EVERY) and not self._obey():
                return

    def _reap(self) -> None:
        while ended := guarding.reap():
            process, status = ended[0], os.waitstatus_to_exitcode(ended[1])
            if process == self._server:
                self._tell(f"server {status}")
            else:
                self._ended[process] = status
        if self._trainer in self._ended:
            self._tell(f"trainer {self._ended.pop(self._trainer)}")

    def _obey(self) -> bool:
        """Follows the lines that epsearch sends; returns False where it has closed its end."""
        try:
            chunk = os.read(self._life, AT_ONCE)
        except ConnectionError:
            chunk = b""
        *lines, self._incoming = (self._incoming + chunk).split(b"\n")
        for line in lines:
            match line.decode().split():
                case ["imported"]:
                    self._made = sorted(path for path in (self._folder / TEMPORARY).rglob("*") if path.is_dir())
                case ["begin"]:
                    self.memory = SharedMemory()
                    self._ended.clear()
                    self._tell("begun")
                case ["trainer", process]:
                    self._trainer = int(process)
                case ["clear"]:
                    self._clear()
        return bool(chunk)

    def _clear(self) -> None:
        guarding.end(os.getpid(), self.memory, but=self._server)
        for path in self._folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()
        for folder in (self._folder / TEMPORARY, *self._made):
            folder.mkdir(mode=0o700, exist_ok=True)
        self._trainer = 0
        try:
            os.waitpid(self._server, os.WNOHANG)
        except ChildProcessError:
            self._tell("server gone")
        else:
            self._tell("cleared")

    def _tell(self, line: str) -> None:
        with suppress(OSError):
            os.write(self._life, f"{line}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1:])
