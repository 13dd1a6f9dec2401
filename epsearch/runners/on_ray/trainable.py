"""The worker's side of Ray Tune; a module of its own, so that workers start without what only the driver needs."""

import time
from dataclasses import replace
from typing import Any

from ray import tune

from epsearch.failures.lines import cohort_failure
from epsearch.loop.jobs import encode, execute
from epsearch.runners.on_ray.payload import Carried, beside, received

REPORT_SECONDS = 1.0  # at least between two reports, as each of them goes through Ray to the driver


def train(config: dict[str, Any], carried: Carried | None = None) -> None:
    """The trainable: trains one cohort in a worker process and reports its steps on the way.

    config: what `trials.fit` makes of a job. carried: what this machine need not have itself; None where it is the
    driver's. Every report has `steps` and `work`, as `jobs.Progress` is told, since the one before. The last also has
    either `value` (the encoded result), `seconds`, `parameter_difference`, `machine` and `self_check`, or the fields of
    `cohort_failure`.
    """
    waiting, last = {"steps": 0, "work": 0.0}, time.monotonic()

    def progress(steps: int, work: float) -> None:
        nonlocal waiting, last
        waiting = {"steps": waiting["steps"] + steps, "work": waiting["work"] + work}
        if time.monotonic() - last >= REPORT_SECONDS:
            tune.report(waiting)
            waiting, last = {"steps": 0, "work": 0.0}, time.monotonic()

    try:
        job, images = config["job"], None
        if carried is not None:
            received(carried, job.architecture.pretrained)
            job, images = replace(job, stream=beside(job.stream)), carried.images
        result = execute(job, progress, images, config.get("of_gpu", 1.0))
    except Exception as error:  # noqa: BLE001  told by the driver, with the job
        # It would come again: reported instead of raised, which Tune would answer by trying again.
        tune.report(waiting | cohort_failure(error))
        return
    assert result.value is not None
    tune.report(
        waiting
        | {
            "value": encode(result.value),
            "seconds": result.seconds,
            "parameter_difference": result.parameter_difference,
            "machine": result.machine,
            "self_check": result.self_check,
        }
    )
