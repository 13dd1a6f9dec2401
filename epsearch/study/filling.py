"""Fills in missing options of a description.

Descriptions must not import `preparation.build`: `epsearch` registers it here.
"""

from collections.abc import Callable, Mapping
from typing import Any

Build = Callable[[type[Any], Mapping[str, Any]], Any]
_BUILD: list[Build] = []


def fill_with(build: Build) -> None:
    """Registers the function that builds a study from a kind and some options."""
    _BUILD[:] = [build]


def fill_study(kind: type[Any], options: Mapping[str, Any]) -> Any:
    """Returns a study of a kind with some options. Raises UsageError for invalid options."""
    return _BUILD[0](kind, options)
