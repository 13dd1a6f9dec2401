"""Peak resident memory of whole processes on full-size MNIST: the engine as members and tasks grow, and a plain loop.

    uv run python benchmarks/memory.py [--data-dir FOLDER]

Every figure is the peak of a fresh process: interpreter, torch, images and training. Mini-batches are 600 rows, so that
a task of 60,000 images takes 100 steps. Writes benchmarks/results/memory.json.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import images as pictures
import machine
import turns

from epsearch.cache import cache_folder

BATCH = 600
CASES: dict[str, dict[str, int | str]] = {
    "torch imported, nothing else": {"kind": "nothing"},
    "MNIST read": {"kind": "images"},
    "engine, 1 member, 3 tasks": {"kind": "engine", "members": 1, "tasks": 3},
    "engine, 11 members, 3 tasks": {"kind": "engine", "members": 11, "tasks": 3},
    "engine, 55 members, 3 tasks": {"kind": "engine", "members": 55, "tasks": 3},
    "engine, 1 member, 17 tasks": {"kind": "engine", "members": 1, "tasks": 17},
    "engine, 2 members, 17 tasks": {"kind": "engine", "members": 2, "tasks": 17},
    "plain PyTorch loop, 3 tasks": {"kind": "plain", "tasks": 3},
    "plain PyTorch loop, 17 tasks": {"kind": "plain", "tasks": 17},
}


def work(data_dir: Path, examples: int, kind: str, members: int = 1, tasks: int = 3) -> None:
    """What the fresh process does."""
    import torch

    torch.set_num_threads(1)
    if kind == "nothing":
        return
    data = pictures.real(data_dir)
    if kind == "plain":
        from plain import train_member

        train_member(data, 0, tasks, examples, batch=BATCH)
    elif kind == "engine":
        from candidate import cohort

        from trainers.population import Training, train_cohort
        from trainers.streams.permuted import PermutedStream

        stream = PermutedStream(data, range(tasks), examples)
        train_cohort(cohort(members, batch_size=BATCH), Training(stream))


def peak(case: dict[str, Any], arguments: argparse.Namespace) -> float:
    """Megabytes (10⁶ bytes) that a fresh process held at most."""
    command = [sys.executable, __file__, "--data-dir", str(arguments.data_dir), "--examples", str(arguments.examples)]
    done = subprocess.run([*command, "--case", json.dumps(case)], capture_output=True, text=True, cwd=turns.ROOT)
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=60_000, help="training images of a task")
    parser.add_argument("--data-dir", type=Path, default=cache_folder())
    parser.add_argument("--case", help=argparse.SUPPRESS)  # this file as the fresh process
    arguments = parser.parse_args()
    if arguments.case:
        work(arguments.data_dir, arguments.examples, **json.loads(arguments.case))
        unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
        return print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6)
    pictures.real(arguments.data_dir)  # downloads MNIST where it is missing
    rows = []
    for name, case in CASES.items():
        rows.append({"process": name, **case, "megabytes": peak(case, arguments)})
        print(f"{name:30} {rows[-1]['megabytes']:6.0f} MB")
    machine.save("memory", {"examples": arguments.examples, "rows": rows})


if __name__ == "__main__":
    main()
