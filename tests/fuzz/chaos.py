"""Chaos: digits studies under `kill -9` at random moments, over both databases, in a campaign that resumes.

    python -m tests.fuzz.chaos --log chaos.jsonl --runner local --kills 140

Each study is a command that is killed a few times and started again until it ends by itself. Then its tables are those
of a run that was not disturbed, the log of trainings shows which members were trained twice, and nothing is left. The
log has a line for each study; the same command goes on behind the last one. Exit status 1: something was wrong.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import psycopg

from epsearch import api
from epsearch.events import ignore
from epsearch.loop.content import run_key
from epsearch.preparation.build import build
from epsearch.preparation.data import prepare
from epsearch.study.kinds import Search
from tests.fuzz import remains
from tests.fuzz.victim import OPTIONS, SMALL, Command, Victim
from tests.support import postgres

DATABASES = ("sqlite", "postgresql")
MOST_KILLS = 5  # of a study
GONE_SECONDS = 60  # for what was told to end, and for what notices that others have
WRONG = ("wrong", "missing", "differing", "left", "unexpected")
"""What a line of the log lists, and must not."""


class Reference(NamedTuple):
    """What a run leaves to which nothing has happened."""

    tables: dict[str, list[list[str]]]
    files: set[str]
    stored: set[str]


class Campaign:
    """Studies of one runner, until so many processes have been killed; the log says which were before."""

    def __init__(self, log: Path, runner: str, kills: int, databases=DATABASES, seed: int = 1, forked: bool = False):
        self.log, self.runner, self.kills, self.databases, self.seed = log, runner, kills, databases, seed
        self._forked = forked
        self._references: dict[str, Reference] = {}
        study = build(Search, OPTIONS | (SMALL if forked else {}) | {"runner": self.runner})
        self._key = partial(run_key, study, prepare(study, ignore).images)

    def lines(self) -> list[dict]:
        """What the log says of this campaign."""
        lines = map(json.loads, self.log.read_text(encoding="utf-8").splitlines()) if self.log.exists() else ()
        return [line for line in lines if (line["runner"], line["seed"]) == (self.runner, self.seed)]

    def run(self) -> dict:
        """Goes on until enough has been killed; figures of all of it."""
        with self._surroundings():
            while (known := figures(self.lines()))["kills"] < self.kills:
                line = self._study(known["studies"], self.kills - known["kills"])
                with self.log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
                print(json.dumps(line, ensure_ascii=False), flush=True)
        return figures(self.lines())

    @contextmanager
    def _surroundings(self) -> Iterator[None]:
        """A folder with a short name, as Ray's sockets need one, and a server where one is asked for."""
        self._folder, self._server = Path(tempfile.mkdtemp(prefix="c-")), None
        with ExitStack() as stack:
            stack.callback(self._tidy)
            if "postgresql" in self.databases:
                programs = postgres.programs()
                assert programs is not None, "PostgreSQL is not installed"
                self._server = stack.enter_context(postgres.running(programs))
            yield

    def _tidy(self) -> None:
        """Removes the folder, unless somebody will want to look at it."""
        if not any(line[name] for line in self.lines() for name in WRONG):
            shutil.rmtree(self._folder)

    def _study(self, number: int, kills: int) -> dict:
        """Kills and starts one study until it ends; its line."""
        database = self.databases[number % len(self.databases)]
        reference, before, begun = self._reference(database), remains.shared_memory(), time.monotonic()
        # By its number: what is drawn for a study does not depend on which were run before it in this process.
        dice = random.Random(f"{self.seed} {self.runner} {number}")
        victim, left = self._victim(str(number), database, dice), min(dice.randint(1, MOST_KILLS), kills)
        while not victim.lives or victim.lives[-1].status != 0:
            left -= len(victim.live(left).kills)
            assert len(victim.lives) <= 3 * MOST_KILLS, f"{victim.command.folder} does not end: {victim.command.err}"
        seconds = round(time.monotonic() - begun, 1)
        line = {
            "runner": self.runner,
            "seed": self.seed,
            "study": number,
            "database": database,
            "kills": [kill for life in victim.lives for kill in life.kills],
            "statuses": [life.status for life in victim.lives],
            "seconds": seconds,
            **remains.trained(victim, self._key),
            "missing": sorted(reference.stored ^ victim.lives[-1].stored),
            "differing": remains.differing(remains.tables(victim.command), reference.tables),
            "left": gone(lambda: self._left(victim.command, reference.files, before)),
            "unexpected": [life.unexpected for life in victim.lives if life.unexpected],
        }
        return line

    def _victim(self, name: str, database: str, dice: random.Random) -> Victim:
        """A study that has not begun, in a folder and a database of its own."""
        server = self._server if database == "postgresql" else None
        if server is not None:
            with psycopg.connect(server.url(), autocommit=True) as connection:
                connection.execute(f'CREATE DATABASE "chaos-{name}"'.encode())
        storage = server.url(f"chaos-{name}") if server else None
        command = Command(self._folder / name, self.runner, storage, self._forked)
        return Victim(command, dice, self._key, server, 0.1 if self._forked else 1.0)

    def _reference(self, database: str) -> Reference:
        """A run to which nothing happens; made when it is first asked for."""
        if database not in self._references:
            victim = self._victim(f"r{len(self._references)}", database, random.Random(0))
            life, command = victim.live(0), victim.command
            assert life.status == 0, command.err
            assert not (still := gone(lambda: remains.processes(command))), still
            self._references[database] = Reference(remains.tables(command), remains.files(command), life.stored)
        return self._references[database]

    @staticmethod
    def _left(command: Command, expected: set[str], before: set[str]) -> list[str]:
        return [*(remains.files(command) - expected), *remains.processes(command), *(remains.shared_memory() - before)]


def gone(left: Callable[[], list[str]]) -> list[str]:
    """What is left after a while."""
    deadline = time.monotonic() + GONE_SECONDS
    while (found := left()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return sorted(found)


def figures(lines: Sequence[dict]) -> dict:
    """Counts of all studies."""
    kills = [kill for line in lines for kill in line["kills"]]
    return {
        "studies": len(lines),
        "kills": len(kills),
        "targets": dict(sorted(Counter(kill["target"] for kill in kills).items())),
        "moments": dict(sorted(Counter(kill["moment"] for kill in kills).items())),
        "databases": dict(sorted(Counter(line["database"] for line in lines for _ in line["kills"]).items())),
        "runs": sum(len(line["statuses"]) for line in lines),
        "seconds": round(sum(line["seconds"] for line in lines)),
        "members": sum(line["members"] for line in lines),
        "twice": sum(line["twice"] for line in lines),
        **{name: sum(len(line[name]) for line in lines) for name in WRONG},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=Path, required=True, help="a line for each study; what it has is not done again")
    parser.add_argument("--runner", choices=["local", "tune"], default="local")
    parser.add_argument("--databases", nargs="+", choices=DATABASES, default=DATABASES, help="taken in turn")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--forked", action="store_true", help="without imports: runs are forks of this process")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(130))  # so that nothing is left of it
    if arguments.forked:
        preload()
    found = Campaign(**vars(arguments)).run()
    print(json.dumps(found, indent=1))
    return any(found[name] for name in WRONG)


def preload() -> None:
    """Imports all that a run imports, by a run in this process."""
    import_module("epsearch.cli")
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, {"EPSEARCH_CACHE": f"{folder}/cache"}):
        api.run(build(Search, OPTIONS | SMALL | {"runner": "local", "out": Path(folder, "runs")}))


if __name__ == "__main__":
    sys.exit(main())
