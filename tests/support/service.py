"""A service for tests: asked in this process, listening in a thread of it, or as a process of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.datastructures import Headers
from starlette.types import ASGIApp

from epsearch.service.access.protocol import LimitedProtocol
from epsearch.service.access.tokens import ADMIN, READ, WRITE, Token, Tokens, digest
from epsearch.service.app import application
from epsearch.service.settings import Settings
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from tests.support import ledgers
from tests.support.limits import HANGS

SECRETS = {READ: "a-secret-of-a-reader", WRITE: "a-secret-of-a-writer", ADMIN: "a-secret-of-an-admin"}
TOKENS = Tokens(tuple(Token(f"{role}er", role, digest(secret)) for role, secret in SECRETS.items()))
STUDY: dict[str, Any] = ledgers.STUDY | {"kind": "run", "dataset": "permuted_digits"}
"""What a client submits that takes a second."""


def settings(out: Path, **options: Any) -> Settings:
    """Of a service with its ledger in a folder."""
    out.mkdir(parents=True, exist_ok=True)
    own = {"storage": LedgerUrl.of_file((out / "epsearch.sqlite").absolute()), "data_dir": out / "data"}
    return Settings(**{"out": out, **own, **options})


def with_a_finished_study(out: Path, **options: Any) -> Settings:
    """The same with the study `ledgers.NAME` in its ledger, trained once for all tests."""
    shutil.copytree(ledgers.finished(), out)
    return settings(out, **options)


@contextmanager
def opened(own: Settings, works: bool) -> Iterator[FastAPI]:
    """An application over its ledger. Processes of studies that it interrupts at its end have ended with the block.

    A service leaves them to themselves; here its own process lives on.
    """
    with Store.open(own.storage) as store:
        app = application(own, store, works)
        yield app
        until(lambda: not app.state.service.scheduler.pids)


@contextmanager
def client_of(own: Settings, works: bool = False, raises: bool = True) -> Iterator[TestClient]:
    """A client in this process; works: whether the queue is worked on; raises: here what the application raises."""
    with (
        opened(own, works) as app,
        TestClient(app, base_url="http://localhost", raise_server_exceptions=raises) as client,
    ):
        yield client


@contextmanager
def listening(own: Settings, works: bool = False, port: int = 0) -> Iterator[tuple[str, FastAPI]]:
    """(URL, application) of a service in a thread of this process; port: 0 for any."""
    with opened(own, works) as app, socket.socket() as listens:
        listens.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listens.bind(("127.0.0.1", port))
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, http=LimitedProtocol, ws="none")
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listens]})
        thread.start()
        try:
            until(lambda: server.started or not thread.is_alive())
            yield f"http://127.0.0.1:{listens.getsockname()[1]}", app
        finally:
            app.state.service.streams.stop()
            server.should_exit = True
            thread.join(HANGS)


def until(reached: Any) -> None:
    """Waits until something is so; says so where that takes HANGS."""
    deadline = time.monotonic() + HANGS
    while not reached():
        assert time.monotonic() < deadline, "this hangs"
        time.sleep(0.02)


class Process:
    """`epsearch serve` in a folder; what it prints goes to the file `err` there."""

    def __init__(self, folder: Path, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.folder, self.out = folder, folder / "runs"
        folder.mkdir(parents=True, exist_ok=True)
        self._err = folder / "err"
        command = [sys.executable, "-m", "epsearch", "serve", "--port", "0", "--out", str(self.out), *options]
        own = {"EPSEARCH_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
        with self._err.open("wb") as err:
            self.process = subprocess.Popen(
                command,
                stdout=err,
                stderr=err,
                env=os.environ | own | (environment or {}),
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    @property
    def said(self) -> str:
        """What it has printed so far."""
        return self._err.read_text(encoding="utf-8", errors="replace")

    @property
    def url(self) -> str:
        """Where it answers, once it does."""
        until(lambda: self.process.poll() is not None or re.search(r"http://\S+/", self.said))
        found = re.search(r"http://\S+(?=/)", self.said)
        assert found and self.process.poll() is None, self.said
        return found[0]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON that it answers. Raises HTTPError for a refusal."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urlopen(request, timeout=HANGS) as answer:
            return json.load(answer)

    def states(self) -> dict[str, str]:
        """Study -> its state."""
        return {one["name"]: one["state"] for one in self.ask("GET", "/api/v1/studies?per_page=1000")["studies"]}

    def end(self, number: int = signal.SIGTERM) -> float:
        """Sends it a signal, and waits for its end: the seconds that took."""
        begun = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(HANGS)
        return time.monotonic() - begun


class Said(NamedTuple):
    """An answer of an application that was called without any client between."""

    status: int
    headers: Headers
    body: bytes


async def called(
    app: ASGIApp, method: str, path: str, headers: Mapping[str, str] | None = None, body: Iterable[bytes] = ()
) -> Said:
    """Calls an application as a server does; body: in parts, as they come; path: as the server has decoded it."""
    parts = [{"type": "http.request", "body": part, "more_body": True} for part in body]
    parts.append({"type": "http.request", "body": b"", "more_body": False})
    coming, sent = iter(parts), list[MutableMapping[str, Any]]()

    async def receive() -> MutableMapping[str, Any]:
        return next(coming, {"type": "http.disconnect"})

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    place, _, query = path.partition("?")
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()]
    own = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http"}
    named = {"path": place, "raw_path": place.encode(), "query_string": query.encode(), "root_path": ""}
    where = {"headers": raw, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}
    await app(own | named | where, receive, send)
    begins = [one for one in sent if one["type"] == "http.response.start"]
    assert len(begins) == 1, f"{len(begins)} answers"
    return Said(begins[0]["status"], Headers(raw=begins[0]["headers"]), b"".join(one.get("body", b"") for one in sent))
