"""Whether plans tell the truth: the time that a plan tells, beside what the run then takes, for six kinds of studies.

    python benchmarks/plans.py FOLDER --data-dir DATA [--turns 3] [--only digits …]

Every run is a process of its own, as a user's command is; the time that counts is the one from the plan to the end of
the report. Each study has its turns alone, and beside two processes that never rest. FOLDER: for ledgers, reports and
images that are made here; DATA: a folder with MNIST. Writes benchmarks/results/plans.json.
"""

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import machine
import numpy as np

THREE = "lr=log:0.001..0.1 memory=5,10 epsilon=0..1"
STUDIES: dict[str, tuple[str, dict[str, object]]] = {
    "digits, default": ("run", {}),
    "two points": ("run", {"search": "epsilon=0,1", "strategy": "grid", "points": 3, "repeats": 1, "seeds": 2}),
    "MNIST, 1,000 images": (
        "run",
        {"dataset": "permuted_mnist", "examples_per_task": 1000, "points": 5, "repeats": 2, "seeds": 3},
    ),
    "a folder of images": (
        "run",
        {"dataset": "folder:FOLDER/birds", "points": 3, "repeats": 1, "seeds": 2}
        | {"tasks": 4, "cv_tasks": 2, "classes_per_task": 2, "image_size": 32},
    ),
    "tpe, three parameters": ("run", {"search": THREE, "strategy": "tpe", "points": 12, "repeats": 3, "seeds": 2}),
    "comparison": ("compare", {"seeds": 2, "tasks": 10}),
}


def child(kind: str, options: dict[str, object]) -> None:
    """Runs one study and prints two numbers as JSON: seconds that the plan told, seconds from there to the end."""
    from epsearch import Silent, build, run
    from epsearch.study.kinds import KINDS

    class Listener(Silent):
        told, planned = 0.0, 0.0

        def plan(self, make):  # type: ignore[no-untyped-def]
            eta = make().eta
            self.told, self.planned = (eta.seconds if eta else 0.0), time.monotonic()

    listener = Listener()
    run(build(KINDS[kind], options), listener)
    print(json.dumps([listener.told, time.monotonic() - listener.planned]))


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes beside that never rest."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def make_birds(folder: Path) -> None:
    """Eight folders of 40 random images each."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for label in range(8):
        (folder / f"class {label}").mkdir(parents=True, exist_ok=True)
        for number in range(40):
            pixels = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"class {label}" / f"{number}.png")


def turn(title: str, folder: Path, data_dir: Path | None) -> list[float]:
    """One run of a study in a process of its own: seconds that the plan told, seconds that it then took."""
    kind, options = STUDIES[title]
    name = "".join(letter for letter in title if letter.isalnum()) + str(time.time_ns())
    asked = {"name": name, "out": str(folder / "runs" / name)} | options  # nothing that an earlier turn has trained
    shutil.rmtree(folder / "cache" / "learners", ignore_errors=True)
    asked |= {"data_dir": str(data_dir)} if data_dir else {}
    asked |= {key: value.replace("FOLDER", str(folder)) for key, value in asked.items() if isinstance(value, str)}
    command = [sys.executable, __file__, str(folder), "--child", kind, json.dumps(asked)]
    environment = os.environ | {"EPSEARCH_CACHE": str(folder / "cache"), "EPSEARCH_LOOKS": "none"}
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return list(map(float, json.loads(answer.stdout.splitlines()[-1])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[""], help="beginnings of titles")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child[0], json.loads(given.child[1]))
        return
    make_birds(given.folder / "birds")
    titles = [title for title in STUDIES if title.startswith(tuple(given.only))]
    turn(titles[0], given.folder, given.data_dir)  # so that plans know this machine, as after a user's first run
    rows = []
    for title, beside in itertools.product(titles, (0, 2)):
        with busy(beside):
            pairs = [turn(title, given.folder, given.data_dir) for _ in range(given.turns)]
        rows.append({"study": title, "beside": beside, "told": [a for a, _ in pairs], "taken": [b for _, b in pairs]})
        print(rows[-1], flush=True)
    machine.save("plans", {"rows": rows})


if __name__ == "__main__":
    main()
