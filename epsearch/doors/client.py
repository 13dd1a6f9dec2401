"""Calls of a service's API: answers as plain values, refusals as the errors that the same command raises here."""

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from epsearch.failures.errors import Unavailable, UsageError

TOKEN = "EPSEARCH_TOKEN"
SECONDS = 310.0  # a plan may take as long; a report is written meanwhile
PER_PAGE = 1000


class Client:
    """One service; also a context manager. Every call raises UsageError for what it refuses, Unavailable without it."""

    def __init__(self, url: str, token: str | None = None, transport: httpx.BaseTransport | None = None) -> None:
        there = urlsplit(url)
        if there.scheme not in ("http", "https") or not there.netloc or there.query or there.username:
            raise UsageError(f"server must be like http://HOST:PORT, got {without_login(url)!r}")
        secret = os.environ.get(TOKEN) if token is None else token
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        self.url = f"{there.scheme}://{there.netloc}"  # of an address as a browser shows it: pages lie below paths
        self._known = bool(secret)
        self._http = httpx.Client(headers=headers, timeout=httpx.Timeout(SECONDS, connect=10.0), transport=transport)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def get(self, path: str, /, **query: Any) -> Any:
        """What a route answers, read as JSON."""
        return self._read(self._asked("GET", path, query))

    def text(self, path: str, /, **query: Any) -> str:
        """What a route answers, as text."""
        return self._asked("GET", path, query).text

    def content(self, path: str, /, **query: Any) -> bytes:
        """What a route answers, as bytes."""
        return self._asked("GET", path, query).content

    def post(self, path: str, /, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        """What a route answers that changes something."""
        return self._read(self._asked("POST", path, query, body))

    def rows(self, **query: Any) -> list[dict[str, Any]]:
        """Returns the service's studies, oldest first."""
        rows: list[dict[str, Any]] = []
        for page in range(1, 10_000):
            answer = self.get("/studies", page=page, per_page=PER_PAGE, **query)
            rows += answer["studies"]
            if len(rows) >= answer["total"] or not answer["studies"]:
                break
        return rows[::-1]

    def delete(self, path: str, /, **query: Any) -> Any:
        """What a route answers that removes something."""
        return self._read(self._asked("DELETE", path, query))

    def _read(self, answer: httpx.Response) -> Any:
        try:
            return answer.json()
        except ValueError as error:
            raise Unavailable(f"{self.url} is no service of epsearch: its answer is no JSON") from error

    def _asked(
        self, method: str, path: str, query: Mapping[str, Any], body: Mapping[str, Any] | None = None
    ) -> httpx.Response:
        given = {name: value for name, value in query.items() if value is not None}
        try:
            answer = self._http.request(method, f"{self.url}/api/v1{path}", params=given, json=body)
        except httpx.HTTPError as error:
            raise Unavailable(f"the service {self.url} does not answer: {error or type(error).__name__}") from error
        if answer.status_code < 400:
            return answer
        why = _detail(answer)
        if answer.status_code == 401:
            wrong = f"{self.url} does not know the token in {TOKEN}; `epsearch token` makes one"
            why = wrong if self._known else f"{self.url} wants a token; set {TOKEN} to yours"
        if answer.status_code == 429 or answer.status_code >= 500:
            raise Unavailable(f"the service {self.url} could not do it: {why}")
        raise UsageError(why)


def quoted(name: str) -> str:
    """A study's name as a part of a path."""
    return quote(name, safe="")


def without_login(url: str) -> str:
    """A URL as it may be shown."""
    there = urlsplit(url)
    return url if "@" not in there.netloc else there._replace(netloc=there.netloc.rpartition("@")[2]).geturl()


def _detail(answer: httpx.Response) -> str:
    try:
        detail = answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}"
    return detail if isinstance(detail, str) else str(detail)
