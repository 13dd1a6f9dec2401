"""A service in this process, as browsers and programs see it."""

import socket
import threading
import time
from contextlib import contextmanager

import httpx
import pytest
import uvicorn

from epsearch.service.access import tokens
from epsearch.service.app import application
from epsearch.service.settings import Settings
from epsearch.session.session import open_store
from results.ledger.url import LedgerUrl
from tests.support.limits import HANGS


@pytest.fixture
def settings(tmp_path):
    out = tmp_path / "runs"
    out.mkdir()
    return Settings(LedgerUrl(f"sqlite:///{out / 'epsearch.sqlite'}"), out, tmp_path / "data")


@pytest.fixture
def secrets(tmp_path):
    """Name -> secret, and the tokens: ann writes, board reads."""
    file = tmp_path / "tokens.txt"
    made = {name: tokens.make(name, role, file) for name, role in (("ann", "write"), ("board", "read"))}
    return made, tokens.read(file, {})


@contextmanager
def serving(settings, works=False, port=0):
    """Yields its URL; works: whether the queue is trained; port: 0 for any."""
    with open_store(settings.storage) as store, socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        app = application(settings, store, works)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            app.state.service.streams.stop()
            server.should_exit = True
            thread.join(HANGS)


@contextmanager
def asking(settings):
    """A client as a browser without scripts is one."""
    with serving(settings) as url:
        headers = {"accept": "text/html", "origin": url}
        with httpx.Client(base_url=url, headers=headers, timeout=HANGS) as client:
            yield client
