"""The plan of a study of somebody else's trainer, of which nothing can be counted: by the times of its members."""

import numpy as np

from epsearch.loop.ahead import Eta, Plan, suggestion
from epsearch.loop.base import Loop
from epsearch.runners import overheads
from epsearch.runners.local import local_slots
from epsearch.runners.registry import runner_of
from results.ledger.record import RunRecord
from results.statistics.power import resolution

UNMEASURED = "how long a member takes, the first one will tell"


def plan_of_trainer(loop: Loop, usable: int) -> Plan:
    """Members, and the time that they take by those that the ledger has; usable: workers that a stage can use."""
    study, ahead = loop.study, loop.outlook()
    jobs = loop.upcoming(local_slots(study))
    at_once = min(local_slots(study), len(jobs))
    taken = [_seconds_a_task(record) for record in loop.records.values() if record.seconds]
    eta, runner = None, runner_of(study)
    if jobs and taken:
        least, most = loop.work_of(ahead)
        start, report = overheads.expected(runner.name), overheads.expected(overheads.REPORT)
        low, middle, high = (float(one) / at_once for one in np.quantile(taken, (0.05, 0.5, 0.95)))
        eta = Eta(
            start + most * middle + report,
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
        ahead=ahead,
        steps=0,
        flop=0.0,
        at_once=at_once,
        usable=usable,
        # A member is trained by a process of its own, within its limit.
        bytes_needed=processes + ((study.limits.bytes or 0) * at_once if study.limits else 0),
        bytes_processes=processes,
        bytes_free=None,
        eta=eta,
        unmeasured=UNMEASURED if jobs and not taken else "",
        ray=ray,
        resolutions=tuple(resolution(seeds, loop.scores()) for seeds in study.compared_on),
        suggestion=suggestion(study) if jobs else "",
    )


def _seconds_a_task(record: RunRecord) -> float:
    return record.seconds / record.tasks
