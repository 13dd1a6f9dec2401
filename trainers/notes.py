"""Notes to the user, such as about a damaged file.

Lines go to the listener of the thread, else to standard error: trainers know no console.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], None]


def _print(line: str) -> None:
    print(line, file=sys.stderr)


_listener: ContextVar[Listener] = ContextVar("listener", default=_print)


def notify(line: str) -> None:
    """Passes a line to the listener of this thread."""
    _listener.get()(line)


@contextmanager
def redirect_notes(listener: Listener) -> Iterator[None]:
    """Passes notes of this thread to the listener, within the context.

    >>> lines: list[str] = []
    >>> with redirect_notes(lines.append):
    ...     notify("a file is damaged: made again")
    >>> lines
    ['a file is damaged: made again']
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def first_line(error: BaseException) -> str:
    r"""Returns the first line of the message of a foreign error; its type without a message.

    >>> first_line(ValueError("no\nmore")), first_line(KeyboardInterrupt())
    ('no', 'KeyboardInterrupt')
    """
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
