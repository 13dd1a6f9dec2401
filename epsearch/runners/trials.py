"""The driver's side of Ray Tune: what the searcher asks, what carries the workers' news, and the Tuner."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ray import tune
from ray.exceptions import RayError
from ray.tune.search import Searcher
from ray.tune.stopper import Stopper

from epsearch.failures.lines import CohortFailure
from epsearch.loop.base import Loop
from epsearch.loop.jobs import Job, JobResult, decode
from epsearch.runners.progress import Monitor
from epsearch.runners.trainable import train
from search_spaces.adapters.ray_tune import AskTellSearcher

ATTEMPTS = 5  # a cohort whose worker died is trained again from its start, so many times in all


class Attempt(NamedTuple):
    """What came of one attempt at a job: the last report of its trial, or None when its worker died."""

    job: Job
    report: dict[str, Any] | None


class Source:
    """The study's loop as Tune's searcher sees it: an error ends the search instead of escaping into Tune.

    Attempts are counted here, and Tune is told to make none (`max_failures=0`): a job whose worker died is kept from
    the loop, so it stays open and Tune is handed it again, as a new trial. Tune's own retry is lost when a worker dies
    while it waits between two trials (`reuse_actors`), where nobody watches it: the next trial's reset fails, Tune
    handles that twice, as the worker's failure and as the task's, and the second time it ends the trial that the first
    time it had put back in the queue, however many retries are left.
    """

    def __init__(self, loop: Loop, monitor: Monitor) -> None:
        self._loop, self._monitor = loop, monitor
        self._deaths: Counter[int] = Counter()
        self.error: Exception | None = None

    @property
    def done(self) -> bool:
        """Whether Tune is to be handed nothing more: the loop is done, pausing, stopping, or failed."""
        return self.error is not None or self.stopping or self._loop.done or self.pausing

    @property
    def pausing(self) -> bool:
        """Whether nothing is running or to be begun now, although the loop is not done."""
        return self.error is None and not self.ask() and not self._loop.done

    @property
    def stopping(self) -> bool:
        """Whether the listener wants to stop; after an error, what is running may end."""
        with self.no_escape():
            return self._monitor.stopping
        return False

    def ask(self) -> list[Job]:
        """The open jobs of the loop; none after an error in asking, which `error` then has."""
        with self.no_escape():
            return self._monitor.jobs(self._loop)
        return []

    def steps(self, count: int, weight: float) -> None:
        """Tells the monitor of steps."""
        with self.no_escape():
            self._monitor.steps(count, weight)

    @contextmanager
    def no_escape(self) -> Iterator[None]:
        """Keeps the first error for the one who started Tune."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  raised by the one who started Tune
            self.error = self.error or error

    def tell(self, attempts: Sequence[Attempt]) -> None:
        """Tells the loop what came of the attempts, but for those that leave their job open.

        Called by Tune, in the thread that trains; what the loop raises is kept in `error`, which ends the search.
        """
        with self.no_escape():
            self._loop.tell([_result(attempt) for attempt in attempts if not self._lost(attempt)])
            self._monitor.update(self._loop)

    def _lost(self, attempt: Attempt) -> bool:
        """Whether the attempt was stopped on our behalf, or the job's worker died and the job has attempts left."""
        if attempt.report is not None:
            return self.stopping and not {"value", "error"} & attempt.report.keys()
        self._deaths[attempt.job.number] += 1
        return self._deaths[attempt.job.number] < ATTEMPTS


class Relay(tune.Callback, Stopper):
    """Carries the workers' step counts to the source, and back to Tune that all trials are to end.

    Tune pickles its callbacks and stoppers into a snapshot that nobody reads; the source, which holds the ledger, stays
    out of that.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: Any, **info: Any) -> None:
        """Passes on the steps of one report, with the weight of the trial's job in FLOP a step."""
        self._source.steps(int(result.get("steps", 0)), trial.config["job"].weight)

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Never: what one trial reports does not end it."""
        return False

    def stop_all(self) -> bool:
        """Whether all trials are to end: the listener wants to stop."""
        return self._source.stopping

    def __getstate__(self) -> dict[str, Any]:
        return {}


def fit(source: Source, device: str, workers: int, scratch: Path) -> None:
    """Runs Tune until the source is done or stopping, or the user interrupts; Tune's own files go to `scratch`.

    device: "cpu" or "cuda"; a trial takes one core, or one GPU. workers: trials at a time.

    Tune breaks off when Ray itself ends a worker because the memory runs out, an error it does not expect. Every job
    that was running has then lost an attempt, and a new Tune goes on.
    """
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # what goes wrong is said in one line, by us
    searcher = AskTellSearcher(source, lambda job: {"number": job.number, "job": job}, Attempt)
    while not source.done:
        try:
            _tuner(searcher, source, device, workers, scratch).fit()
            return
        except RuntimeError as error:
            if not isinstance(error.__cause__, RayError):
                raise
            searcher.fail_running()


def _tuner(searcher: Searcher, source: Source, device: str, workers: int, scratch: Path) -> tune.Tuner:
    relay = Relay(source)
    return tune.Tuner(
        tune.with_resources(train, {"gpu" if device == "cuda" else "cpu": 1.0}),
        tune_config=tune.TuneConfig(
            search_alg=searcher,
            num_samples=-1,  # the searcher says when it is over
            max_concurrent_trials=workers,
            reuse_actors=True,  # a new process for every trial would import torch every time
        ),
        run_config=tune.RunConfig(
            name="tune",
            storage_path=str(scratch),
            verbose=0,
            callbacks=[relay],
            stop=relay,
            failure_config=tune.FailureConfig(max_failures=0),  # Source counts them
        ),
    )


def _result(attempt: Attempt) -> JobResult:
    """What the loop is told of an attempt: a value, or an error with what its worker reported of it."""
    job, report = attempt
    if report is None:
        return JobResult(job.number, None, error=f"its worker died {ATTEMPTS} times ({job.stage})")
    if "value" not in report:
        told = {name: report[name] for name in CohortFailure._fields if name in report}
        return JobResult(job.number, None, **({"error": "it was stopped"} | told))
    value, difference = decode(report["value"]), report["parameter_difference"]
    return JobResult(job.number, value, report["seconds"], parameter_difference=difference)
