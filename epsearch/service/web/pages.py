"""The pages: each route reads what the API reads, and renders a template."""

from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from epsearch.service.routes import Service, who
from epsearch.service.tokens import COOKIE, SESSION_SECONDS

HERE = Path(__file__).parent
TEMPLATES = Environment(
    loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
STATIC = {
    "htmx.js": "text/javascript",
    "hx-sse.js": "text/javascript",
    "plotly.js": "text/javascript",
}
PACKED = ("plotly.js",)
"""Files that lie here compressed, as they are sent."""


def rendered(request: Request, template: str, code: int = 200, **values: Any) -> HTMLResponse:
    """A page; code: its status."""
    own: dict[str, Any] = {"version": version("epsearch"), "who": who(request), "path": request.url.path}
    return HTMLResponse(TEMPLATES.get_template(template).render(**own | values), code)


def refusal(request: Request, status: int, why: str) -> Response:
    """The page that says why something was not done."""
    return rendered(request, "refusal.html", status, status=status, why=why)


def routes(service: Service) -> APIRouter:
    """All pages."""
    pages = APIRouter(include_in_schema=False)

    @pages.get("/")
    def index(request: Request) -> Response:
        return rendered(request, "index.html", studies=service.studies.all())

    @pages.get("/sign-in")
    def sign_in(request: Request, next: str = "/") -> Response:
        return rendered(request, "sign-in.html", next=_own(next), wrong=False)

    @pages.post("/sign-in")
    def signed_in(request: Request, token: Annotated[str, Form()] = "", next: Annotated[str, Form()] = "/") -> Response:
        known = service.settings.tokens.of_secret(token)
        if known is None:
            return rendered(request, "sign-in.html", 401, next=_own(next), wrong=True)
        answer = RedirectResponse(_own(next), status_code=303)
        answer.set_cookie(
            COOKIE,
            service.settings.tokens.session(known),
            max_age=int(SESSION_SECONDS),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    @pages.post("/sign-out")
    def sign_out() -> Response:
        answer = RedirectResponse("/sign-in", status_code=303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    return pages


def mount(app: FastAPI) -> None:
    """Adds the files that pages load."""

    @app.get("/static/{name}", include_in_schema=False)
    def static(request: Request, name: str) -> Response:
        if name not in STATIC:
            return refusal(request, 404, f"there is no file {name!r}")
        packed = name in PACKED
        content = (HERE / "static" / (f"{name}.gz" if packed else name)).read_bytes()
        headers = {"Cache-Control": "max-age=86400"} | ({"Content-Encoding": "gzip"} if packed else {})
        return Response(content, media_type=STATIC[name], headers=headers)


def _own(path: str) -> str:
    """A path of this service, whatever somebody has written into a link."""
    inside = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
    return path if inside else "/"
