"""The driver's side of Ray Tune: source of trials, callbacks, and the Tuner."""

import logging
import math
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.exceptions import RayError
from ray.tune.search import Searcher
from ray.tune.stopper import Stopper

from epsearch.loop.base import Loop
from epsearch.loop.jobs import Job, JobResult, decode
from epsearch.runners.local import Threads
from epsearch.runners.on_ray.payload import Payload
from epsearch.runners.on_ray.trainable import train
from epsearch.runners.on_ray.watchdog import Heartbeats
from epsearch.runners.progress import Monitor
from search_spaces.adapters.ray_tune import AskTellSearcher

RUNNING = "RUNNING"  # the status of Tune's trials
ATTEMPTS = 5  # of a cohort whose worker dies, each from its start
Attempt = tuple[Job, dict[str, Any] | None]
"""A job, and the last report of its trial, None if its worker died."""


class Source:
    """The loop of a study as a source of Tune's trials: an error ends the search, and does not reach Tune.

    Attempts are counted here, and Tune makes none (`max_failures=0`): a job whose worker died stays open in the loop,
    and becomes a new trial. Tune's own retry fails if a worker dies between two trials (`reuse_actors`), while nothing
    watches it: the reset for the next trial fails, and Tune handles that twice, as a failure of the worker and of the
    task; the second time it ends the trial that it had queued again the first time, in spite of retries left.

    A job without attempts left is reported to the loop as failed.

    threads: of this process, which train some jobs already; until their end, fewer trials run than there are workers.
    """

    def __init__(
        self, loop: Loop, monitor: Monitor, task_timeout: float | None = None, threads: Threads | None = None
    ) -> None:
        self._loop, self._monitor, self._threads = loop, monitor, threads
        self._deaths: Counter[int] = Counter()
        self._killed: dict[int, str] = {}  # by job: why we killed its worker
        self.error: Exception | None = None
        self.first_steps: Callable[[], None] = lambda: None  # called whenever a worker reports steps
        self.heartbeats = Heartbeats(task_timeout)

    @property
    def done(self) -> bool:
        """True if Tune gets no more trials: the loop is done, pausing, stopping, or failed."""
        return self.error is not None or self.stopping or self._loop.done or self.pausing

    @property
    def pausing(self) -> bool:
        """True if Tune has nothing to run or to begin now, although the loop is not done."""
        return self.error is None and not self.ask() and not self._loop.done

    def wait(self) -> None:
        """Waits a moment while pausing, or for the result of a thread. Raises as `Monitor.pause`.

        Not within Tune, which would poll the source for ten minutes, without results of threads and without Ctrl-C.
        """
        if self._threads is not None and self._threads.busy:
            self._threads.collect(self._loop)
        else:
            self._monitor.pause(self._loop)

    @property
    def stopping(self) -> bool:
        """True if the listener ends the training; after an error, running trials may end."""
        with self.catch():
            return self._monitor.stopping
        return False

    def ask(self) -> list[Job]:
        """Returns the open jobs of the loop that no thread trains; none after an error, which is in `error`."""
        with self.catch():
            jobs = self._monitor.jobs(self._loop)
            return jobs if self._threads is None else self._threads.waiting(jobs)
        return []

    def room(self) -> float:
        """Returns the number of trials that may run."""
        return math.inf if self._threads is None else self._threads.free

    def collect(self) -> None:
        """Hands results of threads to the loop."""
        if self._threads is not None:
            with self.catch():
                self._threads.collect(self._loop, 0)

    def steps(self, count: int, work: float, job: Job | None = None) -> None:
        """Reports steps of a job to the monitor, see `jobs.Progress`."""
        self.first_steps()
        with self.catch():
            self._monitor.steps(count, work, job)

    @contextmanager
    def catch(self) -> Iterator[None]:
        """Stores the first error for the caller of Tune."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  raised by the caller of Tune
            self.error = self.error or error

    def tell(self, attempts: Sequence[Attempt]) -> None:
        """Hands results to the loop, but for attempts that leave their job open.

        Called by Tune, in the thread that trains; errors of the loop are stored in `error`, which ends the search.
        """
        with self.catch():
            results = map(self._result, attempts)
            self._loop.tell([result for result in results if result is not None])
            self._monitor.update(self._loop, [job.number for job, _ in attempts])

    def note_hanging(self, job: Job) -> None:
        """Notes that the worker of a job is killed because it hangs."""
        self._killed[job.number] = f"reported nothing for {self.heartbeats.limit:.0f} seconds and was killed"

    def _result(self, attempt: Attempt) -> JobResult | None:
        """Returns the result of a job; None if we stopped the attempt, or another one follows."""
        job, report = attempt
        if report is not None:
            return None if self.stopping and not {"value", "error"} & report.keys() else _result_of(job, report)
        self._deaths[job.number] += 1
        deaths, death = self._deaths[job.number], self._killed.pop(job.number, "died")
        if deaths == ATTEMPTS:
            error = f"its worker {death}, in the last of {ATTEMPTS} attempts ({job.stage})"
            return JobResult(job.number, None, error=error)
        self._loop.notify(
            f"a worker {death} ({job.stage}): its cohort is trained again, attempt {deaths + 1} of {ATTEMPTS}"
        )
        return None


class Relay(tune.Callback, Stopper):
    """Callbacks of Tune: pass reports of workers to the source, and end all trials with it.

    A hanging worker is killed, and then handled like one that has died.

    Tune pickles its callbacks and stoppers into a snapshot that nobody reads; the source, which has the ledger, is not
    part of it.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: Any, **info: Any) -> None:
        """Passes steps and work of a report to the source."""
        self._source.heartbeats.report(trial.trial_id)
        self._source.steps(int(result.get("steps", 0)), float(result.get("work", 0)), trial.config.get("job"))

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Collects results of threads and kills hanging workers, between two of Tune's steps."""
        self._source.collect()
        heartbeats, running = self._source.heartbeats, {t.trial_id: t for t in trials if t.status == RUNNING}
        for name in running:
            heartbeats.start(name)
        for name in heartbeats.hanging():
            heartbeats.stop(name)
            if name in running and (worker := running[name].temporary_state.ray_actor):
                self._source.note_hanging(running[name].config["job"])
                ray.kill(worker)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Stops the clock of its worker."""
        self._source.heartbeats.stop(trial.trial_id)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Stops the clock of its worker."""
        self._source.heartbeats.stop(trial.trial_id)

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Returns False: no report ends its trial."""
        return False

    def stop_all(self) -> bool:
        """Returns whether all trials end, as the listener ends the training."""
        return self._source.stopping

    def __getstate__(self) -> dict[str, Any]:
        return {}


def fit(
    source: Source,
    scratch: Path,
    workers: int,
    resources: dict[str, float],
    payload: "ray.ObjectRef[Payload] | None" = None,
) -> bool:
    """Runs Tune until the source is done or stopping; returns whether the user has interrupted it.

    scratch: folder of this machine for Tune's own files, which other nodes do not need; workers: trials at a time;
    resources: of each of them; payload: in the object store, for workers on other machines.

    Tune raises an error when Ray kills a worker because memory runs out. Every running job has then lost an attempt,
    and a new Tune goes on.
    """
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # errors are one line, from us
    part = resources.get("gpu", 1.0)
    searcher = AskTellSearcher(
        source,
        lambda job: {"number": job.number, "job": job, "of_gpu": part},
        lambda job, report: (job, report),
        room=source.room,
    )
    while not source.done:
        try:
            # Tune has a handler of its own, and restores the one before only when it is interrupted.
            handler = signal.getsignal(signal.SIGINT)
            _tuner(searcher, source, scratch, workers, resources, payload).fit()
            return threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == handler
        except RuntimeError as error:
            if not isinstance(error.__cause__, RayError):
                raise
            searcher.fail_running()
    return False


def _tuner(
    searcher: Searcher, source: Source, scratch: Path, workers: int, resources: dict[str, float], payload: Any
) -> tune.Tuner:
    relay = Relay(source)
    parameters = {} if payload is None else {"payload": payload}
    return tune.Tuner(
        tune.with_resources(tune.with_parameters(train, **parameters), resources),
        tune_config=tune.TuneConfig(
            search_alg=searcher,
            num_samples=-1,  # no limit: the searcher ends
            # Limits trials that wait for resources, too, which Tune would derive from the cores at its start.
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


def _result_of(job: Job, report: dict[str, Any]) -> JobResult:
    """Returns the result of a job from the last report of its worker: a value, or an error."""
    if "value" not in report:
        failure: dict[str, Any] = {"error": "it was stopped"}
        failure |= {name: report[name] for name in ("error", "traceback", "foreign", "stops") if name in report}
        return JobResult(job.number, None, **failure)
    names = ("seconds", "parameter_difference", "machine", "self_check", "imported")
    fields = {name: report[name] for name in names}
    return JobResult(job.number, decode(report["value"]), **fields)
