"""Ctrl-C once, twice, five times, at any moment: one line and status 130."""

import os
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from epsearch.failures import stopping
from epsearch.failures.stopping import SIGNALS, StopHandler, listen

LINE = f"epsearch: {stopping.WORDS}\n".encode()


class Ended(BaseException):
    """In place of the end of the process."""


@pytest.fixture
def process(monkeypatch):
    """What is written to the terminal, and with which status the process ends."""
    monkeypatch.setattr(stopping, "TRAINS", threading.Event())
    seen = SimpleNamespace(written=b"", status=None)

    def write(place, data):
        assert place == 2
        seen.written += data

    def leave(status):
        seen.status = status
        raise Ended

    monkeypatch.setattr(stopping.os, "write", write)
    monkeypatch.setattr(stopping.os, "_exit", leave)
    return seen


def press(stop):
    stop(signal.SIGINT, None)


def test_the_first_is_an_exception_and_the_second_the_end(process):
    stop = StopHandler()
    with pytest.raises(KeyboardInterrupt):
        press(stop)
    assert process.written == b""
    with pytest.raises(Ended):
        press(stop)
    assert process.written == LINE and process.status == 130


def test_a_command_that_trains_says_what_is_kept(process):
    stopping.TRAINS.set()
    stopping.CONFIRMED.clear()  # another test's study may have been
    stop = StopHandler()
    with pytest.raises(KeyboardInterrupt):
        press(stop)
    with pytest.raises(Ended):
        press(stop)
    assert process.written.decode() == f"epsearch: stopped; {stopping.RESUMES}\n"  # nobody has looked


def test_nothing_comes_between_the_last_words(process):
    stop = StopHandler()
    stop.begin_printing()
    press(stop)
    assert process.status is None
    stop.end_printing()
    with pytest.raises(Ended):
        press(stop)
    assert process.written == b""


def test_an_interrupt_that_nobody_can_catch_is_the_end(process):
    """Python prints and forgets what a destructor or a callback raises."""
    with pytest.raises(Ended):
        StopHandler().unraisable(SimpleNamespace(exc_type=KeyboardInterrupt))
    assert process.written == LINE and process.status == 130


def test_ignored_signals_stay_ignored(monkeypatch):
    handlers = {number: signal.default_int_handler for number in SIGNALS} | {signal.SIGHUP: signal.SIG_IGN}
    monkeypatch.setattr(stopping.signal, "getsignal", handlers.get)
    monkeypatch.setattr(stopping.signal, "signal", handlers.__setitem__)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    stop = listen()
    assert handlers == {signal.SIGINT: stop, signal.SIGTERM: stop, signal.SIGHUP: signal.SIG_IGN}


CLEARING_UP = """
import signal, threading
from epsearch.failures.stopping import listen
listen()
try:
    print("ready", flush=True)
    while True:
        signal.pause()
except KeyboardInterrupt:
    print("clearing up", flush=True)
    while True:
        signal.pause()
"""


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_second_one_while_the_first_is_cleared_up(number):
    def listening():  # a test run in the background ignores Ctrl-C, and its children would inherit that
        for one in SIGNALS:
            signal.signal(one, signal.SIG_DFL)

    command = [sys.executable, "-c", CLEARING_UP]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listening
    ) as running:
        for word in ("ready\n", "clearing up\n"):
            assert running.stdout.readline() == word
            os.kill(running.pid, number)
        out, err = running.communicate()
    assert (running.returncode, out, err) == (130, "", LINE.decode())


@pytest.mark.skipif(stopping.TIME_SIGNAL is None, reason="a signal that Windows does not have")
def test_the_signal_of_a_scheduler_changes_no_status_at_the_end(tmp_path):
    """It comes while the interpreter ends, when no handler of Python is there any more."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, signal, sys\n"
        "from epsearch.failures.stopping import TIME_SIGNAL, listen\n"
        "class Late:\n"
        "    def __del__(self, kill=os.kill, pid=os.getpid(), number=TIME_SIGNAL):\n"
        "        kill(pid, number)\n"
        "sys.late = Late()\n"
        "stop = listen()\n"
        "stop.end_printing()\n"
        "os.kill(os.getpid(), TIME_SIGNAL)\n"
        "sys.exit(75)\n"
    )
    assert subprocess.run([sys.executable, program]).returncode == 75
