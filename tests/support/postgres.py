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


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """The URL of an empty database; the server listens on a socket in a folder of its own alone, and ends behind.

    folder: what `programs` returns. PostgreSQL refuses to run as root, who becomes `postgres` for it.
    """
    user = "postgres" if os.geteuid() == 0 else None
    place = Path(tempfile.mkdtemp(prefix="pg-"))  # sockets need short paths
    if user:
        shutil.chown(place, user)

    def run(program: str, *arguments: str) -> None:
        command = [str(folder / program), *arguments, "--pgdata", str(place / "data")]
        subprocess.run(command, check=True, cwd=place, user=user, stdout=subprocess.DEVNULL)

    try:
        run("initdb", "--auth=trust", "--username=epsearch", "--encoding=UTF8", "--no-locale", "--no-sync")
        log, options = str(place / "log"), f"-c listen_addresses='' -c fsync=off -k {place}"
        run("pg_ctl", "start", "--wait", f"--timeout={HANGS}", "--log", log, "--options", options)
        try:
            yield f"postgresql://epsearch@/postgres?host={place}"
        finally:
            run("pg_ctl", "stop", "--wait", f"--timeout={HANGS}", "--mode=immediate")
    finally:
        shutil.rmtree(place)
