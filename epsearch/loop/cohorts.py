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
    as they share its data. On a CPU a kind of runs becomes COHORTS_PER_WORKER cohorts a worker; a GPU would rather have
    all of them together.
    """
    kinds: dict[Kind, list[Run]] = {}
    for run in sorted(runs, key=lambda one: one.learner.seed):
        kinds.setdefault(kind_of(run), []).append(run)
    cohorts: list[list[Run]] = []
    for alike in kinds.values():
        pieces = min(len(alike), workers * (COHORTS_PER_WORKER if device == "cpu" else 1))
        cuts = [len(alike) * piece // pieces for piece in range(pieces + 1)]
        cohorts += [alike[a:b] for a, b in itertools.pairwise(cuts)]
    # What is begun last is short, so that all workers end at about the same time.
    longest_first = sorted(cohorts, key=lambda cohort: -len(cohort) * work(cohort[0]))
    return [(cohort, None) for cohort in longest_first]
