"""Did a change make anything slower? Two revisions in turns, against the noise of identical runs.

    uv run python benchmarks/compare.py OLD NEW [--turns 9] [--steps 600]

OLD and NEW are git revisions, or . for the working tree. Each trains with its own candidate.py, or with an adapter that
stands in for it (see revisions.py), and runs its commands on a ledger that it made. Each is measured twice a turn:
these speeds differ, too, by nothing but noise. Prints the ratio NEW / OLD of the speeds for every case.
Exit status 1 where NEW is slower beyond the noise, 0 otherwise, 2 for bad input.
"""

import argparse
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import turns
from revisions import SEARCHES, Revision

CASES: dict[str, dict[str, Any]] = {  # in the protocol of candidate.py
    "reference batch 256, 1 member": {"memory_batch": 256, "members": 1},
    "reference batch 256, 11 members": {"memory_batch": 256, "members": 11},
    "reference batch 10, 1 member": {"memory_batch": 10, "members": 1},
    "reference batch 10, 11 members": {"memory_batch": 10, "members": 11},
    "64 pixels, reference batch 256, 11 members": {"memory_batch": 256, "members": 11, "pixels": 64},
    "EWC, 11 members": {"method": "ewc", "members": 11},
    "residual network, reference batch 10, 2 members": {
        "network": "reduced_resnet18",
        "pixels": 16**2,
        "memory_batch": 10,
        "members": 2,
    },
}
SLOWER = {"reduced_resnet18": 20}  # turns of these networks have fewer steps by this factor
COMMANDS = {"start-up": "run --print-config", f"list of {SEARCHES} searches": "list"}
CONFIDENCE = 0.99  # several cases are looked at: 95 % would cry wolf too often
DRAWS = 4000


class Interval(NamedTuple):
    """A median ratio and its bootstrap interval."""

    low: float
    median: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.3f}…{self.high:.3f})"


class Verdict(NamedTuple):
    """The change of speed; the noise, by which factor identical processes differ; and what follows."""

    change: Interval
    noise: float
    word: str

    @property
    def slower(self) -> bool:
        return self.word == "SLOWER"


def interval(ratios: Sequence[float]) -> Interval:
    """Percentile bootstrap of the median.

    >>> interval([0.5, 0.5, 0.5])
    Interval(low=0.5, median=0.5, high=0.5)
    """
    rng = random.Random(0)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(DRAWS))
    tail = round(DRAWS * (1 - CONFIDENCE) / 2)
    return Interval(medians[tail], statistics.median(ratios), medians[-1 - tail])


def judge(old: Sequence[tuple[float, float]], new: Sequence[tuple[float, float]]) -> Verdict:
    """Slower where the whole interval of NEW / OLD lies below the ratio of identical processes.

    Each entry is one turn: the speeds of the two processes of a revision. Ratios are formed within a turn, so that a
    machine that slows down and recovers between turns does no harm. The interval covers what varies from turn to turn;
    the ratio of identical processes what stays and still is no change: where their memory came to lie.
    """
    change = interval([(b[0] * b[1] / (a[0] * a[1])) ** 0.5 for a, b in zip(old, new, strict=True)])
    same = [statistics.median(first / second for first, second in pairs) for pairs in (old, new)]
    noise = max(max(ratio, 1 / ratio) for ratio in same)
    word = "SLOWER" if change.high < 1 / noise else "faster" if change.low > noise else "within noise"
    return Verdict(change, noise, word)


def measure(old: Revision, new: Revision, count: int, steps: int) -> dict[str, Verdict]:
    """Turns of old, new, new, old: each revision is measured twice in every turn, its training in two processes."""
    for revision in (old, new):
        revision.make_ledger()
    revisions = (old, new, new, old)
    running = [revision.candidate() for revision in revisions]
    cases = {name: [partial(_trained, each, case, steps) for each in running] for name, case in CASES.items()}
    cases |= {
        name: [partial(each.runs_per_second, command) for each in revisions] for name, command in COMMANDS.items()
    }
    speeds: dict[str, list[list[float]]] = {name: [] for name in cases}
    try:
        for turn in range(-1, count):  # the first turn warms up
            for name, measured in cases.items():
                seen = [each() for each in (measured if turn % 2 else measured[::-1])]
                if turn >= 0:
                    speeds[name].append(seen if turn % 2 else seen[::-1])
    finally:
        for each in running:
            each.close()
    return {
        name: judge([(row[0], row[3]) for row in rows], [(row[1], row[2]) for row in rows])
        for name, rows in speeds.items()
    }


def _trained(candidate: turns.Candidate, case: dict[str, Any], steps: int) -> float:
    """Member-steps per second. Raises ValueError for a time that is nothing but noise."""
    speed = turns.rate(turns.together([candidate], **case, steps=steps // SLOWER.get(case.get("network", ""), 1)))
    if speed <= 0:
        raise ValueError(
            f"two tasks took no longer than one: --steps {steps} is too few for what else this machine does"
        )
    return speed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--steps", type=int, default=600, help="member-steps of a measurement, at least 50 a member")
    arguments = parser.parse_args()
    if arguments.turns < 5:
        parser.error("--turns must be >= 5: fewer say nothing about noise")
    with tempfile.TemporaryDirectory() as folder:
        try:
            old, new = (Revision(getattr(arguments, name), Path(folder) / name) for name in ("old", "new"))
            verdicts = measure(old, new, arguments.turns, arguments.steps)
        except (ValueError, turns.Ended) as error:
            parser.error(str(error))
    for name, verdict in verdicts.items():
        print(f"{name:47} {verdict.change} × the speed, identical runs {verdict.noise:.3f} ×: {verdict.word}")
    return int(any(verdict.slower for verdict in verdicts.values()))


if __name__ == "__main__":
    sys.exit(main())
