"""Every exception in one line: whose it is to mend, what is kept, how to go on; and the exit status that says so.

Imports little, as it also answers for what happens while the rest is imported.
"""

import errno
import io
import os
import sys
import traceback
from collections.abc import Callable
from typing import NamedTuple

from epsearch.failures import stopping
from epsearch.failures.crash_report import given_urls, write
from epsearch.failures.errors import Interrupted, TrainingFailed, Unavailable, UsageError
from epsearch.failures.stopping import with_kept
from results.ledger.errors import StoreError, StudyConflict
from results.ledger.url import without_passwords

HINTS = {"--certify": "; of stored members `epsearch verify NAME` trains some once more"}  # of commands without it
SURROUNDINGS, USAGE, OURS = 1, 2, 70  # the last is EX_SOFTWARE of sysexits.h
LONGEST_LINE = 1000  # characters: a value of the user's may be of any length
OF_THE_DEVICE = ("PrecisionError", "SelfCheckFailed", "GraphMismatch")  # of trainers: one line each
OUT_OF_MEMORY = (
    *("can't allocate memory", "cannot allocate memory", "unable to allocate", "could not allocate", "bad_alloc"),
    *("not enough memory", "out of memory", "can't start new thread", "failed to map segment from shared object"),
)
"""Parts of what torch, NumPy, LLVM, the loader of libraries and the system say, in small letters."""
OTHER_MEMORY = "static tls block"  # of the loader, which has another reason then


class Failure(NamedTuple):
    """What to print and with which status to end."""

    message: str
    """Words for the user; `say` prints them on one line."""
    status: int
    """Exit status: SURROUNDINGS, USAGE, OURS or that of an interruption."""
    traceback: str = ""
    """Of a worker, where the fault is ours and not here."""


def answered(run: Callable[[], object], telling: Callable[[], None] = lambda: None) -> int:
    """Runs a command and returns its exit status.

    Whatever it raises is one line on standard error, and a status of ours; SystemExit alone passes. run: its status if
    it returns a number, anything else is success; telling: called before that line is printed.
    """
    stopping.TRAINS.clear()  # another command of this process may have been one
    stopping.CONFIRMED.clear()
    try:
        _print_anything()
        status = run()
        if sys.stdout is not None:  # closed before we were started
            sys.stdout.flush()  # not at exit, where a pipe that is closed is a traceback
    except SystemExit:  # its status is chosen already
        raise
    except BaseException as error:  # noqa: BLE001  here everything becomes one line
        telling()
        return told(error)
    return status if isinstance(status, int) else 0


def told(error: BaseException) -> int:
    """Prints the line that explains the error, and writes a crash report where the fault is ours; the exit status."""
    message, status, traceback = failure(error)
    crash = f"; {_reported(error, traceback)}" if status == OURS else ""
    if isinstance(error, BrokenPipeError):
        _drop_output()
    say(message + crash)
    return status


def _reported(error: BaseException, traceback: str) -> str:
    """Where the crash report lies, in words, whatever happens while it is written."""
    try:
        return write(error, traceback)
    except Exception as another:  # noqa: BLE001  nothing may come in the way of the line
        return f"no crash report could be written ({type(another).__name__})"


def failure(error: BaseException) -> Failure:
    """What an exception means.

    >>> failure(UsageError("repeats must be >= 1, got 0"))
    Failure(message='repeats must be >= 1, got 0', status=2, traceback='')
    >>> failure(ZeroDivisionError("division by zero")).status
    70
    """
    if isinstance(error, (UsageError, StudyConflict)) or _is(error, "DataError", "trainers"):
        return Failure(str(error), USAGE)
    if isinstance(error, (Interrupted, KeyboardInterrupt)) or _is(error, "Abort", "typer", "click"):
        return Failure(with_kept(stopping.WORDS), stopping.STATUS)
    if _is(error, "TyperException", "typer") or _is(error, "ClickException", "click"):
        hint = HINTS.get(getattr(error, "option_name", ""), "")
        return Failure(getattr(error, "format_message", error.__str__)() + hint, USAGE)
    if isinstance(error, TrainingFailed) and error.traceback:  # workers send one only where the fault is ours
        return Failure(with_kept(f"{error}, which is a bug in epsearch"), OURS, error.traceback)
    words = str(error) if isinstance(error, (TrainingFailed, StoreError, Unavailable)) else surroundings(error)
    if words is not None:
        return Failure(with_kept(words), SURROUNDINGS)
    return Failure(with_kept(f"a bug in epsearch: {type(error).__name__}: {error}"), OURS)


class CohortFailure(NamedTuple):
    """Why a cohort could not be trained."""

    error: str
    """In words."""
    traceback: str = ""
    """Where it is a fault of ours; else empty."""
    foreign: bool = False
    """Whether code that comes from outside of epsearch is to blame."""
    stops: bool = False
    """Whether the machine is to blame, and every other cohort would fail alike."""


def of_a_cohort(error: Exception) -> CohortFailure:
    """What an exception that ended a cohort means, for a process that has only the words.

    >>> of_a_cohort(MemoryError()).error
    'out of memory (no more is available); fewer --workers or smaller sizes need less'
    """
    if (words := surroundings(error)) is not None:
        alike = _is(error, "SelfCheckFailed", "trainers") or isinstance(error, ImportError)  # no room for a library
        return CohortFailure(words, stops=alike)
    if _is(error, "ForeignError", "trainers"):
        return CohortFailure(str(error), foreign=True)
    users = isinstance(error, UsageError) or _is(error, "DataError", "trainers")  # whose data or code it is
    where = "" if users else "".join(traceback.format_exception(error))
    return CohortFailure(f"{type(error).__name__}: {error}", where)


def surroundings(error: BaseException) -> str | None:
    """What the machine refused, in words; None where it is not the machine that is to blame.

    >>> surroundings(OSError(28, "No space left on device", "runs/report.html"))
    'cannot write or read runs/report.html: No space left on device'
    >>> surroundings(ValueError("negative dimension")) is None
    True
    """
    if isinstance(error, BrokenPipeError):  # an OSError, too, but one that names no file
        return "the output is no longer read (broken pipe)"
    if any(_is(error, name, "trainers") for name in OF_THE_DEVICE):
        return str(error)
    users = _is(error, "ForeignError", "trainers")  # whatever code of theirs has raised
    if not users and (short := _out_of_memory(error)) is not None:
        return f"out of memory ({short or 'no more is available'}); fewer --workers or smaller sizes need less"
    if isinstance(error, OSError) and error.errno is not None:
        where = "" if error.filename is None else f" {error.filename}"
        return f"cannot write or read{where}: {error.strerror}"
    return None


def _out_of_memory(error: BaseException) -> str | None:
    """Returns the words by which Python, a library or the system says that no memory was left; else None.

    Libraries that could not be loaded for that reason say it in words alone, or raise something else from it.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, MemoryError) or _is(seen, "OutOfMemoryError", "torch"):
            return str(seen)
        words = str(seen).lower()
        if isinstance(seen, OSError) and seen.errno == errno.ENOMEM:
            return str(seen.strerror)
        in_words = isinstance(seen, (RuntimeError, ImportError, OSError, SystemError)) and OTHER_MEMORY not in words
        if in_words and any(part in words for part in OUT_OF_MEMORY):
            return str(seen).splitlines()[0]
        seen = seen.__cause__ or seen.__context__
    return None


def one_line(text: str) -> str:
    r"""On one line, of bounded length, without what would steer a terminal.

    >>> one_line("no method 'a\x1b[31m'\n  known: b")
    "no method 'a\\x1b[31m' known: b"
    """
    line = " ".join(text.split())
    if len(line) > LONGEST_LINE:
        half = LONGEST_LINE // 2
        line = f"{line[:half]} … {line[-half:]}"
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)


def say(message: str) -> None:
    """Prints the message as our one line on standard error, if anybody is there to read it."""
    line = f"epsearch: {one_line(without_passwords(message, given_urls()))}"
    try:
        if sys.stderr.isatty() and "NO_COLOR" not in os.environ:
            line = f"\033[31m{line}\033[0m"
        print(line, file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):  # closed, or there never was one: then nobody can be told
        pass


def _print_anything() -> None:
    """A letter that the terminal's encoding lacks, or a file name that is no text, is printed as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """What is still to be written to the closed pipe goes nowhere, or the interpreter would complain at its exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _is(error: BaseException, name: str, *packages: str) -> bool:
    """Whether it is of a package's class of that name, without importing the package."""
    return any(kind.__name__ == name and kind.__module__.split(".")[0] in packages for kind in type(error).__mro__)
