"""The driver's side of Ray Tune: what the searcher asks, what carries the workers' news, and the Tuner."""

import logging
import math
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import ray
from ray import tune
from ray.exceptions import RayError
from ray.tune.search import Searcher
from ray.tune.stopper import Stopper

from epsearch.loop.base import Loop
from epsearch.loop.jobs import Job, JobResult, decode
from epsearch.runners.local import Threads
from epsearch.runners.on_ray.payload import Carried
from epsearch.runners.on_ray.resources import Share
from epsearch.runners.on_ray.trainable import train
from epsearch.runners.on_ray.watchdog import Silence
from epsearch.runners.progress import Monitor
from search_spaces.adapters.ray_tune import AskTellSearcher

RUNNING = "RUNNING"  # the status of Tune's trials
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

    A job without attempts left is told to the loop as one that could not be trained.

    threads: of this process, which train some jobs already; until they have, fewer trials run than there are workers.
    """

    def __init__(
        self, loop: Loop, monitor: Monitor, task_timeout: float | None = None, threads: Threads | None = None
    ) -> None:
        self._loop, self._monitor, self._threads = loop, monitor, threads
        self._deaths: Counter[int] = Counter()
        self._ended: dict[int, str] = {}  # by job: why its worker was ended by us
        self.error: Exception | None = None
        self.first_steps: Callable[[], None] = lambda: None  # told whenever a worker tells of steps
        self.silence = Silence(task_timeout)

    @property
    def done(self) -> bool:
        """Whether Tune is to be handed nothing more: the loop is done, pausing, stopping, or failed."""
        return self.error is not None or self.stopping or self._loop.done or self.pausing

    @property
    def pausing(self) -> bool:
        """Whether Tune has nothing to run or to begin now, although the loop is not done."""
        return self.error is None and not self.ask() and not self._loop.done

    def wait(self) -> None:
        """While pausing: a moment, or until a thread has trained what it began. Raises as `Monitor.pause` does.

        Not within Tune, which for ten minutes would ask for something to do, and hear of no thread and no Ctrl-C.
        """
        if self._threads is not None and self._threads.busy:
            self._threads.tell(self._loop)
        else:
            self._monitor.pause(self._loop)

    @property
    def stopping(self) -> bool:
        """Whether the listener wants to stop; after an error, what is running may end."""
        with self.no_escape():
            return self._monitor.stopping
        return False

    def ask(self) -> list[Job]:
        """The open jobs of the loop that no thread trains; none after an error in asking, which `error` then has."""
        with self.no_escape():
            jobs = self._monitor.jobs(self._loop)
            return jobs if self._threads is None else self._threads.waiting(jobs)
        return []

    def room(self) -> float:
        """How many trials may run."""
        return math.inf if self._threads is None else self._threads.free

    def collect(self) -> None:
        """Tells the loop what threads have trained meanwhile."""
        if self._threads is not None:
            with self.no_escape():
                self._threads.tell(self._loop, 0)

    def steps(self, count: int, work: float) -> None:
        """Tells the monitor of steps, as `jobs.Progress` is told."""
        self.first_steps()
        with self.no_escape():
            self._monitor.steps(count, work)

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
            outcomes = map(self._outcome, attempts)
            self._loop.tell([outcome for outcome in outcomes if outcome is not None])
            self._monitor.update(self._loop)

    def hangs(self, job: Job) -> None:
        """Is told before the worker of a job is ended because nothing has been heard of it."""
        self._ended[job.number] = f"told nothing for {self.silence.limit:.0f} seconds and was ended"

    def _outcome(self, attempt: Attempt) -> JobResult | None:
        """What the loop is told; None where the attempt was stopped on our behalf, or another one follows it."""
        job, report = attempt
        if report is not None:
            return None if self.stopping and not {"value", "error"} & report.keys() else _result(attempt)
        self._deaths[job.number] += 1
        died, what = self._deaths[job.number], self._ended.pop(job.number, "died")
        if died == ATTEMPTS:
            error = f"its worker {what}, in the last of {ATTEMPTS} attempts ({job.stage})"
            return JobResult(job.number, None, error=error)
        self._loop.notify(
            f"a worker {what} ({job.stage}): its cohort is trained again, attempt {died + 1} of {ATTEMPTS}"
        )
        return None


class Relay(tune.Callback, Stopper):
    """Carries the workers' step counts to the source, and back to Tune that all trials are to end.

    A worker that has been silent for too long is ended, from which all else follows as if it had died by itself.

    Tune pickles its callbacks and stoppers into a snapshot that nobody reads; the source, which holds the ledger, stays
    out of that.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: Any, **info: Any) -> None:
        """Passes on the steps of one report, and their work."""
        self._source.silence.heard(trial.trial_id)
        self._source.steps(int(result.get("steps", 0)), float(result.get("work", 0)))

    def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Looks for results of threads and for silent workers, between two of Tune's steps."""
        self._source.collect()
        silence, running = self._source.silence, {one.trial_id: one for one in trials if one.status == RUNNING}
        for name in running:
            silence.begun(name)
        for name in silence.silent():
            silence.ended(name)
            if name in running and (worker := running[name].temporary_state.ray_actor):
                self._source.hangs(running[name].config["job"])
                ray.kill(worker)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Nothing more is expected of its worker."""
        self._source.silence.ended(trial.trial_id)

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Nothing more is expected of its worker."""
        self._source.silence.ended(trial.trial_id)

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Never: what one trial reports does not end it."""
        return False

    def stop_all(self) -> bool:
        """Whether all trials are to end: the listener wants to stop."""
        return self._source.stopping

    def __getstate__(self) -> dict[str, Any]:
        return {}


class Setting(NamedTuple):
    """How the trials of a study are run."""

    workers: int
    """Trials at a time."""
    share: Share
    """What each of them takes."""
    scratch: Path
    """A folder of this machine for Tune's own files; other nodes need not see it, as no trial makes checkpoints."""
    carried: "ray.ObjectRef[Carried] | None" = None
    """A `Carried` in the object store, for workers that cannot read what this machine reads."""


def fit(source: Source, setting: Setting) -> bool:
    """Runs Tune until the source is done or stopping, or the user interrupts; returns whether that was it.

    Tune breaks off when Ray itself ends a worker because the memory runs out, an error it does not expect. Every job
    that was running has then lost an attempt, and a new Tune goes on.
    """
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # what goes wrong is said in one line, by us
    part = setting.share.of_gpu
    searcher = AskTellSearcher(
        source, lambda job: {"number": job.number, "job": job, "of_gpu": part}, Attempt, room=source.room
    )
    while not source.done:
        try:
            # Tune has a handler of its own, and gives back what there was only when it is interrupted.
            handler = signal.getsignal(signal.SIGINT)
            _tuner(searcher, source, setting).fit()
            return threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == handler
        except RuntimeError as error:
            if not isinstance(error.__cause__, RayError):
                raise
            searcher.fail_running()
    return False


def _tuner(searcher: Searcher, source: Source, setting: Setting) -> tune.Tuner:
    relay = Relay(source)
    handed = {} if setting.carried is None else {"carried": setting.carried}
    return tune.Tuner(
        tune.with_resources(tune.with_parameters(train, **handed), setting.share.resources),
        tune_config=tune.TuneConfig(
            search_alg=searcher,
            num_samples=-1,  # the searcher says when it is over
            # Also how many may wait for resources, which Tune else fixes by the cores that it sees first.
            max_concurrent_trials=setting.workers,
            reuse_actors=True,  # a new process for every trial would import torch every time
        ),
        run_config=tune.RunConfig(
            name="tune",
            storage_path=str(setting.scratch),
            verbose=0,
            callbacks=[relay],
            stop=relay,
            failure_config=tune.FailureConfig(max_failures=0),  # Source counts them
        ),
    )


def _result(attempt: Attempt) -> JobResult:
    """What the loop is told of an attempt: a value, or an error with what its worker reported of it."""
    job, report = attempt
    assert report is not None  # or the job would still be open
    if "value" not in report:
        failed: dict[str, Any] = {
            name: report[name] for name in ("error", "traceback", "foreign", "stops") if name in report
        }
        return JobResult(job.number, None, **({"error": "it was stopped"} | failed))
    told = {name: report[name] for name in ("seconds", "parameter_difference", "machine", "self_check")}
    return JobResult(job.number, decode(report["value"]), **told)
