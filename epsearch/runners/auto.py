"""Threads of this process train at once; Ray Tune starts beside them, and takes over, if that pays."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from epsearch.failures.lines import surroundings
from epsearch.loop.base import Loop
from epsearch.runners import local, overheads
from epsearch.runners.on_ray import tune
from epsearch.runners.progress import Monitor
from epsearch.study.description import Study
from results.labels import duration_text
from trainers.notes import first_line

POLL_SECONDS = 0.5  # between two checks of the speed, and of Ray while it starts


@contextmanager
def ready(study: Study) -> Iterator[Callable[[Loop, Monitor], None]]:
    """Yields the function that trains a loop to its end, see `tune.ready`; ends Ray afterwards."""
    with ExitStack() as stack:
        yield partial(_run, _Takeover(study, stack))


class _Takeover:
    """Ray Tune that starts beside threads if that pays."""

    def __init__(self, study: Study, stack: ExitStack) -> None:
        self._study, self._stack = study, stack
        self._start: tune.RayStart | None = None
        self._given_up, self._notified, self._seconds = False, False, 0.0
        self._expected = overheads.expected_seconds(overheads.RAY_START)

    def decide(self, loop: Loop, monitor: Monitor) -> None:
        """Starts Ray if that pays, once there is a speed; else notifies the user, once.

        Called again and again, as the first seconds may make a study seem short.
        """
        if self._start is not None or self._given_up or (left := monitor.seconds_left) is None:
            return
        if left > overheads.LEAST_STARTS * self._expected:
            since = time.monotonic()
            try:
                self._start = self._stack.enter_context(tune.ready(self._study, with_tune=True))
            except OSError as error:  # no room for its folder, or no process for it
                self._give_up(loop, error)
            else:
                self._start.done.add_done_callback(lambda _: self._measure(time.monotonic() - since))
        elif not self._notified:
            self._notified = True
            loop.notify(
                f"trained by threads, in about {duration_text(left)}: Ray would take {duration_text(self._expected)} "
                "to start"
            )

    def take_over(self, loop: Loop) -> "tune.RayStart | None":
        """Joins Ray once it is ready, and returns it; notifies the user if it fails."""
        if self._start is None or not self._start.done.done():
            return None
        try:
            self._start.join()
        except Exception as error:  # noqa: BLE001  threads do not need it, whatever its error
            self._give_up(loop, error)
        return self._start

    def _give_up(self, loop: Loop, error: Exception) -> None:
        loop.notify(f"threads of this process go on: {surroundings(error) or first_line(error)}")
        self._start, self._given_up = None, True

    def remember(self) -> None:
        """Stores the seconds of the start for the next decision, without the wait for a thread."""
        if self._start is not None and self._start.worker_seconds is not None:
            overheads.remember(overheads.RAY_START, self._seconds + self._start.worker_seconds)

    def _measure(self, seconds: float) -> None:
        self._seconds = seconds


def _run(ray: _Takeover, loop: Loop, monitor: Monitor) -> None:
    """Trains until the study is done; raises as `local` and `tune` do."""
    with local.as_interrupted(), local.training(loop, monitor) as threads:
        while not loop.done:
            if not (jobs := local.open_jobs(loop, monitor)):
                continue
            ray.decide(loop, monitor)
            # Not before a thread is free: no job is trained twice, and no core has two jobs.
            if threads.free and threads.waiting(jobs) and (start := ray.take_over(loop)):
                start(loop, monitor, threads)
                ray.remember()
                return
            threads.begin(jobs)
            threads.collect(loop, POLL_SECONDS)
