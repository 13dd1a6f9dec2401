"""A Ray that loses what it cannot do without: this process ends in one line, before Ray ends it in words of its own."""

import socket
import threading
from types import SimpleNamespace

from ray._private import worker

from epsearch.runners import lost
from tests.support.limits import HANGS


def watch(monkeypatch, dead):
    """What a watch tells of a Ray of one's own, whose dead processes are `dead`."""
    monkeypatch.setattr(worker, "_global_node", SimpleNamespace(dead_processes=lambda: dead))
    told, looked = [], threading.Event()
    look = lost.ended
    monkeypatch.setattr(lost, "ended", lambda: (look(), looked.set())[0])
    with lost.watching(private=True, every=0.001, end=lambda what: (told.append(what), looked.set())):
        assert looked.wait(HANGS)
    return told


def test_what_ray_needs_has_ended(monkeypatch):
    assert watch(monkeypatch, [("log_monitor", None), ("gcs_server", None)]) == ["its gcs_server has ended"]


def test_what_it_can_do_without_may_end(monkeypatch):
    assert watch(monkeypatch, [("log_monitor", None)]) == []


def test_nobody_looks_once_all_is_over(monkeypatch):
    """Even where what is looked at ends meanwhile, as it does when Ray is shut down."""
    told, looking, on = [], threading.Event(), threading.Event()

    def look():
        looking.set()
        on.wait(HANGS)
        return "its raylet has ended"

    monkeypatch.setattr(lost, "ended", look)
    with lost.watching(private=True, every=0.001, end=told.append):
        looking.wait(HANGS)
        threading.Timer(0.05, on.set).start()
    assert told == []


def test_a_head_that_comes_back_has_not_been_lost():
    """It is silent for 29 seconds of the test's clock, then for 31."""
    now = 0.0
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        look = lost.silence(address, lambda: now)
        assert look() == ""
    now = 29.0
    assert look() == ""
    with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))):
        assert look() == ""
    now = 58.0
    assert look() == ""
    now = 60.0
    assert look() == f"nobody answers at {address}"
