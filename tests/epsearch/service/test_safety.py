"""Who may ask what, from where: every route against a rule that is written down here, apart from the code."""

import asyncio
import itertools
import json
import re
from contextlib import ExitStack

import pytest
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient

from epsearch.plugins import loading
from epsearch.service.access.tokens import ADMIN, COOKIE, READ, WRITE
from epsearch.service.app import application
from epsearch.service.safety import HEADERS
from epsearch.service.settings import LARGEST_BODY, NOBODY, Settings
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from tests.support.service import SECRETS, STUDY, TOKENS, called, client_of, settings
from trainers.foreign import declaration

HOST, ORIGIN = "localhost:8470", "http://localhost:8470"
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "FROB")
HOSTS = {"right": HOST, "foreign": "evil.example"}
ORIGINS = {"right": ORIGIN, "foreign": "http://evil.example", "none": None}


def rule(method, path, role, host, origin, tokens=True):
    """The status that a request must have; None for any other than these three. tokens: whether there are any."""
    safe = method in ("GET", "HEAD", "OPTIONS")
    if host == "foreign" and not (tokens and role) and path not in ("/health", "/ready"):
        return 421
    if origin not in ("none", host) and not safe:
        return 403
    if path in ("/health", "/ready", "/sign-in") or path.startswith("/static/"):
        return None
    if role is None:
        return 401
    if role == "read" and not safe and path != "/sign-out":
        return 403
    return None


@pytest.fixture(scope="module")
def apps(tmp_path_factory):
    """Applications that train nothing, and whose streams end at once: (one without tokens, one with TOKENS)."""
    with ExitStack() as stack:
        made = []
        for name, tokens in (("open", NOBODY), ("closed", TOKENS)):
            own = settings(tmp_path_factory.mktemp(name) / "runs", tokens=tokens, names=("lab.example",))
            made.append(application(own, stack.enter_context(Store.open(own.storage)), works=False))
            made[-1].state.service.streams.stop()
        yield made


@pytest.fixture
def opened(apps):
    """Without tokens."""
    return apps[0]


@pytest.fixture
def closed(apps):
    """With TOKENS."""
    return apps[1]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Of a service without tokens, beside a secret file."""
    folder = tmp_path_factory.mktemp("service")
    (folder / "secret").write_text("what nobody may read")
    with client_of(settings(folder / "runs"), raises=False) as made:
        yield made
    assert {one.name for one in folder.iterdir()} == {"secret", "runs"}


def paths(app):
    return sorted({one.path for one in iter_route_contexts(app.routes)})


def filled(path):
    return re.sub(r"\{\w+\}", "nothing", path)


def headers(role=None, host="right", origin="none", cookie=None, **more):
    own = {"host": HOSTS[host], "origin": ORIGINS[origin], "cookie": cookie and f"{COOKIE}={cookie}"}
    own["authorization"] = role and f"Bearer {SECRETS[role]}"
    return {name: value for name, value in (own | more).items() if value is not None}


@pytest.mark.slow
def test_every_route_answers_as_the_rule_says(closed):
    wrong, seen = [], 0

    async def all_of_them(app):
        nonlocal seen
        for path in paths(app):
            for case in itertools.product(METHODS, (None, READ, WRITE, ADMIN), HOSTS, ORIGINS):
                method, role, host, origin = case
                form = {"content-type": "application/x-www-form-urlencoded"} if path == "/sign-in" else {}
                body = [f"token={SECRETS[WRITE]}".encode()] if path == "/sign-in" else []
                said = await called(app, method, filled(path), headers(role, host, origin) | form, body)
                status, wanted = said.status, rule(method, path, role, host, origin)
                if status != wanted if wanted else status in (401, 403, 421):
                    wrong.append((path, *case, status, wanted, said.body[:200]))
                if missing := [name for name in HEADERS if name not in said.headers]:
                    wrong.append((path, *case, missing))
                if status == 500:
                    wrong.append((path, *case, said.body))
                seen += 1

    asyncio.run(all_of_them(closed))
    assert len(paths(closed)) > 20 and seen == len(paths(closed)) * len(METHODS) * 24
    assert not wrong, wrong[:5]


@pytest.mark.slow
def test_without_tokens_everybody_may_who_is_not_sent_by_a_page_elsewhere(opened):
    async def all_of_them(app):
        for path, method, host, origin in itertools.product(paths(app), ("GET", "POST"), HOSTS, ORIGINS):
            said = await called(app, method, filled(path), headers(host=host, origin=origin))
            wanted = rule(method, path, WRITE, host, origin, tokens=False)
            if not (path == "/sign-in" and method == "POST" and wanted is None):  # there is no secret that is right
                assert (said.status == wanted) if wanted else said.status not in (401, 403, 421), (path, method)

    asyncio.run(all_of_them(opened))


def one(app, method, path, heads, body=()):
    return asyncio.run(called(app, method, path, heads, body))


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *((name, 200) for name in ("localhost", "LOCALHOST:1", "127.0.0.1:1", "[::1]:8470", "[::1]", "Lab.example")),
        *(
            (name, 421)
            for name in ("", "evil.example", "localhost.evil.example", "[::2]", "127.0.0.2", "[", "é", ":80")
        ),
    ],
)
def test_names_of_the_service(opened, host, status):
    assert one(opened, "GET", "/metrics", {"host": host}).status == status


@pytest.mark.parametrize(
    "origin",
    [
        *("null", "", "http://localhost", "http://localhost:8471", "https://evil.example", "http://evil.example:8470"),
        *("http://localhost:8470.evil.example", "http://evil@localhost:8470", "file://localhost:8470", "http://["),
        *("localhost:8470", "http://localhost:8470/", "http:/\\localhost:8470", "é"),
    ],
)
def test_an_origin_that_is_not_ours_sends_nothing(closed, origin):
    assert one(closed, "POST", "/api/v1/studies", headers(WRITE) | {"origin": origin}).status == 403
    assert one(closed, "GET", "/api/v1/studies", headers(WRITE) | {"origin": origin}).status == 200


def test_what_a_browser_says_of_itself_counts(opened):
    for site, status in [("cross-site", 403), ("same-site", 403), ("same-origin", 422), ("none", 422)]:
        assert one(opened, "POST", "/api/v1/studies", headers() | {"sec-fetch-site": site}).status == status


def test_a_cookie_is_worth_a_token_where_a_page_of_ours_sends_it(closed):
    tokens = {role: TOKENS.session(TOKENS.of_secret(secret)) for role, secret in SECRETS.items()}

    def status(method, cookie, origin="none", **more):
        return one(closed, method, "/api/v1/studies", headers(origin=origin, cookie=cookie) | more).status

    assert status("GET", tokens[READ]) == status("GET", tokens[WRITE]) == 200
    assert status("POST", tokens[WRITE]) == 403, "no origin"
    assert status("POST", tokens[WRITE], "foreign") == 403
    assert status("POST", tokens[WRITE], "right") == 422, "there is no body"
    assert status("POST", tokens[READ], "right") == 403
    assert status("GET", tokens[WRITE][:-1]) == status("GET", "") == 401
    assert status("POST", tokens[WRITE], authorization="Bearer wrong") == 401, "what is said first counts"
    assert status("GET", '"; =;;\\') == 401


@pytest.mark.slow
def test_the_secret_signs_in_and_out(tmp_path):
    with client_of(settings(tmp_path / "runs", tokens=TOKENS)) as client:
        page = client.get("/?a=b", headers={"accept": "text/html"}, follow_redirects=False)
        assert (page.status_code, page.headers["location"]) == (303, "/sign-in?next=%2F%3Fa%3Db")
        assert client.get("/api/v1/studies", headers={"accept": "text/html"}).status_code == 401
        assert client.post("/sign-in", data={"token": "wrong"}).status_code == 401 and not client.cookies
        data = {"token": SECRETS[READ], "next": "//evil.example"}
        answer = client.post("/sign-in", data=data, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and SECRETS[READ] not in cookie
        assert client.get("/api/v1/studies").status_code == 200
        out = client.post("/sign-out", headers={"origin": "http://localhost"}, follow_redirects=False)
        assert out.status_code == 303
        assert client.get("/api/v1/studies").status_code == 401
        client.cookies.set(COOKIE, cookie.partition("=")[2].partition(";")[0])
        assert client.get("/api/v1/studies").status_code == 401, "the session has ended, not only the cookie"
        client.cookies.clear()
        for secret, fault in ((None, "a token is needed"), ("wrong" * 9, "the token is unknown, revoked or expired")):
            sent = {} if secret is None else {"authorization": f"Bearer {secret}"}
            detail = client.get("/api/v1/studies", headers=sent).json()["detail"]
            assert detail == f"{fault}: Authorization: Bearer TOKEN"


@pytest.mark.parametrize("place", ["https://evil.example", "//evil.example", "/\\evil.example", "x", "/a\nb", "/\x00"])
def test_a_link_leads_nowhere_else(closed, place):
    answer = TestClient(closed, base_url="http://localhost").post(
        "/sign-in", data={"token": SECRETS[READ], "next": place}, follow_redirects=False
    )
    assert answer.headers["location"] == "/"


@pytest.mark.parametrize("length", [str(LARGEST_BODY + 1), "9" * 40, "-1", "1e3", "²", "", "x"])
def test_a_body_that_says_that_it_is_too_large_is_not_read(opened, length):
    def never():
        raise AssertionError("it was read")
        yield b""

    heads = headers() | {"content-length": length, "content-type": "application/json"}
    said = one(opened, "POST", "/api/v1/studies", heads)
    assert said.status == 413 and "1,048,576 bytes" in json.loads(said.body)["detail"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api/v1/studies", "application/json"),
        ("/sign-in", "application/x-www-form-urlencoded"),
        ("/sign-in", "multipart/form-data; boundary=x"),
    ],
)
def test_a_body_that_comes_in_parts_is_read_no_further_than_its_limit(opened, path, kind):
    read, start = 0, b'--x\r\nContent-Disposition: form-data; name="token"\r\n\r\n' if kind[-1] == "x" else b" "

    def parts():
        nonlocal read
        for _ in range(64):
            read += 2**16
            yield start if read == 2**16 else b" " * 2**16

    said = one(opened, "POST", path, headers() | {"content-type": kind}, parts())
    assert said.status == 413 and "1,048,576 bytes" in said.body.decode()


def test_a_body_of_the_largest_size_is_read(opened):
    body = [b'{"seeds": "' + b" " * (LARGEST_BODY - 13), b'"}']
    assert one(opened, "POST", "/api/v1/studies", headers() | {"content-type": "application/json"}, body).status == 422


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", ".", "..%2f..%2fetc%2fpasswd", "a/../../b", "\x00", "é\n"])
def test_a_name_leads_nowhere(client, name):
    encoded = "".join(f"%{byte:02x}" for byte in name.encode())
    for rest in ("", "/log", "/runs", "/figures", "/report", "/outcome", "/shown", "/events"):
        answer = client.get(f"/api/v1/studies/{encoded}{rest}")
        assert answer.status_code in (404, 422), (rest, answer.text)
    assert client.delete(f"/api/v1/studies/{encoded}?confirm={encoded}").status_code in (404, 422)
    assert client.get(f"/static/{encoded}").status_code == 404
    assert client.get("/static/..%2fpages.py").status_code == 404
    refused = client.post("/api/v1/studies", json=STUDY | {"name": name})
    if name not in ("..%2f..%2fetc%2fpasswd",):
        assert refused.status_code == 422 and "name" in refused.json()["detail"]


@pytest.mark.parametrize("path", ["/api/v1/studies/a%00", "/api/v1/studies?search=%00", "/studies/%00"])
def test_no_nul_comes_to_a_database(client, path):
    """PostgreSQL refuses it as if it could not be reached, so that clients would try again."""
    answer = client.get(path)
    assert answer.status_code == 404 and answer.json()["detail"] == "nothing has a name with the character NUL"


@pytest.mark.parametrize("option", ["out", "storage", "data_dir", "data-dir", "checkpoints", "address"])
def test_where_things_are_is_not_for_clients(client, option):
    for path in ("/api/v1/studies", "/api/v1/plan"):
        answer = client.post(path, json=STUDY | {option: "/tmp/x"})
        assert answer.status_code == 422 and "is set by the service" in answer.json()["detail"]


@pytest.mark.parametrize("pretrained", ["/etc/passwd", "file:///etc/passwd", "weights.pt", 1, ["imagenet"]])
def test_weights_of_this_machine_are_not_for_clients(client, pretrained):
    answer = client.post("/api/v1/studies", json=STUDY | {"pretrained": pretrained})
    assert answer.status_code == 422 and "pretrained must be none or imagenet" in answer.json()["detail"]


@pytest.mark.slow
def test_code_of_this_machine_runs_only_where_that_is_allowed(tmp_path):
    given = STUDY | {"dataset": "tests.support.toy_streams:digits"}
    for dataset in (given["dataset"], "Folder:/etc", " folder:/etc", "os:system", "x:"):
        with client_of(settings(tmp_path / "runs")) as client:
            answer = client.post("/api/v1/studies", json=given | {"dataset": dataset})
            assert answer.status_code == 422 and "--allow-modules" in answer.json()["detail"], dataset
    with client_of(settings(tmp_path / "allowed", modules=True)) as client:
        answer = client.post("/api/v1/studies", json=given)
        assert (answer.status_code, answer.json()["dataset"]) == (201, given["dataset"]), answer.text


CODE = {
    "run": {
        **{"method": "os:system", "trainer": "os:system", "strategy": "os:system", "network": "os:system"},
        **{"add_metrics": ["os:system"], "add_figures": "x, os:system"},
    },
    "compare": {
        "methods": ["van", "os:system"],
        "settings": {"os:system.lr": 0.1},
        "network": " os:system",
    },
}


@pytest.mark.parametrize(("kind", "option"), [(kind, option) for kind, options in CODE.items() for option in options])
def test_no_option_names_code_that_is_not_allowed(client, monkeypatch, kind, option):
    """Nothing is imported, and what runs in the service's process least of all."""
    monkeypatch.setattr(loading, "load", lambda *given: pytest.fail(f"{given} was loaded"))
    monkeypatch.setattr(declaration, "read_declaration", lambda *given: pytest.fail(f"{given} was asked"))
    plain = {"kind": kind, "dataset": "permuted_digits", "runner": "local", "device": "cpu"}
    answer = client.post("/api/v1/studies", json=plain | {option: CODE[kind][option]})
    assert answer.status_code == 422, answer.text
    assert "--allow-modules" in answer.json()["detail"] and option.replace("_", "-") in answer.json()["detail"]


def test_metrics_of_other_tools_are_no_code_of_this_machine(client):
    plain = {"kind": "run", "dataset": "permuted_digits", "runner": "local", "device": "cpu"}
    answer = client.post("/api/v1/studies", json=plain | {"add_metrics": ["aia", "bwt-libcontinual"]})
    assert answer.status_code in (200, 201), answer.text


@pytest.mark.slow
def test_folders_of_images_lie_below_those_of_the_service(tmp_path):
    inside, outside = tmp_path / "images", tmp_path / "outside"
    for folder in (inside / "birds", outside / "cats"):
        folder.mkdir(parents=True)
    (inside / "link").symlink_to(outside)
    (inside / "circle").symlink_to(inside / "circle")
    (inside / "mine").symlink_to(inside / "birds")
    plain = {"kind": "run", "runner": "local", "device": "cpu"}
    with client_of(settings(tmp_path / "runs", roots=(inside,)), raises=False) as client:
        for name in ("birds", str(inside / "birds"), "mine", "./birds", "x/../birds"):
            answer = client.post("/api/v1/studies", json=plain | {"dataset": f"folder:{name}"})
            assert answer.status_code == (201 if name == "birds" else 200), answer.text  # it is one study
            assert answer.json()["dataset"] == "folder:birds", "as clients name it"
        wrong = ["..", "../outside/cats", "link", "link/cats", "circle", "nothing", str(outside), "/etc", "~", "\x00"]
        for name in [*wrong, "x" * 5000, "a/" * 3000, "\ud800"]:
            text = json.dumps(plain | {"dataset": f"folder:{name}"})
            answer = client.post("/api/v1/studies", content=text, headers={"content-type": "application/json"})
            assert answer.status_code == 422 and "below the folders of images" in answer.json()["detail"], answer.text
    with client_of(settings(tmp_path / "runs")) as client:
        answer = client.post("/api/v1/studies", json=plain | {"dataset": f"folder:{inside / 'birds'}"})
        assert answer.status_code == 422 and "started without --images" in answer.json()["detail"]


@pytest.mark.parametrize("name", ["nothing", "tests", "/etc"])
def test_whether_a_folder_is_there_is_not_told(client, name):
    answer = client.post("/api/v1/studies", json=STUDY | {"dataset": name})
    assert answer.status_code == 422 and answer.json()["detail"].startswith(f"no dataset {name!r}; known: ")


@pytest.mark.slow
def test_a_bug_is_one_line_with_all_headers_and_its_secrets_are_nowhere(tmp_path, monkeypatch, capfd):
    password, token = "s3cr3t-word", SECRETS[WRITE]
    url = f"postgresql://me:{password}@db.example/ledger"
    monkeypatch.setenv("EPSEARCH_TOKENS", f"ann:write:{token}")
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "cache"))
    own = settings(tmp_path / "runs", tokens=TOKENS)
    with Store.open(own.storage) as store:
        own = Settings(LedgerUrl.of(url), own.out, own.data_dir, tokens=TOKENS)
        app = application(own, store, works=False)

        def broken():
            raise RuntimeError(f"it broke at {url}")

        monkeypatch.setattr(app.state.service.studies, "all", broken)
        said = one(app, "GET", "/api/v1/studies", headers(WRITE))
        assert said.status == 500 and "a bug in epsearch: RuntimeError" in json.loads(said.body)["detail"]
        assert all(name in said.headers for name in HEADERS)
        (report,) = (tmp_path / "cache" / "crashes").iterdir()
        texts = [said.body.decode(), report.read_text(), *capfd.readouterr()]
        assert "it broke" in report.read_text() and "EPSEARCH_TOKENS=masked" in report.read_text()
        assert not any(secret in text for secret in (password, token) for text in texts)
        counted = one(app, "GET", "/metrics", headers(WRITE)).body.decode()
        assert 'epsearch_requests_total{method="GET",route="/api/v1/studies",status="500"} 1.0' in counted


def test_words_of_clients_make_no_counters(opened):
    for number in range(20):
        one(opened, f"FROB{number}", f"/nothing/{number}", headers())
    counted = one(opened, "GET", "/metrics", headers()).body.decode()
    assert 'epsearch_requests_total{method="other",route="other",status="404"} 20.0' in counted
    assert "FROB" not in counted
