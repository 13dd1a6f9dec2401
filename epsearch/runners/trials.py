"""The driver's side of Ray Tune: what the searcher asks, what carries the workers' news, and the Tuner."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ray import tune

from epsearch.evaluate import StudyLoop
from epsearch.jobs import Job, JobResult, decode
from epsearch.progress import Monitor
from epsearch.runners.trainable import train
from search_spaces.adapters.ray_tune import AskTellSearcher

RETRIES = 8  # a cohort whose worker died is trained again from its start; one death can cost several attempts


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
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # what goes wrong is said in one line, by us
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


def _to_config(job: Job) -> dict[str, Any]:
    return {"number": job.number, "job": job}


def _from_result(job: Job, result: dict[str, Any] | None) -> JobResult:
    if result is None:
        return JobResult(job.number, None, error=f"its worker died {RETRIES + 1} times ({job.stage})")
    if "value" not in result:
        return JobResult(job.number, None, error=str(result.get("error", "it was stopped")))
    return JobResult(job.number, decode(result["value"]), result["seconds"])
