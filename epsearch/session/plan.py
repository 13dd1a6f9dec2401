"""The plan of a study before training: members, steps, FLOP, memory, time, resolution of its seeds."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from epsearch.loop.base import Loop
from epsearch.loop.cautions import cautions
from epsearch.loop.cohorts import kind_of
from epsearch.loop.estimates import Eta, MemberCounts, Plan
from epsearch.loop.jobs import Job, Run, bytes_free
from epsearch.machine import visible_gpus
from epsearch.preparation.distances import costs_of_inner_tests
from epsearch.runners import overheads
from epsearch.runners.local import local_slots
from epsearch.runners.registry import Runner, runner_of
from results.ledger.record import RunRecord
from results.statistics.paired import student_quantile
from results.statistics.power import resolution
from trainers.cost.flops import later_steps
from trainers.cost.probe import measure
from trainers.footprint import bytes_of
from trainers.free_memory import free_bytes
from trainers.numeric_path import NumericPath
from trainers.population import Training
from trainers.streams import DataError

UNMEASURED = "how long it takes, the first steps will tell"
UNMEASURED_TRAINER = "how long a member takes, the first one will tell"
PROBE_SECONDS = 3.0
WORTH_A_PROBE = 2e11  # FLOP: less takes about as long as the probe
BUSY = 0.8  # with a smaller share of the processor time, the machine is busy
CONFIDENCE = 0.95  # of the remaining time
FEWER = 0.8  # another strategy is suggested where it usually needs at most this share of the points

Speed = tuple[float, float, float]
"""Seconds of one FLOP on an idle machine, half of an interval around it, share of the processor time."""


def make_plan(loop: Loop, probe: bool = True) -> Plan:
    """Returns the plan of a study, after a probe of a few seconds for larger studies; nothing is stored.

    Steps, FLOP and memory follow from the sizes of the study. The time is estimated by a probe of PROBE_SECONDS, if the
    study takes more than WORTH_A_PROBE; without one it is unknown. The plan has the reason of a failed probe, as the
    run itself may avoid the failure.
    """
    if loop.study.foreign:
        return _plan_of_trainer(loop, _usable(loop, loop.counts()))
    study, counts = loop.study, loop.counts()
    workers = local_slots(study)
    jobs = loop.upcoming(workers)
    total, steps = sum((count * _cost(loop, runs) for count, runs in loop.remaining() if count), np.zeros(2))
    path = NumericPath.parse(str(study.numeric_path))
    needed = max((bytes_of(job.cohort, job.stream.open(), job.architecture, path) for job in jobs), default=0)
    eta, unmeasured, at_once = None, "", min(workers, len(jobs))
    runner = runner_of(study)
    if jobs and total >= WORTH_A_PROBE and not probe:
        unmeasured = UNMEASURED
    elif jobs:
        try:
            work = loop.work_of(counts)
            speed = _measured_speed(jobs, at_once) if total >= WORTH_A_PROBE else _usual_speed(total, work[2])
            eta = _eta(runner, work, speed)
        except (MemoryError, RuntimeError, ValueError, DataError) as error:
            unmeasured = f"could not be measured: {' '.join(str(error).split())}"
    ray = runner.uses_ray(None if eta is None else eta.training)
    processes = overheads.process_bytes(ray, at_once) if jobs else 0
    return Plan(
        study=study,
        counts=counts,
        steps=round(steps),
        flop=float(total),
        at_once=at_once,
        usable=_usable(loop, counts),
        bytes_needed=needed * at_once + processes if path.device == "cpu" else needed * -(-at_once // _gpus(at_once)),
        bytes_processes=processes,
        bytes_free=free_bytes(path),
        eta=eta,
        unmeasured=unmeasured,
        ray=bool(jobs) and ray,
        resolutions=tuple(resolution(seeds, loop.scores()) for seeds in study.compared_on),
        suggestion=_suggestion(loop) if counts.now else "",
        measuring=costs_of_inner_tests(study, loop.images),
        cautions=cautions(study, seen=loop.seen_tasks),
    )


def _plan_of_trainer(loop: Loop, usable: int) -> Plan:
    """Returns the plan for a plug-in trainer: without FLOP, with the time of stored members; usable: see `Plan`."""
    study, counts = loop.study, loop.counts()
    jobs = loop.upcoming(local_slots(study))
    at_once = min(local_slots(study), len(jobs))
    taken = [_seconds_a_task(record) for record in loop.records.values() if record.seconds]
    eta, runner = None, runner_of(study)
    if jobs and taken:
        least, usual, most = loop.work_of(counts)
        report = overheads.expected_seconds(overheads.REPORT)
        # By each worker and for each certificate; where members import it anew, their time has it.
        imports = overheads.expected_seconds(overheads.import_of(study.value("method")), 0.0)
        start = runner.overhead + imports * (1 + counts.certified / at_once)
        low, middle, high = (float(quantile) / at_once for quantile in np.quantile(taken, (0.05, 0.5, 0.95)))
        eta = Eta(
            start + usual * middle + report,
            start + least * low + report,
            start + most * high + report,
            start,
            report,
            1.0,
        )
    ray = bool(jobs) and runner.uses_ray(None if eta is None else eta.training)
    processes = overheads.process_bytes(ray, at_once) if jobs else 0
    return Plan(
        study=study,
        counts=counts,
        steps=0,
        flop=0.0,
        at_once=at_once,
        usable=usable,
        # Each member is trained by a process with this limit.
        bytes_needed=processes + ((study.limits.bytes or 0) * at_once if study.limits else 0),
        bytes_processes=processes,
        bytes_free=None,
        eta=eta,
        unmeasured=UNMEASURED_TRAINER if jobs and not taken else "",
        ray=ray,
        resolutions=tuple(resolution(seeds, loop.scores()) for seeds in study.compared_on),
        suggestion=_suggestion(loop) if jobs else "",
    )


def _seconds_a_task(record: RunRecord) -> float:
    return record.seconds / record.tasks


def _usable(loop: Loop, counts: MemberCounts) -> int:
    """Returns the members of the largest remaining stage, as a worker trains at least one."""
    together = counts.now + (counts.certified if loop.stage == "evaluation" else 0)
    return max(together, loop.stage_members()[1] if counts.most else 0, counts.final + counts.certified)


def _cost(loop: Loop, runs: Iterable[Run]) -> NDArray[np.float64]:
    """Returns FLOP and SGD steps of one member [2], the mean over kinds of runs."""
    # One run of each kind: seeds and hyperparameters per learner do not change the cost of a step.
    costs = [loop.cost_of(run) for run in {kind_of(run): run for run in runs}.values()]
    return np.asarray(np.mean(costs, axis=0))


def _eta(runner: Runner, work: tuple[float, float, float], speed: Speed) -> Eta:
    """Returns the time of a whole run; work: the fewest, the usual and the most FLOP."""
    middle, half, share = speed
    start, report = runner.overhead / share, overheads.expected_seconds(overheads.REPORT) / share
    least, usual, most = work
    return Eta(
        start + usual * middle / share + report,
        start * share + least * max(0.0, middle - half) + report * share,
        start + most * (middle + half) / share + report,
        start,
        report,
        share,
    )


def _usual_speed(total: float, most: float) -> Speed:
    """Returns a rough speed for little work, for which a probe would take as long."""
    seconds = PROBE_SECONDS * total / WORTH_A_PROBE / most
    return seconds, seconds, 1.0


def _measured_speed(jobs: list[Job], workers: int) -> Speed:
    """Returns the speed of the largest job by a probe, which takes steps only; workers: cohorts at a time."""
    job = max(jobs, key=lambda job: sum(job.weights) * len(job.cohort.learners))
    path = NumericPath.parse(job.path)
    training = Training(job.stream.open(), job.architecture, path, job.transfer, bytes_free=bytes_free(path, workers))
    # Those of other GPUs have processes of their own, and no part in the probe.
    times = 1 if path.device == "cpu" else _gpus(workers)
    rates = measure(job.cohort, training, PROBE_SECONDS, -(-workers // times))
    a_step = later_steps(job.cohort.learners[0], training.stream, job.architecture, job.transfer).each
    spent = 1 / (a_step * np.asarray(rates.windows) * times)
    # Threads of the probe wait for each other a little, unlike processes.
    return float(np.median(spent)), _half_width(spent), rates.share if rates.share < BUSY else 1.0


def _gpus(workers: int) -> int:
    """Returns the number of GPUs of this machine that so many workers use, 1 or more."""
    return max(1, min(workers, len(visible_gpus())))


def _half_width(spent: NDArray[np.float64]) -> float:
    """Returns half the width of the t interval of a mean.

    For a single window, which has no spread, it is half the value.
    """
    if len(spent) < 2:
        return float(spent[0]) / 2
    quantile = student_quantile((1 + CONFIDENCE) / 2, len(spent) - 1)
    return quantile * float(np.std(spent, ddof=1)) / math.sqrt(len(spent))


def _suggestion(loop: Loop) -> str:
    """Returns options with as good an answer from fewer members; "" without any."""
    study, (usual, of_kg) = loop.study, loop.usual_points("", "kg")
    if of_kg is None or usual is None or of_kg > FEWER * usual:
        return ""
    members = of_kg * len(study.units)
    return f"--strategy kg names as good a value with usually about {members} members (docs/strategies.md)"
