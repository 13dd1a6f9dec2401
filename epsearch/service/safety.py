"""Who may ask what, from where: the host, then the origin, then the token; then how much, and what answers say.

In this order: a name that is not ours means a page of somebody else's that has made itself ours by its name server,
and loopback is no defence against that. An origin that is not ours means a page elsewhere that sends its visitors.
"""

import asyncio
import http.cookies
from collections.abc import Callable
from html import escape
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from epsearch.failures.errors import UsageError, brief, unknown
from epsearch.service.access.attempts import Attempts
from epsearch.service.access.tokens import COOKIE, EVERYBODY, Token
from epsearch.service.settings import LARGEST_BODY, Settings

AGAIN = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>epsearch</title>'
    '<meta http-equiv="refresh" content="0"><p><a href="{}">Go on</a></p></html>'
)
SAFE = ("GET", "HEAD", "OPTIONS")
OPEN = ("/health", "/ready", "/sign-in", "/static/")
"""Paths, or their beginnings, for which nobody need have a token."""
API_PAGE = "/api/v1"
"""Below it are programs; the page itself says how they ask."""
READS = ("/sign-out",)
"""Paths of unsafe methods for which a token that reads is enough."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a page may load: nothing from elsewhere. Plotly writes styles into its drawings, and saves them as data."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


TOO_LARGE = f"a body may have at most {LARGEST_BODY:,} bytes"


class Guard:
    """The outermost layer of the application.

    refused: is told why a request is refused. bug: the answer to what nobody has expected; it is given here, so that it
    has HEADERS, too, and that no server prints where it happened, with whatever stands there.
    """

    def __init__(
        self, app: ASGIApp, settings: Settings, bug: Callable[[Exception], Response], refused: Callable[[str], None]
    ) -> None:
        self._app, self._settings, self._hosts, self._bug = app, settings, settings.hosts, bug
        self._refused, self._attempts = refused, Attempts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, as ASGI has it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # there are no websockets
        headers, begun = Headers(scope=scope), False

        async def sent(message: Message) -> None:
            nonlocal begun
            if not begun and message["status"] == 401:
                await self._slow(scope, headers)
            begun = True
            await send(_with_headers(message))

        try:
            refusal = self._refusal(scope, headers)
            if refusal is not None:
                self._refused(str(refusal.status_code))
            answer: ASGIApp = refusal or self._app
            await answer(scope, _limited(receive), sent)
        except Exception as error:  # noqa: BLE001  of whatever kind: somebody waits for an answer
            answer = self._bug(error)
            if not begun:
                await answer(scope, receive, sent)

    async def _slow(self, scope: Scope, headers: Headers) -> None:
        """Counts a wrong token, and waits where its address has sent many."""
        if scope["path"] == "/sign-in" or "authorization" in headers or COOKIE in _cookies(headers):
            self._refused("wrong token")
            await asyncio.sleep(self._attempts.wrong((scope.get("client") or ("an unknown address",))[0]))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to what is not allowed; of what is, `scope["state"]` says whose it is."""
        path, unsafe = scope["path"], scope["method"] not in SAFE
        if (host := _name(headers.get("host", ""))) not in self._hosts:
            return _refused(421, f"this service is not called {host[:100]!r}; --allow-host NAME lets it be")
        token, by_cookie = self._token(headers)
        if unsafe and (wrong := _foreign(headers, by_cookie)):
            return _refused(403, wrong)
        scope.setdefault("state", {})["token"] = token
        if not _opened(path):
            if token is None:
                return _unknown(scope, headers)
            # A page's own form is refused by its route, as a page with what was typed: see `writing`.
            if unsafe and not token.writes and path not in READS and not _for_people(path, headers):
                return _refused(403, str(Forbidden(token)))
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or int(length[:20]) > LARGEST_BODY:
            return _refused(413, TOO_LARGE)
        return None

    def _token(self, headers: Headers) -> tuple[Token | None, bool]:
        """(whose request it is, whether a browser's cookie says so)."""
        tokens = self._settings.tokens
        if not tokens.needed:
            return EVERYBODY, False
        kind, _, secret = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return tokens.of_secret(secret.strip()), False
        cookie = _cookies(headers).get(COOKIE)
        return (None if cookie is None else tokens.of_session(cookie)), cookie is not None


class Forbidden(UsageError):
    """A token that may only read was to change something."""

    def __init__(self, token: Token) -> None:
        super().__init__(f"the token {token.name!r} may only read")


def writing(request: Request) -> None:
    """Raises Forbidden for a request that changes something, by somebody who may only read."""
    token: Token | None = request.scope.get("state", {}).get("token")
    if request.method not in SAFE and request.url.path not in READS and token is not None and not token.writes:
        raise Forbidden(token)


async def writers_only(request: Request) -> None:
    """The same, as a dependency of a route: a plain function would wait for a thread."""
    writing(request)


async def only_known(request: Request) -> None:
    """Raises UsageError for a parameter in the query that the route does not have: a misspelt one would be no word."""
    known = [one.alias for one in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in known:
            raise UsageError(unknown("query parameter", brief(name).strip("'"), known))


def _foreign(headers: Headers, by_cookie: bool) -> str:
    """Why an unsafe request may have been sent by a page that is not ours; "" where it was not."""
    origin = headers.get("origin")
    if origin is None:
        # Programs send none. Every browser does with such a request; one that says where it comes from in another way
        # is heard, too.
        if by_cookie or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "a request of a browser must say its origin"
        return ""
    scheme, _, there = origin.partition("://")
    if scheme not in ("http", "https") or there.lower() != headers.get("host", "").lower():
        return f"a page of {origin[:100]!r} may not send this"
    return ""


def _unknown(scope: Scope, headers: Headers) -> Response:
    """To somebody without a token that is known: a page to sign in, or a line for programs."""
    if scope["method"] == "GET" and _for_people(scope["path"], headers):
        query = scope["query_string"].decode("latin-1")
        back = scope["path"] + (f"?{query}" if query else "")
        if headers.get("sec-fetch-site") == "cross-site":
            # A report has no origin, so that a link in it brings no cookie along. This page has one, and asks again.
            return HTMLResponse(AGAIN.format(escape(back)))
        return RedirectResponse(f"/sign-in?next={quote(back, safe='')}", status_code=303)
    wanted = "a token is needed: Authorization: Bearer TOKEN"
    return _refused(401, wanted, {"WWW-Authenticate": "Bearer"})


def _for_people(path: str, headers: Headers) -> bool:
    """Whether a browser has asked for a page."""
    programs = (path.startswith("/api/") and path != API_PAGE) or path == "/metrics"
    return not programs and "text/html" in headers.get("accept", "")


def _opened(path: str) -> bool:
    return any(path.startswith(one) if one.endswith("/") else path == one for one in OPEN)


def _refused(status: int, why: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"detail": why}, status, headers)


def _name(host: str) -> str:
    """The name in a Host header, without its port: `[::1]:8470` is `::1`."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()


def _cookies(headers: Headers) -> dict[str, str]:
    jar: http.cookies.SimpleCookie = http.cookies.SimpleCookie()
    try:
        jar.load(headers.get("cookie", ""))
    except http.cookies.CookieError:
        return {}
    return {name: one.value for name, one in jar.items()}


def _limited(receive: Receive) -> Receive:
    """The same body, as far as it is not too large: one that says no length, or a wrong one."""
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > LARGEST_BODY:
            raise HTTPException(413, TOO_LARGE)
        return message

    return limited


def _with_headers(message: Message) -> Message:
    """The same message; the first of an answer with HEADERS, but for those that it has of its own."""
    if message["type"] == "http.response.start":
        headers = MutableHeaders(scope=message)
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
    return message
