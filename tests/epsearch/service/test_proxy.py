"""A service behind a proxy: below a path, under another host name, by HTTPS, with or without the path removed."""

import asyncio
import json
import re

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from epsearch import service_url
from epsearch.doors.client import Client
from epsearch.failures.errors import UsageError
from epsearch.service.access.tokens import COOKIE, WRITE
from epsearch.service.app import application
from epsearch.service_url import PAGES, parse
from results.ledger.store import Store
from tests.support import ledgers
from tests.support.service import SECRETS, STUDY, TOKENS, called, client_of, listening, settings, with_a_finished_study

PUBLIC = "https://lab.example/epsearch"
PASSES = {"Host": "lab.example"}
"""Headers of a proxy that passes the Host header on."""
REPLACES = {"Host": "127.0.0.1:8470"}
"""Headers of nginx as it is by default."""
PAGE = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """With tokens, a finished study and the public URL; it trains nothing."""
    own = with_a_finished_study(tmp_path_factory.mktemp("proxy") / "runs", tokens=TOKENS, url=parse(PUBLIC))
    with Store.open(own.storage) as store:
        made = application(own, store, works=False)
        made.state.service.streams.stop()
        yield made


def ask(app, method, path, headers, body=()):
    return asyncio.run(called(app, method, path, {name.lower(): value for name, value in headers.items()}, body))


def bearer(role=WRITE):
    return {"Authorization": f"Bearer {SECRETS[role]}"}


@pytest.mark.parametrize("text", [PUBLIC, PUBLIC + "/", "https://LAB.example:443/epsearch/studies/a%20b?"])
def test_a_url_is_that_of_the_service_also_from_one_of_its_pages(text):
    url = parse(text)
    assert (url.host, url.place, url.root, url.origin) == ("lab.example", "lab.example", "/epsearch", PUBLIC[:-9])
    assert str(url) == PUBLIC


@pytest.mark.parametrize(
    ("text", "place", "root"),
    [
        ("http://lab.example:8470", "lab.example:8470", ""),
        ("http://[::1]:80/", "[::1]", ""),
        ("https://lab.example/a/b/api/v1", "lab.example", "/a/b"),
        ("http://lab.example/studies/x#log", "lab.example", ""),
    ],
)
def test_ports_and_paths(text, place, root):
    assert (parse(text).place, parse(text).root) == (place, root)


@pytest.mark.parametrize(
    "text", ["lab.example", "ftp://lab.example", "https://", "https://a:b@lab.example", "http://x:y"]
)
def test_other_urls_are_refused_in_one_line_without_a_password(text):
    with pytest.raises(UsageError, match=r"^url must be like https://HOST:PORT/PATH, got '[^@]*'$"):
        parse(text)


@pytest.mark.slow
def test_the_names_that_end_a_root_are_those_of_all_routes(app):
    firsts = {one.path.split("/")[1] for one in iter_route_contexts(app.routes)} - {""}
    assert firsts == set(PAGES)


@pytest.mark.parametrize("removed", [True, False], ids=["the proxy removes the path", "it does not"])
@pytest.mark.parametrize("host", [PASSES, REPLACES], ids=["it passes the host", "it replaces the host"])
def test_a_page_signs_in_and_changes_something(app, removed, host):
    root = "" if removed else "/epsearch"
    page = ask(app, "GET", f"{root}/studies/{ledgers.NAME}", host | PAGE)
    assert page.status == 303 and page.headers["location"].startswith("/epsearch/sign-in?next=")
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "https://lab.example"}
    body = [f"token={SECRETS[WRITE]}&next=/studies/{ledgers.NAME}".encode()]
    signed = ask(app, "POST", f"{root}/sign-in", host | form, body)
    assert signed.status == 303 and signed.headers["location"] == f"/epsearch/studies/{ledgers.NAME}"
    cookie = signed.headers["set-cookie"]
    assert (
        "Secure" in cookie
        and "Path=/epsearch" in cookie
        and "HttpOnly" in cookie
        and "samesite=strict" in cookie.lower()
    )
    own = {"Cookie": cookie.partition(";")[0], "Origin": "https://lab.example"}
    back = ask(app, "POST", f"{root}/studies/{ledgers.NAME}/resume", host | PAGE | own)
    assert back.status in (303, 403, 409)  # its owner may; who may is tested elsewhere
    for origin in ("https://evil.example", "http://lab.example", "https://lab.example:444", "null"):
        foreign = ask(app, "POST", f"{root}/studies/{ledgers.NAME}/resume", host | own | {"Origin": origin})
        assert foreign.status == 403 and b"may not send this" in foreign.body


@pytest.mark.slow
def test_every_link_of_every_page_leads_below_the_path(app):
    paths = sorted({one.path for one in iter_route_contexts(app.routes) if "{" not in one.path})
    pages = [*paths, f"/studies/{ledgers.NAME}", f"/studies/{ledgers.NAME}/change", f"/studies/{ledgers.NAME}/report"]
    seen = set()
    for path in pages:
        answer = ask(app, "GET", f"/epsearch{path}", PASSES | PAGE | bearer())
        assert answer.headers["strict-transport-security"].startswith("max-age=")
        if "text/html" not in answer.headers.get("content-type", ""):
            continue
        links = re.findall(r'(?:href|src|action|formaction|data-stream)="(/[^"]*)"', answer.body.decode())
        seen |= {*links}
        assert all(link.startswith("/epsearch/") for link in links), path
    assert len(seen) > 20
    for link in sorted(seen):
        assert ask(app, "GET", link.replace("&amp;", "&"), PASSES | PAGE | bearer()).status in (200, 303, 405), link


@pytest.mark.slow
def test_head_answers_as_get_without_a_body(app):
    for path in sorted({one.path for one in iter_route_contexts(app.routes) if "GET" in (one.methods or ())}):
        place = path.format(name=ledgers.NAME, figure="nothing", owner="writer")
        get, head = (ask(app, method, place, PASSES | bearer()) for method in ("GET", "HEAD"))
        assert (head.status, head.body) == (get.status, b""), path
        if path != "/metrics" and not path.endswith("/events"):  # one counts this very request, one never ends
            assert head.headers.get("content-length") == get.headers.get("content-length"), path
    assert ask(app, "HEAD", "/api/v1/plan", PASSES | bearer()).status == 405


@pytest.mark.slow
def test_head_of_a_stream_ends_at_once(tmp_path):
    with listening(settings(tmp_path / "runs")) as (url, _):
        answer = httpx.head(f"{url}/api/v1/events")
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
        assert httpx.head(f"{url}/health").status_code == 200


@pytest.mark.parametrize("host", ["10.1.2.3:8470", "", "evil.example"])
def test_probes_use_any_address_and_programs_with_a_token_any_name(app, host):
    for path in ("/health", "/ready"):
        assert ask(app, "GET", path, {"Host": host}).status in (200, 503)
    assert ask(app, "GET", "/metrics", {"Host": host} | bearer()).status == 200
    refused = ask(app, "GET", "/metrics", {"Host": host})
    assert refused.status == 421 and b"--url" in refused.body
    session = app.state.service.settings.tokens.session(next(one for one in TOKENS.valid if one.role == WRITE))
    assert ask(app, "GET", "/", {"Host": host, "Cookie": f"{COOKIE}={session}"}).status == 421


@pytest.mark.slow
def test_without_its_url_the_refusal_names_the_host_header(tmp_path):
    with client_of(settings(tmp_path / "runs", names=("lab.example",))) as client:
        answer = client.post(
            "/api/v1/studies", json=STUDY, headers={"Origin": "https://lab.example", "Host": "127.0.0.1:8470"}
        )
        said = answer.json()["detail"]
        assert answer.status_code == 403 and "Host header is '127.0.0.1:8470'" in said and "--url" in said
        assert len(said.split()) < 25
        other = {"Origin": "https://lab.example", "Host": "lab.example:443"}
        assert client.post("/api/v1/plan", json=[], headers=other).status_code == 422  # a default port may stand there


def test_a_slash_at_the_end_leads_nowhere_else(app):
    for path in ("/studies/", "/epsearch/help/", "/epsearch", "/epsearch/"):
        assert ask(app, "GET", path, REPLACES | PAGE | bearer()).status in (200, 404)
    assert ask(app, "GET", "/epsearch/help/", REPLACES | PAGE | bearer()).status == 200


@pytest.mark.slow
def test_the_description_of_the_api_has_its_url(app):
    schema = json.loads(ask(app, "GET", "/api/v1/openapi.json", PASSES | bearer()).body)
    assert schema["servers"] == [{"url": PUBLIC}]
    assert f"curl '{PUBLIC}/api/v1/studies/first'".encode() in ask(
        app, "GET", "/api/v1", PASSES | PAGE | bearer()
    ).body.replace(b"&#39;", b"'")


@pytest.mark.slow
def test_the_client_asks_below_the_path_and_needs_no_proxy_for_this_machine(monkeypatch, tmp_path):
    seen = []

    def answer(request):
        seen.append(str(request.url))
        return httpx.Response(200, json={"studies": [], "total": 0})

    with Client(f"{PUBLIC}/studies/first", transport=httpx.MockTransport(answer)) as client:
        assert client.url == PUBLIC and client.rows() == []
    assert seen[0].startswith(f"{PUBLIC}/api/v1/studies?")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # where nothing listens
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with listening(settings(tmp_path / "runs")) as (url, _), Client(url) as client:
        assert client.rows() == []


@pytest.mark.parametrize(
    ("host", "loopback"), [("localhost", True), ("127.0.0.9", True), ("::1", True), ("lab", False)]
)
def test_loopback(host, loopback):
    assert service_url.is_loopback(host) is loopback
