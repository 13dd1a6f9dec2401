"""Promises as checks that can be called one by one: what all suites share."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from trainers.plugins.calls import in_one_line

Check: TypeAlias = tuple[str, Callable[[], None]]
"""(name, function that raises AssertionError where the promise is broken)."""


def sure(kept: object, sentence: str) -> None:
    """Raises AssertionError with the sentence unless `kept`; also where Python leaves assert statements out."""
    if not kept:
        raise AssertionError(sentence)


def refuses(call: Callable[[], object], what: str, error: type[Exception] = ValueError) -> None:
    """Raises AssertionError unless a call raises the error."""
    try:
        call()
    except error:
        return
    raise AssertionError(f"{what} must be refused with {error.__name__}, nothing was raised")


def checks_of(promises: Iterable[Callable[..., None]], *case: Any) -> list[Check]:
    """One check a promise, each given the case."""
    return [(one.__name__, _check(one, case)) for one in promises]


def failures(checks: Iterable[Check]) -> dict[str, str]:
    """Runs all checks; the sentence of each that fails, by its name."""
    found = {}
    for name, check in checks:
        try:
            check()
        except AssertionError as error:
            found[name] = str(error)
    return found


def _check(promise: Callable[..., None], case: tuple[Any, ...]) -> Callable[[], None]:
    def check() -> None:
        try:
            promise(*case)
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"it raises {in_one_line(error)}") from error

    check.__doc__ = promise.__doc__
    return check
