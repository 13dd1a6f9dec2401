"""A PostgreSQL server of the tests' own, where its programs are installed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.limits import HANGS

DEBIAN = Path("/usr/lib/postgresql")  # whose packages leave the programs off the PATH


def programs() -> Path | None:
    """The folder of `initdb` and `pg_ctl`; None where PostgreSQL is not installed."""
    on_path = shutil.which("initdb")
    found = [Path(on_path)] if on_path else sorted(DEBIAN.glob("*/bin/initdb"))
    return found[-1].parent if found else None


class Server:
    """A server that listens on a socket in a folder of its own alone.

    folder: what `programs` returns. PostgreSQL refuses to run as root, who becomes `postgres` for it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._user = folder, "postgres" if os.geteuid() == 0 else None
        self._place = Path(tempfile.mkdtemp(prefix="pg-"))  # sockets need short paths
        if self._user:
            shutil.chown(self._place, self._user)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://epsearch@/{database}?host={self._place}"

    @property
    def pid(self) -> int:
        """Of the process that all others of the server are children of."""
        return int((self._place / "data" / "postmaster.pid").read_text().split()[0])

    def make(self) -> None:
        self._run("initdb", "--auth=trust", "--username=epsearch", "--encoding=UTF8", "--no-locale", "--no-sync")

    def start(self) -> None:
        """Also after it was killed. Raises CalledProcessError where it does not start."""
        log, options = str(self._place / "log"), f"-c listen_addresses='' -c fsync=off -k {self._place}"
        options += " -c dynamic_shared_memory_type=mmap"  # in its folder, so that nothing stays in /dev/shm
        self._run("pg_ctl", "start", "--wait", f"--timeout={HANGS}", "--log", log, "--options", options)

    def stop(self) -> None:
        self._run("pg_ctl", "stop", "--wait", f"--timeout={HANGS}", "--mode=immediate")

    def remove(self) -> None:
        shutil.rmtree(self._place)

    def _run(self, program: str, *arguments: str) -> None:
        """Raises CalledProcessError, with what the program said."""
        command = [str(self._folder / program), *arguments, "--pgdata", str(self._place / "data")]
        said = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        subprocess.run(command, check=True, cwd=self._place, user=self._user, text=True, **said)


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """A server with an empty database, which ends behind; folder: what `programs` returns."""
    server = Server(folder)
    try:
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        server.remove()


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """The URL of the empty database of a server that ends behind; folder: what `programs` returns."""
    with running(folder) as started:
        yield started.url()
