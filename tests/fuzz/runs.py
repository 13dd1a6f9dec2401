"""A small study as a process of its own, and what must be the same however often it was stopped."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

STUDY = """--runner local --workers 2 --device cpu --numeric-path cpu-float32-mkl --repeats 2 --points 4 --seeds 2
--cv-tasks 2 --tasks 4 --examples-per-task 400 --memory 3 --memory-batch 8 --name fuzzed --json"""
TABLES = ("chosen", "chosen_score", "rounds", "evaluation")
FILES = ("evaluation.csv", "search.csv")


class Run:
    """`epsearch run` in a folder, ledger, reports and cache below it; what it prints goes to files there."""

    options = STUDY

    def __init__(self, folder: Path, disk: Path | None = None, flags: tuple[str, ...] = (), before=lambda: None):
        self.folder, self.disk, self.flags, self.before = folder, disk or folder / "disk", flags, before
        self.out = self.disk / "runs"

    @property
    def arguments(self) -> list[str]:
        return ["run", "--out", str(self.out), *self.options.split()]

    @property
    def environment(self) -> dict[str, str]:
        """Variables besides this process's own."""
        return {"EPSEARCH_CACHE": str(self.disk / "cache"), "OMP_NUM_THREADS": "1"}

    def start(self) -> subprocess.Popen:
        self.folder.mkdir(exist_ok=True)
        self.disk.mkdir(exist_ok=True)
        environment = os.environ | self.environment
        command = [sys.executable, *self.flags, "-m", "epsearch", *self.arguments]

        def ready():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)  # whatever this test run ignores, its children would, too
            self.before()

        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("wb") as err:
            return subprocess.Popen(command, stdout=out, stderr=err, env=environment, preexec_fn=ready)

    def until(self, reached) -> subprocess.Popen:
        """Starts it and waits until something has happened, or the process has ended."""
        process = self.start()
        while process.poll() is None and not reached(self):
            time.sleep(0.02)  # between two looks, not until something has happened
        return process

    def wait(self) -> int:
        return self.start().wait()

    @property
    def err(self) -> str:
        """What was printed on standard error, without Python's own log of imports."""
        lines = (self.folder / "err").read_text(encoding="utf-8").splitlines()
        return "\n".join(line for line in lines if not line.startswith("import time:"))

    @property
    def last_words(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("epsearch: ")]

    def imported(self, module: str) -> bool:
        """Whether a module has been imported; needs the flags -X importtime."""
        err = self.folder / "err"
        return err.exists() and any(line.split()[-1:] == [module] for line in err.read_text().splitlines())

    def rows(self, phase: str) -> int:
        """Members in the ledger, of the search ("cv") or the evaluation ("eval")."""
        try:
            with sqlite3.connect(f"file:{self.out}/epsearch.sqlite?mode=ro", uri=True) as connection:
                query = "select count(*) from epsearch_runs where phase = ?"
                return connection.execute(query, [phase]).fetchone()[0]
        except sqlite3.OperationalError:
            return 0

    def tables(self) -> dict:
        """What a run that ended well has found."""
        answer = json.loads((self.folder / "out").read_text(encoding="utf-8"))
        files = {name: (self.out / "fuzzed" / name).read_bytes() for name in FILES}
        return {name: answer[name] for name in TABLES} | files

    def size(self) -> int:
        """Bytes of all files on its disk, in whole pages."""
        pages = [-(-path.stat().st_size // 4096) for path in self.disk.rglob("*") if path.is_file()]
        return 4096 * sum(pages)
