"""Cuts members into cohorts for all workers, the longest work first."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from epsearch.loop.jobs import Certify, Prefix, Run
from trainers.hyperparameters import Hyperparameters

Kind: TypeAlias = tuple[str, int, int, Prefix | None, str, Hyperparameters]

CohortRuns: TypeAlias = tuple[Sequence[Run], Certify | None]
"""Members to train together, and the comparison of a certificate."""

ROUNDING = 1e-9  # of numbers of members that are quotients of work
COHORTS_PER_WORKER = 4  # small, so that workers idle little at the end of a stage, and a crash loses little


def kind_of(run: Run) -> Kind:
    """Returns the kind of a run; runs of one kind can be trained together."""
    return run.phase, run.order, run.more, run.prefix, run.learner.method, run.learner.shared


def cut(
    runs: Sequence[Run],
    workers: int,
    device: str,
    work: Callable[[Run], float],
    fitting: Callable[[list[Run]], list[int]] | None = None,
) -> list[CohortRuns]:
    """Cuts runs into cohorts for a number of workers.

    work: FLOP of a run. A cohort has runs of one kind; those of a seed stay together, as they share its data. On a CPU
    a cohort has at most a COHORTS_PER_WORKER-th of a worker's share of all work, and the last ones are smaller; on a
    GPU each worker has one cohort of a kind, or as many as fit one after another; fitting: returns how many of some
    runs fit on each worker's GPU.
    """
    kinds: dict[Kind, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.learner.seed):
        kinds.setdefault(kind_of(run), []).append(run)
    works = {kind: work(same[0]) for kind, same in kinds.items()}
    left = sum(works[kind] * len(same) for kind, same in kinds.items())
    largest = left / (workers * COHORTS_PER_WORKER)
    cohorts: list[list[Run]] = []
    # Members with the most work first, so that the cohorts that end a stage can be the shortest.
    for kind, same in sorted(kinds.items(), key=lambda item: -works[item[0]]):
        if same[0].learner.declared.foreign:  # each has a process of its own
            sizes = [1] * len(same)
        elif device == "cpu":
            sizes = _sizes(len(same), workers, works[kind], largest, left)
        else:
            sizes = _even(len(same), [len(same)] * workers if fitting is None else fitting(same))
        left -= works[kind] * len(same)
        cuts = [0, *itertools.accumulate(sizes)]
        cohorts += [same[a:b] for a, b in itertools.pairwise(cuts)]
    # The last cohorts are short, so that all workers end at about the same time.
    longest_first = sorted(cohorts, key=lambda cohort: -len(cohort) * work(cohort[0]))
    return [(cohort, None) for cohort in longest_first]


def _even(count: int, rooms: Sequence[int]) -> list[int]:
    """Returns a size per worker, about equal, but for those with less room; what is left over comes in further rounds.

    >>> _even(8, [8, 8, 8]), _even(9, [8, 2, 8]), _even(7, [2, 1, 0])
    ([2, 3, 3], [2, 3, 4], [1, 2, 1, 2, 1])
    """
    rooms, sizes = sorted(room for room in rooms if room) or [1], list[int]()
    while count:
        for place, room in enumerate(rooms):
            if size := min(room, count // (len(rooms) - place)):
                sizes.append(size)
                count -= size
    return sizes


def _sizes(count: int, workers: int, work: float, largest: float, left: float) -> list[int]:
    """Returns sizes that decrease to single members, as times of cohorts differ.

    Guided self-scheduling (Polychronopoulos and Kuck, 1987): each size is a worker's share of the rest.

    work: of a member; largest: most work of a cohort; left: work of these and all later members.

    >>> _sizes(55, 2, 1.0, 55 / 8, 55.0)
    [7, 7, 7, 7, 7, 7, 6, 3, 2, 1, 1]
    >>> _sizes(4, 2, 1.0, 100 / 8, 100.0)
    [4]
    """
    most, sizes = math.ceil(largest / work - ROUNDING) if work else count, list[int]()
    while count:
        share = int(left / work / workers + ROUNDING) if work else count
        sizes.append(max(1, min(most, share, count)))
        count -= sizes[-1]
        left -= sizes[-1] * work
    return sizes
