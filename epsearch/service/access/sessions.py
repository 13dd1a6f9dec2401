"""Sessions of browsers: signed cookies that end with their token, or at sign-out.

The key and the list of ended sessions are in a file beside that of the tokens, which only its owner can read. Without a
file of tokens they are in memory, and all sessions end with this process.
"""

import hashlib
import hmac
import json
import secrets
import time
from contextlib import suppress
from pathlib import Path

from epsearch.failures.errors import UsageError
from epsearch.service.access.private import read_private, stamp, write_private

SESSION_SECONDS = 12 * 3600.0
KEY_BYTES = 32


class Sessions:
    """Sessions of one service, or of all services with the same file of tokens."""

    def __init__(self, tokens: Path | None = None) -> None:
        self._file = None if tokens is None else tokens.with_name(f"{tokens.name}.sessions")
        self._key, self._ended, self._stamp = secrets.token_bytes(KEY_BYTES), dict[str, float](), (0, 0, 0)
        if self._file is not None:
            self._begin(self._file)

    def _begin(self, file: Path) -> None:
        """Makes the file, if there is none; without permission the key stays in memory."""
        try:
            if not file.exists():
                with suppress(FileExistsError):  # another service has just made it
                    write_private(file, self._text(), new=True)
        except UsageError:
            self._file = None
        self._read()

    def new(self, digest: str, now: float | None = None) -> str:
        """Returns the cookie of a new session; digest: of its token."""
        text = f"{secrets.token_hex(16)}.{int((time.time() if now is None else now) + SESSION_SECONDS)}"
        return f"{text}.{self._signature(digest, text)}"

    def holds(self, cookie: str, digest: str, now: float | None = None) -> bool:
        """Returns whether a cookie is of an open session of a token."""
        text, _, signature = cookie.rpartition(".")
        name, _, end = text.partition(".")
        if not hmac.compare_digest(self._signature(digest, text).encode(), signature.encode(errors="replace")):
            return False
        seconds = int(end) - (time.time() if now is None else now)
        self._read()
        return 0 <= seconds <= SESSION_SECONDS and name not in self._ended

    def end(self, cookie: str) -> None:
        """Ends the session of a valid cookie. Raises UsageError if that cannot be stored."""
        name, _, rest = cookie.partition(".")
        self._read()
        now = time.time()
        self._ended = {ended: until for ended, until in self._ended.items() if until > now}
        self._ended[name] = float(rest.partition(".")[0])
        if self._file is not None:
            write_private(self._file, self._text())

    def _signature(self, digest: str, text: str) -> str:
        """Signs a session with the key and its token."""
        signed = f"{digest} {text}".encode(errors="replace")
        return hmac.new(self._key, signed, hashlib.sha256).hexdigest()

    def _text(self) -> str:
        return json.dumps({"key": self._key.hex(), "ended": self._ended})

    def _read(self) -> None:
        """Reads the file if it has changed. Raises UsageError if others can read it, or it is damaged."""
        if self._file is None or (now := stamp(self._file)) == self._stamp:
            return
        text = read_private(self._file, "file of sessions")
        try:
            stored = json.loads(text)
            key, ended = bytes.fromhex(stored["key"]), {str(name): float(end) for name, end in stored["ended"].items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            key, ended = b"", {}
        if len(key) != KEY_BYTES:
            raise UsageError(f"the file of sessions {self._file} is damaged; remove it, and sign in again")
        self._key, self._ended, self._stamp = key, ended, now
