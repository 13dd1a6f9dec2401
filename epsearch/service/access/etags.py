"""ETags of answers: a program that has the newest one is told so (304) in place of the whole content."""

import hashlib

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

OWN_COPY = "private, no-cache"
"""A program may keep the answer, and asks whether it is still the newest."""


class Tagging:
    """Sends one answer, with an ETag of its content where it comes in one part.

    known: the header If-None-Match of the request, with which an answer of the same content becomes 304.
    """

    def __init__(self, send: Send, known: str) -> None:
        self._send, self._known = send, {one.strip().removeprefix("W/") for one in known.split(",")}
        self._start: Message | None = None

    async def __call__(self, message: Message) -> None:
        """Sends a message of the answer."""
        if message["type"] == "http.response.start" and message["status"] == 200:
            if not MutableHeaders(scope=message).get("content-type", "").startswith("text/event-stream"):
                self._start = message  # until its content is there
                return
        elif self._start is not None:
            start, self._start = self._start, None
            if message["type"] == "http.response.body" and not message.get("more_body"):
                message = self._tagged(start, message)
            await self._send(start)
        await self._send(message)

    def _tagged(self, start: Message, body: Message) -> Message:
        headers = MutableHeaders(scope=start)
        tag = f'"{hashlib.sha256(body.get("body", b"")).hexdigest()[:20]}"'
        headers["ETag"], headers["Cache-Control"] = tag, OWN_COPY
        if tag not in self._known:
            return body
        start["status"] = 304
        for name in ("content-length", "content-type"):
            del headers[name]
        return {**body, "body": b""}
