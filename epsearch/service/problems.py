"""Refusals for programs: problems by RFC 9457, with a type that a program can test and one line of detail."""

from collections.abc import Mapping
from typing import Any

from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from epsearch.failures.errors import NoStudy, Unavailable, UsageError
from epsearch.service.access.limits import TooMany
from epsearch.service.access.permissions import Forbidden, NotOwner, ReadOnly
from epsearch.service.studies import Busy
from results.ledger.errors import StoreError

TYPE = "urn:epsearch:problem:"
"""Beginning of every type."""
MEDIA_TYPE = "application/problem+json"
PROBLEMS = {
    "malformed": (400, "The request cannot be read"),
    "no-token": (401, "A token is needed"),
    "foreign-page": (403, "A page of another site sent the request"),
    "read-only": (403, "The token may only read"),
    "not-owner": (403, "The study belongs to somebody else"),
    "forbidden": (403, "The token may not do this"),
    "no-study": (404, "No such study"),
    "not-found": (404, "No such resource"),
    "wrong-method": (405, "The resource has no such method"),
    "busy": (409, "The state of the study does not allow it"),
    "too-large": (413, "The body is too large"),
    "unknown-host": (421, "Unknown host name"),
    "bad-input": (422, "Bad input"),
    "too-many": (429, "Too many plans, streams or studies at a time"),
    "bug": (500, "A bug in epsearch"),
    "unavailable": (503, "The ledger or a process is not available now"),
}
"""End of a type -> its status and title."""
ERRORS: dict[type[Exception], str] = {
    NotOwner: "not-owner",
    ReadOnly: "read-only",
    Forbidden: "forbidden",
    NoStudy: "no-study",
    Busy: "busy",
    TooMany: "too-many",
    UsageError: "bad-input",
    Unavailable: "unavailable",
    StoreError: "unavailable",
}
"""Error -> the end of its type; subclasses first."""


class Refusal(BaseModel):
    """Reason of a refusal."""

    type: str = Field(description=f"One of {', '.join(TYPE + name for name in PROBLEMS)}.")
    title: str = Field(description="The type in words.")
    status: int = Field(description="Of HTTP.")
    detail: str = Field(description="One line: the condition, the value, what is allowed.")


# Not as a model: FastAPI would describe the refusals of a route that answers with HTML as HTML, too.
_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Refusal"}}}
REFUSED: dict[int | str, dict[str, Any]] = {
    status: {
        "description": "; ".join(title for code, title in PROBLEMS.values() if code == status),
        "content": _CONTENT,
    }
    for status in sorted({status for status, _ in PROBLEMS.values()} - {405, 500})
}
"""Refusals of every route, for OpenAPI."""


def answer(name: str, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Returns the answer to a refused request; name: the end of its type."""
    status, title = PROBLEMS[name]
    content = {"type": TYPE + name, "title": title, "status": status, "detail": detail}
    return JSONResponse(content, status, headers, MEDIA_TYPE)


def of_error(error: Exception) -> str:
    """Returns the end of the type of an error that the service raised."""
    return next((name for kind, name in ERRORS.items() if isinstance(error, kind)), "bug")


def of_status(status: int) -> str:
    """Returns the end of the type of a status that the framework raised."""
    names = {404: "not-found", 403: "forbidden"}
    return names.get(status) or next((name for name, (code, _) in PROBLEMS.items() if code == status), "malformed")
