"""Signals such as Ctrl-C: the first ends the command in good order, the second at once."""

import atexit
import os
import signal
import sys
from collections.abc import Callable
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from epsearch.operating_system import STOP_SIGNALS

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

SIGNALS = STOP_SIGNALS
DEFAULT_HANDLERS = (signal.default_int_handler, signal.SIG_DFL)
SHOW_CURSOR = "\033[?25h"
RESUMES = "the same command resumes from what is stored"
KEPT = "what was trained is stored, and the same command resumes from there"
WORDS, STATUS = "stopped", 130  # 128 + SIGINT
OUT_OF_TIME, AGAIN_STATUS = "stopped, as the time of this machine is nearly over", 75  # EX_TEMPFAIL of sysexits.h
TIME_SIGNAL: int | None = getattr(signal, "SIGUSR1", None)  # not of Windows
"""Ends the command as SIGTERM does, but with AGAIN_STATUS: a scheduler sends it before the end of a job."""
STOPPING = "stopping in good order; the same signal again ends at once"
TRAINS = Event()
"""Set by commands that train: only their last line says how to resume."""
AGAIN = Event()
"""Set once the time of this machine is nearly over: the exit status asks for another run of the command."""
CONFIRMED = Event()
"""Set once the ledger was read back at the end, and has all results."""
Layout = Callable[[str, int, BaseException | None], str]
"""Returns the last line of a command from its message, the exit status and the error."""
_layouts: list[Layout] = []


def lay_out(layout: Layout | None) -> None:
    """Sets the layout of the last line of a command; None for the usual one."""
    _layouts[:] = [] if layout is None else [layout]


def last_line(message: str, status: int, error: BaseException | None = None) -> str:
    """Returns the last line of a command, without colours."""
    return _layouts[0](message, status, error) if _layouts else f"epsearch: {message}"


def with_resume_hint(words: str) -> str:
    """Returns the last line; of a command that trains, with a hint that it can be resumed."""
    return f"{words}; {KEPT if CONFIRMED.is_set() else RESUMES}" if TRAINS.is_set() else words


class StopHandler:
    """Handler of SIGNALS: the first one interrupts, the second ends the process at once.

    Ending at once loses nothing, as nothing is stored by halves, and avoids a traceback from the cleanup.
    """

    def __init__(self) -> None:
        self._stopping = self._printing = self._printed = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raises KeyboardInterrupt the first time, and ends the process the second time."""
        if self._printed:
            if number == TIME_SIGNAL:
                return
            os._exit(status())
        if self._printing:  # a traceback would replace the line
            return
        if number == TIME_SIGNAL:
            AGAIN.set()
            signal.raise_signal(signal.SIGTERM)  # for whose handler it is: Ray has its own
            return
        if not self._stopping:
            self._stopping = True
            if TRAINS.is_set() and sys.stderr is not None and sys.stderr.isatty():
                # Ray takes seconds to end; without a line the user would press again, which ends at once.
                os.write(2, f"\n{STOPPING}\n".encode())
            raise KeyboardInterrupt
        end()

    def begin_printing(self) -> None:
        """Marks that the last line is being printed: signals are ignored from now on."""
        self._printing = True

    def end_printing(self) -> None:
        """Marks that the last line is printed: signals end the process silently from now on.

        But for the scheduler's, after which the status would be that of a process that did not end by itself.
        """
        self._printed = True
        if TIME_SIGNAL is not None and signal.getsignal(TIME_SIGNAL) is self:
            atexit.register(signal.signal, TIME_SIGNAL, signal.SIG_IGN)  # after Python's handlers

    def unraisable(self, hook: "UnraisableHookArgs") -> None:
        """Ends the command on a Ctrl-C that nobody can catch; as `sys.unraisablehook`."""
        if not issubclass(hook.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(hook)
        elif not self._printed:
            end()


def status() -> int:
    """Returns the exit status of a command that was stopped."""
    return AGAIN_STATUS if AGAIN.is_set() else STATUS


def words() -> str:
    """Returns in words how a command was stopped."""
    return OUT_OF_TIME if AGAIN.is_set() else WORDS


def end(reason: str | None = None, failure: int | None = None) -> NoReturn:
    """Prints one line and ends the process at once: no file is closed or flushed.

    reason: without the hint how to resume, and failure: the exit status; None for those of a stop.
    """
    code = status() if failure is None else failure
    cursor = SHOW_CURSOR if sys.stderr is not None and sys.stderr.isatty() else ""  # a progress line hides it
    try:
        # Not through sys.stderr, as the signal may come while it writes.
        os.write(2, f"{last_line(with_resume_hint(reason or words()), code)}{cursor}\n".encode())
    finally:
        os._exit(code)


def listen() -> StopHandler:
    """Installs a handler of SIGNALS and TIME_SIGNAL, except those that are ignored, and returns it."""
    stop = StopHandler()
    for number in (*SIGNALS, *([] if TIME_SIGNAL is None else [TIME_SIGNAL])):
        if signal.getsignal(number) in DEFAULT_HANDLERS:  # `nohup` ignores SIGHUP, a shell's background job SIGINT
            signal.signal(number, stop)
    sys.unraisablehook = stop.unraisable
    return stop
