"""Promises as checks that are called one by one, for all suites."""

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from trainers.plugins.calls import in_one_line

Check: TypeAlias = tuple[str, Callable[[], None]]
"""(name, function that raises AssertionError where the promise is broken)."""


def sure(condition: object, sentence: str) -> None:
    """Raises AssertionError with the sentence unless the condition holds, also with `python -O`."""
    if not condition:
        raise AssertionError(sentence)


def refuses(call: Callable[[], object], what: str, error: type[Exception] = ValueError) -> None:
    """Raises AssertionError unless a call raises the error."""
    try:
        call()
    except error:
        return
    raise AssertionError(f"{what} must be refused with {error.__name__}, nothing was raised")


def checks_of(promises: Iterable[Callable[..., str | None]], *case: Any) -> list[Check]:
    """Returns a check for each promise; case: the arguments of all promises.

    A promise returns in words why it does not apply, else None. A check that passes prints a line on standard error.
    """
    return [(promise.__name__, _check(promise, case)) for promise in promises]


def failures(checks: Iterable[Check]) -> dict[str, str]:
    """Runs all checks; returns the sentences of failed ones by name."""
    failed = {}
    for name, check in checks:
        try:
            check()
        except AssertionError as error:
            failed[name] = str(error)
    return failed


def _check(promise: Callable[..., str | None], case: tuple[Any, ...]) -> Callable[[], None]:
    def check() -> None:
        try:
            reason = promise(*case)
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"it raises {in_one_line(error)}") from error
        line = f"does not apply: {promise.__name__}, as {reason}" if reason else f"passed {promise.__name__}"
        print(line, file=sys.stderr, flush=True)

    check.__doc__ = promise.__doc__
    return check
