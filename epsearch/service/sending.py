"""Sends answers: without paths of this machine, and with an ETag of what programs read."""

import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

from epsearch.cache import cache_folder
from epsearch.service.settings import Settings

OWN_COPY = "private, no-cache"
"""A program may keep the answer, and asks whether it is still the newest."""
WITH_PATHS = ("text/html", "text/plain", "text/event-stream", "application/json", "application/problem+json")
"""Media types in which a path may stand."""

BREAKS = rb"(?:\s|\x1b\[[\d;]*m)*"  # between letters of a path that a narrow terminal breaks

Hide = Callable[[bytes, str], bytes]
"""Hides the paths of a service in text, but for the client's own one; "" for none."""


def hide_paths(settings: Settings) -> Hide:
    """Returns a function that replaces the folders of a service in text by their options: clients know no others."""
    folders = {settings.out: "OUT", settings.data_dir: "DATA", cache_folder(): "CACHE"}
    folders |= dict.fromkeys(settings.roots, "IMAGES")
    if settings.storage.file is not None:
        folders.setdefault(settings.storage.file.parent, "OUT")
    words: dict[bytes, bytes] = {}
    for folder, word in folders.items():
        for path in {folder.absolute(), folder.resolve()} - {Path("/")}:
            words[os.fsencode(path)] = word.encode()
            if word == "IMAGES":  # as clients name folders of images: below the roots
                words[b"folder:" + os.fsencode(path) + b"/"] = b"folder:"
    ends = {word: b"" if word.endswith(b"/") else rb"(?![\w.-])" for word in words}
    patterns = {word: re.escape(word) + ends[word] for word in words}

    def hide(text: bytes, own: str) -> bytes:
        forms = {own, json.dumps(own, ensure_ascii=False)[1:-1]} - {""}
        kept = {form.encode(): BREAKS.join(re.escape(letter).encode() for letter in form) for form in forms}
        # The longest first: a client that names `/` as its own path would else see all others.
        alternatives = sorted({**kept, **patterns}.items(), key=lambda item: len(item[0]), reverse=True)
        pattern = re.compile(b"|".join(alternative for _, alternative in alternatives))
        return pattern.sub(lambda match: words.get(match[0], match[0]), text)

    return hide


class Sender:
    """Sends one answer to a request.

    hide: replaces paths, but for `own`, that of the client. tags: the header If-None-Match, with which an answer of
    the same content becomes 304; None for an answer that gets no ETag.
    """

    def __init__(self, send: Send, hide: Hide, own: str, tags: str | None) -> None:
        self._send, self._hide, self._own = send, hide, own
        self._known = None if tags is None else {tag.strip().removeprefix("W/") for tag in tags.split(",")}
        self._start: Message | None = None
        self._hides = False

    async def __call__(self, message: Message) -> None:
        """Sends a message of the answer."""
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            kind = headers.get("content-type", "")
            self._hides = kind.startswith(WITH_PATHS) and "content-encoding" not in headers
            if not kind.startswith("text/event-stream"):
                self._start = message  # until its content is there, whose length and tag are in the headers
                return
        elif message["type"] == "http.response.body":
            if self._hides and message.get("body"):
                message = {**message, "body": self._hide(message["body"], self._own)}
            if self._start is not None:
                message = self._with_headers(self._start, message)
                await self._send(self._start)
                self._start = None
        await self._send(message)

    def _with_headers(self, start: Message, body: Message) -> Message:
        headers = MutableHeaders(scope=start)
        if body.get("more_body"):
            if self._hides:
                del headers["content-length"]  # as the length may change
            return body
        content = body.get("body", b"")
        if "content-length" in headers:
            headers["content-length"] = str(len(content))
        if self._known is None or start["status"] != 200:
            return body
        tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
        headers["ETag"], headers["Cache-Control"] = tag, OWN_COPY
        if tag not in self._known:
            return body
        start["status"] = 304
        for name in ("content-length", "content-type"):
            del headers[name]
        return {**body, "body": b""}
