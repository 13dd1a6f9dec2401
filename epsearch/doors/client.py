"""HTTP client of a service: answers as plain values, refusals as the errors of the local commands."""

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx

from epsearch.failures.crash_report import TOKEN
from epsearch.failures.errors import Unavailable, UsageError
from epsearch.service_url import is_loopback, parse

SECONDS = 310.0  # timeout; a plan may take 300
PER_PAGE = 1000


class Client:
    """Client of one service, and a context manager.

    Its methods call a route, and raise UsageError for a refusal, Unavailable if the service does not answer.
    """

    def __init__(self, url: str, token: str | None = None, transport: httpx.BaseTransport | None = None) -> None:
        server = parse(url, "server")
        secret = os.environ.get(TOKEN) if token is None else token
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        self.url = str(server)
        self._has_token = bool(secret)
        if transport is None and is_loopback(server.host):
            transport = httpx.HTTPTransport()  # a proxy of the environment would reach its own loopback
        self._http = httpx.Client(headers=headers, timeout=httpx.Timeout(SECONDS, connect=10.0), transport=transport)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def get(self, path: str, /, **query: Any) -> Any:
        """Returns the answer, decoded from JSON."""
        return self._decode(self._request("GET", path, query))

    def text(self, path: str, /, **query: Any) -> str:
        """Returns the answer as text."""
        return self._request("GET", path, query).text

    def content(self, path: str, /, **query: Any) -> bytes:
        """Returns the answer as bytes."""
        return self._request("GET", path, query).content

    def post(self, path: str, /, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        """Requests a change; returns the answer, decoded from JSON."""
        return self._decode(self._request("POST", path, query, body))

    def rows(self, **query: Any) -> list[dict[str, Any]]:
        """Returns the service's studies, oldest first."""
        rows, after = list[dict[str, Any]](), None
        while True:
            answer = self.get("/studies", after=after, per_page=PER_PAGE, **query)
            rows += answer["studies"]
            if (after := answer.get("next")) is None:
                return rows[::-1]

    def delete(self, path: str, /, **query: Any) -> Any:
        """Deletes a resource; returns the answer, decoded from JSON."""
        return self._decode(self._request("DELETE", path, query))

    def _decode(self, answer: httpx.Response) -> Any:
        try:
            return answer.json()
        except ValueError as error:
            raise Unavailable(f"{self.url} is no service of epsearch: its answer is no JSON") from error

    def _request(
        self, method: str, path: str, query: Mapping[str, Any], body: Mapping[str, Any] | None = None
    ) -> httpx.Response:
        parameters = {name: value for name, value in query.items() if value is not None}
        try:
            answer = self._http.request(method, f"{self.url}/api/v1{path}", params=parameters, json=body)
        except httpx.HTTPError as error:
            raise Unavailable(f"the service {self.url} does not answer: {error or type(error).__name__}") from error
        if answer.status_code < 400:
            return answer
        reason = _detail(answer)
        if answer.status_code == 401:
            wrong = f"{self.url} does not know the token in {TOKEN}; `epsearch token` makes one"
            reason = wrong if self._has_token else f"{self.url} needs a token; set {TOKEN} to yours"
        if answer.status_code == 429 or answer.status_code >= 500:
            raise Unavailable(f"the service {self.url} could not do it: {reason}")
        raise UsageError(reason)


def quote_name(name: str) -> str:
    """Returns the name of a study as a part of a path."""
    return quote(name, safe="")


def _detail(answer: httpx.Response) -> str:
    try:
        detail = answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}"
    return detail if isinstance(detail, str) else str(detail)
