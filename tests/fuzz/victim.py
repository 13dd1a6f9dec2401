"""One study whose processes are killed with SIGKILL, whatever they do, and which is started again until it ends."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.fuzz.runs import Run
from tests.support import postgres
from tests.support.descendants import descendants
from tests.support.limits import HANGS
from tests.support.trainings import log
from tests.support.trainings.sitecustomize import noted

KEYS = "SELECT key FROM epsearch_runs"
ENDING = ("driver", "group", "raylet", "gcs_server")
"""Targets without which a driver cannot go on."""
AGENTS = ("ray::DashboardA", "ray::RuntimeEnv")
"""Names, as far as Linux keeps them, of processes with which the raylet ends on purpose; the others are workers."""
DATABASE = {"postmaster", "server", "backend"}
OPTIONS = {
    "workers": 2,
    "device": "cpu",
    "numeric_path": "cpu-float32-mkl",
    "repeats": 2,
    "points": 4,
    "seeds": 2,
    "cv_tasks": 2,
    "tasks": 5,
    "examples_per_task": 1000,
    "memory": 3,
    "memory_batch": 8,
    "name": "fuzzed",
}
SMALL = {"repeats": 1, "points": 3, "tasks": 4, "examples_per_task": 100, "certify": 0}
"""Options of forks instead, of which the report takes longest."""
LOOK = 0.01  # seconds between two looks at a run


class Command(Run):
    """The study as a command in a process group of its own, with a log of its trainings and a place for its files."""

    def __init__(self, folder: Path, runner: str, storage: str | None = None, forked: bool = False):
        super().__init__(folder, before=os.setsid)
        self.forked = forked
        self.log, self.temporary, self.life = folder / "trainings", folder / "t", 0
        self._runner, self.storage = runner, storage or f"sqlite:///{self.out}/epsearch.sqlite"

    @property
    def arguments(self):
        options = OPTIONS | (SMALL if self.forked else {}) | {"runner": self._runner, "out": self.out}
        flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        return ["run", "--json", *flags]

    @property
    def environment(self):
        own = {"TMPDIR": str(self.temporary), "RAY_TMPDIR": str(self.temporary), "EPSEARCH_STORAGE": self.storage}
        return super().environment | own | log.environment(self.log, self.life)

    def start(self):
        self.life += 1
        self.temporary.mkdir(parents=True, exist_ok=True)
        return Fork(self) if self.forked else super().start()

    def trainings(self):
        """Those of the present life."""
        return [one for one in log.read(self.log) if one.life == str(self.life)]

    def stored(self) -> set[str]:
        """Keys in the ledger; an SQLite file is copied, as who opens it after a kill would mend it."""
        with suppress(sqlite3.OperationalError, psycopg.errors.UndefinedTable):  # no table yet
            if self.storage.startswith("postgresql"):
                return self._stored_by_a_server()
            with tempfile.TemporaryDirectory() as folder:
                for end in ("", "-wal"):
                    with suppress(FileNotFoundError):
                        shutil.copy(f"{self.out}/epsearch.sqlite{end}", folder)
                with closing(sqlite3.connect(Path(folder, "epsearch.sqlite"))) as connection:
                    return {key for (key,) in connection.execute(KEYS)}
        return set()

    def _stored_by_a_server(self) -> set[str]:
        """As `stored`; a server of which a process was killed recovers first."""
        deadline = time.monotonic() + HANGS
        while True:
            try:
                with psycopg.connect(self.storage) as connection:
                    return {key for (key,) in connection.execute(KEYS)}
            except psycopg.errors.UndefinedTable:
                raise
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "PostgreSQL does not recover"
                time.sleep(0.1)


class Fork:
    """A command in a fork of this process, which has imported all that it needs: it starts at once. As a Popen."""

    def __init__(self, command: Command):
        self.returncode, self.pid = None, os.fork()
        if not self.pid:
            try:
                self._become(command)
            finally:
                os._exit(71)  # whatever went wrong, nobody is to go on as this process

    def _become(self, command: Command) -> None:
        from epsearch.__main__ import main
        from epsearch.loop import jobs
        from epsearch.runners import local

        jobs.execute = local.execute = noted(jobs.execute)
        os.setsid()
        for name, stream in (("out", sys.stdout), ("err", sys.stderr)):
            os.dup2(os.open(command.folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), stream.fileno())
        os.environ |= command.environment
        tempfile.tempdir = None
        sys.argv = ["epsearch", *command.arguments]
        status = 70
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(status)

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(LOOK)
        return self.returncode


@dataclass
class Life:
    """A driver, from its start to its end."""

    number: int
    process: "subprocess.Popen | Fork"
    noted: str
    """The log of trainings at its start."""
    began: float = field(default_factory=time.time)
    kills: list[dict] = field(default_factory=list)
    lost: Counter = field(default_factory=Counter)
    """Members that a worker was training when it was killed, though the driver went on."""
    status: int | None = None
    stored: set[str] = field(default_factory=set)
    """What was in the ledger at its end."""
    unexpected: str = ""


class Victim:
    """The study, and what kills it.

    key: tells the ledger's key of a member. pace: of the moments, where a start takes less than a command's.
    """

    def __init__(self, command: Command, dice: random.Random, key, server: postgres.Server | None, pace: float = 1.0):
        self.command, self.lives = command, list[Life]()
        self._dice, self._key, self._server, self._pace = dice, key, server, pace

    def live(self, kills: int) -> Life:
        """Starts it and lets it run to its end, however that comes, through so many kills at most."""
        noted = self.command.log.read_text() if self.command.log.exists() else ""
        life = Life(self.command.life + 1, self.command.start(), noted)
        self.lives.append(life)
        try:
            while len(life.kills) < kills and self._kill(life) not in (*ENDING, None):
                pass
            self._until(life, lambda: False)
        finally:
            if life.process.poll() is None:  # the campaign is to end
                self._abandon(life)
            life.status = life.process.wait()
        life.stored = self.command.stored()
        life.unexpected = self._unexpected(life)
        return life

    def _abandon(self, life: Life) -> None:
        """Ends a life at once."""
        os.killpg(life.process.pid, signal.SIGKILL)

    def _unexpected(self, life: Life) -> str:
        """How it ended, where nothing that was killed explains that; else empty."""
        if "Traceback" not in self.command.err and "Exception ignored" not in self.command.err:
            targets = {kill["target"] for kill in life.kills}
            if life.status == 0 or (life.status == -signal.SIGKILL and targets & {"driver", "group"}):
                return ""
            ray_was_lost = targets & {"raylet", "gcs_server", "agent"}
            nothing_begun = targets & DATABASE and not self.command.trainings()
            if life.status == 1 and len(self.command.last_words) == 1 and (ray_was_lost or nothing_begun):
                return ""
        return f"life {life.number}, status {life.status}, {life.kills}: {self.command.err[-500:]}"

    def _kill(self, life: Life) -> str | None:
        """Waits for a moment and kills a target, both drawn; which it was, or None where the run has ended before."""
        moment, happened, longest = self._moment(life)
        delay = self._dice.uniform(0, longest * self._pace)
        if not self._until(life, happened):
            return None
        ready = time.monotonic() + delay
        if not self._until(life, lambda: time.monotonic() >= ready):
            return None
        targets = self._targets(life)
        target = self._dice.choice(sorted(targets))
        victims = targets[target]
        if target in ("worker", "backend"):
            victims = [self._dice.choice(victims)]
        stored = self.command.stored() if target == "worker" else set()
        life.kills.append({"target": target, "moment": moment, "delay": round(delay, 3), "life": life.number})
        self._strike(target, victims)
        if target == "worker":
            trained = {one.run for one in self.command.trainings() if one.pid == victims[0]}
            life.lost.update(key for key in map(self._key, trained) if key not in stored)
        return target

    def _strike(self, target: str, victims: list[int]) -> None:
        """Kills these processes, and brings back what does not come by itself."""
        for pid in victims:
            with suppress(ProcessLookupError):
                (os.killpg if target == "group" else os.kill)(pid, signal.SIGKILL)
        if target in ("postmaster", "server"):
            self._bring_back(self._dice.uniform(0, 3))

    def _moment(self, life: Life) -> tuple[str, Callable[[], bool], float]:
        """(name, whether it has come, the longest that the killer takes from then on, in seconds), drawn."""
        folder, members = self.command.out / "fuzzed", self._dice.randint(2, 9)
        start = 14.0 if "tune" in self.command.arguments else 7.0  # seconds that it takes, about

        def noted(event: str, count: int) -> bool:
            text = self.command.log.read_text() if self.command.log.exists() else ""
            return text.count(f'"{event}"') - life.noted.count(f'"{event}"') >= count

        return self._dice.choice(
            [
                ("start", lambda: True, start),
                ("first training", lambda: noted("begin", 1), 0.1),
                ("first write", lambda: noted("end", 1), 0.1),
                ("training", lambda: noted("begin", members), 0.5),
                ("report", lambda: folder.exists() and folder.stat().st_mtime > life.began, 2.5),
            ]
        )

    def _targets(self, life: Life) -> dict[str, list[int]]:
        """Numbers of the processes that are there to be killed, by what they are."""
        found = self._processes_below(life.process.pid) | {"group": [life.process.pid]}
        if self._server is not None:
            found["postmaster"] = [self._server.pid]
            found["server"] = [child for child, _ in descendants(self._server.pid)]
            found["backend"] = found["server"][1:]
        return {name: pids for name, pids in found.items() if pids}

    @staticmethod
    def _processes_below(pid: int) -> dict[str, list[int]]:
        """The driver and its Ray, by what they are."""
        below, found = descendants(pid)[1:], {"driver": [pid], "worker": [], "agent": []}
        for child, name in below:
            if name.startswith("ray::"):
                found["agent" if name in AGENTS else "worker"].append(child)
        for kind in ("raylet", "gcs_server"):
            found[kind] = [child for child, name in below if name == kind]
        return {name: pids for name, pids in found.items() if pids}

    def _until(self, life: Life, happened: Callable[[], bool]) -> bool:
        """Waits until something has happened; whether the run goes on by then."""
        deadline = time.monotonic() + HANGS
        while life.process.poll() is None:
            if happened():
                return True
            assert time.monotonic() < deadline, f"{self.command.folder} hangs"
            time.sleep(LOOK)
        return False

    def _bring_back(self, seconds: float) -> None:
        """Starts the server again, after so long; its last processes may need a moment to end."""
        time.sleep(seconds * self._pace)
        deadline = time.monotonic() + HANGS
        while True:
            try:
                return self._server.start()
            except subprocess.CalledProcessError:
                assert time.monotonic() < deadline, "PostgreSQL does not start again"
                time.sleep(0.2)
