"""Streams: whoever was cut off goes on without a gap or a repetition, and nobody who listens holds a connection."""

import asyncio
import json
import threading
from contextlib import asynccontextmanager
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from epsearch.service import streams
from epsearch.service.streams import MOST_MISSED, MOST_WAITING, Streams
from results.ledger.errors import StoreGone
from results.ledger.url import LedgerUrl
from results.ledger.writers.holder import here
from tests.contracts.conftest import postgresql, store, url
from tests.support.limits import HANGS
from tests.support.service import client_of, listening, settings, until

__all__ = ["postgresql", "store", "url"]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(streams, "POLL_SECONDS", 0.01)


@asynccontextmanager
async def streaming(store):
    """Streams that have begun, and end behind."""
    made = Streams(store)
    made.start()
    try:
        yield made
    finally:
        made.stop()
        await asyncio.to_thread(made._thread.join, HANGS)


def note(store, count, first=0):
    for begin in range(first, first + count, 500):
        store.events.append([("note", {"n": n}) for n in range(begin, min(first + count, begin + 500))])


async def listening_to(made, asked, count):
    """Waits until so many listen, and each knows the number that it begins behind."""
    while made.open < count or len(asked) < count + 1:  # `start` has asked, too
        await asyncio.sleep(0.01)


@pytest.fixture
def asked(store, monkeypatch):
    """Grows whenever a listener has asked for the newest event."""
    found, real = [], store.events.last
    monkeypatch.setattr(store.events, "last", lambda: [real(), found.append(1)][0])
    return found


async def heard(stream, count):
    """So many events of a stream."""
    found = []
    async for event in stream:
        if event is not None:
            found.append(event)
        if len(found) == count:
            break
    await stream.aclose()
    return found


@pytest.mark.slow
def test_whoever_comes_again_misses_nothing_and_hears_nothing_twice(store, quick):
    """Also where more than a page was missed, and while more are stored all the time."""
    store.leases.acquire("demo", here())
    first, total = MOST_MISSED + 7, 2 * MOST_MISSED
    note(store, first)

    async def listen():
        async with streaming(store) as made:
            ids, last = [], 0
            writing = threading.Thread(target=note, args=(store, total - first, first))
            writing.start()
            for part in (3, 1, MOST_MISSED + 50, total + 1 - MOST_MISSED - 54):
                found = await heard(made.events("demo", last), part)
                ids += [one.id for one in found]
                last = ids[-1]
            await asyncio.to_thread(writing.join)
            return ids, made.open

    ids, still = asyncio.run(listen())
    assert ids == [one.id for one in store.events.read("demo", 0)] and len(ids) == total + 1 and still == 0


@pytest.mark.slow
def test_from_now_on_means_none_of_before_and_every_one_behind(store, quick, asked):
    store.leases.acquire("demo", here())
    note(store, 3 * MOST_WAITING)

    async def listen():
        async with streaming(store) as made:
            own, every = made.events("demo", None), made.events(None, None)
            waiting = [asyncio.create_task(heard(one, 2)) for one in (own, every)]
            await listening_to(made, asked, 2)
            await asyncio.to_thread(store.queue.submit, "another", {})
            await asyncio.to_thread(note, store, 2, 7)
            return [await one for one in waiting]

    own, every = asyncio.run(listen())
    assert [one.data for one in own] == [{"n": 7}, {"n": 8}]
    assert [one.study for one in every] == ["another", "demo"]


@pytest.mark.slow
def test_many_events_at_once_cut_nobody_off_who_keeps_up(store, quick):
    store.leases.acquire("demo", here())

    async def listen():
        async with streaming(store) as made:
            waiting = asyncio.create_task(heard(made.events(None, 0), 4 * MOST_WAITING))
            while not made.open:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(note, store, 4 * MOST_WAITING)
            return await waiting

    ids = [one.id for one in asyncio.run(listen())]
    assert ids == [one.id for one in store.events.read(None, 0, len(ids))]


@pytest.mark.slow
def test_a_slow_listener_is_cut_off_and_comes_again(store, quick, asked):
    store.leases.acquire("demo", here())

    async def listen():
        async with streaming(store) as made:
            slow, other = made.events("demo", None), made.events("demo", None)
            asks = [asyncio.create_task(anext(one)) for one in (slow, other)]
            await listening_to(made, asked, 2)
            await asyncio.to_thread(note, store, 1)
            before = [await one for one in asks]
            hearing = asyncio.create_task(heard(other, 2 * MOST_WAITING))
            await asyncio.to_thread(note, store, 2 * MOST_WAITING, 1)
            kept = await hearing  # meanwhile the slow one has taken nothing
            seen = [one async for one in slow]
            again = await heard(made.events("demo", (seen or before[:1])[-1].id), 2 * MOST_WAITING - len(seen))
            return kept, seen, again, made.open

    kept, seen, again, still = asyncio.run(listen())
    assert len(seen) <= MOST_WAITING < len(kept) and still == 0
    assert [one.id for one in seen + again] == [one.id for one in kept]


def test_streams_end_with_the_service(store):
    async def listen():
        async with streaming(store) as made:
            waiting = [asyncio.create_task(heard(made.events(None, after), 99)) for after in (None, 0) * 5]
            while made.open < 10:
                await asyncio.sleep(0.01)
            made.stop()
            await asyncio.gather(*waiting)
            assert [one async for one in made.events(None, None)] == [], "whoever comes now hears nothing"
            return made.open

    assert asyncio.run(listen()) == 0


def test_a_sign_of_life_now_and_then(store, monkeypatch):
    monkeypatch.setattr(streams, "PING_SECONDS", 0.01)

    async def listen():
        async with streaming(store) as made:
            stream = made.events(None, None)
            found = [await anext(stream), await anext(stream)]
            await stream.aclose()
            return found

    assert asyncio.run(listen()) == [None, None]


def test_a_database_that_is_gone_for_a_while_ends_no_stream(store, quick, asked, monkeypatch):
    store.leases.acquire("demo", here())
    failing = threading.Event()
    real, failed = store.events.read, threading.Event()

    def behind(*arguments):
        if failing.is_set():
            failed.set()
            raise streams.StoreError("gone")
        return real(*arguments)

    monkeypatch.setattr(store.events, "read", behind)

    async def listen():
        async with streaming(store) as made:
            waiting = asyncio.create_task(heard(made.events("demo", None), 2))
            await listening_to(made, asked, 1)
            failing.set()
            await asyncio.to_thread(failed.wait, HANGS)
            note(store, 2)
            failing.clear()
            return await waiting

    assert [one.data["n"] for one in asyncio.run(listen())] == [0, 1]


def checked_out(store):
    return store._engine.pool.checkedout()


@pytest.mark.slow
def test_a_hundred_streams_hold_no_connection(store, url, tmp_path, quick):
    """On either database; and a client that is gone is no listener any more."""
    own = settings(tmp_path / "runs", storage=LedgerUrl.of(url))
    store.queue.submit("demo", {"kind": "run", "options": {"dataset": "permuted_digits"}})

    async def one(place, events):
        reader, writer = await asyncio.open_connection(*place)
        writer.write(f"GET /api/v1/{events}?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head and b"text/event-stream" in head
        while b'"queued"' not in await reader.readline():
            pass
        return writer

    with listening(own) as (address, app):
        place = address.removeprefix("http://").split(":")
        service = app.state.service

        async def listen():
            names = ["events", "studies/demo/events"] * 50
            writers = [await one(place, name) for name in names]
            assert service.streams.open == 100
            await asyncio.to_thread(until, lambda: checked_out(service.studies.store) == 0)
            for writer in writers:
                writer.close()
            await asyncio.to_thread(until, lambda: service.streams.open == 0)

        asyncio.run(listen())


@pytest.mark.parametrize(
    ("header", "after", "first"),
    [(None, "0", 0), ("2", "0", 2), ("2", None, 2), (None, "3", 3), ("x", "3", 3), ("-1", "3", 3), ("9" * 25, "4", 4)],
)
def test_the_header_of_a_browser_that_comes_again_counts_first(with_events, header, after, first):
    path = "/api/v1/studies/demo/events" + (f"?after={after}" if after else "")
    request = Request(with_events + path, headers={} if header is None else {"Last-Event-ID": header})
    with urlopen(request, timeout=HANGS) as answer:
        seen = []
        while len(seen) < 5 - first:
            line = answer.readline().decode()
            if line.startswith("data: "):
                event = json.loads(line.removeprefix("data: "))
            if line.startswith("id: "):
                seen.append(int(line.removeprefix("id: ")))
    assert seen == [*range(first + 1, 6)] and event["study"] == "demo"


@pytest.fixture(scope="module")
def with_events(tmp_path_factory):
    """The URL of a service whose study has the events 1 to 5."""
    own = settings(tmp_path_factory.mktemp("service") / "runs")
    with listening(own) as (address, app):
        store = app.state.service.studies.store
        store.queue.submit("demo", {"kind": "run", "options": {"dataset": "permuted_digits"}})
        store.leases.acquire("demo", here())
        note(store, 3)
        yield address


def test_a_ledger_that_fails_as_a_stream_begins_ends_it(tmp_path, monkeypatch, capfd):
    """The client connects again; nothing is reported as a bug."""
    with client_of(settings(tmp_path / "runs")) as client:

        def fails(*arguments):
            raise StoreGone("the server is away")

        monkeypatch.setattr(client.app.state.service.studies.store.events, "read", fails)
        assert client.get("/api/v1/events?after=0").text == ""
    assert "bug" not in capfd.readouterr().err


@pytest.mark.parametrize("query", ["?after=-1", "?after=x", f"?after={2**63}"])
def test_a_number_that_is_none_is_refused(with_events, query):
    for path in ("events", "studies/demo/events", "studies/demo/log"):
        with pytest.raises(HTTPError) as caught:
            urlopen(f"{with_events}/api/v1/{path}{query}", timeout=HANGS)
        assert caught.value.code == 422 and "after" in json.load(caught.value)["detail"]
        caught.value.close()


def test_a_study_that_is_not_there_has_no_stream(with_events):
    with pytest.raises(HTTPError) as caught:
        urlopen(f"{with_events}/api/v1/studies/nothing/events", timeout=HANGS)
    assert caught.value.code == 404
    caught.value.close()
