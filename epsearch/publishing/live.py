"""What live loggers share: a training never waits for them, and never ends because of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Self

from epsearch.events import Began, Event, Progress, Stored
from epsearch.failures.errors import Interrupted
from epsearch.publishing.points import Place, place_of
from epsearch.publishing.report import masked
from epsearch.study.description import Study
from results.ledger.record import RunRecord

WAIT = 60.0  # seconds for what is still to be logged at the end
FINISHED, FAILED, STOPPED = "FINISHED", "FAILED", "KILLED"


class Live(ABC):
    """A listener that logs members as they are stored; to be used as a context, which ends the log.

    target: as after --live; tell: takes the one line that is said where logging fails, after which nothing is logged.
    A thread of its own does the logging, in the order of the events.
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
        self._later(lambda: self.end(status))
        self._queue.put(None)
        self._thread.join(WAIT)
        if self._thread.is_alive():
            self._tell(self._lost(f"no answer for {WAIT:g} s"))

    def __call__(self, event: Event) -> None:
        """Logs the event; progress whenever another member is known."""
        match event:
            case Began(study=study, heading=heading) if study is not None:
                self._study = study
                self._later(partial(self.open, study, heading))
            case Stored():
                for record in event.records:
                    self._later(partial(self._log, record))
            case Progress() if event.known != self._known:
                self._known = event.known
                self._later(lambda: self.far(event))

    @abstractmethod
    def open(self, study: Study, heading: str) -> None:
        """Makes or finds the place of a study."""

    @abstractmethod
    def member(self, place: Place, record: RunRecord) -> None:
        """Writes a member that has been trained."""

    @abstractmethod
    def far(self, now: Progress) -> None:
        """Writes how far the training is."""

    @abstractmethod
    def end(self, status: str) -> None:
        """Closes the log, whether it was opened or not; status: FINISHED, FAILED or STOPPED."""

    def _log(self, record: RunRecord) -> None:
        if place := place_of(self._study, record):
            self.member(place, record)

    def _later(self, act: Callable[[], Any]) -> None:
        self._queue.put(act)

    def _work(self) -> None:
        while act := self._queue.get():
            if self._failed:
                continue
            try:
                act()
            except Exception as error:  # noqa: BLE001 whatever it is, a training goes on without its log
                self._failed = True
                self._tell(self._lost(f"{type(error).__name__}: {error}"))

    def _lost(self, why: str) -> str:
        tool, _, where = self._target.partition(":")
        line = (
            f"nothing more is logged to {self._target} ({why}); `epsearch publish NAME --to {tool} …` writes the rest"
        )
        return masked(line, where)
