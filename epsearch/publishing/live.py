"""Base of live loggers; a training neither waits for them nor fails with them."""

from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Self

from epsearch.events import Began, Event, Progress, Stored
from epsearch.failures.errors import Interrupted
from epsearch.publishing.points import trial_of
from epsearch.publishing.report import mask_passwords
from epsearch.study.description import Study
from results.ledger.record import RunRecord

WAIT = 60.0  # seconds at the end, for events in the queue
FINISHED, FAILED, STOPPED = "FINISHED", "FAILED", "KILLED"


class Live:
    """A listener that logs stored members; a context manager, whose exit ends the log.

    target: as after --live; tell: called with one line if logging fails, after which nothing is logged. open_log(study,
    heading) returns a log with the methods `member(trial, record)` for a stored member, `progress(event)`, and
    `end(status)`, with FINISHED, FAILED or STOPPED. A thread calls them, in the order of the events.
    """

    def __init__(self, target: str, open_log: Callable[[Study, str], Any], tell: Callable[[str], None]) -> None:
        self._target, self._open_log, self._tell, self._known = target, open_log, tell, -1
        self._log: Any = None  # until a study begins
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
        self._enqueue(lambda: self._log and self._log.end(status))
        self._queue.put(None)
        self._thread.join(WAIT)
        if self._thread.is_alive():
            self._tell(self._failure(f"no answer for {WAIT:g} s"))

    def __call__(self, event: Event) -> None:
        """Logs an event; progress only when the number of members has changed."""
        match event:
            case Began(study=study, heading=heading) if study is not None:
                self._study = study
                self._enqueue(partial(self._open, heading))
            case Stored():
                for record in event.records:
                    self._enqueue(partial(self._member, record))
            case Progress() if event.known != self._known:
                self._known = event.known
                self._enqueue(lambda: self._log and self._log.progress(event))

    def _open(self, heading: str) -> None:
        self._log = self._open_log(self._study, heading)

    def _member(self, record: RunRecord) -> None:
        if self._log and (trial := trial_of(self._study, record)):
            self._log.member(trial, record)

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
        return mask_passwords(line, where)
