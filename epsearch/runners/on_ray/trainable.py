"""The worker's side of Ray Tune; apart from the driver's, so that workers start faster."""

import time
from dataclasses import replace
from typing import Any

from ray import tune

from epsearch.failures.lines import cohort_failure
from epsearch.loop.jobs import encode, execute
from epsearch.runners.on_ray.payload import Payload, keep_weights, worker_request
from trainers.operating_system import keep_niceness

REPORT_SECONDS = 1.0  # least pause between two reports, as each goes through Ray to the driver


def train(config: dict[str, Any], payload: Payload | None = None) -> None:
    """Trains a cohort in a worker process, and reports its steps on the way; the trainable of Ray Tune.

    config: of a job, by `trials.fit`. payload: files of the driver's machine; None on that machine. Every report has
    `steps` and `work`, see `jobs.Progress`, since the one before. The last also has either `value` (the encoded
    result), `seconds`, `parameter_difference`, `machine` and `self_check`, or the fields of `cohort_failure`.
    """
    keep_niceness()  # of a private Ray, which is a session of its own
    waiting, last = {"steps": 0, "work": 0.0}, time.monotonic()

    def progress(steps: int, work: float) -> None:
        nonlocal waiting, last
        waiting = {"steps": waiting["steps"] + steps, "work": waiting["work"] + work}
        if time.monotonic() - last >= REPORT_SECONDS:
            tune.report(waiting)
            waiting, last = {"steps": 0, "work": 0.0}, time.monotonic()

    try:
        job, images = config["job"], None
        if payload is not None:
            images, weights = payload
            keep_weights(weights, job.architecture.pretrained)
            job = replace(job, stream=worker_request(job.stream))
        if job.limits is not None:
            from trainers.foreign.fork_servers import keep_until_exit

            keep_until_exit()
        result = execute(job, progress, images, config.get("of_gpu", 1.0))
    except Exception as error:  # noqa: BLE001  reported by the driver, with the job
        # Not raised, as Tune would try again, in vain.
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
            "imported": result.imported,
        }
    )
