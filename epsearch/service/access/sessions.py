"""Sessions of browsers: cookies signed with a key of the service's own, which end with their token, or at sign-out.

The key and the sessions that were ended lie beside the file of tokens, in a file that only its owner can read. Without
a file of tokens they are this process's: its end ends all sessions.
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
    """Those of one service, or of all that have the same file of tokens."""

    def __init__(self, tokens: Path | None = None) -> None:
        self._file = None if tokens is None else tokens.with_name(f"{tokens.name}.sessions")
        self._key, self._ended, self._seen = secrets.token_bytes(KEY_BYTES), dict[str, float](), (0, 0, 0)
        if self._file is not None:
            self._begin(self._file)

    def _begin(self, file: Path) -> None:
        """Makes the file where there is none; in a folder that cannot be written to the key stays in this process."""
        try:
            if not file.exists():
                with suppress(FileExistsError):  # another service makes it just now
                    write_private(file, self._text(), new=True)
        except UsageError:
            self._file = None
        self._read()

    def made(self, digest: str, now: float | None = None) -> str:
        """Returns the cookie of a new session; digest: of the token whose session it is."""
        text = f"{secrets.token_hex(16)}.{int((time.time() if now is None else now) + SESSION_SECONDS)}"
        return f"{text}.{self._signature(digest, text)}"

    def holds(self, cookie: str, digest: str, now: float | None = None) -> bool:
        """Returns whether a cookie is of a session of this token that has neither expired nor been ended."""
        text, _, signature = cookie.rpartition(".")
        name, _, end = text.partition(".")
        if not hmac.compare_digest(self._signature(digest, text).encode(), signature.encode(errors="replace")):
            return False
        seconds = int(end) - (time.time() if now is None else now)
        self._read()
        return 0 <= seconds <= SESSION_SECONDS and name not in self._ended

    def end(self, cookie: str) -> None:
        """Ends the session of a cookie that `holds`. Raises UsageError where that cannot be stored."""
        name, _, rest = cookie.partition(".")
        self._read()
        now = time.time()
        self._ended = {one: until for one, until in self._ended.items() if until > now}
        self._ended[name] = float(rest.partition(".")[0])
        if self._file is not None:
            write_private(self._file, self._text())

    def _signature(self, digest: str, text: str) -> str:
        """Nobody can write it who does not know the key; it ends with the token."""
        signed = f"{digest} {text}".encode(errors="replace")
        return hmac.new(self._key, signed, hashlib.sha256).hexdigest()

    def _text(self) -> str:
        return json.dumps({"key": self._key.hex(), "ended": self._ended})

    def _read(self) -> None:
        """Reads the file where it has changed. Raises UsageError for one that others can read, or that is damaged."""
        if self._file is None or (seen := stamp(self._file)) == self._seen:
            return
        text = read_private(self._file, "file of sessions")
        try:
            stored = json.loads(text)
            key, ended = bytes.fromhex(stored["key"]), {str(one): float(end) for one, end in stored["ended"].items()}
        except (ValueError, TypeError, KeyError, AttributeError):
            key, ended = b"", {}
        if len(key) != KEY_BYTES:
            raise UsageError(f"the file of sessions {self._file} is damaged; remove it, and sign in again")
        self._key, self._ended, self._seen = key, ended, seen
