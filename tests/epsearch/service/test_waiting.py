"""Work that waits keeps nobody from an answer: plans, changes of a ledger that is held, findings, the service's end."""

import asyncio
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import AsyncExitStack, ExitStack, closing, suppress

import httpx
import psutil
import pytest

from epsearch.failures.errors import Unavailable
from epsearch.service.access.limits import REPORTERS, WRITERS, Quota, TooMany
from epsearch.service.work import planning, readiness
from epsearch.service.work.planning import MOST, MOST_OF_ONE
from tests.support import ledgers
from tests.support.limits import HANGS
from tests.support.service import (
    SECRETS,
    STUDY,
    TOKENS,
    Process,
    client_of,
    listening,
    settings,
    until,
    with_a_finished_study,
)

API = "/api/v1"
SLEEPS = """#!/bin/sh
touch "$0.began"
sleep 1000
"""


@pytest.fixture
def endless(tmp_path, monkeypatch):
    """Plans are made by a program that never ends; the file that is there once one is being made."""
    program = tmp_path / "plan"
    program.write_text(SLEEPS)
    program.chmod(0o700)
    monkeypatch.setattr(planning.sys, "executable", str(program))
    return tmp_path / "plan.began"


async def all_at_once(url, count, path, body=None, secret=None):
    """Answers of so many requests at once."""
    headers = {"authorization": f"Bearer {secret}"} if secret else {}
    limits = httpx.Limits(max_connections=count)
    async with httpx.AsyncClient(base_url=url, timeout=HANGS, limits=limits, headers=headers) as client:
        asks = [client.get(path) if body is None else client.post(path, json=body) for _ in range(count)]
        return await asyncio.gather(*asks)


@pytest.mark.slow
def test_two_hundred_plans_at_once_keep_nobody_from_an_answer(tmp_path, endless):
    own = settings(tmp_path / "runs", tokens=TOKENS)
    with listening(own, works=True) as (url, app):
        got = []
        asks = threading.Thread(
            target=lambda: got.extend(asyncio.run(all_at_once(url, 200, f"{API}/plan", STUDY, SECRETS["write"])))
        )
        asks.start()
        until(endless.exists)
        headers = {"authorization": f"Bearer {SECRETS['read']}"}
        with httpx.Client(base_url=url, timeout=HANGS, headers=headers) as client:
            for path in ("/health", "/ready", "/metrics", f"{API}/studies", f"{API}/audit", "/"):
                assert client.get(path).status_code == 200, path
            assert client.post(f"{API}/plan", json=STUDY).status_code == 403, "it may only read"
        app.state.service.planner.stop()
        asks.join(HANGS)
        told = [answer.status_code for answer in got]
        assert sorted(set(told)) == [429, 503] and told.count(503) == MOST_OF_ONE and len(told) == 200
        refused = next(answer for answer in got if answer.status_code == 429)
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json()["detail"].startswith(f"a token may have {MOST_OF_ONE} plans at a time; try again in ")


def test_plans_of_all_tokens_together_are_bounded():
    own = Quota("plans", MOST_OF_ONE, MOST)
    with ExitStack() as stack:
        for number in range(MOST):
            stack.enter_context(own.acquire(f"person {number // MOST_OF_ONE}", 1.0))
        assert own.total == MOST
        with pytest.raises(TooMany, match=f"a token may have {MOST_OF_ONE} plans at a time; try again in 7 s"):
            own.check("person 0", 7.2)
        with pytest.raises(Unavailable, match=f"the service has {MOST} plans already; try again later"):
            own.check("another", 1.0)
    assert own.total == 0
    own.check("person 0", 1.0)


@pytest.mark.slow
def test_a_plan_that_failed_frees_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr(planning.sys, "executable", "/bin/false")
    with client_of(settings(tmp_path / "runs")) as client:
        for _ in range(3 * MOST):
            assert client.post(f"{API}/plan", json=STUDY).status_code == 503


@pytest.mark.slow
def test_the_form_has_the_same_places(tmp_path, endless):
    with listening(settings(tmp_path / "runs")) as (url, app):
        form = {name: str(value) for name, value in STUDY.items()} | {"do": "plan"}

        async def all_of_them():
            headers = {"origin": url, "accept": "text/html"}
            async with httpx.AsyncClient(base_url=url, timeout=HANGS, headers=headers) as client:
                asks = [asyncio.create_task(client.post("/new", data=form)) for _ in range(12)]
                while sum(one.done() for one in asks) < 12 - MOST_OF_ONE:
                    await asyncio.sleep(0.02)
                app.state.service.planner.stop()
                return [answer.status_code for answer in await asyncio.gather(*asks)]

        told = asyncio.run(all_of_them())
        assert told.count(429) == 12 - MOST_OF_ONE and told.count(503) == MOST_OF_ONE


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_the_end_waits_for_no_plan_and_for_no_ledger(tmp_path, number):
    """A plan is being made, others wait, and somebody holds the ledger."""
    shutil.copytree(ledgers.finished(), tmp_path / "runs")
    service = Process(tmp_path)
    try:
        url = service.url
        bodies = [("POST", "/plan", STUDY)] * 3 + [("POST", "/studies", STUDY | {"name": f"n{n}"}) for n in range(20)]

        def ask(method, path, body):
            with suppress(httpx.HTTPError):
                httpx.request(method, f"{url}{API}{path}", json=body, timeout=HANGS)

        with closing(sqlite3.connect(tmp_path / "runs" / "epsearch.sqlite")) as held:
            held.execute("BEGIN IMMEDIATE")
            asks = [threading.Thread(target=ask, args=one, daemon=True) for one in bodies]
            for one in asks:
                one.start()
            until(lambda: any("plan" in " ".join(line) for line in children(service.process.pid)))
            assert httpx.get(f"{url}/health", timeout=HANGS).status_code == 200
            service.process.send_signal(number)
            service.process.wait(HANGS)
            held.rollback()
        for one in asks:
            one.join(HANGS)
        assert not children(service.process.pid)
    finally:
        service.process.kill()
        service.process.wait()


@pytest.mark.slow
def test_a_service_in_this_process_leaves_no_study(tmp_path):
    """A process that it has interrupted has ended with it: nobody would wait for that later."""
    with listening(settings(tmp_path / "runs"), works=True) as (url, app):
        body = STUDY | {"name": "long", "examples_per_task": 1000, "repeats": 5}
        assert httpx.post(f"{url}{API}/studies", json=body, timeout=HANGS).status_code == 201
        until(lambda: app.state.service.scheduler.pids)
        (pid,) = app.state.service.scheduler.pids.values()
    assert not psutil.pid_exists(pid)


def children(pid):
    """Command lines of the processes that a process has started."""
    try:
        return [child.cmdline() for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


@pytest.mark.slow
def test_changes_that_wait_for_the_ledger_are_refused_soon_and_readers_are_answered(tmp_path):
    own = with_a_finished_study(tmp_path / "runs")
    with listening(own) as (url, app):
        app.state.service.studies.store.limit_waits(0.5)
        with closing(sqlite3.connect(own.out / "epsearch.sqlite")) as held:
            held.execute("BEGIN IMMEDIATE")

            async def all_of_them():
                cancels = asyncio.create_task(all_at_once(url, 4 * WRITERS, f"{API}/studies", STUDY | {"name": "n"}))
                reads = await all_at_once(url, 60, f"{API}/studies")
                health = await all_at_once(url, 20, "/health")
                return await cancels, reads, health

            changes, reads, health = asyncio.run(all_of_them())
            held.rollback()
        assert {one.status_code for one in changes} == {503} and all("retry-after" in one.headers for one in changes)
        assert {one.status_code for one in (*reads, *health)} == {200}
        assert httpx.post(f"{url}{API}/studies", json=STUDY | {"name": "n"}).status_code == 201


@pytest.mark.slow
def test_findings_that_take_long_keep_nobody_from_lists(tmp_path, monkeypatch):
    own, begun, go_on = with_a_finished_study(tmp_path / "runs"), threading.Semaphore(0), threading.Event()
    with listening(own, works=True) as (url, app):
        make = app.state.service.results._compute

        def slow(row):
            begun.release()
            go_on.wait(HANGS)
            return make(row)

        monkeypatch.setattr(app.state.service.results, "_compute", slow)

        async def all_of_them():
            shown = asyncio.create_task(all_at_once(url, 10 * REPORTERS, f"{API}/studies/{ledgers.NAME}"))
            await asyncio.to_thread(begun.acquire)
            lists = await all_at_once(url, 30, f"{API}/studies")
            health = await all_at_once(url, 10, "/ready")
            go_on.set()
            return await shown, lists, health

        answers = asyncio.run(all_of_them())
        assert {one.status_code for some in answers for one in some} == {200}


@pytest.mark.slow
def test_ready_says_when_the_out_folder_takes_no_write(tmp_path, monkeypatch):
    own = settings(tmp_path / "runs")
    with client_of(own, works=True) as client:
        assert client.get("/ready").status_code == 200
        real = readiness.probe

        def full(folder):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(readiness, "probe", full)
        answer = client.get("/ready")
        assert answer.status_code == 503 and answer.headers["retry-after"]
        assert answer.json()["detail"] == "cannot write to the out folder OUT: No space left on device"
        monkeypatch.setattr(readiness, "probe", real)
        assert client.get("/ready").status_code == 200


@pytest.mark.slow
def test_ready_says_when_the_ledger_takes_no_write(tmp_path, monkeypatch):
    own = settings(tmp_path / "runs")
    with client_of(own, works=True) as client:
        store = client.app.state.service.studies.store
        store.limit_waits(0.1)
        with closing(sqlite3.connect(own.out / "epsearch.sqlite")) as held:
            held.execute("BEGIN IMMEDIATE")
            answer = client.get("/ready")
            assert answer.status_code == 503 and "database is locked" in answer.json()["detail"]
            assert client.get("/health").status_code == 200 and client.get(f"{API}/studies").status_code == 200
            store.limit_waits(HANGS)
            monkeypatch.setattr(readiness, "SECONDS", 0.2)
            answer = client.get("/ready")
            assert answer.status_code == 503 and "have accepted no write for" in answer.json()["detail"]
            held.rollback()
        monkeypatch.setattr(readiness, "SECONDS", HANGS)
        assert client.get("/ready").status_code == 200


@pytest.mark.slow
def test_a_full_disk_is_told_by_ready(tmp_path):
    """A file system without a byte, where this user may make one."""
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        with client_of(settings(place / "runs"), works=True) as client:
            assert client.get("/ready").status_code == 200
            with (place / "filler").open("wb", buffering=0) as file:
                while True:
                    try:
                        file.write(bytes(2**12))
                    except OSError:
                        break
            assert client.get("/ready").status_code == 503 and client.get("/health").status_code == 200
            (place / "filler").unlink()
            assert client.get("/ready").status_code == 200
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.slow
def test_many_who_ask_whether_it_is_ready_have_one_look(tmp_path, monkeypatch):
    own, looks = settings(tmp_path / "runs"), []
    with listening(own, works=True) as (url, app):
        store = app.state.service.studies.store
        real = store.check_writing
        monkeypatch.setattr(store, "check_writing", lambda: [looks.append(1), time.sleep(0.3), real()])
        answers = asyncio.run(all_at_once(url, 50, "/ready"))
        assert {one.status_code for one in answers} == {200} and len(looks) < 25


@pytest.mark.slow
def test_a_token_may_have_so_many_streams(tmp_path, monkeypatch):
    from epsearch.service import monitoring

    monkeypatch.setattr(monitoring, "STREAMS_OF_ONE", 3)
    with listening(settings(tmp_path / "runs", tokens=TOKENS)) as (url, app):

        async def one(client, role, stack):
            asks = client.stream("GET", f"{API}/events", headers={"authorization": f"Bearer {SECRETS[role]}"})
            return (await stack.enter_async_context(asks)).status_code

        async def all_of_them():
            streams = app.state.service.streams
            async with httpx.AsyncClient(base_url=url, timeout=HANGS) as client:
                async with AsyncExitStack() as stack:
                    told = []
                    for number in range(5):
                        told.append(await one(client, "read", stack))
                        while streams.open < min(3, number + 1):
                            await asyncio.sleep(0.01)
                    told.append(await one(client, "write", stack))
                while streams.open:
                    await asyncio.sleep(0.01)
                async with AsyncExitStack() as stack:
                    return told, await one(client, "read", stack)

        assert asyncio.run(all_of_them()) == ([200, 200, 200, 429, 429, 200], 200)
