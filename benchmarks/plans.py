"""Whether plans and the time to go tell the truth: what they tell, beside what the run then takes, for six studies.

    python benchmarks/plans.py FOLDER --data-dir DATA [--turns 3] [--only digits …]

Every run is a process of its own, as a user's command is. It plans first, as `epsearch plan` does; the time that counts
is the one of the run behind it, to the end of the report, and what the line of progress told on the way is kept. Each
study has its turns alone, and beside two processes that never rest. FOLDER: for ledgers, reports and images that are
made here; DATA: a folder with MNIST. Writes benchmarks/results/plans.json.
"""

import argparse
import itertools
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import machine
import numpy as np

PARTS = (0.1, 0.25, 0.5, 0.75)
"""Of a run, at which it is looked at what was told."""
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
    """Plans and runs one study; prints as JSON what the plan told, what the run took and what it told on the way.

    All in seconds; of the way [when, to go] whenever the time to go was told.
    """
    from epsearch import Event, Progress, build, run
    from epsearch.session.session import plan
    from epsearch.study.kinds import KINDS

    way: list[tuple[float, float]] = []

    def listener(event: Event) -> None:
        if isinstance(event, Progress) and event.eta is not None:
            way.append((time.monotonic() - begun, event.eta))

    study = build(KINDS[kind], options)
    eta = plan(study).eta
    begun = time.monotonic()
    run(study, listener)
    forecast = eta.seconds if eta else 0.0
    print(json.dumps({"told": forecast, "taken": time.monotonic() - begun, "way": way}))


def on_the_way(run: dict[str, Any]) -> list[float | None]:
    """At each of PARTS of a run: the end that was told, over the time that it took; None before anything was told."""
    taken = run["taken"]
    last = (max((one for one in run["way"] if one[0] <= part * taken), default=None) for part in PARTS)
    return [None if one is None else sum(one) / taken for one in last]


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


def turn(title: str, folder: Path, data_dir: Path | None) -> dict[str, Any]:
    """One run of a study in a process of its own; see `child`."""
    kind, options = STUDIES[title]
    name = "".join(letter for letter in title if letter.isalnum()) + str(time.time_ns())
    asked = {"name": name, "out": str(folder / "runs" / name)} | options  # nothing that an earlier turn has trained
    shutil.rmtree(folder / "cache" / "learners", ignore_errors=True)
    asked |= {"data_dir": str(data_dir)} if data_dir else {}
    asked |= {key: value.replace("FOLDER", str(folder)) for key, value in asked.items() if isinstance(value, str)}
    command = [sys.executable, __file__, str(folder), "--child", kind, json.dumps(asked)]
    environment = machine.surroundings(folder / "cache")
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return dict(json.loads(answer.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[""], help="beginnings of titles")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child[0], json.loads(arguments.child[1]))
        return
    make_birds(arguments.folder / "birds")
    titles = [title for title in STUDIES if title.startswith(tuple(arguments.only))]
    turn(
        titles[0], arguments.folder, arguments.data_dir
    )  # so that plans know this machine, as after a user's first run
    rows = []
    for title, beside in itertools.product(titles, (0, 2)):
        with busy(beside):
            runs = [turn(title, arguments.folder, arguments.data_dir) for _ in range(arguments.turns)]
        rows.append(
            {"study": title, "beside": beside}
            | {part: [one[part] for one in runs] for part in ("told", "taken")}
            | {"on_the_way": [on_the_way(one) for one in runs]}
        )
        print(rows[-1], flush=True)
    machine.save("plans", {"parts": PARTS, "rows": rows})


if __name__ == "__main__":
    main()
