"""What a study that was killed again and again leaves: tables, files, processes; and how often members were trained."""

import csv
import json
import os
from collections import Counter
from itertools import zip_longest
from pathlib import Path

import pandas as pd

from results.ledger.record import NOT_THE_RESULT
from tests.fuzz.runs import TABLES
from tests.fuzz.victim import Command, Victim
from tests.support.trainings import log

MEMORY = Path("/dev/shm")
SHARED = ("plasma", "torch_", "psm_", "sem.")


def tables(command: Command) -> dict[str, list[list[str]]]:
    """Rows of everything that it has found: parts of its answer, CSV and Parquet files; without what may differ."""
    answer = json.loads((command.folder / "out").read_text(encoding="utf-8"))
    found = {name: [[json.dumps(answer[name], sort_keys=True)]] for name in TABLES}
    for path in sorted((command.out / "fuzzed").rglob("*")):
        if path.suffix == ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.reader(file))
        elif path.suffix == ".parquet":
            frame = pd.read_parquet(path)
            rows = [list(frame.columns), *([repr(value) for value in row] for row in frame.itertuples(index=False))]
        else:
            continue
        kept = [number for number, name in enumerate(rows[0]) if name not in NOT_THE_RESULT]
        found[str(path.relative_to(command.out))] = [[row[number] for number in kept] for row in rows]
    return found


def differing(one: dict[str, list[list[str]]], other: dict[str, list[list[str]]]) -> list[str]:
    """Every cell that two runs do not have alike, with its place; missing rows and tables count by cell, too."""
    return [
        f"{name} {row}:{column} {a} {b}"
        for name in sorted(one.keys() | other.keys())
        for row, pair in enumerate(zip_longest(one.get(name, []), other.get(name, []), fillvalue=[]))
        for column, (a, b) in enumerate(zip_longest(*pair))
        if a != b
    ]


def files(command: Command) -> set[str]:
    """Everything below its folder."""
    return {str(path.relative_to(command.folder)) for path in command.folder.rglob("*") if not path.is_dir()}


def processes(command: Command) -> list[str]:
    """Those of its runs that are still there, known by their environment and by files that they have open."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                if _of(process, f"{command.folder}/"):
                    found.append(f"{process.name} {(process / 'cmdline').read_text()[:80]!r}")
            except OSError:
                continue  # it has just ended
    return found


def _of(process: Path, folder: str) -> bool:
    if (process / "stat").read_bytes().rpartition(b") ")[2][:1] in b"ZX":
        return False  # it has ended, and waits for its parent to ask
    if folder.encode() in (process / "environ").read_bytes():
        return True
    return any(os.readlink(one).startswith(folder) for one in (process / "fd").iterdir())


def shared_memory() -> set[str]:
    """Names of what Ray, torch and Python share; other programs, and temporary folders there, have other names."""
    return {one.name for one in MEMORY.glob("*") if one.name.startswith(SHARED)}


def trained(victim: Victim, key) -> dict[str, object]:
    """How often members were trained: in all, twice as they were in flight at a kill, and what must not be."""
    trainings = [one for one in log.read(victim.command.log) if one.event == "begin"]
    times = Counter(key(one.run) for one in trainings)
    wrong, stored = [], set[str]()
    for life in victim.lives:
        begun = Counter(key(one.run) for one in trainings if one.life == str(life.number))
        wrong += [f"{one} was stored, and trained again in life {life.number}" for one in begun.keys() & stored]
        wrong += [f"{one} twice in life {life.number}" for one, times in begun.items() if times > 1 + life.lost[one]]
        wrong += [f"{one} was lost in life {life.number}" for one in stored - life.stored]
        stored |= life.stored
    wrong += [f"{one} began {times[one]} times, and was stored {one in stored}" for one in times.keys() ^ stored]
    return {"members": len(times), "twice": times.total() - len(times), "wrong": wrong}
