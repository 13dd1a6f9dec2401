"""Limits before anybody is known: time, bytes and number of headers of a request, and connections that only wait.

uvicorn has none of these with its faster parser: a connection that sends a byte a minute, or headers without end, is
served for as long as it lasts, and takes the place of another one.
"""

import asyncio
from collections import Counter
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0  # from the connection, or the first byte of its next request, to the end of the head
BODY_SECONDS = 60.0  # from there to the end of the body
HEAD_BYTES = 2**16
PART_BYTES = 2**12  # of a head that are read at a time
MOST_HEADERS = 100
MOST_WAITING = 400  # connections without a request; the one that has waited longest ends for the next one
SLOW, LARGE = "408 Request Timeout", "431 Request Header Fields Too Large"

refused: Counter[str] = Counter()
"""Status -> heads that were refused by this process."""
_waiting: dict["Heads", None] = {}


class Heads(HttpToolsProtocol):
    """uvicorn's protocol with these limits."""

    _limit: asyncio.TimerHandle | None = None
    _size = 0
    _within = _body = _refused = False

    def connection_made(self, transport: Any) -> None:
        """Begins to wait for the first head."""
        super().connection_made(transport)
        self._wait(HEAD_SECONDS)
        self._stand_by()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits no longer."""
        self._wait(None)
        _waiting.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Takes the next bytes; those of a head in parts, as a header is kept by the parser until it ends."""
        while data and not self._refused:
            part = data if self._busy and not self._within else data[:PART_BYTES]
            data = data[len(part) :]
            super().data_received(part)
            if self._limit is None and not self._busy:  # an empty line before the next head
                self._wait(HEAD_SECONDS)
            self._size = self._size + len(part) if self._within else 0
            if self._size > HEAD_BYTES:
                self._refuse(LARGE)

    def on_message_begin(self) -> None:
        """Begins a head."""
        super().on_message_begin()
        self._within, self._size = True, 0
        if self._limit is None:
            self._wait(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        """Begins the request, unless it has too many headers."""
        self._within = False
        if self._refused or len(self.headers) > MOST_HEADERS:
            self._refuse(LARGE)
            return
        self._body = True
        self._wait(BODY_SECONDS)
        _waiting.pop(self, None)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Takes a part of the body."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Ends the request, not yet its answer."""
        self._body = False
        self._wait(None)
        if not self._refused:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Waits for the next request."""
        super().on_response_complete()
        if not self.transport.is_closing() and not self._busy:
            self._stand_by()

    @property
    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _stand_by(self) -> None:
        _waiting.pop(self, None)
        _waiting[self] = None
        if len(_waiting) > MOST_WAITING:
            next(iter(_waiting))._refuse(SLOW)

    def _wait(self, seconds: float | None) -> None:
        """Ends the connection after so many seconds; None: not any more."""
        if self._limit is not None:
            self._limit.cancel()
        self._limit = None if seconds is None else self.loop.call_later(seconds, self._refuse, SLOW)

    def _refuse(self, status: str) -> None:
        """Ends the connection, with a status where no answer has begun."""
        self._wait(None)
        _waiting.pop(self, None)
        if not self._refused and not self.transport.is_closing():
            refused[status] += 1
            if not self._busy and not self._body:
                self.transport.write(
                    f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode("ascii")
                )
            self.transport.close()
        self._refused = True
