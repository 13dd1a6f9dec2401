"""Base of live loggers; a training neither waits for them nor fails with them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Self

from epsearch.events import Began, Event, Progress, Stored
from epsearch.failures.errors import Interrupted
from epsearch.publishing.points import Trial, trial_of
from epsearch.publishing.report import masked
from epsearch.study.description import Study
from results.ledger.record import RunRecord

WAIT = 60.0  # seconds at the end, for events in the queue
FINISHED, FAILED, STOPPED = "FINISHED", "FAILED", "KILLED"


class Live(ABC):
    """A listener that logs stored members; a context manager, whose exit ends the log.

    target: as after --live; tell: called with one line if logging fails, after which nothing is logged. A thread logs,
    in the order of the events.
    """

    def __init__(self, target: str, tell: Callable[[str], None] = lambda line: None) -> None:
        self._target, self._tell, self._known = target, tell, -1
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._failed = False
        self._thread = Thread(target=self._work, name=f"live {type(self).__name__}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stopped = isinstance(error, (Interrupted, KeyboardInterrupt))
        status = STOPPED if stopped else FAILED if error else FINISHED
        self._enqueue(lambda: self.end(status))
        self._queue.put(None)
        self._thread.join(WAIT)
        if self._thread.is_alive():
            self._tell(self._failure(f"no answer for {WAIT:g} s"))

    def __call__(self, event: Event) -> None:
        """Logs an event; progress only when the number of members has changed."""
        match event:
            case Began(study=study, heading=heading) if study is not None:
                self._study = study
                self._enqueue(partial(self.open, study, heading))
            case Stored():
                for record in event.records:
                    self._enqueue(partial(self._log, record))
            case Progress() if event.known != self._known:
                self._known = event.known
                self._enqueue(lambda: self.progress(event))

    @abstractmethod
    def open(self, study: Study, heading: str) -> None:
        """Opens the log of a study."""

    @abstractmethod
    def member(self, trial: Trial, record: RunRecord) -> None:
        """Writes a trained member."""

    @abstractmethod
    def progress(self, now: Progress) -> None:
        """Writes the progress of the training."""

    @abstractmethod
    def end(self, status: str) -> None:
        """Closes the log, whether it was opened or not; status: FINISHED, FAILED or STOPPED."""

    def _log(self, record: RunRecord) -> None:
        if trial := trial_of(self._study, record):
            self.member(trial, record)

    def _enqueue(self, action: Callable[[], Any]) -> None:
        self._queue.put(action)

    def _work(self) -> None:
        while action := self._queue.get():
            if self._failed:
                continue
            try:
                action()
            except Exception as error:  # noqa: BLE001  the training must go on without its log
                self._failed = True
                self._tell(self._failure(f"{type(error).__name__}: {error}"))

    def _failure(self, why: str) -> str:
        tool, _, where = self._target.partition(":")
        line = (
            f"nothing more is logged to {self._target} ({why}); `epsearch publish NAME --to {tool} …` writes the rest"
        )
        return masked(line, where)
