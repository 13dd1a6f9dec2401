"""What a member-step costs as tasks, members, memory and image size grow: whole runs, tests included, in turns.

    uv run python benchmarks/scaling.py [--turns 5] [--steps 60] [--threads 1]

One quantity varies at a time around 3 tasks, 1 member, memory 25 per class, reference batch 256, 784 pixels. Made-up
images; as many test images per training image as MNIST has. Writes benchmarks/results/scaling.json.
"""

import argparse
import sys
import time
from functools import cache
from typing import Any

import images as pictures
import machine
import torch
import turns
from candidate import cohort
from flops import BATCH

from trainers.population import Training, train_cohort
from trainers.streams.base import Images
from trainers.streams.permuted import PermutedStream

USUAL = {"tasks": 3, "members": 1, "memory_batch": 256, "memory": 25, "pixels": 784}
AXES = {
    "tasks": (2, 3, 5, 10, 20),
    "members": (1, 2, 5, 11, 22, 55),
    "memory_batch": (10, 64, 256, 1024),  # beyond 256 with a memory that fills it from the first task on
    "memory": (5, 25, 100, 400),
    "pixels": (64, 256, 784, 1568, 3072),
}
TESTS = 1 / 6  # MNIST's test images per training image


@cache
def data(pixels: int, examples: int) -> Images:
    return pictures.made_up(examples, max(int(examples * TESTS), pictures.CLASSES), pixels)


def run(case: dict[str, int], steps: int) -> dict[str, Any]:
    """Trains a cohort; steps counts each member's steps of each task, as the paper would count them."""
    per_class = max(case["memory"], -(-case["memory_batch"] // pictures.CLASSES) if case["memory_batch"] > 256 else 0)
    examples = max(BATCH * steps, per_class * pictures.CLASSES)
    stream = PermutedStream(data(case["pixels"], examples), range(case["tasks"]))
    chosen = cohort(case["members"], memory=per_class, memory_batch=case["memory_batch"])
    started = time.perf_counter()
    result = train_cohort(chosen, Training(stream))
    return {"steps": result.steps * case["members"], "seconds": time.perf_counter() - started}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60, help="steps of a task; more where the memory needs them")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    cases = [(axis, value, USUAL | {axis: value}) for axis, values in AXES.items() for value in values]
    seen: dict[tuple[str, int], list[float]] = {(axis, value): [] for axis, value, _ in cases}
    run(USUAL, arguments.steps)  # warms up
    for turn in range(arguments.turns):
        for axis, value, case in cases:
            answer = run(case, arguments.steps)
            seen[axis, value].append(1e3 * answer["seconds"] / answer["steps"])
        print(f"turn {turn + 1} of {arguments.turns}", file=sys.stderr)
    rows = [
        {"axis": axis, "value": value, "ms_per_member_step": turns.summary(times)}
        for (axis, value), times in seen.items()
    ]
    for row in rows:
        print(f"{row['axis']:13} {row['value']:5} {row['ms_per_member_step']['median']:8.3f} ms per member-step")
    how = {"turns": arguments.turns, "steps": arguments.steps, "threads": arguments.threads, "usual": USUAL}
    machine.save("scaling", how | {"rows": rows})


if __name__ == "__main__":
    main()
