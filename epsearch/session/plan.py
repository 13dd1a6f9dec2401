"""What a search will take, before it is trained: members, steps, FLOP, memory, time, what its seeds can tell apart."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from epsearch.loop.ahead import Eta, Plan
from epsearch.loop.content import measures_transfer
from epsearch.loop.jobs import Job, Run, bytes_free
from epsearch.loop.search import SearchLoop
from epsearch.runners.local import local_slots
from epsearch.study.kinds import Search
from results.statistics.paired import student_quantile
from results.statistics.power import resolution
from trainers.cost.flops import run_flop
from trainers.cost.probe import measure
from trainers.footprint import bytes_of, free_bytes
from trainers.numeric_path import NumericPath
from trainers.population import Training, steps_of
from trainers.streams import DataError

PROBE_SECONDS = 3.0
WORTH_A_PROBE = 2e11  # FLOP: less is trained in about the time that the probe takes
CONFIDENCE = 0.95  # of the time to go; verdicts have theirs in results/statistics/paired.py


def make_plan(loop: SearchLoop) -> Plan:
    """Looks at what the ledger knows and, where it is worth it, trains for a few seconds; nothing of that is stored.

    Steps, FLOP and memory follow from the sizes of the study. Time is that of a probe of PROBE_SECONDS, where the whole
    takes more than WORTH_A_PROBE. A probe that fails leaves its reason in the plan: the run itself has ways out of some
    failures.
    """
    study, ahead = loop.study, loop.outlook()
    workers = local_slots(study)
    jobs = loop.upcoming(workers)
    # A certificate is a member of the search; what is missing now is of the search until that is over.
    missing = [] if loop.evaluating else loop.missing()
    searched = ahead.certified + ahead.most + (0 if loop.evaluating else ahead.now)
    evaluated = ahead.final + (ahead.now if loop.evaluating else 0)
    total, training, steps = searched * _cost(study, missing or loop.some()) + evaluated * _cost(study, loop.final())
    path = NumericPath.parse(str(study.numeric_path))
    needed = max((bytes_of(job.cohort, job.stream.open(), job.architecture, path) for job in jobs), default=0)
    eta, unmeasured, at_once = None, "", min(workers, len(jobs))
    if jobs and total >= WORTH_A_PROBE:
        try:
            eta = _eta(loop, jobs, at_once, total / training)
        except (MemoryError, RuntimeError, ValueError, DataError) as error:
            unmeasured = " ".join(str(error).split())
    return Plan(
        study=study,
        ahead=ahead,
        steps=round(steps),
        flop=float(total),
        at_once=at_once,
        bytes_needed=needed * at_once,
        bytes_free=free_bytes(path),
        eta=eta,
        unmeasured=unmeasured,
        resolutions=tuple(
            resolution(seeds, loop.strategist.scores())
            for seeds in dict.fromkeys((len(study.seeds), len(study.final_seeds)))
        ),
    )


def _cost(study: Search, runs: Iterable[Run]) -> NDArray[np.float64]:
    """What one member takes [3]: all FLOP, those of its training, SGD steps. The mean over the kinds of these runs."""
    costs = []
    # One of each kind: neither the seed nor what is per learner changes what a step takes.
    for run in {run.learner.shared: run for run in runs}.values():
        stream, learner = study.request(run.phase).open(), run.learner
        flop = run_flop(learner, stream, study.architecture, measures_transfer(run.phase))
        costs.append((flop.total, sum(flop.training), sum(steps_of(learner, stream))))
    return np.asarray(np.mean(costs, axis=0))


def _eta(loop: SearchLoop, jobs: list[Job], workers: int, with_tests: float) -> Eta:
    """The time that all of the work takes, from the speed of the largest job.

    workers: cohorts at a time, as many as the probe trains. with_tests: by how much tests make more of what training
    takes; the probe takes steps alone.
    """
    job = max(jobs, key=lambda one: one.weight * len(one.cohort.learners))
    path = NumericPath.parse(job.path)
    training = Training(job.stream.open(), job.architecture, path, job.transfer, bytes_free=bytes_free(path, workers))
    # Seconds of a member-step, all workers together.
    spent = 1 / np.asarray(measure(job.cohort, training, PROBE_SECONDS, workers).windows)
    # In steps such as the probe's.
    least, most = (with_tests * work / job.weight for work in loop.work_of(loop.outlook()))
    middle, half = float(np.median(spent)), _half_width(spent)
    return Eta(most * middle, least * max(0.0, middle - half), most * (middle + half))


def _half_width(spent: NDArray[np.float64]) -> float:
    """Half the width of the t interval of a mean of at least one value.

    Half the value where one window, of very slow steps, has no spread.
    """
    if len(spent) < 2:
        return float(spent[0]) / 2
    quantile = student_quantile((1 + CONFIDENCE) / 2, len(spent) - 1)
    return quantile * float(np.std(spent, ddof=1)) / math.sqrt(len(spent))
