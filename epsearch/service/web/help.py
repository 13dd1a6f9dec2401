"""Pages about the service itself: its words, and how programs ask it."""

import json
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import Response

from epsearch.service.routes import Service
from epsearch.service.safety import API_PAGE
from epsearch.service.studies import STATES
from epsearch.service.web.rendering import rendered

METHODS = ("get", "post", "delete")


class Route(NamedTuple):
    """One route of the API."""

    method: str
    path: str
    what: str
    """In a line."""


def routes(pages: APIRouter, service: Service) -> None:
    """Adds both pages."""

    @pages.get("/help")
    def help(request: Request) -> Response:
        return rendered(request, "help.html", states=STATES, tokens=service.settings.tokens.needed)

    @pages.get(API_PAGE)
    def api(request: Request) -> Response:
        known = described(request.app.openapi())
        here, study = str(request.base_url).rstrip("/"), json.dumps({"kind": "run", "name": "first"})
        secured = ' -H "Authorization: Bearer $EPSEARCH_TOKEN"' if service.settings.tokens.needed else ""
        return rendered(request, "api.html", known=known, here=here, secured=secured, study=study)


def described(schema: dict[str, Any]) -> list[Route]:
    """The routes of an OpenAPI schema, those below the API first."""
    found = [
        Route(method.upper(), path, str(one.get("description") or one.get("summary") or "").split("\n")[0])
        for path, methods in schema["paths"].items()
        for method, one in methods.items()
        if method in METHODS
    ]
    return sorted(found, key=lambda one: not one.path.startswith(API_PAGE))
