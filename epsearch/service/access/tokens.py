"""Tokens: secrets with a name and a role, of which only hashes are kept; and what a browser has in their place."""

import hashlib
import hmac
import os
import secrets
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from epsearch.failures.crash_report import TOKENS
from epsearch.failures.errors import UsageError, unknown
from epsearch.service.access.private import read_private, stamp, write_private
from epsearch.service.access.sessions import SESSION_SECONDS as SESSION_SECONDS
from epsearch.service.access.sessions import Sessions

VARIABLE = TOKENS
READ, WRITE = "read", "write"
ROLES = (READ, WRITE)
SHORTEST = 16  # characters of a token that somebody has thought of
COOKIE = "epsearch_session"
UNTIL = "until="
FORM = "NAME ROLE sha256:HASH"


class Token(NamedTuple):
    """Who may do what."""

    name: str
    """Stands on the studies that were submitted with it."""
    role: str
    """READ, or WRITE, which may do both."""
    digest: str
    """SHA-256 of the secret, hexadecimal. Secrets are long and random, so that a slow hash would gain nothing."""
    until: float | None = None
    """When it expires, in seconds since 1970; None for one that does not."""

    @property
    def writes(self) -> bool:
        """True for a token that may change something."""
        return self.role == WRITE

    @property
    def expires(self) -> str:
        """When it expires: ISO-8601, UTC; "" for one that does not."""
        return "" if self.until is None else datetime.fromtimestamp(self.until, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def line(self) -> str:
        """Its line in a file."""
        return f"{self.name} {self.role} sha256:{self.digest}" + (f" {UNTIL}{self.expires}" if self.until else "")


EVERYBODY = Token("", WRITE, "")
"""The token of everybody, for a service without tokens."""


class Tokens:
    """Those that a service accepts: fixed ones, and those of a file, which is read again whenever it changes."""

    def __init__(self, fixed: tuple[Token, ...] = (), file: Path | None = None) -> None:
        self._fixed, self._file, self._sessions = fixed, file, Sessions(file)
        self._known, self._seen = fixed, (0, 0, 0)
        self.needed = bool(fixed) or file is not None
        """Whether somebody without a token is refused; also while a file has none any more."""

    @property
    def known(self) -> tuple[Token, ...]:
        """Those that have not expired; where the file cannot be read any more, none of it."""
        if self._file is not None and (seen := stamp(self._file)) != self._seen:
            self._seen = seen
            try:
                self._known = (*self._fixed, *of_file(self._file))
                _check_names(self._known)
            except UsageError as error:
                self._known = self._fixed
                print(f"epsearch: {error}; its tokens are refused until then", file=sys.stderr, flush=True)
        now = time.time()
        return tuple(one for one in self._known if one.until is None or one.until > now)

    def of_secret(self, secret: str) -> Token | None:
        """The token of a secret; all are compared, in the same time whichever it is."""
        wanted, found = digest(secret), None
        for token in self.known:
            if hmac.compare_digest(token.digest, wanted):
                found = token
        return found

    def session(self, token: Token, now: float | None = None) -> str:
        """The cookie of a new session of a token."""
        return self._sessions.made(token.digest, now)

    def of_session(self, cookie: str, now: float | None = None) -> Token | None:
        """The token of a cookie that `session` has made, until the session ends."""
        try:
            return next((one for one in self.known if self._sessions.holds(cookie, one.digest, now)), None)
        except UsageError as error:  # somebody has changed the file
            print(f"epsearch: {error}", file=sys.stderr, flush=True)
            return None

    def end_session(self, cookie: str) -> None:
        """Ends the session of a cookie, if it is one. Raises UsageError where that cannot be stored."""
        if self.of_session(cookie) is not None:
            self._sessions.end(cookie)


def read(file: Path | None, environment: Mapping[str, str] = os.environ) -> Tokens:
    """The tokens of a file, lines of `NAME ROLE sha256:HASH`, and of EPSEARCH_TOKENS, words of `NAME:ROLE:SECRET`.

    Raises UsageError; what a secret is, it never says.
    """
    fixed = []
    for number, word in enumerate(environment.get(VARIABLE, "").split(), 1):
        name, _, rest = word.partition(":")
        role, _, secret = rest.partition(":")
        where = f"word {number} of {VARIABLE}"
        if not name or role not in ROLES or not secret:
            raise UsageError(f"{where} must be NAME:ROLE:SECRET, with the role {' or '.join(ROLES)}")
        if len(secret) < SHORTEST:
            raise UsageError(f"the secret in {where} has {len(secret)} characters, allowed are {SHORTEST} or more")
        fixed.append(Token(name, role, digest(secret)))
    _check_names([*fixed, *(() if file is None else of_file(file))])
    return Tokens(tuple(fixed), file)


def of_file(file: Path) -> list[Token]:
    """The tokens of a file, those that have expired, too. Raises UsageError, also where others may read it."""
    lines = enumerate(read_private(file, "file of tokens").splitlines(), 1)
    return [_of_line(file, number, line) for number, line in lines if _says(line)]


def make(name: str, role: str, file: Path, seconds: float | None = None) -> str:
    """Adds a token to a file that only its owner can read, and returns the secret, which is kept nowhere.

    seconds: until it expires, None for one that does not. Raises UsageError.
    """
    if not name.isidentifier() and not name.replace("-", "_").replace(".", "_").isidentifier():
        raise UsageError(f"the name of a token must be of letters, digits, -, _ and ., got {name!r}")
    if role not in ROLES:
        raise UsageError(f"role must be {' or '.join(ROLES)}, got {role!r}")
    if file.exists() and name in [one.name for one in of_file(file)]:
        raise UsageError(f"{file} has a token of the name {name!r}; --revoke it, or choose another name")
    secret = secrets.token_urlsafe(32)
    token = Token(name, role, digest(secret), None if seconds is None else float(int(time.time() + seconds)))
    before = read_private(file, "file of tokens") if file.exists() else ""
    write_private(file, before + "\n" * bool(before and before[-1] != "\n") + token.line + "\n")
    return secret


def revoke(name: str, file: Path) -> None:
    """Takes a token out of a file; services that have it refuse it from their next request on. Raises UsageError."""
    names = [one.name for one in of_file(file)]
    if name not in names:
        raise UsageError(unknown("token", name, names))
    lines = read_private(file, "file of tokens").splitlines(keepends=True)
    write_private(file, "".join(line for line in lines if not (_says(line) and line.split()[0] == name)))


def _says(line: str) -> bool:
    return bool(line.strip()) and line[0] != "#"


def _of_line(file: Path, number: int, line: str) -> Token:
    name, role, digest, until, *more = [*line.split(), "", "", "", ""]
    kind, _, value = digest.partition(":")
    hexadecimal = len(value) == 64 and {*value} <= {*"0123456789abcdef"}
    wrong = UsageError(f"line {number} of {file} must be {FORM}; `epsearch token` writes such lines")
    if role not in ROLES or kind != "sha256" or not hexadecimal or any(more):
        raise wrong
    try:
        moment = datetime.fromisoformat(until.removeprefix(UNTIL)) if until.startswith(UNTIL) else None
    except ValueError:
        raise wrong from None
    if (until and moment is None) or (moment is not None and moment.tzinfo is None):
        raise wrong
    return Token(name, role, value, None if moment is None else moment.timestamp())


def _check_names(tokens: Iterable[Token]) -> None:
    """Raises UsageError where two have one name."""
    seen: set[str] = set()
    for token in tokens:
        if token.name in seen:
            raise UsageError(f"there are two tokens of the name {token.name!r}; each has a name of its own")
        seen.add(token.name)


def digest(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()
