"""Lines for the user about what was met on the way, as a kept file that is damaged and made again.

They go to whoever listens in this thread, else to standard error: trainers know no console.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], None]


def _print(line: str) -> None:
    print(line, file=sys.stderr)


_listener: ContextVar[Listener] = ContextVar("listener", default=_print)


def tell(line: str) -> None:
    """Passes one line on."""
    _listener.get()(line)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """What this thread tells meanwhile goes to the listener.

    >>> lines: list[str] = []
    >>> with heard_by(lines.append):
    ...     tell("a file is damaged: made again")
    >>> lines
    ['a file is damaged: made again']
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def first_line(error: BaseException) -> str:
    r"""What a foreign error says, in one line; its name where it says nothing.

    >>> first_line(ValueError("no\nmore")), first_line(KeyboardInterrupt())
    ('no', 'KeyboardInterrupt')
    """
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
