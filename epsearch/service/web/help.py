"""Pages about the service: help, and the routes of its API."""

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from epsearch.service.routes import Service
from epsearch.service.safety import API_PAGE
from epsearch.service.studies import STATES
from epsearch.service.web.rendering import render

METHODS = ("get", "post", "put", "delete")


def routes(pages: APIRouter, service: Service) -> None:
    """Adds both pages."""

    @pages.get("/help")
    def help(request: Request) -> Response:
        return render(request, "help.html", states=STATES, tokens=service.settings.tokens.needed)

    @pages.get(API_PAGE)
    def api(request: Request) -> Response:
        url = str(service.settings.url or request.base_url).rstrip("/")
        study = json.dumps({"kind": "run", "name": "first"})
        header = ' -H "Authorization: Bearer $EPSEARCH_TOKEN"' if service.settings.tokens.needed else ""
        table = route_table(request.app.openapi())
        return render(request, "api.html", routes=table, url=url, token_header=header, study=study)


def route_table(schema: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Returns method, path and description of the routes of an OpenAPI schema, those of the API first."""
    table = [
        (method.upper(), path, str(route.get("description") or route.get("summary") or "").split("\n")[0])
        for path, methods in schema["paths"].items()
        for method, route in methods.items()
        if method in METHODS
    ]
    return sorted(table, key=lambda row: not row[1].startswith(API_PAGE))
