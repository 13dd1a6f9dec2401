"""What a search will take, before it is trained: members, steps, FLOP, memory, time, what its seeds can tell apart."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsearch.loop.ahead import Eta, Plan
from epsearch.loop.content import measures_transfer
from epsearch.loop.jobs import Job, Run, bytes_free
from epsearch.loop.search import SearchLoop
from epsearch.runners.slots import local_slots
from epsearch.study.kinds import Search
from results.statistics.power import resolution
from trainers.cost.flops import run_flop
from trainers.cost.probe import measure
from trainers.footprint import bytes_of, free_bytes
from trainers.numeric_path import NumericPath
from trainers.population import Training, steps_of
from trainers.streams import DataError

PROBE_SECONDS = 3.0
WORTH_A_PROBE = 2e11  # FLOP: less is trained in about the time that the probe takes
CONFIDENCE = 0.95


def make_plan(loop: SearchLoop) -> Plan:
    """Looks at what the ledger knows and, where it is worth it, trains for a few seconds; nothing of that is stored."""
    study, ahead = loop.study, loop.outlook()
    workers = local_slots(study)
    jobs = loop.upcoming(workers)
    missing = loop.missing()
    searched = [] if loop.evaluating else missing
    one = _mean([_cost(study, run) for run in _kinds(searched or loop.some())])
    final = _mean([_cost(study, run) for run in _kinds(loop.final())])
    count = ahead.certified + (0 if loop.evaluating else ahead.now + ahead.most)
    evaluated = ahead.final + (ahead.now if loop.evaluating else 0)
    total, training, steps = (
        count * of_one + evaluated * of_final for of_one, of_final in zip(one, final, strict=True)
    )
    path = NumericPath.parse(str(study.numeric_path))
    needed = max((bytes_of(job.cohort, job.stream.open(), job.architecture, path) for job in jobs), default=0)
    eta, reason, at_once = None, "", min(workers, len(jobs))
    if jobs and total >= WORTH_A_PROBE:
        try:
            eta = _eta(loop, jobs, at_once, total / training)
        except (MemoryError, RuntimeError, ValueError, DataError) as error:  # the run itself has ways out of some
            reason = " ".join(str(error).split())
    seeds = dict.fromkeys((len(study.seeds), len(study.final_seeds)))
    found = tuple(resolution(number, loop.strategist.scores()) for number in seeds)
    return Plan(study, ahead, round(steps), total, at_once, needed * at_once, free_bytes(path), eta, reason, found)


class _Cost(NamedTuple):
    """What one member takes."""

    flop: float
    """All floating point operations."""
    training: float
    """Those of its training."""
    steps: float
    """SGD steps."""


def _kinds(runs: Iterable[Run]) -> list[Run]:
    """One of each kind: neither the seed nor what is per learner changes what a step takes."""
    return list({run.learner.shared: run for run in runs}.values())


def _cost(study: Search, run: Run) -> _Cost:
    stream, learner = study.request(run.phase).open(), run.learner
    found = run_flop(learner, stream, study.architecture, measures_transfer(run.phase))
    return _Cost(found.total, sum(found.training), sum(steps_of(learner, stream)))


def _mean(costs: Sequence[_Cost]) -> _Cost:
    return _Cost(*(sum(values) / len(costs) for values in zip(*costs, strict=True)))


def _eta(loop: SearchLoop, jobs: list[Job], workers: int, with_tests: float) -> Eta:
    """with_tests: by how much tests make more of what training takes; the probe takes steps alone."""
    job = max(jobs, key=lambda one: one.weight * len(one.cohort.learners))
    path = NumericPath.parse(job.path)
    free = bytes_free(path, workers)
    training = Training(job.stream.open(), job.architecture, path, job.transfer, bytes_free=free)
    rates = measure(job.cohort, training, PROBE_SECONDS, workers)
    # In steps such as the probe's.
    least, most = (with_tests * work / job.weight for work in loop.work_of(loop.outlook()))
    spent = 1 / np.asarray(rates.windows)  # seconds of a member-step, all workers together
    middle, half = float(np.median(spent)), _half_width(spent)
    return Eta(most * middle, least * max(0.0, middle - half), most * (middle + half))


def _half_width(spent: NDArray[np.float64]) -> float:
    """Of the t interval of the mean; half the value where one window, of very slow steps, has no spread."""
    if len(spent) < 2:
        return float(spent[0]) / 2
    from scipy.stats import t

    quantile = float(t.ppf((1 + CONFIDENCE) / 2, len(spent) - 1))
    return quantile * float(np.std(spent, ddof=1)) / math.sqrt(len(spent))
