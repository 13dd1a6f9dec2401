"""What a study will take, before it is trained: members, steps, FLOP, memory, time, what its seeds can tell apart."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsearch.loop.ahead import Eta, Outlook, Plan, suggestion
from epsearch.loop.base import Loop
from epsearch.loop.cautions import cautions
from epsearch.loop.cohorts import kind_of
from epsearch.loop.content import measures_transfer
from epsearch.loop.jobs import Job, Run, bytes_free
from epsearch.runners import overheads
from epsearch.runners.local import local_slots
from epsearch.runners.registry import Runner, runner_of
from epsearch.session.plan_trainer import plan_of_trainer
from epsearch.study.description import Study
from results.statistics.paired import student_quantile
from results.statistics.power import resolution
from trainers.cost.flops import later_steps, run_flop
from trainers.cost.probe import measure
from trainers.footprint import bytes_of, free_bytes
from trainers.forks import steps_of
from trainers.numeric_path import NumericPath
from trainers.population import Training
from trainers.streams import DataError

UNMEASURED = "how long it takes, the first steps will tell"
PROBE_SECONDS = 3.0
WORTH_A_PROBE = 2e11  # FLOP: less is trained in about the time that the probe takes
BUSY = 0.8  # with a smaller share of the processor time, other programs have the rest
CONFIDENCE = 0.95  # of the time to go; verdicts have theirs in results/statistics/paired.py


def make_plan(loop: Loop, probe: bool = True) -> Plan:
    """Looks at what the ledger knows and, where it is worth it, trains for a few seconds; nothing of that is stored.

    Steps, FLOP and memory follow from the sizes of the study. Time is that of a probe of PROBE_SECONDS, where the whole
    takes more than WORTH_A_PROBE; without a probe it is not known. A probe that fails leaves its reason in the plan:
    the run itself has ways out of some failures.
    """
    if loop.study.foreign:
        return plan_of_trainer(loop, _usable(loop, loop.outlook()))
    study, ahead = loop.study, loop.outlook()
    workers = local_slots(study)
    jobs = loop.upcoming(workers)
    total, steps = sum((count * _cost(study, runs) for count, runs in loop.ahead() if count), np.zeros(2))
    path = NumericPath.parse(str(study.numeric_path))
    needed = max((bytes_of(job.cohort, job.stream.open(), job.architecture, path) for job in jobs), default=0)
    eta, unmeasured, at_once = None, "", min(workers, len(jobs))
    runner = runner_of(study)
    if jobs and total >= WORTH_A_PROBE and not probe:
        unmeasured = UNMEASURED
    elif jobs:
        try:
            work = loop.work_of(ahead)
            speed = _measured_speed(jobs, at_once) if total >= WORTH_A_PROBE else _usual_speed(total, work[1])
            eta = _eta(runner, work, speed)
        except (MemoryError, RuntimeError, ValueError, DataError) as error:
            unmeasured = f"could not be measured: {' '.join(str(error).split())}"
    ray = runner.uses_ray(None if eta is None else eta.training)
    processes = overheads.process_bytes(ray, at_once) if jobs else 0
    return Plan(
        study=study,
        ahead=ahead,
        steps=round(steps),
        flop=float(total),
        at_once=at_once,
        usable=_usable(loop, ahead),
        bytes_needed=needed * at_once + (processes if path.device == "cpu" else 0),
        bytes_processes=processes,
        bytes_free=free_bytes(path),
        eta=eta,
        unmeasured=unmeasured,
        ray=bool(jobs) and ray,
        resolutions=tuple(resolution(seeds, loop.scores()) for seeds in study.compared_on),
        suggestion=suggestion(study) if ahead.now else "",
        cautions=cautions(study),
    )


def _usable(loop: Loop, ahead: Outlook) -> int:
    """Members of the largest stage that is left, each of which a worker can have; a later round counts as this one."""
    together = ahead.now + (ahead.certified if loop.stage == "evaluation" else 0)
    return max(together, loop.stage_members()[1] if ahead.most else 0, ahead.final + ahead.certified)


def _cost(study: Study, runs: Iterable[Run]) -> NDArray[np.float64]:
    """What one member takes [2]: FLOP, SGD steps. The mean over the kinds of these runs."""
    costs = []
    # One of each kind: neither the seed nor what is per learner changes what a step takes.
    for run in {kind_of(run): run for run in runs}.values():
        stream, learner = study.request(run.phase).open(), run.learner
        flop = run_flop(learner, stream, study.architecture, measures_transfer(run.phase))
        costs.append((flop.total, sum(steps_of(learner, stream))))
    return np.asarray(np.mean(costs, axis=0))


def _eta(runner: Runner, work: tuple[float, float], speed: "_Speed") -> Eta:
    """The time that a whole run takes; work: the fewest and the most FLOP; speed: that of its steps."""
    start, report = (overheads.expected(part) / speed.share for part in (runner.name, overheads.REPORT))
    least, most = work
    return Eta(
        start + most * speed.middle / speed.share + report,
        start * speed.share + least * max(0.0, speed.middle - speed.half) + report * speed.share,
        start + most * (speed.middle + speed.half) / speed.share + report,
        start,
        report,
        speed.share,
    )


class _Speed(NamedTuple):
    """Seconds that work takes, all workers together, tests with it."""

    middle: float
    """Of one FLOP, on a machine that does nothing else."""
    half: float
    """Half of an interval around it."""
    share: float = 1.0
    """Of the processor time that workers want, what they have."""


def _usual_speed(total: float, most: float) -> _Speed:
    """Of so little work that a probe would take as long; any of it may be over at once."""
    seconds = PROBE_SECONDS * total / WORTH_A_PROBE / most
    return _Speed(seconds, seconds)


def _measured_speed(jobs: list[Job], workers: int) -> _Speed:
    """That of the largest job; workers: cohorts at a time, as many as the probe trains, which takes steps alone."""
    job = max(jobs, key=lambda one: sum(one.weights) * len(one.cohort.learners))
    path = NumericPath.parse(job.path)
    training = Training(job.stream.open(), job.architecture, path, job.transfer, bytes_free=bytes_free(path, workers))
    rates = measure(job.cohort, training, PROBE_SECONDS, workers)
    a_step = later_steps(job.cohort.learners[0], training.stream, job.architecture, job.transfer).each
    spent = 1 / (a_step * np.asarray(rates.windows))
    # The probe's threads wait for each other a little, which processes do not.
    return _Speed(float(np.median(spent)), _half_width(spent), rates.share if rates.share < BUSY else 1.0)


def _half_width(spent: NDArray[np.float64]) -> float:
    """Half the width of the t interval of a mean of at least one value.

    Half the value where one window, of very slow steps, has no spread.
    """
    if len(spent) < 2:
        return float(spent[0]) / 2
    quantile = student_quantile((1 + CONFIDENCE) / 2, len(spent) - 1)
    return quantile * float(np.std(spent, ddof=1)) / math.sqrt(len(spent))
