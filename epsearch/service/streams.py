"""Events as they happen, for many listeners: one thread looks into the ledger, however many listen.

No listener holds a connection of the database. The number of an event is that of the change of the ledger, so whoever
was cut off says which one it has seen last, and gets those behind it.
"""

import asyncio
import threading
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool

from results.ledger.errors import StoreError
from results.ledger.store import Store
from results.ledger.writers.events import Event

POLL_SECONDS = 0.5
MOST_AT_ONCE = 1000  # events of one look
MOST_WAITING = 500  # for a listener that is slow; one that has more is cut off, and comes again
PING_SECONDS = 15.0


class _Listener:
    def __init__(self, study: str | None) -> None:
        self.study, self.cut_off = study, False
        self.queue: asyncio.Queue[Event] = asyncio.Queue(MOST_WAITING)

    def take(self, event: Event) -> None:
        if self.study in (None, event.study):
            try:
                self.queue.put_nowait(event)
            except asyncio.QueueFull:
                self.cut_off = True


class Streams:
    """Those who listen to a service; `start` and `stop` are called within its event loop."""

    def __init__(self, store: Store) -> None:
        self._store, self._listeners = store, set[_Listener]()
        self._over, self._wanted = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._look, name="events", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = asyncio.Event()

    def start(self) -> None:
        """From now on there may be listeners."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        """Ends every stream."""
        self._over.set()
        self._wanted.set()
        self._stopped.set()

    @property
    def open(self) -> int:
        """Number of streams."""
        return len(self._listeners)

    async def of(self, study: str | None, after: int | None) -> AsyncIterator[Event | None]:
        """Events of a study, None of all, behind a number, None from now on; and None now and then, as a sign of life.

        Ends with the service, and for a listener that is too slow.
        """
        listener = _Listener(study)
        self._listeners.add(listener)
        self._wanted.set()
        try:
            last = after if after is not None else await run_in_threadpool(self._store.last_event)
            while after is not None and (missed := await run_in_threadpool(self._missed, study, last)):
                for event in missed:
                    last = event.id
                    yield event
            while not (self._stopped.is_set() or listener.cut_off):
                new = await self._next(listener)
                if new is None or new.id > last:
                    yield new
        finally:
            self._listeners.discard(listener)

    def _missed(self, study: str | None, after: int) -> list[Event]:
        if study is None:
            return self._store.events_behind(after, MOST_AT_ONCE)
        return self._store.events(study, after, MOST_AT_ONCE)

    async def _next(self, listener: _Listener) -> Event | None:
        """The next event; None where there is none for a while, or the service ends."""
        waiting = {asyncio.create_task(listener.queue.get()), asyncio.create_task(self._stopped.wait())}
        try:
            done, _ = await asyncio.wait(waiting, timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        results = [task.result() for task in done]
        return next((one for one in results if isinstance(one, Event)), None)

    def _look(self) -> None:
        """In a thread: hands new events to the event loop, while anybody listens."""
        last: int | None = None
        while not self._over.is_set():
            if not self._listeners:
                last = None
                self._wanted.clear()
                if not self._listeners:  # one may have come in between
                    self._wanted.wait()
                continue
            try:
                if last is None:
                    last = max(0, self._store.last_event() - MOST_AT_ONCE)
                for event in self._store.events_behind(last, MOST_AT_ONCE):
                    last = event.id
                    assert self._loop is not None
                    self._loop.call_soon_threadsafe(self._tell, event)
            except StoreError:  # the next look finds it again, or does not
                pass
            except RuntimeError:  # the event loop has ended
                return
            self._over.wait(POLL_SECONDS)

    def _tell(self, event: Event) -> None:
        for listener in list(self._listeners):
            listener.take(event)
