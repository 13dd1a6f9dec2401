"""Checks of every request: host, origin, token, size; and headers of every answer.

In this order: an unknown host name means DNS rebinding by a foreign page, against which loopback is no defence. A
foreign origin means cross-site request forgery. A program with a valid token may use any name: no foreign page has one.
Inside, paths are those of a service without a proxy, and HEAD is GET without the body.
"""

import asyncio
import http.cookies
import re
from collections.abc import Callable
from html import escape
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from epsearch.failures.errors import UsageError, brief
from epsearch.failures.lines import one_line
from epsearch.service import problems
from epsearch.service.access.attempts import Attempts
from epsearch.service.access.permissions import ReadOnly
from epsearch.service.access.tokens import ANONYMOUS, COOKIE, Token
from epsearch.service.sending import Sender, hide_paths
from epsearch.service.settings import LARGEST_BODY, Settings
from epsearch.service_url import PORTS, ServiceUrl, same_place
from trainers.spelling import unknown

PROBES = ("/health", "/ready")
"""Paths that answer to every host name: probes use the address of a pod."""
HSTS = {"Strict-Transport-Security": f"max-age={365 * 24 * 3600}"}
"""Of a service that is reached by HTTPS alone."""
RELOAD = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>epsearch</title>'
    '<meta http-equiv="refresh" content="0"><p><a href="{}">Go on</a></p></html>'
)
SAFE = ("GET", "HEAD", "OPTIONS")
OPEN = ("/health", "/ready", "/sign-in", "/static/")
"""Paths, or their beginnings, that need no token."""
API_PAGE = "/api/v1"
"""The page about the API; the paths below are for programs."""
READS = ("/sign-out",)
"""Paths of unsafe methods that a token with the role READ may use."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Sources that a page may load: only the service. Plotly writes styles into its drawings, and saves them as data."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


OUTCOME = re.compile(r"/api/v1/studies/[^/]+/outcome")
"""Path of the answer that has a path of the client."""
TOO_LARGE = f"a body may have at most {LARGEST_BODY:,} bytes"


class Guard:
    """The outermost layer of the application.

    count_refusal: called with the reason of a refusal. bug: returns the answer to an unexpected error, made here so
    that it has HEADERS, too, and no server prints a traceback with private values.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        bug: Callable[[Exception], Response],
        count_refusal: Callable[[str], None],
    ) -> None:
        self._app, self._settings, self._hosts, self._bug = app, settings, settings.hosts, bug
        self._count_refusal, self._attempts, self._hide = count_refusal, Attempts(), hide_paths(settings)
        self._headers = HEADERS | (HSTS if settings.secure else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, as an ASGI application."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # there are no websockets
        scope = self._inner(scope)
        if scope["state"]["head"]:
            send = _without_body(send)
        headers, begun = Headers(scope=scope), False

        own = QueryParams(scope["query_string"]).get("path", "") if OUTCOME.fullmatch(scope["path"]) else ""
        tagged = scope["method"] == "GET" and scope["path"].startswith("/api/")
        send = Sender(send, self._hide, one_line(own), headers.get("if-none-match", "") if tagged else None)

        async def forward(message: Message) -> None:
            nonlocal begun
            if not begun and message["status"] == 401:
                await self._slow(scope, headers)
            begun = True
            await send(self._with_headers(message))

        try:
            refusal = self._refusal(scope, headers)
            if refusal is not None:
                self._count_refusal(str(refusal.status_code))
            answer: ASGIApp = refusal or self._app
            await answer(scope, _limit_body(receive), forward)
        except Exception as error:  # noqa: BLE001  a client waits for an answer
            answer = self._bug(error)
            if not begun:
                await answer(scope, receive, forward)

    def _inner(self, scope: Scope) -> Scope:
        """Returns the scope for the routes: the path as without a proxy, which may or may not remove its part."""
        path, root = scope["path"], self._settings.root
        if root and (path == root or path.startswith(f"{root}/")):
            path = path[len(root) :]
        path = path.rstrip("/") or "/"
        head = scope["method"] == "HEAD"
        state = {**scope.get("state", {}), "head": head}
        return {**scope, "path": path, "method": "GET" if head else scope["method"], "state": state}

    def _with_headers(self, message: Message) -> Message:
        """Adds the headers that the first message of an answer does not have; a redirect leads below the proxy."""
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in self._headers.items():
                headers.setdefault(name, value)
            if headers.get("location", "").startswith("/"):
                headers["Location"] = self._settings.root + headers["Location"]
        return message

    async def _slow(self, scope: Scope, headers: Headers) -> None:
        """Counts a wrong token, and delays the answer to an address that has sent many."""
        if scope["path"] == "/sign-in" or "authorization" in headers or COOKIE in _cookies(headers):
            self._count_refusal("wrong token")
            await asyncio.sleep(self._attempts.wrong((scope.get("client") or ("an unknown address",))[0]))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Returns a refusal, or None for a request that is allowed, with its token in `scope["state"]`."""
        path, unsafe = scope["path"], scope["method"] not in SAFE
        token, by_cookie = self._token(headers)
        named = path in PROBES or (token is not None and self._settings.tokens.needed and not by_cookie)
        if (host := _host_name(headers.get("host", ""))) not in self._hosts and not named:
            return problems.answer(
                "unknown-host", f"unknown host name {host[:100]!r}; --allow-host NAME or --url URL allows it"
            )
        if unsafe and (reason := _foreign(headers, by_cookie, self._settings.url)):
            return problems.answer("foreign-page", reason)
        scope["state"]["token"] = token
        if not _needs_no_token(path):
            if token is None:
                return _ask_for_token(scope, headers, self._settings.root)
            # A form of a page is refused by its route, as a page with its values: see `check_role`.
            if unsafe and not token.writes and path not in READS and not _accepts_pages(path, headers):
                return problems.answer("read-only", str(ReadOnly(token)))
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or int(length[:20]) > LARGEST_BODY:
            return problems.answer("too-large", TOO_LARGE)
        # PostgreSQL takes no text with it, and nothing has such a name.
        if "\0" in path or b"%00" in scope["query_string"]:
            return problems.answer("not-found", "nothing has a name with the character NUL")
        return None

    def _token(self, headers: Headers) -> tuple[Token | None, bool]:
        """Returns the token of a request, and whether it came as a cookie."""
        tokens = self._settings.tokens
        if not tokens.needed:
            return ANONYMOUS, False
        kind, _, secret = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return tokens.of_secret(secret.strip()), False
        cookie = _cookies(headers).get(COOKIE)
        return (None if cookie is None else tokens.of_session(cookie)), cookie is not None


def check_role(request: Request) -> None:
    """Raises ReadOnly if the request changes something, but its token may only read."""
    token: Token | None = request.scope.get("state", {}).get("token")
    if request.method not in SAFE and request.url.path not in READS and token is not None and not token.writes:
        raise ReadOnly(token)


async def writers_only(request: Request) -> None:
    """Calls `check_role`, as a dependency of a route: a plain function would wait for a thread."""
    check_role(request)


async def check_query(request: Request) -> None:
    """Raises UsageError for an unknown parameter in the query, which may be misspelt."""
    of_route = request.scope["route"].dependant
    allowed = [parameter.alias for part in (of_route, *of_route.dependencies) for parameter in part.query_params]
    for name in request.query_params:
        if name not in allowed:
            raise UsageError(unknown("query parameter", brief(name).strip("'"), allowed))


def _foreign(headers: Headers, by_cookie: bool, public: ServiceUrl | None) -> str:
    """Returns the reason why a foreign page may have sent an unsafe request; empty if none did."""
    origin = headers.get("origin")
    if origin is None:
        # Programs send none, browsers always do with such a request; Sec-Fetch-Site covers browsers that do not.
        if by_cookie or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "a request of a browser must have an Origin header"
        return ""
    scheme, _, place = origin.partition("://")
    host = headers.get("host", "")
    if scheme not in PORTS:
        return f"a page of {origin[:100]!r} may not send this"
    if public is not None and same_place(scheme, place, public.place):
        # Whatever Host header the proxy sends; a page that came by HTTP may be anybody's.
        return "" if scheme == public.scheme else f"a page of {origin[:100]!r} may not send this: use {public}"
    if same_place(scheme, place, host):
        return ""
    return (
        f"a page of {origin[:100]!r} may not send this: the Host header is {host[:100]!r}; behind a proxy, serve with "
        "--url"
    )


def _ask_for_token(scope: Scope, headers: Headers, root: str) -> Response:
    """Returns the answer to a request without a valid token: the page to sign in, or JSON."""
    if scope["method"] == "GET" and _accepts_pages(scope["path"], headers):
        query = scope["query_string"].decode("latin-1")
        back = scope["path"] + (f"?{query}" if query else "")
        if headers.get("sec-fetch-site") == "cross-site":
            # A link in a report, which has no origin, sends no cookie. This page has the service's origin, and reloads.
            return HTMLResponse(RELOAD.format(escape(root + back)))
        return RedirectResponse(f"/sign-in?next={quote(back, safe='')}", status_code=303)
    fault = "the token is unknown, revoked or expired" if headers.get("authorization") else "a token is needed"
    reason = f"{fault}: Authorization: Bearer TOKEN"
    return problems.answer("no-token", reason, {"WWW-Authenticate": "Bearer"})


def _accepts_pages(path: str, headers: Headers) -> bool:
    """Returns whether a browser requests a page."""
    programs = (path.startswith("/api/") and path != API_PAGE) or path == "/metrics"
    return not programs and "text/html" in headers.get("accept", "")


def _needs_no_token(path: str) -> bool:
    return any(path.startswith(prefix) if prefix.endswith("/") else path == prefix for prefix in OPEN)


def _host_name(host: str) -> str:
    """Returns the name in a Host header, without its port: `::1` of `[::1]:8470`."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()


def _cookies(headers: Headers) -> dict[str, str]:
    jar: http.cookies.SimpleCookie = http.cookies.SimpleCookie()
    try:
        jar.load(headers.get("cookie", ""))
    except http.cookies.CookieError:
        return {}
    return {name: cookie.value for name, cookie in jar.items()}


def _without_body(send: Send) -> Send:
    async def forward(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return forward


def _limit_body(receive: Receive) -> Receive:
    """Limits the size of a body whose length is not declared, or wrong."""
    size = 0

    async def read() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > LARGEST_BODY:
            raise HTTPException(413, TOO_LARGE)
        return message

    return read
