"""The URL of a ledger; only the database's driver sees the password in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, unquote, unquote_plus

HIDDEN = "***"
"""Replaces a password."""
SQLITE = ("sqlite:///", "sqlite+pysqlite:///")
SECRET = re.compile(r"pass|pwd|secret|token", re.IGNORECASE)
_LOGIN = re.compile(r"(://[^:/@]*):(.*)@", re.DOTALL)
_BARE_LOGIN = re.compile(r"(^[^:/@]*):(.*)@", re.DOTALL)  # of a URL without a beginning
_IN_TEXT = re.compile(r"\S+://\S+|(?<!/)\b\w*password=\S+", re.IGNORECASE)  # URLs, and libpq's form of them
SHORTEST_ALONE = 4  # characters of a password that is looked for outside of URLs, too
_NAME = re.compile(r"(?:(?<=[?&\s])|^)([^=?&\s]+)=")
_VALUE = re.compile(r"[^&\s]*")
_UNSAFE = "%?#="  # in the path of a database's URL


class LedgerUrl:
    """An SQLAlchemy URL, which is masked as text, so that it can be part of any message, file or page.

    Neither a plain text nor a dataclass, whose fields would be shown by `repr` and `asdict`.

    >>> url = LedgerUrl("postgresql://me:secret@host/db")
    >>> print(url, [url], url.revealed)
    postgresql://me:***@host/db [LedgerUrl('postgresql://me:***@host/db')] postgresql://me:secret@host/db
    """

    __slots__ = ("_text", "from_environment")

    def __init__(self, text: str, from_environment: bool = False) -> None:
        self._text, self.from_environment = text, from_environment

    @classmethod
    def of(cls, url: LedgerUrl | str) -> LedgerUrl:
        """Returns the URL itself, or one made from text."""
        return url if isinstance(url, LedgerUrl) else cls(url)

    @classmethod
    def of_file(cls, path: Path) -> LedgerUrl:
        """Returns the URL of an SQLite ledger, for any names of the file and its folders.

        >>> print(LedgerUrl.of_file(Path("/a%20b/what?.sqlite")))
        sqlite:////a%2520b/what%3F.sqlite
        """
        safe = (one if one.isprintable() and one not in _UNSAFE else _quoted(one) for one in str(path))
        return cls(SQLITE[0] + "".join(safe))

    def __str__(self) -> str:
        return _masked(self._text, self._login)

    def __repr__(self) -> str:
        return f"LedgerUrl({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LedgerUrl) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    @property
    def revealed(self) -> str:
        """The URL with the password, for the driver only."""
        return self._text

    @property
    def masked(self) -> bool:
        """Whether the password was masked before, so that this URL cannot be used to connect."""
        written = self._written
        return bool(written) and all(map(_stars, written))

    @property
    def file(self) -> Path | None:
        """The file of an SQLite ledger; None for other databases and for URIs of SQLite's own kind."""
        start = next((start for start in SQLITE if self._text.startswith(start)), None)
        name = "" if start is None else self._text.removeprefix(start).partition("?")[0]
        return (
            None
            if name in ("", ":memory:") or name.startswith("file:")
            else Path(unquote(name, errors="surrogateescape"))
        )

    @property
    def secrets(self) -> set[str]:
        """All that is masked, except masks themselves, as written in the URL and decoded."""
        forms = {form for one in self._written for form in (one, unquote(one), unquote_plus(one))}
        return {form for form in forms if not _stars(form)}

    @property
    def _written(self) -> set[str]:
        login = {found[2] for found in self._login.finditer(self._text)}
        return (login | {found[0] for found in _values(self._text)}) - {""}

    @property
    def _login(self) -> re.Pattern[str]:
        return _LOGIN if "://" in self._text else _BARE_LOGIN


def without_passwords(text: str, known: Iterable[LedgerUrl] = ()) -> str:
    """Returns a message without the passwords of the URLs in it and of known URLs, wherever else they are in it.

    >>> without_passwords("postgresql://me:s%2Fcret@host/db?password=also&x=1 failed: s/cret is wrong")
    'postgresql://me:***@host/db?password=***&x=1 failed: *** is wrong'
    """
    urls = list(known)
    for url in urls:
        text = text.replace(url.revealed, str(url))
    text = _hidden(text, urls)  # before the pattern, which would end a password at a space
    found = [LedgerUrl(one) for one in _IN_TEXT.findall(text)]
    return _hidden(_IN_TEXT.sub(lambda one: str(LedgerUrl(one[0])), text), found)


def _hidden(text: str, urls: Iterable[LedgerUrl]) -> str:
    alone = {secret for url in urls for secret in url.secrets if len(secret) >= SHORTEST_ALONE}
    for secret in sorted(alone, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _masked(text: str, login: re.Pattern[str]) -> str:
    hidden = login.sub(rf"\1:{HIDDEN}@", text)
    for found in reversed(_values(hidden)):
        hidden = hidden[: found.start()] + HIDDEN + hidden[found.end() :]
    return hidden


def _values(text: str) -> list[re.Match[str]]:
    """Returns the places of values of secret parameters, whose names may be percent-encoded; the path has none."""
    start = len(text.partition("?")[0]) if "://" in text else 0
    names = (found for found in _NAME.finditer(text, start) if SECRET.search(unquote_plus(found[1])))
    values = (_VALUE.match(text, found.end()) for found in names)
    return [found for found in values if found]


def _stars(secret: str) -> bool:
    return set(secret) <= {"*"}


def _quoted(letter: str) -> str:
    return quote(letter, errors="surrogateescape")
