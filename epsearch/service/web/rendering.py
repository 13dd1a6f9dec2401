"""Renders pages: templates, their common values, and the files that they load."""

import hashlib
import html
from functools import cache
from importlib import resources
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from epsearch import events
from epsearch.service.requests import TITLES
from epsearch.service.routes import token_of
from results.html import page
from results.labels import MISSING, dataset_label, duration_text
from results.points import point_text

STATIC = {
    "htmx.js": (__package__, "text/javascript"),
    "plotly.js": (__package__, "text/javascript"),
    "live.js": (__package__, "text/javascript"),
    "stream.js": (__package__, "text/javascript"),
    "tables.js": (__package__, "text/javascript"),
    "service.css": (__package__, "text/css"),
    "icon.svg": (__package__, "image/svg+xml"),
    "page.css": (page.__package__, "text/css"),
    "figures.js": (page.__package__, "text/javascript"),
}
"""File -> (its package, its media type); styles and figures are those of the reports."""
GZIPPED = ("plotly.js",)
"""Files that are stored and sent compressed."""
A_YEAR = 365 * 24 * 3600


def render(request: Request, template: str, code: int = 200, **values: Any) -> HTMLResponse:
    """Renders a page; code: its status."""
    root = request.app.state.service.settings.root
    common = {"version": version("epsearch"), "token": token_of(request), "path": request.url.path, "root": root}
    return HTMLResponse(_templates().get_template(template).render(**common | values), code)


def add_back_link(report: bytes, name: str, root: str) -> bytes:
    """Adds a link from a report to the page of its study; root: path below which the service lies."""
    link = _templates().get_template("back.html").render(name=name, root=root)
    return report.replace(b"<body>", b"<body>" + link.encode(), 1)


def refusal(request: Request, status: int, reason: str) -> Response:
    """Renders the page of a refusal."""
    titles = {403: "Not allowed", 404: "Not found", 409: "Not now", 422: "Bad input", 503: "Not available now"}
    return render(request, "refusal.html", status, title=titles.get(status, "Refused"), reason=reason)


def mount(app: FastAPI) -> None:
    """Adds the route of static files."""

    @app.get("/static/{name}", include_in_schema=False)
    def static(request: Request, name: str, v: str = "") -> Response:
        if name not in STATIC:
            return refusal(request, 404, f"there is no file {name!r}")
        # The URL contains the hash of the content.
        age = f"max-age={A_YEAR}, immutable" if v == _hash(name) else "no-cache"
        headers = {"Cache-Control": age} | ({"Content-Encoding": "gzip"} if name in GZIPPED else {})
        return Response(_content(name), media_type=STATIC[name][1], headers=headers)


@cache
def _content(name: str) -> bytes:
    package = STATIC[name][0]
    path = f"{'static/' if package == __package__ else ''}{name}{'.gz' if name in GZIPPED else ''}"
    return resources.files(package).joinpath(path).read_bytes()


@cache
def _hash(name: str) -> str:
    return hashlib.sha256(_content(name)).hexdigest()[:8]


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {
        "static": lambda name: f"/static/{name}?v={_hash(name)}",
        "TITLES": TITLES,
        "MISSING": MISSING,
    }
    templates.globals["EVENTS"] = ",".join(events.kinds())
    templates.filters |= {
        "prose": lambda text: Markup(page.prose(html.unescape(str(text)))),
        "duration": lambda seconds: MISSING if seconds is None else duration_text(seconds),
        "dataset": dataset_label,
        "moment": lambda text: str(text)[:16].replace("T", " "),
        "point": lambda values: point_text(tuple(values), tuple(values.values())),
    }
    return templates
