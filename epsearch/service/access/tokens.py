"""Tokens: secrets with a name and a role, of which only hashes are kept; and what a browser has in their place."""

import hashlib
import hmac
import os
import secrets
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from epsearch.failures.crash_report import TOKENS
from epsearch.failures.errors import UsageError

VARIABLE = TOKENS
READ, WRITE = "read", "write"
ROLES = (READ, WRITE)
SHORTEST = 16  # characters of a token that somebody has thought of
SESSION_SECONDS = 12 * 3600.0
COOKIE = "epsearch_session"


class Token(NamedTuple):
    """Who may do what."""

    name: str
    """Stands on the studies that were submitted with it."""
    role: str
    """READ, or WRITE, which may do both."""
    digest: str
    """SHA-256 of the secret, hexadecimal. Secrets are long and random, so that a slow hash would gain nothing."""

    @property
    def writes(self) -> bool:
        """Whether it may change anything."""
        return self.role == WRITE


EVERYBODY = Token("", WRITE, "")
"""Where there are no tokens."""


@dataclass(frozen=True)
class Tokens:
    """Those that a service accepts."""

    known: tuple[Token, ...] = ()

    def of_secret(self, secret: str) -> Token | None:
        """The token of a secret; all are compared, in the same time whichever it is."""
        return self._of_digest(digest(secret))

    def session(self, token: Token, now: float | None = None) -> str:
        """What a browser's cookie says: whose it is and until when, which nobody else can write."""
        text = f"{token.digest[:16]}.{int((time.time() if now is None else now) + SESSION_SECONDS)}"
        return f"{text}.{_signature(token, text)}"

    def of_session(self, cookie: str, now: float | None = None) -> Token | None:
        """The token of a cookie that `session` has made and that is not over."""
        text, _, signature = cookie.rpartition(".")
        found = None
        for token in self.known:
            if hmac.compare_digest(_signature(token, text).encode(), signature.encode(errors="replace")):
                found = token
        end = text.rpartition(".")[2]
        over = not end.isascii() or not end.isdigit() or int(end[:20]) < (time.time() if now is None else now)
        return None if over else found

    def _of_digest(self, digest: str) -> Token | None:
        found = None
        for token in self.known:
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found


def read(file: Path | None, environment: Mapping[str, str] = os.environ) -> Tokens:
    """The tokens of a file, lines of `NAME ROLE sha256:HASH`, and of EPSEARCH_TOKENS, words of `NAME:ROLE:SECRET`.

    Raises UsageError; what a secret is, it never says.
    """
    tokens = [] if file is None else [_of_line(file, number, line) for number, line in _lines(file)]
    for number, word in enumerate(environment.get(VARIABLE, "").split(), 1):
        name, _, rest = word.partition(":")
        role, _, secret = rest.partition(":")
        where = f"word {number} of {VARIABLE}"
        if not name or role not in ROLES or not secret:
            raise UsageError(f"{where} must be NAME:ROLE:SECRET, with the role {' or '.join(ROLES)}")
        if len(secret) < SHORTEST:
            raise UsageError(f"the secret in {where} has {len(secret)} characters, allowed are {SHORTEST} or more")
        tokens.append(Token(name, role, digest(secret)))
    if twice := _twice(token.name for token in tokens):
        raise UsageError(f"there are two tokens of the name {twice!r}; each has a name of its own")
    return Tokens(tuple(tokens))


def make(name: str, role: str, file: Path) -> str:
    """Adds a token to a file that only its owner can read, and returns the secret, which is kept nowhere.

    Raises UsageError.
    """
    if not name.isidentifier() and not name.replace("-", "_").replace(".", "_").isidentifier():
        raise UsageError(f"the name of a token must be of letters, digits, -, _ and ., got {name!r}")
    if role not in ROLES:
        raise UsageError(f"role must be {' or '.join(ROLES)}, got {role!r}")
    known = [_of_line(file, number, line).name for number, line in _lines(file)] if file.exists() else []
    if name in known:
        raise UsageError(f"{file} has a token of the name {name!r}; take its line out, or choose another name")
    secret = secrets.token_urlsafe(32)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(handle, "a", encoding="utf-8") as stream:
            stream.write(f"{name} {role} sha256:{digest(secret)}\n")
    except OSError as error:
        raise UsageError(f"cannot write to the file of tokens {file}: {error.strerror}") from error
    return secret


def _lines(file: Path) -> list[tuple[int, str]]:
    """Number and text of the lines that say something. Raises UsageError, also where others could write to it."""
    try:
        mode, text = file.stat().st_mode, file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise UsageError(f"cannot read the file of tokens {file}: {why}") from error
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(f"others may write to the file of tokens {file}; `chmod go-w` it")
    return [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip() and line[0] != "#"]


def _of_line(file: Path, number: int, line: str) -> Token:
    name, role, digest, *more = [*line.split(), "", "", ""]
    kind, _, value = digest.partition(":")
    hexadecimal = len(value) == 64 and {*value} <= {*"0123456789abcdef"}
    if role not in ROLES or kind != "sha256" or not hexadecimal or any(more):
        raise UsageError(f"line {number} of {file} must be NAME ROLE sha256:HASH; `epsearch token` writes such lines")
    return Token(name, role, value)


def _twice(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def digest(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


def _signature(token: Token, text: str) -> str:
    """Nobody can write it who does not know the hash; it ends with the token."""
    return hmac.new(token.digest.encode(), f"session {text}".encode(errors="replace"), hashlib.sha256).hexdigest()
