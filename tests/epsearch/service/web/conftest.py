"""A service in this process, as browsers and programs see it."""

from contextlib import contextmanager

import httpx
import pytest

from epsearch.service.access import tokens
from epsearch.service.settings import Settings
from results.ledger.url import LedgerUrl
from tests.support.limits import HANGS
from tests.support.service import listening


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
    with listening(settings, works, port) as (url, _):
        yield url


@contextmanager
def asking(settings):
    """A client as a browser without scripts is one."""
    with serving(settings) as url:
        headers = {"accept": "text/html", "origin": url}
        with httpx.Client(base_url=url, headers=headers, timeout=HANGS) as client:
            yield client
