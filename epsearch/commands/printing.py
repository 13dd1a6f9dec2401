"""What commands share: the consoles, where the ledger is, who hears a training, and how a result is printed."""

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
    """Within it standard output has the JSON of `printed` alone; what plug-ins print goes to standard error.

    So does what their child processes and compiled code write, where standard output is a file of the system.
    """
    ours, kept = sys.stdout, -1
    with suppress(OSError, ValueError, AttributeError):  # what tests put in its place, and none where it is closed
        if ours.fileno() == 1 and sys.stderr.fileno() == 2:
            ours.flush()
            kept = os.dup(1)
            os.dup2(2, 1)
    document = ours if kept < 0 else os.fdopen(kept, "w", encoding=ours.encoding, errors=ours.errors, closefd=False)
    _DOCUMENT.append(document)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _DOCUMENT.pop()
        if kept >= 0:
            os.dup2(kept, 1)
            os.close(kept)


def listener(quiet: bool) -> "Terminal":
    """Who hears a training; quiet: warnings alone are printed. Its imports can wait until there is one."""
    from epsearch.terminal.listener import Terminal

    return Terminal(err, quiet)


def url_of(folder: Path, storage: str | None) -> LedgerUrl:
    """The ledger of a command that takes no study."""
    return ledger_url(folder, None if storage is None else STORAGE.parse(storage))


def printed(shown: RenderableType, data: Any, as_json: bool, soft_wrap: bool = False, wide: bool = False) -> None:
    """Prints a result for people, or as JSON; wide: a table, which has room where there is no terminal."""
    if as_json:
        # Not through rich, which would wrap long lines. Letters stay as they are, and paths become text.
        document = _DOCUMENT[-1] if _DOCUMENT else sys.stdout
        document.write(json.dumps(data, indent=2, ensure_ascii=False, default=str) + "\n")
        document.flush()
    else:
        # Nobody's lines are cut where there is no terminal: a name that is read by a program must be whole.
        wide = wide and not out.is_terminal and "COLUMNS" not in os.environ
        (PlainConsole(width=WIDE) if wide else out).print(shown, soft_wrap=soft_wrap)


def view(one: "View", as_json: bool) -> int:
    """Prints a view and returns its exit status."""
    if as_json:
        printed("", one.data(), as_json)
    elif isinstance(text := one.renderable(out.width, out.is_terminal and not out.no_color), str):  # laid out already
        sys.stdout.write(text)
    else:
        printed(text, None, as_json)
    return one.status


def at_a_terminal() -> bool:
    """Whether there is somebody to be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and err.is_terminal


def ask(question: str, yes: bool) -> bool:
    """Whether somebody at the terminal agrees, or has said so before. Raises UsageError where nobody can be asked."""
    from epsearch.failures.errors import UsageError

    if yes:
        return True
    if not at_a_terminal():
        raise UsageError(f"{question} without a terminal, --yes says so")
    err.print(f"{question} [y/N] ", end="", soft_wrap=True, highlight=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
