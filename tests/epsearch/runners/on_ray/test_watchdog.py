"""A Ray that loses what it cannot do without: this process ends in one line, before Ray ends it in words of its own."""

import signal
import socket
import threading
from types import SimpleNamespace

import pytest
from ray._private import worker

from epsearch.runners.on_ray import head, watchdog
from tests.support.limits import HANGS


def watch(what):
    """What a watch tells of a Ray that has lost something, by its second look at the latest."""
    told, looks, enough = [], [], threading.Event()

    def look():
        looks.append(what)
        if len(looks) == 2:  # whatever the first look found has been told
            enough.set()
        return what

    with watchdog.watch_ray(look, every=0.001, end=lambda what: (told.append(what), enough.set())):
        assert enough.wait(HANGS)
    return told


def test_what_is_lost_is_told_once():
    assert watch("its gcs_server has ended") == ["its gcs_server has ended"]


def test_nothing_is_told_while_all_is_well():
    assert watch("") == []


def test_what_is_lost_after_a_signal_is_no_loss(monkeypatch):
    """One signal to this process and to Ray: the process has a while to end in good order, then it is ended."""
    monkeypatch.setattr(watchdog, "LEAVE_SECONDS", 0.001)
    told, ended = [], threading.Event()
    with watchdog.watch_ray(
        lambda: "its raylet has ended", 0.001, lambda what: (told.append(what), ended.set()), lambda: True
    ):
        assert ended.wait(HANGS)
    assert told == [""]
    monkeypatch.setattr(watchdog, "LEAVE_SECONDS", HANGS)
    asked, told = threading.Event(), []
    with watchdog.watch_ray(lambda: "its raylet has ended", 0.001, told.append, lambda: asked.set() or True):
        assert asked.wait(HANGS)
    assert told == [], "it has left the block by itself"


def test_a_signal_is_noticed_whatever_its_handler_does(monkeypatch):
    monkeypatch.setattr(watchdog, "SIGNAL_SECONDS", 0.01)
    before = signal.signal(signal.SIGTERM, lambda number, frame: None), signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        with watchdog.signals() as signalled:
            assert not signalled()
            signal.raise_signal(signal.SIGUSR1)
            assert not signalled(), "another one"
            monkeypatch.setattr(watchdog, "SIGNAL_SECONDS", HANGS)
            signal.raise_signal(signal.SIGTERM)
            assert signalled() and signalled()
        assert signal.set_wakeup_fd(-1) == -1, "as it was before"
    finally:
        signal.signal(signal.SIGTERM, before[0]), signal.signal(signal.SIGUSR1, before[1])


@pytest.mark.parametrize(
    ("dead", "what"),
    [([("log_monitor", None), ("gcs_server", None)], "its gcs_server has ended"), ([("log_monitor", None)], "")],
)
def test_what_ray_can_do_without_may_end(monkeypatch, dead, what):
    monkeypatch.setattr(worker, "_global_node", SimpleNamespace(dead_processes=lambda: dead))
    assert head.loss() == what


def test_nobody_looks_once_all_is_over(monkeypatch):
    """Even where what is looked at ends during a look, as it does when Ray is shut down."""
    told, left_during_a_look, looking, over, left = [], [], threading.Event(), threading.Event(), threading.Event()

    def look():
        looking.set()
        assert over.wait(HANGS)
        left_during_a_look.append(left.wait(0.1))
        return "its raylet has ended"

    monkeypatch.setattr(watchdog, "threading", SimpleNamespace(Event=lambda: over, Thread=threading.Thread))
    with watchdog.watch_ray(look, every=0.001, end=told.append):
        assert looking.wait(HANGS)
    left.set()
    assert (told, left_during_a_look) == ([], [False])


def test_a_head_that_comes_back_has_not_been_lost():
    """It is silent for 29 seconds of the test's clock, then for 31."""
    now = 0.0
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        look = watchdog.head_loss(address, lambda: now)
        assert look() == ""
    now = 29.0
    assert look() == ""
    with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))):
        assert look() == ""
    now = 58.0
    assert look() == ""
    now = 60.0
    assert look() == f"nobody answers at {address}"


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def pass_(self, seconds, step=10.0):
        """In steps that are shorter than what counts as a stop; yields after each."""
        until = self.now + seconds
        while self.now < until:
            self.now = min(until, self.now + step)
            yield


def test_the_longest_pause_that_was_seen_says_how_long_silence_may_last():
    clock = Clock()
    heartbeats = watchdog.Heartbeats(None, clock)
    heartbeats.start("slow"), heartbeats.start("stuck")
    assert heartbeats.limit == watchdog.SILENCE_SECONDS
    for _ in clock.pass_(100):
        heartbeats.hanging()
    heartbeats.report("slow")
    assert heartbeats.limit == 100 * watchdog.SILENCE_PAUSES > watchdog.SILENCE_SECONDS
    for _ in clock.pass_(heartbeats.limit - 100):
        heartbeats.report("slow")
        assert heartbeats.hanging() == []
    for _ in clock.pass_(10):
        heartbeats.report("slow")
    assert heartbeats.hanging() == ["stuck"]
    heartbeats.stop("stuck")
    assert heartbeats.hanging() == []


def test_the_time_in_which_we_were_stopped_is_nobodys_silence():
    clock = Clock()
    heartbeats = watchdog.Heartbeats(50, clock)
    heartbeats.start("works")
    clock.now = 10_000.0
    assert heartbeats.hanging() == []
    for _ in clock.pass_(50):
        assert heartbeats.hanging() == []
    for _ in clock.pass_(10):
        found = heartbeats.hanging()
    assert found == ["works"]
