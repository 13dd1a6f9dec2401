"""Streams of new events: one thread polls the ledger, however many clients listen.

No stream holds a connection of the database. The number of an event is that of the change of the ledger, so a client
that was cut off names the last event it has, and gets the later ones. The thread polls also while nobody listens: a new
stream gets all events of later polls, and reads the earlier ones itself.
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
MOST_WAITING = 500  # events of a slow client; one with more is cut off, and connects again
MOST_AT_ONCE = MOST_WAITING // 2  # events of one poll: they cut off no client that keeps up
MOST_MISSED = 1000  # earlier events that a stream reads at a time
PING_SECONDS = 15.0


class Streams:
    """The streams of a service; `start` and `stop` are called within its event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._studies: dict[asyncio.Queue[Event | None], str | None] = {}  # queue of a stream -> its study, None: all
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="events", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last = 0  # newest event that the thread has read

    def start(self) -> None:
        """Starts the thread. Raises StoreError."""
        self._loop, self._last = asyncio.get_running_loop(), self._store.events.last()
        self._thread.start()

    def stop(self) -> None:
        """Ends every stream."""
        self._over.set()
        for queue in list(self._studies):
            self._end(queue)

    @property
    def open(self) -> int:
        """Number of streams."""
        return len(self._studies)

    async def events(self, study: str | None, after: int | None) -> AsyncIterator[Event | None]:
        """Yields the events of a study, None: of all, behind a number, None: only new ones.

        Yields None now and then, as a sign of life. Ends with the service, and for a client that is too slow.
        """
        queue, read = asyncio.Queue[Event | None](), self._store.events.read
        self._studies[queue] = study
        try:
            last = after if after is not None else await run_in_threadpool(self._store.events.last)
            while after is not None and (missed := await run_in_threadpool(read, study, last, MOST_MISSED)):
                for event in missed:
                    if self._over.is_set():
                        return
                    last = event.id
                    yield event
            while queue in self._studies and not self._over.is_set():
                try:
                    async with asyncio.timeout(PING_SECONDS):
                        new = await queue.get()
                except TimeoutError:
                    yield None
                    continue
                if new is not None and new.id > last:
                    yield new
        finally:
            self._studies.pop(queue, None)

    def _poll(self) -> None:
        """Hands new events to the event loop, in a thread."""
        while not self._over.wait(POLL_SECONDS):
            try:
                new = self._store.events.read(None, self._last, MOST_AT_ONCE)
                if new:
                    self._last = new[-1].id
                    assert self._loop is not None
                    self._loop.call_soon_threadsafe(self._send, new)
            except StoreError:  # the next poll tries again
                pass
            except RuntimeError:  # the event loop has ended
                return

    def _send(self, new: list[Event]) -> None:
        for queue, study in list(self._studies.items()):
            for event in new:
                if study in (None, event.study) and queue in self._studies:
                    if queue.qsize() < MOST_WAITING:
                        queue.put_nowait(event)
                    else:
                        self._end(queue)

    def _end(self, queue: "asyncio.Queue[Event | None]") -> None:
        self._studies.pop(queue, None)
        queue.put_nowait(None)  # wakes a stream that waits for an event


def encode(event: Event | None) -> bytes:
    """Returns an event in the format of streams, encoded once for all of them; None is a sign of life."""
    if event is None:
        return PING
    key = (event.id, event.study, event.time)  # a process may serve two ledgers
    if (encoded := _encoded.get(key)) is None:
        text = answers.event(event).model_dump_json()
        encoded = _encoded[key] = format_sse_event(data_str=text, event=event.kind, id=str(event.id))
        while len(_encoded) > CACHED:
            _encoded.pop(next(iter(_encoded)), None)
    return encoded


PING = format_sse_event(comment="still here")
CACHED = 2 * MOST_MISSED  # encoded events: streams that begin together read the same earlier ones
_encoded: dict[tuple[int, str, float], bytes] = {}


def last_event(header: str | None, after: int | None) -> int | None:
    """Returns the newest event that a client has: the header of a browser that reconnects counts first."""
    return int(header) if header and header.isascii() and header.isdigit() and int(header) < 2**62 else after
