"""What passes before the first step, and commands that only read: seconds by the shell's clock, part by part.

    python benchmarks/startup.py FOLDER [--turns 5] [--before]

Every turn starts each command anew, in an order that changes: the default study with each runner, up to its first steps
and to its end, and commands that only read. FOLDER: for ledgers and the cache. A turn before them, which does not
count, fills the cache and lets Python write its bytecode. Writes benchmarks/results/startup.json.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import machine

RUNNERS = ("auto", "local", "tune")
READ = (("--help",), ("list",), ("show", "known"))


def child(folder: str, runner: str, begun: float) -> None:
    """Runs the default study and prints, as JSON, the seconds since `begun` at which each part was over."""
    marks: list[tuple[str, float]] = []

    def mark(part: str) -> None:
        if part not in dict(marks):
            marks.append((part, time.time() - begun))

    import epsearch.cli  # noqa: F401  as the command does

    mark("Python and the command line")
    from epsearch import Event, Planned, Progress, Stored, build, run
    from epsearch.study.kinds import Search

    member_seconds = []

    def listener(event: Event) -> None:
        match event:
            case Planned():
                mark("data, ledger, checks")
                import torch  # noqa: F401

                mark("torch")
                _ = event.plan
                mark("plan")
            case Progress() if event.member_steps:
                mark("to the first steps")
            case Stored():
                member_seconds.extend(one.seconds for one in event.records)

    done = run(build(Search, {"out": folder, "name": "one", "runner": runner}), listener)
    mark("to the end")
    assert done.effort.trained
    print(json.dumps({"marks": marks, "members": sum(member_seconds)}))


def shell(arguments: list[str], cache: Path) -> tuple[float, str]:
    """(seconds that the command took, what it printed)."""
    begun = time.time()
    environment = machine.surroundings(cache)
    answer = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return time.time() - begun, answer.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--before", action="store_true", help="of a revision that had Ray Tune alone: startup_before")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child[0], arguments.child[1], float(arguments.child[2]))
        return
    runners = RUNNERS[-1:] if arguments.before else RUNNERS
    cache, known = arguments.folder / "cache", arguments.folder / "known"
    command = [sys.executable, "-m", "epsearch"]
    shutil.rmtree(known, ignore_errors=True)
    shell([*command, "run", "--out", str(known), "--name", "known", "--quiet"], cache)  # measures the numeric path
    runs: dict[str, list[Any]] = defaultdict(list)
    reading: dict[str, list[float]] = defaultdict(list)
    for number in range(-1, arguments.turns):
        turn = number % len(runners)
        order = runners[turn:] + runners[:turn]
        for runner in order:
            shutil.rmtree(cache / "learners", ignore_errors=True)
            folder = arguments.folder / f"{runner}-{time.time_ns()}"
            begun = time.time()
            options = [str(arguments.folder), "--child", str(folder), runner, str(begun)]
            _, answer = shell([sys.executable, __file__, *options], cache)
            runs[runner].append(json.loads(answer.splitlines()[-1]) | {"shell": time.time() - begun})
            print(number, runner, runs[runner][-1], flush=True)
        for words in READ:
            out = [] if words[0] == "--help" else ["--out", str(known)]
            reading[" ".join(words)].append(shell([*command, *words, *out], cache)[0])
        print({one: seconds[-1] for one, seconds in reading.items()}, flush=True)
    counted = {runner: runs[runner][1:] for runner in runners}
    name = "startup_before" if arguments.before else "startup"
    machine.save(name, {"runs": counted, "reading": {one: seconds[1:] for one, seconds in reading.items()}})


if __name__ == "__main__":
    main()
