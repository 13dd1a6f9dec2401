"""A service as its own process under 200 plans, 1,000 slow heads and a flood of headers; figures are printed."""

import asyncio
import statistics
import threading
import time

import httpx
import psutil
import pytest

from epsearch.service.access import protocol
from epsearch.service.access.tokens import READ, WRITE
from epsearch.service.work.planning import MOST_OF_ONE
from tests.support.limits import HANGS
from tests.support.service import SECRETS, STUDY, Process

pytestmark = pytest.mark.slow
PATHS = ("/health", "/ready", "/metrics", "/api/v1/studies")


@pytest.fixture
def service(tmp_path):
    tokens = " ".join(f"{role}er:{role}:{secret}" for role, secret in SECRETS.items())
    one = Process(tmp_path, environment={"EPSEARCH_TOKENS": tokens})
    for path in PATHS:  # it says where it serves a moment before it does
        headers = {"authorization": f"Bearer {SECRETS[READ]}"}
        assert httpx.get(one.url + path, headers=headers, timeout=HANGS).status_code == 200
    yield one
    if one.process.poll() is None:
        one.end()


async def watched(service, attack):
    """(what an attack returns, seconds that somebody else has waited for each answer meanwhile)."""
    waits, over = [], threading.Event()

    def look():  # in a thread: the attack keeps this event loop busy
        headers = {"authorization": f"Bearer {SECRETS[READ]}"}
        while not over.wait(0.05):
            for path in PATHS:
                begun = time.monotonic()
                assert httpx.get(service.url + path, headers=headers, timeout=HANGS).status_code == 200, path
                waits.append(time.monotonic() - begun)

    looking = asyncio.create_task(asyncio.to_thread(look))
    try:
        return await attack, waits
    finally:
        over.set()
        await looking


def told(service, name, begun, waits, more):
    memory = psutil.Process(service.process.pid).memory_info().rss / 2**20
    print(
        f"\n{name}: {time.monotonic() - begun:.1f} s; {len(waits)} answers to somebody else, median "
        f"{1e3 * statistics.median(waits):.0f} ms, longest {1e3 * max(waits):.0f} ms; {memory:.0f} MiB; {more}"
    )


def test_two_hundred_plans(service):
    async def plans():
        headers = {"authorization": f"Bearer {SECRETS[WRITE]}"}
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(base_url=service.url, timeout=HANGS, headers=headers, limits=limits) as client:
            answers = await asyncio.gather(*(client.post("/api/v1/plan", json=STUDY) for _ in range(200)))
            return [one.status_code for one in answers]

    begun = time.monotonic()
    statuses, waits = asyncio.run(watched(service, plans()))
    told(service, "200 plans", begun, waits, {code: statuses.count(code) for code in sorted({*statuses})})
    assert {*statuses} == {200, 429} and statuses.count(200) >= MOST_OF_ONE


def test_a_thousand_slow_heads(service):
    host, port = service.url.removeprefix("http://").split(":")

    async def one(number):
        reader, writer = await asyncio.open_connection(host, int(port))
        ended = asyncio.create_task(reader.read())
        try:
            for letter in "GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + "y" * 10**6:
                writer.write(letter.encode())
                done, _ = await asyncio.wait([ended], timeout=0.5)
                if done:
                    break
            return await ended
        except ConnectionError:
            return b""
        finally:
            writer.close()

    async def slow():
        return await asyncio.gather(*(one(number) for number in range(1000)))

    begun = time.monotonic()
    answers, waits = asyncio.run(watched(service, slow()))
    told(service, "1,000 slow heads", begun, waits, f"{sum(b' 408 ' in one for one in answers)} told 408")
    assert len(answers) == 1000 and not any(b" 200 " in one for one in answers)


def test_a_flood_of_headers(service):
    host, port = service.url.removeprefix("http://").split(":")
    before = psutil.Process(service.process.pid).memory_info().rss

    async def one(number):
        flood = b"".join(b"X-%d: y\r\n" % n for n in range(1000)) if number % 2 else b"y" * 10_000
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + (b"" if number % 2 else b"X: "))
            for _ in range(1000):  # 10 MB
                writer.write(flood)
                await writer.drain()
                if reader.at_eof():
                    break
            return await reader.read()
        except ConnectionError:
            return b""

    async def floods():
        return [answer for _ in range(10) for answer in await asyncio.gather(*(one(n) for n in range(50)))]

    begun = time.monotonic()
    answers, waits = asyncio.run(watched(service, floods()))
    after = psutil.Process(service.process.pid).memory_info().rss
    told(service, "500 floods of headers", begun, waits, f"{(after - before) / 2**20:+.0f} MiB")
    assert not any(b" 200 " in one for one in answers) and after - before < 500 * protocol.HEAD_BYTES * 4
