"""Messages at the end of a study, sent to a URL in the form that chat services take: JSON with `text`."""

import time
from collections.abc import Collection, Mapping
from typing import Any

from epsearch.failures.errors import UsageError
from epsearch.failures.lines import one_line
from epsearch.service_url import is_loopback, parse
from epsearch.status import StudyStatus
from results.ledger.writers.states import FINISHED
from results.points import point_text

SECONDS = 10.0
"""Longest wait for an answer."""
PAUSES = (1.0, 5.0)
"""Seconds before the second and the third try."""


def check_url(url: str, hosts: Collection[str] | None = None) -> str:
    """Returns a URL to which messages may be sent. Raises UsageError, without the URL's path, which may be a secret.

    hosts: names that the operator of a service allows; None for all.
    """
    try:
        target = parse(url.partition("?")[0], "notify")
    except UsageError:
        raise UsageError("notify must be like https://HOST/PATH") from None
    if target.scheme != "https" and not is_loopback(target.host):
        raise UsageError(f"notify must be an https URL, got one of {target.scheme}://{target.host}")
    if hosts is not None and target.host not in hosts:
        allowed = f"allowed: {', '.join(sorted(hosts))}" if hosts else "the service allows none (--notify-host)"
        raise UsageError(f"notify must lead to a host of the service, got {target.host!r}; {allowed}")
    return url


def message(status: StudyStatus, page: str = "") -> dict[str, Any]:
    """Returns the message about a study; page: URL of its page in a service."""
    best = "" if status.chosen is None else point_text(tuple(status.chosen), tuple(status.chosen.values()))
    score = "" if status.score is None else f", {status.objective} {100 * status.score:.2f} %"
    detail = f"{best}{score}" if status.state == FINISHED else status.detail
    text = f"epsearch: {status.name} is {status.state}{f': {detail}' if detail else ''} {page}"
    return {
        "text": one_line(text.strip()),
        **{"study": status.name, "state": status.state, "detail": detail, "url": page or None},
        **{"chosen": None if status.chosen is None else dict(status.chosen), "score": status.score},
    }


def send(url: str, content: Mapping[str, Any]) -> str:
    """Sends a message, at most three times; returns why it failed, without the URL's path, or "".

    No redirect is followed: it could lead to another host.
    """
    import httpx  # late: most runs send nothing

    why = ""
    host = parse(url.partition("?")[0]).host
    for pause in (0.0, *PAUSES):
        time.sleep(pause)
        try:
            answer = httpx.post(url, json=dict(content), timeout=SECONDS, trust_env=not is_loopback(host))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = f"{host} does not answer: {type(error).__name__}"
            continue
        if answer.status_code < 300:
            return ""
        why = f"{host} answers with status {answer.status_code}"
        if answer.status_code < 500 and answer.status_code != 429:
            break
    return why
