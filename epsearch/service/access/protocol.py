"""uvicorn's HTTP protocol with limits: time, bytes and headers of a request, and idle connections.

uvicorn's faster parser has none of these: it serves a connection that sends a byte a minute, or endless headers, for as
long as it lasts.
"""

import asyncio
from collections import Counter
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0  # from the connection, or the first byte of its next request, to the end of the headers
BODY_SECONDS = 60.0  # from there to the end of the body
HEAD_BYTES = 2**16
PART_BYTES = 2**12  # of headers, read at a time
MOST_HEADERS = 100
MOST_WAITING = 400  # idle connections; the longest idle one is closed for the next
SLOW, LARGE = "408 Request Timeout", "431 Request Header Fields Too Large"

refused: Counter[str] = Counter()
"""Status -> number of requests that this process has refused for their headers."""
_idle: dict["LimitedProtocol", None] = {}


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with these limits."""

    _timer: asyncio.TimerHandle | None = None
    _size = 0
    _in_head = _in_body = _refused = False

    def connection_made(self, transport: Any) -> None:
        """Waits for the first request."""
        super().connection_made(transport)
        self._limit_time(HEAD_SECONDS)
        self._mark_idle()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the clock."""
        self._limit_time(None)
        _idle.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parses the next bytes; headers in parts, as the parser stores a header until its end."""
        while data and not self._refused:
            part = data if self._busy and not self._in_head else data[:PART_BYTES]
            data = data[len(part) :]
            super().data_received(part)
            if self._timer is None and not self._busy:  # an empty line before the next request
                self._limit_time(HEAD_SECONDS)
            self._size = self._size + len(part) if self._in_head else 0
            if self._size > HEAD_BYTES:
                self._refuse(LARGE)

    def on_message_begin(self) -> None:
        """Begins the headers of a request."""
        super().on_message_begin()
        self._in_head, self._size = True, 0
        if self._timer is None:
            self._limit_time(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        """Begins the body, unless there are too many headers."""
        self._in_head = False
        if self._refused or len(self.headers) > MOST_HEADERS:
            self._refuse(LARGE)
            return
        self._in_body = True
        self._limit_time(BODY_SECONDS)
        _idle.pop(self, None)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Parses a part of the body."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Ends the request; its answer may follow."""
        self._in_body = False
        self._limit_time(None)
        if not self._refused:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Waits for the next request."""
        super().on_response_complete()
        if not self.transport.is_closing() and not self._busy:
            self._mark_idle()

    @property
    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _mark_idle(self) -> None:
        _idle.pop(self, None)
        _idle[self] = None
        if len(_idle) > MOST_WAITING:
            next(iter(_idle))._refuse(SLOW)

    def _limit_time(self, seconds: float | None) -> None:
        """Closes the connection after `seconds`; None for never."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._refuse, SLOW)

    def _refuse(self, status: str) -> None:
        """Closes the connection, with a status if no answer has begun."""
        self._limit_time(None)
        _idle.pop(self, None)
        if not self._refused and not self.transport.is_closing():
            refused[status] += 1
            if not self._busy and not self._in_body:
                self.transport.write(
                    f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode("ascii")
                )
            self.transport.close()
        self._refused = True
