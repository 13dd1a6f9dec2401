"""Did a change slow the engine? Two revisions in turns, against the noise of identical runs.

    uv run python benchmarks/compare.py OLD NEW [--turns 9] [--steps 600]

OLD and NEW are git revisions, or . for the working tree. Both are measured by the candidate.py beside this file, two
processes each: their speeds differ, too, by nothing but noise. Prints the ratio NEW / OLD of the speeds for every case.
Exit status 1 where NEW is slower beyond the noise, 0 otherwise, 2 for bad input.
"""

import argparse
import io
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import turns

CASES = {
    "reference batch 256, 1 member": {"memory_batch": 256, "members": 1},
    "reference batch 256, 11 members": {"memory_batch": 256, "members": 11},
    "reference batch 10, 1 member": {"memory_batch": 10, "members": 1},
    "reference batch 10, 11 members": {"memory_batch": 10, "members": 11},
    "64 pixels, reference batch 256, 11 members": {"memory_batch": 256, "members": 11, "pixels": 64},
}
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


def checkout(revision: str, folder: Path) -> Path:
    """A folder that holds a revision: copied out, so that nothing stays behind in the repository. Raises ValueError."""
    if revision == ".":
        return turns.ROOT
    packed = subprocess.run(["git", "-C", str(turns.ROOT), "archive", f"{revision}^{{commit}}"], capture_output=True)
    if packed.returncode:
        raise ValueError(f"{revision!r} is neither a git revision nor . for the working tree")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def measure(old: Path, new: Path, count: int, steps: int) -> dict[str, Verdict]:
    """Turns of old, new, new, old: four processes, so that each revision is measured twice in every turn."""
    command = [sys.executable, str(Path(__file__).parent / "candidate.py"), "engine", "--threads", "1"]
    running = [turns.Candidate(command, 1, source) for source in (old, new, new, old)]
    speeds: dict[str, list[list[float]]] = {name: [] for name in CASES}
    try:
        for turn in range(-1, count):  # the first turn warms up
            for name, case in CASES.items():
                order = running if turn % 2 else running[::-1]
                seen = [turns.rate(turns.together([each], **case, steps=steps)) for each in order]
                if turn >= 0:
                    speeds[name].append(seen if turn % 2 else seen[::-1])
    finally:
        for each in running:
            each.close()
    return {
        name: judge([(row[0], row[3]) for row in rows], [(row[1], row[2]) for row in rows])
        for name, rows in speeds.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--steps", type=int, default=600, help="member-steps of a measurement, at least 50 a member")
    given = parser.parse_args()
    if given.turns < 5:
        parser.error("--turns must be >= 5: fewer say nothing about noise")
    with tempfile.TemporaryDirectory() as folder:
        try:
            old, new = (checkout(getattr(given, name), Path(folder) / name) for name in ("old", "new"))
            verdicts = measure(old, new, given.turns, given.steps)
        except (ValueError, turns.Ended) as error:
            parser.error(str(error))
    for name, verdict in verdicts.items():
        print(f"{name:44} {verdict.change} × the speed, identical runs {verdict.noise:.3f} ×: {verdict.word}")
    return int(any(verdict.slower for verdict in verdicts.values()))


if __name__ == "__main__":
    sys.exit(main())
