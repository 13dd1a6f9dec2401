"""Whether plans tell the truth: the time that a plan tells, beside what the run then takes, for six kinds of studies.

    python benchmarks/plans.py FOLDER --data-dir DATA [--busy 2] [--turns 3] [--only digits …]

Every run is a process of its own, as a user's command is; the time that counts is the one from the plan to the end of
the command, report included. --busy: so many processes that never rest run beside. DATA: a folder with MNIST; images in
folders are made here. Prints a Markdown table: median of the turns, told and taken.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

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


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(STUDIES))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child[0], json.loads(given.child[1]))
        return
    make_birds(given.folder / "birds")
    print("| study | told, s | taken, s | told / taken |\n| --- | --- | --- | --- |")
    for title in (one for one in STUDIES if any(one.startswith(start) for start in given.only)):
        kind, options = STUDIES[title]
        pairs = []
        for _ in range(given.turns):
            name = f"{title} {time.time_ns()}".replace(" ", "-").replace(",", "")
            asked = {"name": name, "out": str(given.folder / "runs")} | options
            asked |= {"data_dir": str(given.data_dir)} if given.data_dir else {}
            asked |= {k: v.replace("FOLDER", str(given.folder)) for k, v in asked.items() if isinstance(v, str)}
            with busy(given.busy):
                command = [sys.executable, __file__, str(given.folder), "--child", kind, json.dumps(asked)]
                answer = subprocess.run(command, capture_output=True, text=True, check=True)
            pairs.append(json.loads(answer.stdout.splitlines()[-1]))
        told, taken = (median(one[part] for one in pairs) for part in (0, 1))
        ratios = ", ".join(f"{one[0] / one[1]:.2f}" for one in pairs)
        print(f"| {title} | {told:.1f} | {taken:.1f} | {told / taken:.2f} ({ratios}) |", flush=True)


if __name__ == "__main__":
    main()
