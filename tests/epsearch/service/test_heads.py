"""Before the token: heads that are slow, large or have many headers, connections that only wait, wrong tokens."""

import asyncio
import socket
import time

import httpx
import pytest

from epsearch.service.access import attempts, protocol
from epsearch.service.access.attempts import FREE, MOST_ADDRESSES, Attempts
from tests.support.limits import HANGS
from tests.support.service import SECRETS, TOKENS, client_of, listening, settings

ASK = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with listening(settings(tmp_path_factory.mktemp("service") / "runs", tokens=TOKENS), works=True) as (made, _):
        yield made


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)


def said(url, *parts, wait=0.0):
    """All that the service answers to some bytes until it closes the connection."""
    host, port = url.removeprefix("http://").split(":")
    got = b""
    with socket.create_connection((host, int(port)), timeout=HANGS) as one:
        try:
            for part in parts:
                one.sendall(part)
                time.sleep(wait)
                while part == ASK + b"\r\n" and not got.endswith(b"}") and (more := one.recv(2**16)):
                    got += more  # the answer, before the next head begins
            while more := one.recv(2**16):
                got += more
        except ConnectionError:  # it has closed before all was sent
            pass
    return got


@pytest.mark.slow
@pytest.mark.few(4)
@pytest.mark.parametrize(
    "parts", [[], [b"G"], [ASK], [ASK, b"X: y"], [b"\r\n"], [ASK + b"\r\n", b"GET /he"], [ASK + b"\r\n", b"\r\n"]]
)
def test_a_head_that_does_not_end_is_ended(url, quick, parts):
    got = said(url, *parts)
    assert got.endswith(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    assert got.count(b" 200 OK") == (len(parts) == 2 and parts[0].endswith(b"\r\n\r\n"))


@pytest.mark.slow
def test_a_byte_now_and_then_makes_no_time(url, quick):
    got = said(url, *(bytes([letter]) for letter in ASK), wait=0.02)
    assert not got or b" 408 " in got, "a client that is still sending may not see it"


@pytest.mark.slow
def test_a_body_that_does_not_end_is_ended(url, monkeypatch):
    monkeypatch.setattr(protocol, "BODY_SECONDS", 0.3)
    form = b"application/x-www-form-urlencoded"
    head = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nContent-Type: " + form + b"\r\n"
    assert said(url, head + b"\r\n", b"abc") == b""
    answered = said(url, head.replace(form, b"text/plain") + b"\r\n", b"abc")
    assert answered.count(b"HTTP/1.1 ") == 1, "one answer to one request"


@pytest.mark.parametrize(
    "flood",
    [
        b"".join(b"X-%d: y\r\n" % number for number in range(101)) + b"\r\n",
        b"".join(b"X-%d: y\r\n" % number for number in range(200_000)),
        b"X: " + b"y" * 2**17,
        b"X: " + b"y" * 2**17 + b"\r\n\r\n",
        b"y" * 2**18,
    ],
    ids=["101", "no end", "long", "long and ended", "a name"],
)
def test_a_flood_of_headers_is_refused(url, flood):
    assert said(url, ASK + flood).startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
    assert httpx.get(f"{url}/health").status_code == 200


def test_usual_heads_and_bodies_are_read(url):
    head = {f"x-{number}": "y" * 500 for number in range(80)}
    assert httpx.get(f"{url}/health", headers=head).status_code == 200
    big = {"authorization": f"Bearer {SECRETS['write']}"}
    assert httpx.post(f"{url}/api/v1/studies", headers=big, json={"seeds": " " * 900_000}).status_code == 422
    both = ASK + b"\r\n" + ASK + b"Connection: close\r\n\r\n"
    assert said(url, both).count(b'{"status":"ok"}') == 2, "one behind the other"


@pytest.mark.slow
def test_many_slow_heads_keep_nobody_from_an_answer(url):
    """More connections than may wait, without a byte, or with half a head each."""
    host, port = url.removeprefix("http://").split(":")

    async def all_of_them():
        ones = []
        for number in range(protocol.MOST_WAITING + 50):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /hea" if number % 2 else b"")
            ones.append((reader, writer))
        async with httpx.AsyncClient(base_url=url, timeout=HANGS) as client:
            answers = [await client.get("/health") for _ in range(20)]
        for _, writer in ones:
            writer.close()
        return answers

    assert {one.status_code for one in asyncio.run(all_of_them())} == {200}


@pytest.mark.slow
def test_wrong_tokens_are_counted_told_and_slowed(tmp_path, monkeypatch, capsys):
    waited, real = [], Attempts.wrong

    def wrong(own, address):
        waited.append(real(own, address))
        return 0.0

    monkeypatch.setattr(Attempts, "wrong", wrong)
    with client_of(settings(tmp_path / "runs", tokens=TOKENS)) as client:
        for number in range(FREE + 5):
            guess = {"authorization": f"Bearer guess-{number}"}
            assert client.get("/api/v1/studies", headers=guess).status_code == 401
        assert client.post("/sign-in", data={"token": "guess"}).status_code == 401
        assert waited == [0.0] * FREE + [attempts.SLOW_SECONDS] * 6
        assert client.get("/api/v1/studies").status_code == 401 and len(waited) == FREE + 6, "none at all is not wrong"
        right = {"authorization": f"Bearer {SECRETS['read']}"}
        assert client.get("/api/v1/studies", headers=right).status_code == 200, "whoever is known is not slowed"
        client.post("/api/v1/studies", headers=right)
        client.get("/", headers={"host": "evil.example"})
        told = client.get("/metrics", headers=right).text
        for line in ('"wrong token"} 11.0', '"401"} 11.0', '"403"} 1.0', '"421"} 1.0'):
            assert f"epsearch_refusals_total{{reason={line}" in told, told
    err = capsys.readouterr().err
    assert err.count("wrong tokens from testclient; further ones are slowed") == 1 and "guess" not in err


def test_addresses_are_forgotten(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(attempts.time, "monotonic", lambda: clock[0])
    one = Attempts()
    for number in range(3 * MOST_ADDRESSES):
        one.wrong(f"10.0.{number // 256}.{number % 256}")
    assert len(one._counts) == MOST_ADDRESSES
    for _ in range(FREE + 1):
        last = one.wrong("here")
    assert last > 0
    clock[0] += attempts.WINDOW + 1
    assert one.wrong("here") == 0.0
