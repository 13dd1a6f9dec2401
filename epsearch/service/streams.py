"""Events as they happen, for many listeners: one thread looks into the ledger, however many listen.

No listener holds a connection of the database. The number of an event is that of the change of the ledger, so whoever
was cut off says which one it has seen last, and gets those behind it. The thread knows from the start how far it has
looked, also while nobody listens: whoever comes is told all that it finds from then on, and reads the rest itself.
"""

import asyncio
import threading
from collections.abc import AsyncIterator

from fastapi.sse import format_sse_event
from starlette.concurrency import run_in_threadpool

from epsearch.service import answers
from results.ledger.errors import StoreError
from results.ledger.store import Store
from results.ledger.writers.events import Event

POLL_SECONDS = 0.5
MOST_WAITING = 500  # for a listener that is slow; one that has more is cut off, and comes again
MOST_AT_ONCE = MOST_WAITING // 2  # events of one look: no listener that keeps up is cut off by them
MOST_MISSED = 1000  # events that a listener reads at a time, which were there before it came
PING_SECONDS = 15.0


class _Listener:
    def __init__(self, study: str | None) -> None:
        self._study, self.over = study, False
        self.queue = asyncio.Queue[Event | None]()

    def take(self, event: Event) -> None:
        if self._study in (None, event.study) and not self.over:
            if self.queue.qsize() < MOST_WAITING:
                self.queue.put_nowait(event)
            else:
                self.end()

    def end(self) -> None:
        self.over = True
        self.queue.put_nowait(None)  # whoever waits for an event waits no longer


class Streams:
    """Those who listen to a service; `start` and `stop` are called within its event loop."""

    def __init__(self, store: Store) -> None:
        self._store, self._listeners = store, set[_Listener]()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="events", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last = 0  # event up to which the thread has looked

    def start(self) -> None:
        """From now on there may be listeners. Raises StoreError."""
        self._loop, self._last = asyncio.get_running_loop(), self._store.events.last()
        self._thread.start()

    def stop(self) -> None:
        """Ends every stream."""
        self._over.set()
        for listener in self._listeners:
            listener.end()

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
        try:
            last = after if after is not None else await run_in_threadpool(self._store.events.last)
            while after is not None and (missed := await run_in_threadpool(self._missed, study, last)):
                for event in missed:
                    if self._over.is_set():
                        return
                    last = event.id
                    yield event
            while not (listener.over or self._over.is_set()):
                try:
                    async with asyncio.timeout(PING_SECONDS):
                        new = await listener.queue.get()
                except TimeoutError:
                    yield None
                    continue
                if new is not None and new.id > last:
                    yield new
        finally:
            self._listeners.discard(listener)

    def _missed(self, study: str | None, after: int) -> list[Event]:
        if study is None:
            return self._store.events.read(None, after, MOST_MISSED)
        return self._store.events.read(study, after, MOST_MISSED)

    def _look(self) -> None:
        """In a thread: hands new events to the event loop."""
        while not self._over.wait(POLL_SECONDS):
            try:
                new = self._store.events.read(None, self._last, MOST_AT_ONCE)
                if new:
                    self._last = new[-1].id
                    assert self._loop is not None
                    self._loop.call_soon_threadsafe(self._tell, new)
            except StoreError:  # the next look finds it again, or does not
                pass
            except RuntimeError:  # the event loop has ended
                return

    def _tell(self, new: list[Event]) -> None:
        for listener in list(self._listeners):
            for event in new:
                listener.take(event)


def sent(one: Event | None) -> bytes:
    """An event as a stream has it, made once for all streams; None is a sign of life."""
    if one is None:
        return ALIVE
    key = (one.id, one.study, one.time)  # a process may serve two ledgers
    if (known := _sent.get(key)) is None:
        text = answers.event(one).model_dump_json()
        known = _sent[key] = format_sse_event(data_str=text, event=one.kind, id=str(one.id))
        while len(_sent) > MOST_SENT:
            _sent.pop(next(iter(_sent)), None)
    return known


ALIVE = format_sse_event(comment="still here")
MOST_SENT = 100  # events that are kept as streams have them
_sent: dict[tuple[int, str, float], bytes] = {}


def last_known(header: str | None, after: int | None) -> int | None:
    """The last event that a client knows: a reconnecting browser says it in a header."""
    return int(header) if header and header.isascii() and header.isdigit() and int(header) < 2**62 else after
