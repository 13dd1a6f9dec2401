"""Member-steps per second of the engine, a plain PyTorch loop and Avalanche's A-GEM, and how near they come to the
fastest matrix products of this machine. All candidates take turns in one run; medians over the turns.

    uv run python benchmarks/throughput.py [--turns 7] [--steps 2000] [--data-dir FOLDER] [--no-avalanche]

Permuted MNIST's sizes (784-256-256-10, batch 10) on real MNIST, second task, full reference batches. Avalanche gets an
environment of its own from the package index. Writes benchmarks/results/throughput.json.
"""

import argparse
import random
import statistics
import sys
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import images as pictures
import machine
import turns
from flops import BATCH, SIZES, Product, products, step_flop

from epsearch.cache import cache_folder

HERE = Path(__file__).parent
AVALANCHE = "0.6.0"
ARRANGEMENTS = {"1 thread": (1, 1), "2 threads": (2, 1), "2 processes × 1 thread": (1, 2)}  # threads, processes
SLOWER = {"own": 20, "tensors": 5}  # Avalanche's turns are shorter by this factor
LARGE = [2048, 2048, 2048]


@dataclass
class Contestant:
    """One line of the table: whom to ask for what, and the rates seen, one list an arrangement."""

    name: str
    command: tuple[str, ...]
    memory_batch: int
    request: dict[str, Any]
    rates: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in ARRANGEMENTS})


class Crew:
    """The processes of every command: two with one thread, one with two threads."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, ...], dict[int, list[turns.Candidate]]] = {}

    def start(self, command: tuple[str, ...]) -> None:
        def run(threads: int) -> turns.Candidate:
            return turns.Candidate((*command, "--threads", str(threads)), threads)

        if command not in self._running:
            self._running[command] = {1: [run(1), run(1)], 2: [run(2)]}

    def ask(self, command: tuple[str, ...], arrangement: str, request: dict[str, Any]) -> list[dict[str, Any]]:
        threads, processes = ARRANGEMENTS[arrangement]
        return turns.together(self._running[command][threads][:processes], **request)

    def close(self) -> None:
        for candidates in self._running.values():
            for candidate in candidates[1] + candidates[2]:
                candidate.close()


def contestants(arguments: argparse.Namespace) -> list[Contestant]:
    data = ("--data-dir", str(arguments.data_dir))
    ours = (sys.executable, str(HERE / "candidate.py"))
    result = []
    for batch in arguments.memory_batches:
        request = {"memory_batch": batch, "steps": arguments.steps}
        result.append(Contestant("plain PyTorch loop", (*ours, "plain", *data), batch, request))
        for members in arguments.members:
            name = f"engine, {members} member{'s' * (members > 1)}"
            result.append(
                Contestant(
                    name,
                    (*ours, "engine", *data),
                    batch,
                    request | {"members": members, "steps": max(arguments.steps, 100 * members)},
                )
            )
        if not arguments.no_avalanche:
            for kind, what in (("own", "its own PermutedMNIST"), ("tensors", "tensors in memory")):
                command = (*avalanche(), kind, *data, "--memory-batch", str(batch))
                few = {"steps": max(arguments.steps // SLOWER[kind], 10)}
                result.append(Contestant(f"Avalanche, {what}", command, batch, few))
    return result


def avalanche() -> tuple[str, ...]:
    """Runs Avalanche's candidate with this Python and this torch."""
    python, torch = ".".join(map(str, sys.version_info[:2])), version("torch").split("+")[0]
    packages = ("--with", f"avalanche-lib=={AVALANCHE}", "--with", f"torch=={torch}")
    return (
        "uv",
        "run",
        "--quiet",
        "--no-project",
        "--python",
        python,
        *packages,
        "python",
        str(HERE / "avalanche_agem.py"),
    )


class Ceiling:
    """The best rate of every product of a step, over all routines at hand, in every arrangement."""

    def __init__(self, memory_batches: list[int]) -> None:
        self.command = (sys.executable, str(HERE / "candidate.py"), "ceiling")
        self._steps = {batch: products(SIZES, BATCH + batch) for batch in memory_batches}
        shapes = {shape for step in self._steps.values() for shape in step}
        self.request = {"shapes": [*map(list, sorted(shapes)), LARGE], "seconds": 0.02}
        self._seen: dict[tuple[str, str, str], list[float]] = {}  # (arrangement, shape, routine): FLOP/s

    def note(self, arrangement: str, answers: list[dict[str, Any]]) -> None:
        for shape, routines in answers[0].items():
            for routine in routines:
                total = sum(answer[shape][routine] for answer in answers)
                self._seen.setdefault((arrangement, shape, routine), []).append(total)

    def best(self, arrangement: str, shape: list[int]) -> tuple[float, str]:
        """(FLOP/s, routine) of the fastest routine by its median."""
        return max(
            (statistics.median(rates), key[2])
            for key, rates in self._seen.items()
            if key[:2] == (arrangement, str(shape))
        )

    def step(self, arrangement: str, batch: int) -> float:
        """FLOP/s of a whole step whose every product ran at its best rate."""
        step: list[Product] = self._steps[batch]
        return step_flop(SIZES, BATCH + batch) / sum(p.flop / self.best(arrangement, list(p))[0] for p in step)


def measure(everyone: list[Contestant], ceiling: Ceiling, count: int) -> None:
    crew = Crew()
    try:
        for command in [*(each.command for each in everyone), ceiling.command]:
            crew.start(command)
        for turn in range(-1, count):  # the first turn warms up, with small requests
            for each in random.Random(turn).sample(everyone, len(everyone)):
                for arrangement in ARRANGEMENTS:
                    request = each.request if turn >= 0 else {key: min(n, 20) for key, n in each.request.items()}
                    answers = crew.ask(each.command, arrangement, request)
                    if turn >= 0:
                        each.rates[arrangement].append(turns.rate(answers))
            for arrangement in ARRANGEMENTS:
                ceiling.note(arrangement, crew.ask(ceiling.command, arrangement, ceiling.request))
            print(f"turn {turn + 1} of {count}", file=sys.stderr)
    finally:
        crew.close()


def rows(everyone: list[Contestant], ceiling: Ceiling, density: float) -> list[dict[str, Any]]:
    result = []
    for each in everyone:
        batch = each.memory_batch
        plain = next(other for other in everyone if other.memory_batch == batch and "plain" in other.name)
        for arrangement, rates in each.rates.items():
            median = statistics.median(rates)
            flops = median * step_flop(SIZES, BATCH + batch)
            result.append(
                {"candidate": each.name, "memory_batch": batch, "arrangement": arrangement}
                | {"member_steps_per_s": turns.summary(rates)}
                | {"ratio_to_plain": median / statistics.median(plain.rates[arrangement])}
                | {"gflops": flops / 1e9, "share_of_step_ceiling": flops / ceiling.step(arrangement, batch)}
                | {"share_of_large_product": flops / ceiling.best(arrangement, LARGE)[0]}
                | {"gflops_without_zeros": median * step_flop(SIZES, BATCH + batch, density) / 1e9}
            )
            print(f"ref {batch:4}  {each.name:33} {arrangement:22} {median:6.0f} steps/s {flops / 1e9:6.1f} GFLOP/s")
    return result


def ceilings(ceiling: Ceiling, memory_batches: list[int]) -> list[dict[str, Any]]:
    result = []
    for arrangement in ARRANGEMENTS:
        rate, routine = ceiling.best(arrangement, LARGE)
        result.append({"what": "2048³ product", "arrangement": arrangement, "gflops": rate / 1e9, "routine": routine})
        for batch in memory_batches:
            what, first = f"products of a step, reference batch {batch}", [BATCH + batch, *SIZES[:2]]
            routine = ceiling.best(arrangement, first)[1]
            result.append({"what": what, "arrangement": arrangement, "gflops": ceiling.step(arrangement, batch) / 1e9})
            result[-1]["routine"] = f"each its best; {'×'.join(map(str, first))}: {routine}"
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--steps", type=int, default=2000, help="member-steps of a turn, at least 100 a member")
    parser.add_argument("--members", type=int, nargs="+", default=[1, 5, 11, 55])
    parser.add_argument("--memory-batches", type=int, nargs="+", default=[256, 10])
    parser.add_argument("--data-dir", type=Path, default=cache_folder())
    parser.add_argument("--no-avalanche", action="store_true")
    arguments = parser.parse_args()
    density = pictures.density(pictures.real(arguments.data_dir))  # also downloads MNIST where it is missing
    everyone, ceiling = contestants(arguments), Ceiling(arguments.memory_batches)
    measure(everyone, ceiling, arguments.turns)
    how = {"turns": arguments.turns, "steps": arguments.steps, "density": density, "avalanche": AVALANCHE}
    table = rows(everyone, ceiling, density)
    machine.save("throughput", how | {"rows": table, "ceilings": ceilings(ceiling, arguments.memory_batches)})


if __name__ == "__main__":
    main()
