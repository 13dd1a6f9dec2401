"""Figures of others, which one study shows behind ours."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

PARTS = ("numbers", "draw", "caption", "tables")
"""What a figure has; `numbers` is handed the results of a search, a comparison or a memory study."""

_ADDED: ContextVar[Mapping[str, Any]] = ContextVar("added", default={})  # noqa: B039  never changed


@contextmanager
def with_others(others: Mapping[str, Any]) -> Iterator[None]:
    """Within it, and for whom it calls, these figures are there, by name."""
    token = _ADDED.set(others)
    try:
        yield
    finally:
        _ADDED.reset(token)


def names() -> tuple[str, ...]:
    """Their names."""
    return tuple(_ADDED.get())


def numbers(results: Any) -> dict[str, tuple[Any, Any]]:
    """Name -> the figure and its numbers, as `results.pages.writing.Figures` has them."""
    return {name: (figure, figure.numbers(results)) for name, figure in _ADDED.get().items()}
