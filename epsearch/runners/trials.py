"""The Ray Tune side of a study: the trainable, what carries its news to the monitor, and the Tuner."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ray import tune

from epsearch.evaluate import StudyLoop
from epsearch.jobs import Job, JobResult, decode, encode, execute
from epsearch.progress import Monitor
from search_spaces.adapters.ray_tune import AskTellSearcher

RETRIES = 2  # a cohort whose worker died is trained again from its start
REPORT_SECONDS = 1.0


class Source:
    """The study's loop as Tune's searcher sees it: an error ends the search instead of escaping into Tune."""

    def __init__(self, loop: StudyLoop, monitor: Monitor) -> None:
        self._loop, self._monitor = loop, monitor
        self.error: Exception | None = None

    @property
    def done(self) -> bool:
        return self.error is not None or self._loop.done

    def ask(self) -> list[Job]:
        return self._loop.ask()

    def tell(self, results: Sequence[JobResult]) -> None:
        try:
            self._loop.tell(results)
            self._monitor.update(self._loop)
        except Exception as error:
            self.error = error


class Relay(tune.Callback):
    """Carries the workers' step counts to the monitor; Tune pickles callbacks, so the monitor stays out of that."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: Any, **info: Any) -> None:
        self._monitor.steps(int(result.get("steps", 0)))

    def __getstate__(self) -> dict[str, Any]:
        return {}


def fit(source: Source, device: str, workers: int, scratch: Path, monitor: Monitor) -> None:
    """Runs Tune until the source is done or the user interrupts; Tune's own files go to `scratch`."""
    resources = {"gpu": 1.0} if device == "cuda" else {"cpu": 1.0}
    tuner = tune.Tuner(
        tune.with_resources(train, resources),
        tune_config=tune.TuneConfig(
            search_alg=AskTellSearcher(source, _to_config, _from_result),
            num_samples=-1,
            max_concurrent_trials=workers,
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(
            name="tune",
            storage_path=str(scratch),
            verbose=0,
            callbacks=[Relay(monitor)],
            failure_config=tune.FailureConfig(max_failures=RETRIES),
        ),
    )
    tuner.fit()


def train(config: dict[str, Any]) -> None:
    """The trainable: trains one cohort in a worker process and reports its steps on the way."""
    job: Job = config["job"]
    waiting, last = 0, time.monotonic()

    def progress(steps: int) -> None:
        nonlocal waiting, last
        waiting += steps
        if time.monotonic() - last >= REPORT_SECONDS:
            tune.report({"steps": waiting})
            waiting, last = 0, time.monotonic()

    result = execute(job, progress)
    assert result.value is not None
    tune.report({"steps": waiting, "value": encode(result.value), "seconds": result.seconds})


def _to_config(job: Job) -> dict[str, Any]:
    return {"number": job.number, "job": job}


def _from_result(job: Job, result: dict[str, Any] | None) -> JobResult:
    if result is None or "value" not in result:
        return JobResult(job.number, None, error=f"its worker failed {RETRIES + 1} times ({job.stage})")
    return JobResult(job.number, decode(result["value"]), result["seconds"])
