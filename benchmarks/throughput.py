"""Member-steps per second of the cohort engine and of a plain PyTorch loop, side by side on one thread.

    uv run python benchmarks/throughput.py

Permuted MNIST's sizes (784-256-256-10, batch 10) on made-up pixels, which cost the same as real ones. Candidates take
turns in one process; medians over the turns. Writes benchmarks/results/throughput.json.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import machine
import numpy as np
import torch
from plain import PlainLoop

from trainers import Cohort, Member, TrainConfig
from trainers.population import train_cohort
from trainers.streams.base import Examples, Images
from trainers.streams.permuted import PermutedStream

CLASSES, PIXELS = 10, 784


def images(examples: int) -> Images:
    """Random pixels, balanced labels, and a test set of one image a class, so that testing costs nothing."""
    rng = np.random.default_rng(0)

    def part(count: int) -> Examples:
        pixels = rng.integers(0, 256, (count, PIXELS), dtype=np.uint8)
        return Examples(pixels, (np.arange(count) % CLASSES).astype(np.int64))

    return Images(part(examples), part(CLASSES), CLASSES, 255.0)


def engine(members: int, memory_batch: int, steps: int) -> Callable[[], float]:
    """Steps per second of a cohort: the time of a run of two tasks less that of its first, memoryless task."""
    stream = PermutedStream(images(10 * steps), range(2))
    first = PermutedStream(images(10 * steps), range(1))
    config = TrainConfig(memory_batch=memory_batch, memory=(memory_batch + CLASSES - 1) // CLASSES)
    cohort = Cohort("agem", tuple(Member(0.0, seed=0) for _ in range(members)))

    def measure() -> float:
        started = time.perf_counter()
        train_cohort(cohort, first, config)
        middle = time.perf_counter()
        train_cohort(cohort, stream, config)
        return members * steps / (time.perf_counter() - middle - (middle - started))

    return measure


def plain(memory_batch: int, steps: int) -> Callable[[], float]:
    """Steps per second of the plain loop on tensors in memory."""
    learner = PlainLoop(PIXELS, (256, 256), CLASSES, 0.1)
    x, y = torch.rand(10 * steps, PIXELS), torch.randint(0, CLASSES, (10 * steps,))
    memory, labels = torch.rand(10 * memory_batch, PIXELS), torch.randint(0, CLASSES, (10 * memory_batch,))

    def measure() -> float:
        started = time.perf_counter()
        for step in range(steps):
            now = slice(10 * step, 10 * step + 10)
            drawn = torch.randperm(len(labels))[:memory_batch]
            learner.step(x[now], y[now], memory[drawn], labels[drawn])
        return steps / (time.perf_counter() - started)

    return measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for memory_batch in (256, 10):
        candidates = {"plain PyTorch loop": plain(memory_batch, given.steps)} | {
            f"cohort engine, {members} members": engine(members, memory_batch, given.steps) for members in (1, 11)
        }
        seen: dict[str, list[float]] = {name: [] for name in candidates}
        for _ in range(given.turns):
            for name, measure in candidates.items():
                seen[name].append(measure())
        base = statistics.median(seen["plain PyTorch loop"])
        for name, speeds in seen.items():
            median = statistics.median(speeds)
            spread = (min(speeds), max(speeds))
            rows.append(
                {"candidate": name, "memory_batch": memory_batch, "steps_per_s": median, "range": spread}
                | {"ratio_to_plain": median / base}
            )
            print(
                f"reference batch {memory_batch:4}  {name:28} {median:8.0f} member-steps/s  "
                f"({spread[0]:.0f}…{spread[1]:.0f})  {median / base:5.2f} × plain"
            )
    machine.save("throughput", {"threads": 1, "turns": given.turns, "rows": rows})


if __name__ == "__main__":
    main()
