"""Shared by commands: consoles, listener, printing of results."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import RenderableType

from epsearch.arguments import STORAGE
from epsearch.ledger.location import ledger_url
from epsearch.terminal.consoles import PlainConsole
from results.ledger.url import LedgerUrl

if TYPE_CHECKING:
    from epsearch.doors.door import View
    from epsearch.terminal.listener import Terminal

out, err = PlainConsole(), PlainConsole(stderr=True)
WIDE = 1000  # columns of a table that no terminal shows
_DOCUMENT: list[TextIO] = []  # where JSON goes within `json_alone`


@contextmanager
def json_alone() -> Iterator[None]:
    """Reserves standard output for the JSON of `print_result`, as a context manager.

    Output of plug-ins goes to standard error, also of their child processes and compiled code, if possible.
    """
    ours, copy = sys.stdout, -1
    with suppress(OSError, ValueError, AttributeError):  # of tests, or closed
        if ours.fileno() == 1 and sys.stderr.fileno() == 2:
            ours.flush()
            copy = os.dup(1)
            os.dup2(2, 1)
    document = ours if copy < 0 else os.fdopen(copy, "w", encoding=ours.encoding, errors=ours.errors, closefd=False)
    _DOCUMENT.append(document)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _DOCUMENT.pop()
        if copy >= 0:
            os.dup2(copy, 1)
            os.close(copy)


def listener(quiet: bool) -> "Terminal":
    """Returns the listener of a command; quiet: only warnings are printed."""
    from epsearch.terminal.listener import Terminal

    return Terminal(err, quiet)


def url_of(folder: Path, storage: str | None) -> LedgerUrl:
    """Returns the ledger of a command without a study."""
    return ledger_url(folder, None if storage is None else STORAGE.parse(storage))


def print_result(text: RenderableType, data: Any, as_json: bool, soft_wrap: bool = False, wide: bool = False) -> None:
    """Prints a result as text or JSON; wide: without a terminal, a table has any width."""
    if as_json:
        # Not through rich, which would wrap long lines.
        write(json.dumps(data, indent=2, ensure_ascii=False, default=str) + "\n")
    else:
        # Without a terminal lines are not cut, as programs read names.
        wide = wide and not out.is_terminal and "COLUMNS" not in os.environ
        (PlainConsole(width=WIDE) if wide else out).print(text, soft_wrap=soft_wrap, crop=False)


def write(text: str) -> None:
    """Writes to standard output, also within `json_alone`."""
    document = _DOCUMENT[-1] if _DOCUMENT else sys.stdout
    document.write(text)
    document.flush()


def view(answer: "View", as_json: bool) -> int:
    """Prints a view and returns its exit status."""
    if as_json:
        print_result("", answer.data(), as_json)
    elif isinstance(
        text := answer.renderable(out.width, out.is_terminal and not out.no_color), str
    ):  # with line breaks
        sys.stdout.write(text)
    else:
        print_result(text, None, as_json)
    return answer.status


def at_a_terminal() -> bool:
    """Returns whether a user can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and err.is_terminal


def ask(question: str, yes: bool) -> bool:
    """Returns whether the user agrees; always True with `yes`. Raises UsageError without a terminal."""
    from epsearch.failures.errors import UsageError

    if yes:
        return True
    if not at_a_terminal():
        raise UsageError(f"{question} without a terminal, --yes says so")
    err.print(f"{question} [y/N] ", end="", soft_wrap=True, highlight=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
