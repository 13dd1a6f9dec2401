"""Explains every exception in one line, with an exit status.

Imports little, as it also handles errors while the rest is imported.
"""

import errno
import io
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from epsearch.failures import stopping
from epsearch.failures.crash_report import option_urls, write
from epsearch.failures.errors import Interrupted, TimeSpent, TrainingFailed, Unavailable, UsageError
from epsearch.failures.requeues import vain_run
from epsearch.failures.stopping import with_resume_hint
from results.ledger.errors import StoreError, StudyConflict
from results.ledger.url import without_passwords

HINTS = {"--certify": "; of stored members `epsearch verify NAME` trains some once more"}  # for commands without it
SURROUNDINGS, USAGE, OURS = 1, 2, 70  # the last is EX_SOFTWARE of sysexits.h
LONGEST_LINE = 1000  # characters: a value of the user's may be of any length
OF_THE_DEVICE = ("PrecisionError", "SelfCheckFailed", "GraphMismatch")  # of trainers: one line each
OUT_OF_MEMORY = (
    *("can't allocate memory", "cannot allocate memory", "unable to allocate", "could not allocate", "bad_alloc"),
    *("not enough memory", "out of memory", "can't start new thread", "failed to map segment from shared object"),
)
"""Parts of messages of torch, NumPy, LLVM, the loader of libraries and the system, in lower case."""
OTHER_MEMORY = "static tls block"  # of the loader, for another reason


def run_command(run: Callable[[], object], before_message: Callable[[], None] = lambda: None) -> int:
    """Runs a command and returns its exit status.

    An exception becomes one line on standard error and an exit status; only SystemExit passes. run: returns its status,
    or anything else for success; before_message: called before that line is printed.
    """
    stopping.TRAINS.clear()  # another command of this process may have been one
    stopping.CONFIRMED.clear()
    stopping.AGAIN.clear()
    try:
        _escape_unprintable()
        status = run()
        if sys.stdout is not None:  # closed before the program started
            sys.stdout.flush()  # not at exit, where a closed pipe would be a traceback
    except SystemExit:  # has a status
        raise
    except BaseException as error:  # noqa: BLE001  every error becomes one line
        before_message()
        return explain(error)
    return status if isinstance(status, int) else 0


def explain(error: BaseException) -> int:
    """Prints the line that explains an error, writes a crash report of a bug, and returns the exit status."""
    message, status, traceback = failure(error)
    crash = f"; {_crash_report(error, traceback)}" if status == OURS else ""
    if isinstance(error, BrokenPipeError):
        _drop_output()
    print_line(message + crash, status, error)
    return status


def _crash_report(error: BaseException, traceback: str) -> str:
    """Writes the crash report; returns its path in words, whatever happens."""
    try:
        return write(error, traceback)
    except Exception as another:  # noqa: BLE001  the line must be printed in any case
        return f"no crash report could be written ({type(another).__name__})"


def failure(error: BaseException) -> tuple[str, int, str]:
    """Returns a message for the user, the exit status, and the traceback of a worker for a bug there, else "".

    >>> failure(UsageError("repeats must be >= 1, got 0"))
    ('repeats must be >= 1, got 0', 2, '')
    >>> failure(ZeroDivisionError("division by zero"))[1]
    70
    """
    if isinstance(error, (UsageError, StudyConflict)) or _is(error, "DataError", "trainers"):
        return str(error), USAGE, ""
    if isinstance(error, (Interrupted, KeyboardInterrupt)) or _is(error, "Abort", "typer", "click"):
        # Before the training, which knows what it keeps.
        if stopping.AGAIN.is_set() and not stopping.TRAINS.is_set() and (vain := vain_run()):
            return vain, SURROUNDINGS, ""
        return with_resume_hint(str(error) if isinstance(error, TimeSpent) else stopping.words()), stopping.status(), ""
    if _is(error, "TyperException", "typer") or _is(error, "ClickException", "click"):
        hint = HINTS.get(getattr(error, "option_name", ""), "")
        return getattr(error, "format_message", error.__str__)() + hint, USAGE, ""
    if isinstance(error, TrainingFailed) and error.traceback:  # workers send one only for bugs
        return with_resume_hint(f"{error}, which is a bug in epsearch"), OURS, error.traceback
    words = str(error) if isinstance(error, (TrainingFailed, StoreError, Unavailable)) else surroundings(error)
    if words is not None:
        return with_resume_hint(words), SURROUNDINGS, ""
    return with_resume_hint(f"a bug in epsearch: {type(error).__name__}: {error}"), OURS, ""


def cohort_failure(error: Exception) -> dict[str, Any]:
    """Returns the fields `error`, `traceback`, `foreign` and `stops` of a `JobResult`, JSON-able.

    >>> cohort_failure(MemoryError())["error"]
    'out of memory (no more is available); fewer --workers or smaller sizes need less'
    """
    failed = {"traceback": "", "foreign": False, "stops": False}
    if (words := surroundings(error)) is not None:
        # Every other cohort would fail alike; an ImportError means no memory for a library.
        stops = _is(error, "SelfCheckFailed", "trainers") or isinstance(error, ImportError)
        return failed | {"error": words, "stops": stops}
    if _is(error, "ForeignError", "trainers"):
        return failed | {"error": str(error), "foreign": True}
    users = isinstance(error, UsageError) or _is(error, "DataError", "trainers")  # the user's data or code
    trace = "" if users else "".join(traceback.format_exception(error))
    return failed | {"error": f"{type(error).__name__}: {error}", "traceback": trace}


def surroundings(error: BaseException) -> str | None:
    """Returns in words which resource of the machine failed; None for other errors.

    >>> surroundings(OSError(28, "No space left on device", "runs/report.html"))
    'cannot write or read runs/report.html: No space left on device'
    >>> surroundings(ValueError("negative dimension")) is None
    True
    """
    if isinstance(error, BrokenPipeError):  # an OSError without a file
        return "the output is no longer read (broken pipe)"
    if any(_is(error, name, "trainers") for name in OF_THE_DEVICE):
        return str(error)
    users = _is(error, "ForeignError", "trainers")  # any error of plug-in code
    if not users and (short := _out_of_memory(error)) is not None:
        return f"out of memory ({short or 'no more is available'}); fewer --workers or smaller sizes need less"
    if isinstance(error, OSError) and error.errno is not None:
        where = "" if error.filename is None else f" {error.filename}"
        return f"cannot write or read{where}: {error.strerror}"
    return None


def _out_of_memory(error: BaseException) -> str | None:
    """Returns the message of Python, a library or the system that no memory was left; else None.

    Libraries that could not be loaded for that reason have it in their message, or in that of a cause.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or _is(cause, "OutOfMemoryError", "torch"):
            return str(cause)
        words = str(cause).lower()
        if isinstance(cause, OSError) and cause.errno == errno.ENOMEM:
            return str(cause.strerror)
        in_words = isinstance(cause, (RuntimeError, ImportError, OSError, SystemError)) and OTHER_MEMORY not in words
        if in_words and any(part in words for part in OUT_OF_MEMORY):
            return str(cause).splitlines()[0]
        cause = cause.__cause__ or cause.__context__
    return None


def one_line(text: str) -> str:
    r"""Returns a text on one line, of bounded length, without control characters.

    >>> one_line("no method 'a\x1b[31m'\n  known: b")
    "no method 'a\\x1b[31m' known: b"
    """
    line = " ".join(text.split())
    if len(line) > LONGEST_LINE:
        half = LONGEST_LINE // 2
        line = f"{line[:half]} … {line[-half:]}"
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)


def print_line(message: str, status: int = USAGE, error: BaseException | None = None) -> None:
    """Prints the last message of a command as one line on standard error, if that is open."""
    line = stopping.last_line(one_line(without_passwords(message, option_urls())), status, error)
    try:
        if sys.stderr.isatty() and "NO_COLOR" not in os.environ:
            line = f"\033[31m{line}\033[0m"
        print(line, file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):  # closed, or missing
        pass


def _escape_unprintable() -> None:
    """Makes standard streams escape letters that their encoding lacks, and file names that are no text."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Discards buffered output for a closed pipe, or the interpreter would complain at its exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _is(error: BaseException, name: str, *packages: str) -> bool:
    """Returns whether an error is of a class of that name in a package, without importing it."""
    return any(kind.__name__ == name and kind.__module__.split(".")[0] in packages for kind in type(error).__mro__)
