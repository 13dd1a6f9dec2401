"""Ctrl-C and its relatives: the first ends the command in good order, the next one at once; one line either way."""

import os
import signal
import sys
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
AS_PYTHON_HAS_THEM = (signal.default_int_handler, signal.SIG_DFL)
SHOW_CURSOR = "\033[?25h"
RESUMES = "the same command resumes from what is stored"
KEPT = "what was trained is stored, and the same command resumes from there"
WORDS, STATUS = "stopped", 130  # 128 + SIGINT
STOPPING = "stopping in good order; the same signal again ends at once"
TRAINS = Event()
"""Set when the command is one that trains: only its last words say what is kept."""
CONFIRMED = Event()
"""Set once the ledger was read back at the end, and has all that was trained."""


def with_kept(words: str) -> str:
    """Returns last words; of a command that trains, with what is kept and how to go on."""
    return f"{words}; {KEPT if CONFIRMED.is_set() else RESUMES}" if TRAINS.is_set() else words


class Stop:
    """The handler of all these signals.

    Ending at once loses nothing, as nothing is stored by halves; it is what whoever presses Ctrl-C again wants, and it
    keeps the second signal out of the clearing up after the first, where it would be a traceback.
    """

    def __init__(self) -> None:
        self._stopping = self._telling = self._told = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raises KeyboardInterrupt the first time, and ends the process the next time."""
        if self._told:
            os._exit(STATUS)
        if self._telling:  # the line is nearly out, and a traceback would come in its place
            return
        if not self._stopping:
            self._stopping = True
            if TRAINS.is_set() and sys.stderr is not None and sys.stderr.isatty():
                # Ray takes seconds to end; whoever hears nothing presses again, which would end at once.
                os.write(2, f"\n{STOPPING}\n".encode())
            raise KeyboardInterrupt
        end()

    def telling(self) -> None:
        """From now on, what the command has to say about its end is being said: no signal comes between."""
        self._telling = True

    def told(self) -> None:
        """From now on, nothing is left but the interpreter's own end."""
        self._told = True

    def unraisable(self, what: "UnraisableHookArgs") -> None:
        """Python's hook for what is raised where nobody can catch it: there, too, Ctrl-C ends the command."""
        if not issubclass(what.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(what)
        elif not self._told:
            end()


def end(words: str = WORDS, status: int = STATUS) -> NoReturn:
    """Says the one line and ends the process, wherever it is: nothing that is open is closed or flushed.

    words: without what is kept, which is added where the command trains; status: the exit status.
    """
    cursor = SHOW_CURSOR if sys.stderr is not None and sys.stderr.isatty() else ""  # a progress line hides it
    try:
        # Not through sys.stderr, in the middle of whose own writing a signal may come.
        os.write(2, f"epsearch: {with_kept(words)}{cursor}\n".encode())
    finally:
        os._exit(status)


def listen() -> Stop:
    """Handles, until the process ends, the signals that nobody has asked to be ignored; returns their handler."""
    stop = Stop()
    for number in SIGNALS:
        if signal.getsignal(number) in AS_PYTHON_HAS_THEM:  # `nohup` ignores SIGHUP, a shell's background job SIGINT
            signal.signal(number, stop)
    sys.unraisablehook = stop.unraisable
    return stop
