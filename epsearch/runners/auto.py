"""Threads of this process train at once; Ray Tune starts beside them, and takes over, where that pays."""

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

LOOK_SECONDS = 0.5  # between two looks at the speed, and at Ray while it starts


@contextmanager
def ready(study: Study) -> Iterator[Callable[[Loop, Monitor], None]]:
    """Yields the function that trains until the study is done; see `tune.ready`, whose place it takes.

    Ray is ended behind it, where it was started.
    """
    with ExitStack() as stack:
        yield partial(_run, _Ray(study, stack))


class _Ray:
    """Ray Tune, from the moment on in which it is worth its start."""

    def __init__(self, study: Study, stack: ExitStack) -> None:
        self._study, self._stack = study, stack
        self._starting: tune.Starting | None = None
        self._refused, self._said, self._took = False, False, 0.0
        self._needed = overheads.expected(overheads.BESIDE)

    def decide(self, loop: Loop, monitor: Monitor) -> None:
        """Starts it where that pays, as soon as the speed is known; until then says so, once.

        It is looked at again and again, as the first seconds may make a study seem short.
        """
        if self._starting is not None or self._refused or (left := monitor.seconds_left) is None:
            return
        if left > overheads.PAYS * self._needed:
            since = time.monotonic()
            try:
                self._starting = self._stack.enter_context(tune.ready(self._study, with_tune=True))
            except OSError as error:  # there is no room for its folder, or no process for it
                self._refuse(loop, error)
            else:
                self._starting.begun.add_done_callback(lambda _: self._is_ready(time.monotonic() - since))
        elif not self._said:
            self._said = True
            loop.notify(
                f"trained by threads of this process, in about {duration_text(left)} from here: Ray would be ready "
                f"after {duration_text(self._needed)}, which does not pay"
            )

    def takes_over(self, loop: Loop) -> "tune.Starting | None":
        """Joins it and returns it, once it is ready; where it cannot be had or was lost, the user is told."""
        if self._starting is None or not self._starting.begun.done():
            return None
        try:
            self._starting.join()
        except Exception as error:  # noqa: BLE001  threads can do without it, whatever has become of it
            self._refuse(loop, error)
        return self._starting

    def _refuse(self, loop: Loop, error: Exception) -> None:
        """Goes on without it for good."""
        loop.notify(f"threads of this process go on: {surroundings(error) or first_line(error)}")
        self._starting, self._refused = None, True

    def remember(self) -> None:
        """Keeps how long it has taken, workers and all, for the next decision; not how long a thread was waited for."""
        if self._starting is not None and self._starting.workers_took is not None:
            overheads.remember(overheads.BESIDE, self._took + self._starting.workers_took)

    def _is_ready(self, seconds: float) -> None:
        self._took = seconds


def _run(ray: _Ray, loop: Loop, monitor: Monitor) -> None:
    """Trains until the study is done; raises as `local` and `tune` do."""
    with local.stopped_by_ctrl_c(), local.training(loop, monitor) as threads:
        while not loop.done:
            if not (jobs := local.open_jobs(loop, monitor)):
                continue
            ray.decide(loop, monitor)
            # Not before a thread is free: what they train is not trained twice, and no core has two jobs.
            if threads.free and threads.waiting(jobs) and (starting := ray.takes_over(loop)):
                starting(loop, monitor, threads)
                ray.remember()
                return
            threads.begin(jobs)
            threads.tell(loop, LOOK_SECONDS)
