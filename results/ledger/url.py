"""The URL of a ledger; only the database's driver sees the password in it."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, unquote, unquote_plus

HIDDEN = "***"
"""Replaces a password."""
SQLITE = ("sqlite:///", "sqlite+pysqlite:///")
SECRET = re.compile(r"pass|pwd|secret|token", re.IGNORECASE)
# User and password, up to the last @, because a password that was typed as it is may contain one. A text without :// is
# a URL whose beginning was forgotten: its password must not be shown either.
_LOGIN = re.compile(r"((?:://|^(?!.*://))[^:/@]*):(.*)@", re.DOTALL)
_IN_TEXT = re.compile(r"\S+://\S+|(?<!/)\b\w*password=\S+", re.IGNORECASE)  # URLs, and libpq's form of them
SHORTEST_SECRET = 4  # characters of a password that is looked for outside of URLs, too
# The value is only looked at: the next name is looked for within it, too.
_PARAMETER = re.compile(r"(?:(?<=[?&\s])|^)([^=?&\s]+)=(?=([^&\s]*))")
_UNSAFE = "%?#="  # in the path of a database's URL


class LedgerUrl:
    """An SQLAlchemy URL, which is masked as text, so that it can be part of any message, file or page.

    The text of a URL from the environment is the name of its variable.

    Neither a plain text nor a dataclass, whose fields would be shown by `repr` and `asdict`.

    >>> url = LedgerUrl("postgresql://me:secret@host/db")
    >>> print(url, [url], url.revealed)
    postgresql://me:***@host/db [LedgerUrl('postgresql://me:***@host/db')] postgresql://me:secret@host/db
    """

    __slots__ = ("_text", "variable")

    def __init__(self, text: str, variable: str = "") -> None:
        self._text, self.variable = text, variable

    @classmethod
    def of(cls, url: "LedgerUrl | str") -> "LedgerUrl":
        """Returns the URL itself, or one made from text."""
        return url if isinstance(url, LedgerUrl) else cls(url)

    @classmethod
    def of_file(cls, path: Path) -> "LedgerUrl":
        """Returns the URL of an SQLite ledger, for any names of the file and its folders.

        >>> print(LedgerUrl.of_file(Path("/a%20b/what?.sqlite")))
        sqlite:////a%2520b/what%3F.sqlite
        """
        # Letter by letter, because `quote` would also encode letters such as é, which messages then show as codes. A
        # name that is not UTF-8 has surrogates in it, which cannot be printed: they become their bytes again.
        safe = (
            character
            if character.isprintable() and character not in _UNSAFE
            else quote(character, errors="surrogateescape")
            for character in str(path)
        )
        return cls(SQLITE[0] + "".join(safe))

    def __str__(self) -> str:
        return f"${self.variable}" if self.variable else self.without_password

    @property
    def from_environment(self) -> bool:
        """True if an environment variable gave it, whose name is `variable`."""
        return bool(self.variable)

    @property
    def without_password(self) -> str:
        """The URL with stars in place of its password, wherever it comes from."""
        hidden = _LOGIN.sub(rf"\1:{HIDDEN}@", self._text)
        for secret in reversed(_secret_values(hidden)):  # from the end, so that the places before it stay right
            hidden = hidden[: secret.start(2)] + HIDDEN + hidden[secret.end(2) :]
        return hidden

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
        """True if the password was masked before, so that this URL cannot be used to connect."""
        return bool(self._secret_texts) and not self.secrets

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
    def identity(self) -> tuple[int, int] | None:
        """Device and inode of the SQLite file; None where there is none, and of other databases."""
        try:
            stat = None if self.file is None else os.stat(self.file)
        except OSError:
            return None
        return None if stat is None else (stat.st_dev, stat.st_ino)

    @property
    def secrets(self) -> set[str]:
        """All that is masked, except masks themselves, as written in the URL and decoded."""
        # Decoded in both ways: SQLAlchemy reads a + of the login as a +, and a + of the query as a space.
        return {
            form
            for secret in self._secret_texts
            for form in (secret, unquote(secret), unquote_plus(secret))
            if {*form} - {"*"}
        }

    @property
    def _secret_texts(self) -> set[str]:
        return {place[2] for place in (*_LOGIN.finditer(self._text), *_secret_values(self._text))} - {""}


def without_passwords(text: str, known: Iterable[LedgerUrl] = ()) -> str:
    """Returns a message without the passwords of the URLs in it and of known URLs, wherever else they are in it.

    >>> without_passwords("postgresql://me:s%2Fcret@host/db?password=also&x=1 failed: s/cret is wrong")
    'postgresql://me:***@host/db?password=***&x=1 failed: *** is wrong'
    """
    urls = list(known)
    for url in urls:
        text = text.replace(url.revealed, str(url))
    text = _hide(text, urls)  # before the pattern, which would end a password at a space
    return _hide(_IN_TEXT.sub(lambda match: str(LedgerUrl(match[0])), text), map(LedgerUrl, _IN_TEXT.findall(text)))


def _hide(text: str, urls: Iterable[LedgerUrl]) -> str:
    secrets = {secret for url in urls for secret in url.secrets if len(secret) >= SHORTEST_SECRET}
    for secret in sorted(secrets, key=len, reverse=True):  # the longest first: one may be part of another
        text = text.replace(secret, HIDDEN)
    return text


def _secret_values(text: str) -> list[re.Match[str]]:
    """Returns name and value of secret parameters, whose names may be percent-encoded; the path has none."""
    start = len(text.partition("?")[0]) if "://" in text else 0
    return [place for place in _PARAMETER.finditer(text, start) if SECRET.search(unquote_plus(place[1]))]
