"""Members cut into cohorts: those that are alike, in pieces for all workers, the longest work first."""

import itertools
from collections.abc import Callable, Sequence
from typing import TypeAlias

from epsearch.loop.jobs import Certify, Run
from trainers.hyperparameters import Hyperparameters

Kind: TypeAlias = tuple[str, str, Hyperparameters]

Order: TypeAlias = tuple[Sequence[Run], Certify | None]
"""Members to train together; where one is trained once more, what it is compared with."""

COHORTS_PER_WORKER = 4  # small enough that no worker idles long at the end of a stage, and little is lost in a crash


def kind_of(run: Run) -> Kind:
    """What is the same for runs that can be trained together."""
    return run.phase, run.learner.method, run.learner.shared


def cut(runs: Sequence[Run], workers: int, device: str, work: Callable[[Run], float]) -> list[Order]:
    """Cuts the runs into cohorts for so many workers.

    work: FLOP of one run. Learners of a cohort are alike in all that is not per learner; those of a seed stay together,
    as they share its data. On a CPU a cohort has at most a COHORTS_PER_WORKER-th of a worker's share, and the last ones
    are ever smaller; a GPU would rather have all of them together.
    """
    kinds: dict[Kind, list[Run]] = {}
    for run in sorted(runs, key=lambda one: one.learner.seed):
        kinds.setdefault(kind_of(run), []).append(run)
    cohorts: list[list[Run]] = []
    for alike in kinds.values():
        if alike[0].learner.declared.foreign:  # each has a process of its own
            sizes = [1] * len(alike)
        else:
            sizes = _sizes(len(alike), workers) if device == "cpu" else _even(len(alike), workers)
        cuts = [0, *itertools.accumulate(sizes)]
        cohorts += [alike[a:b] for a, b in itertools.pairwise(cuts)]
    # What is begun last is short, so that all workers end at about the same time.
    longest_first = sorted(cohorts, key=lambda cohort: -len(cohort) * work(cohort[0]))
    return [(cohort, None) for cohort in longest_first]


def _even(count: int, workers: int) -> list[int]:
    """One piece a worker, of about the same size.

    >>> _even(8, 3)
    [2, 3, 3]
    """
    pieces = min(count, workers)
    return [count * (piece + 1) // pieces - count * piece // pieces for piece in range(pieces)]


def _sizes(count: int, workers: int) -> list[int]:
    """Pieces that end with single members: times of cohorts differ, and a worker that is late is late by a little.

    Guided self-scheduling (Polychronopoulos and Kuck, 1987): what is left, shared out, is the size of the next piece.

    >>> _sizes(55, 2)
    [7, 7, 7, 7, 7, 7, 6, 3, 2, 1, 1]
    """
    most, sizes = -(-count // (workers * COHORTS_PER_WORKER)), list[int]()
    while count:
        sizes.append(max(1, min(most, count // workers)))
        count -= sizes[-1]
    return sizes
