"""Imports and calls code of plug-ins, and reports its errors.

No error of theirs ends the program. Whatever such code raises, SystemExit and KeyboardInterrupt included, becomes a
ForeignError, whose message is one line: what was called, what it raised, and its last own line of code. A Ctrl-C of the
user stays one.
"""

import importlib
import inspect
import linecache
import math
import platform
import reprlib
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any

from trainers.plugins.source import Source, SourceError, changed_files, source_of, whole

LONGEST = 300  # characters of what others have to say
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

_IMPORTED: dict[str, Source] = {}  # by this process: module, see `whole` -> its source as it was then


class ForeignError(Exception):
    """Code that comes from outside failed, or cannot be had; the message is one line for the user."""


def load(module: str, what: str, expected: Mapping[str, str] | None = None) -> tuple[ModuleType, Source]:
    """Returns the module and the source that it was made from; `what`: what it is for, in words.

    expected: the hashes of the source that it must have, where a run has begun with one. Without them, a source that
    has changed since this process imported it is imported anew.

    Raises ForeignError where the module cannot be imported, its source cannot be read or is not the expected one, or
    changes meanwhile.
    """
    top = whole(module)
    source = _IMPORTED.get(top)
    try:
        if source is None or source.hashes != expected:
            source = _latest(top, source, source_of(top))
        if expected is not None and (files := changed_files(expected, source.hashes)):
            raise ForeignError(
                f"{list_names(files)} of {what} changed after the run had begun "
                f"({_hashes(files[0], expected, source)}); "
                "results belong to the source that it began with: put it back, or choose another --name"
            )
        with blamed(f"cannot import {module!r} of {what}:", source):
            imported = importlib.import_module(module)
        if expected is None and (files := changed_files(source.hashes, source_of(top).hashes)):
            raise ForeignError(f"{list_names(files)} of {what} changed while it was imported; run the command again")
    except SourceError as error:
        raise ForeignError(f"cannot import {module!r} of {what}: {error}") from error
    return imported, source


def forget(module: str) -> None:
    """Forgets the source of a module: the next `load` reads it anew, and takes the module as it is."""
    _IMPORTED.pop(whole(module), None)


def _latest(top: str, before: Source | None, now: Source) -> Source:
    """Returns the source as it is on the disk; modules that were made of another one are forgotten."""
    if before is not None and before != now:
        for name, module in list(sys.modules.items()):
            path = getattr(module, "__file__", None)
            if path and (before.name(path) or now.name(path)):
                del sys.modules[name]
    importlib.invalidate_caches()
    _IMPORTED[top] = now
    return now


def _hashes(file: str, expected: Mapping[str, str], source: Source) -> str:
    """Returns both hashes of a file, and the machine, as it may be a worker that has the other one."""
    then, now = (hashes.get(file, "not there") for hashes in (expected, source.hashes))
    return f"SHA-256 of {file}: {then} then, {now} now on {platform.node()}"


def list_names(files: list[str]) -> str:
    """Returns names of files, the first few.

    >>> list_names(["a.py"]), list_names(["a.py", "b.py", "c.py", "d.py", "e.py"])
    ('a.py', 'a.py, b.py, c.py and 2 more')
    """
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")


@contextmanager
def blamed(
    subject: str, source: Source, clear: type[Exception] = ForeignError, missing: str | None = None
) -> Iterator[None]:
    """Turns whatever is raised in here into a ForeignError: `subject`, what it was, and where.

    clear: errors that pass. missing: the name of an attribute that may be lacking, here or where a `__getattr__` looks
    it up; an AttributeError that names it, or none, passes. What a signal's handler raised, as Ctrl-C's does, is not
    the foreign code's: it passes as well, whatever that code has made of it.
    """
    with _signals() as raised:
        try:
            yield
        except (clear, ForeignError):
            raise
        except BaseException as error:
            for cause in _chain(error):
                if any(cause is other for other in raised):
                    raise cause from None
            if missing and isinstance(error, AttributeError) and error.name in (missing, None):
                raise
            raise ForeignError(f"{subject} {in_one_line(error)}{place(error, source)}") from error


@contextmanager
def _signals() -> Iterator[list[BaseException]]:
    """Collects the exceptions of signal handlers within the context. They run in the main thread alone."""
    raised: list[BaseException] = []
    before: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def handle(number: int, frame: FrameType | None) -> Any:
        """Stands before the handler of each signal."""
        try:
            return before[number](number, frame)
        except BaseException as error:
            raised.append(error)
            raise

    try:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if callable(handler := signal.getsignal(number)):
                    before[number] = handler
                    signal.signal(number, handle)
        yield raised
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is handle:  # unless the foreign code has set one of its own
                signal.signal(number, handler)


def call_fault(function: Callable[..., object], arguments: Iterable[str]) -> str:
    """Returns the reason why a function cannot be called with these arguments; "" where it can, or is not known.

    >>> call_fault(len, ["one", "other"])
    'must take (one, other), it takes (obj, /): too many positional arguments'
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # of what is compiled, and says nothing
        return ""
    names = tuple(arguments)
    try:
        signature.bind(*names)
    except TypeError as error:
        return f"must take ({', '.join(names)}), it takes {signature}: {error}"
    return ""


def _chain(error: BaseException) -> list[BaseException]:
    """Returns the error, and those that it came from."""
    chain = [error]
    # Told apart by identity, as errors of foreign classes may say that they equal any other.
    while (cause := chain[-1].__cause__ or chain[-1].__context__) and not any(cause is other for other in chain):
        chain.append(cause)
    return chain


def in_one_line(error: BaseException) -> str:
    r"""Returns an error's type and message, whatever they are.

    >>> in_one_line(SystemExit(0)), in_one_line(KeyboardInterrupt()), in_one_line(KeyError("x"))
    ('SystemExit: 0', 'KeyboardInterrupt', "KeyError: 'x'")
    >>> in_one_line(ValueError("two\nlines"))
    'ValueError: two lines'
    """
    try:
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        text = " ".join(f"{type(error).__name__}: {message}".split()).removesuffix(":")
    except BaseException:  # noqa: BLE001  its message may be of its own making, too
        text = f"{type(error).__name__}, which has no message"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def number(value: Any, what: str, finite: bool = False) -> float:
    """Returns as a float what foreign code returned; what: which code it is, in words.

    Raises ForeignError where it is no number, or where it must be finite and is not.

    >>> number(1, "metric worst")
    1.0
    >>> number("high", "metric worst")
    Traceback (most recent call last):
    trainers.plugins.calls.ForeignError: metric worst must return a number, got 'high'
    """
    try:
        result = None if isinstance(value, (str, bytes)) else float(value)  # which would read a text
    except Exception:  # noqa: BLE001  of a foreign type, whose conversion may raise anything
        result = None
    if result is not None and (not finite or math.isfinite(result)):
        return result
    got = " ".join(reprlib.repr(value).split())  # an array has several lines
    raise ForeignError(f"{what} must return a {'finite ' if finite else ''}number, got {got}")


def place(error: BaseException, source: Source) -> str:
    """Returns the last line of the source that led to the error; "" where none did."""
    frames = [
        (frame.f_code.co_filename, number, frame.f_globals) for frame, number in traceback.walk_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        frames.append((error.filename, error.lineno or 0, {}))
    for path, number, names in reversed(frames):
        if name := source.name(path):
            # A file that changed since it was last shown would be quoted with its old lines.
            linecache.checkcache(path)
            linecache.lazycache(path, names)  # the module's loader has the lines of what lies in a zip
            line = " ".join(linecache.getline(path, number).split())
            return f", at {name}:{number}" + (f": {line[:LONGEST]}" if line else "")
    return ""
