"""Figures of plug-ins, shown by a study after ours."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

PARTS = ("numbers", "draw", "caption", "tables")
"""What a figure has; `numbers` is handed the results of a search, a comparison or a memory study."""

_FIGURES: ContextVar[Mapping[str, Any]] = ContextVar("figures", default={})  # noqa: B039  never changed


@contextmanager
def with_others(others: Mapping[str, Any]) -> Iterator[None]:
    """Adds these figures by name, for all calls within the context."""
    token = _FIGURES.set(others)
    try:
        yield
    finally:
        _FIGURES.reset(token)


def names() -> tuple[str, ...]:
    """Returns their names."""
    return tuple(_FIGURES.get())


def numbers(results: Any) -> dict[str, tuple[Any, Any]]:
    """Returns name -> (figure, its numbers), as `results.pages.writing.Figures`."""
    return {name: (figure, figure.numbers(results)) for name, figure in _FIGURES.get().items()}
