"""Tokens: secrets with a name and a role, stored as hashes; and the sessions of browsers."""

import hashlib
import hmac
import logging
import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from epsearch.failures.crash_report import TOKENS
from epsearch.failures.errors import UsageError
from epsearch.service.access.private import read_private, stamp, write_private
from epsearch.service.access.sessions import SESSION_SECONDS as SESSION_SECONDS
from epsearch.service.access.sessions import Sessions
from epsearch.service.logs import log
from trainers.spelling import unknown

VARIABLE = TOKENS
READ, WRITE, ADMIN = "read", "write", "admin"
ROLES = (READ, WRITE, ADMIN)
CHOICES = f"{READ}, {WRITE} or {ADMIN}"
SHORTEST = 16  # characters of a secret that is set by hand
COOKIE = "epsearch_session"
UNTIL = "until="
NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
FORM = "NAME ROLE sha256:HASH"


class Token(NamedTuple):
    """Name, role and hash of a client's secret."""

    name: str
    """OWNER, or OWNER/DEVICE for one of an owner's several tokens."""
    role: str
    """READ; WRITE, which may also submit studies and change its owner's; or ADMIN, which may change all."""
    digest: str
    """SHA-256 of the secret, hexadecimal. Secrets are long and random, so that a slow hash would gain nothing."""
    until: float | None = None
    """When it expires, in seconds since 1970; None for never."""

    @property
    def owner(self) -> str:
        """Owner of the studies that are submitted with it."""
        return self.name.partition("/")[0]

    @property
    def writes(self) -> bool:
        """True if it may submit studies, and change its owner's."""
        return self.role in (WRITE, ADMIN)

    @property
    def is_admin(self) -> bool:
        """True if it may change the studies of all owners, and let studies go first."""
        return self.role == ADMIN

    @property
    def expires(self) -> str:
        """When it expires: ISO-8601, UTC; empty for never."""
        return "" if self.until is None else datetime.fromtimestamp(self.until, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def line(self) -> str:
        """Its line in a file."""
        return f"{self.name} {self.role} sha256:{self.digest}" + (f" {UNTIL}{self.expires}" if self.until else "")


ANONYMOUS = Token("", ADMIN, "")
"""The token of every client, for a service without tokens."""


class Tokens:
    """Tokens that a service accepts: fixed ones, and those of a file, which is read again after changes."""

    def __init__(self, fixed: tuple[Token, ...] = (), file: Path | None = None) -> None:
        self._fixed, self._file, self._sessions = fixed, file, Sessions(file)
        self._all, self._stamp = fixed, (0, 0, 0)
        self.needed = bool(fixed) or file is not None
        """True to refuse clients without a token, also while the file has no token."""

    @property
    def valid(self) -> tuple[Token, ...]:
        """Tokens that have not expired; without those of a file that cannot be read any more."""
        if self._file is not None and (now := stamp(self._file)) != self._stamp:
            self._stamp = now
            try:
                self._all = (*self._fixed, *of_file(self._file))
                _check_names(self._all)
            except UsageError as error:
                self._all = self._fixed
                log("tokens_unreadable", f"{error}; its tokens are refused until then", logging.WARNING)
        return tuple(token for token in self._all if token.until is None or token.until > time.time())

    def of_secret(self, secret: str) -> Token | None:
        """Returns the token of a secret, in a time that does not depend on the secret."""
        hashed, match = digest(secret), None
        for token in self.valid:
            if hmac.compare_digest(token.digest, hashed):
                match = token
        return match

    def session(self, token: Token, now: float | None = None) -> str:
        """Returns the cookie of a new session of a token."""
        return self._sessions.new(token.digest, now)

    def of_session(self, cookie: str, now: float | None = None) -> Token | None:
        """Returns the token of an open session; None for any other cookie."""
        try:
            return next((token for token in self.valid if self._sessions.holds(cookie, token.digest, now)), None)
        except UsageError as error:  # the file was changed
            log("sessions_unreadable", str(error), logging.WARNING)
            return None

    def end_session(self, cookie: str) -> None:
        """Ends the session of a cookie, if there is one. Raises UsageError if that cannot be stored."""
        if self.of_session(cookie) is not None:
            self._sessions.end(cookie)


def read(file: Path | None, environment: Mapping[str, str] = os.environ) -> Tokens:
    """Reads the tokens of a file and of EPSEARCH_TOKENS.

    The file has lines of `NAME ROLE sha256:HASH`, the variable words of `NAME:ROLE:SECRET`. Raises UsageError, whose
    message contains no secret.
    """
    fixed = []
    for number, word in enumerate(environment.get(VARIABLE, "").split(), 1):
        name, _, rest = word.partition(":")
        role, _, secret = rest.partition(":")
        place = f"word {number} of {VARIABLE}"
        if not name or role not in ROLES or not secret:
            raise UsageError(f"{place} must be NAME:ROLE:SECRET, with the role {CHOICES}")
        if len(secret) < SHORTEST:
            raise UsageError(f"the secret in {place} has {len(secret)} characters, allowed are {SHORTEST} or more")
        fixed.append(Token(name, role, digest(secret)))
    _check_names([*fixed, *(() if file is None else of_file(file))])
    return Tokens(tuple(fixed), file)


def of_file(file: Path) -> list[Token]:
    """Reads the tokens of a file, also expired ones. Raises UsageError, also if others may read the file."""
    lines = enumerate(read_private(file, "file of tokens").splitlines(), 1)
    return [_of_line(file, number, line) for number, line in lines if _has_token(line)]


def make(name: str, role: str, file: Path, seconds: float | None = None) -> str:
    """Adds a token to a file that only its owner can read; returns the secret, which is stored nowhere.

    seconds: until it expires, None for never. Raises UsageError.
    """
    if not NAME.fullmatch(name):
        raise UsageError(f"the name of a token must be of letters, digits, -, _ and ., or two such parts, got {name!r}")
    if role not in ROLES:
        raise UsageError(f"role must be {CHOICES}, got {role!r}")
    if file.exists() and name in [token.name for token in of_file(file)]:
        raise UsageError(f"{file} has a token of the name {name!r}; --revoke it, or choose another name")
    secret = secrets.token_urlsafe(32)
    token = Token(name, role, digest(secret), None if seconds is None else float(int(time.time() + seconds)))
    before = read_private(file, "file of tokens") if file.exists() else ""
    write_private(file, before + "\n" * bool(before and before[-1] != "\n") + token.line + "\n")
    return secret


def revoke(name: str, file: Path) -> None:
    """Removes a token from a file; running services refuse it from their next request on. Raises UsageError."""
    names = [token.name for token in of_file(file)]
    if name not in names:
        raise UsageError(unknown("token", name, names))
    lines = read_private(file, "file of tokens").splitlines(keepends=True)
    write_private(file, "".join(line for line in lines if not (_has_token(line) and line.split()[0] == name)))


def _has_token(line: str) -> bool:
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
    """Raises UsageError for two tokens of one name."""
    names: set[str] = set()
    for token in tokens:
        if token.name in names:
            raise UsageError(f"there are two tokens of the name {token.name!r}; each needs a name of its own")
        names.add(token.name)


def digest(secret: str) -> str:
    """Returns the hash of a secret."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()
