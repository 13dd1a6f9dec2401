"""How a description that names some of its options gets all others.

Building stands above the descriptions, which import nothing of it: `epsearch` itself says here who builds.
"""

from collections.abc import Callable, Mapping
from typing import Any

Build = Callable[[type[Any], Mapping[str, Any]], Any]
_BUILD: list[Build] = []


def fill_with(build: Build) -> None:
    """Says who makes a study of a kind and the options that are given."""
    _BUILD[:] = [build]


def filled(kind: type[Any], given: Mapping[str, Any]) -> Any:
    """Returns the study of that kind with these options. Raises UsageError for options that cannot be."""
    return _BUILD[0](kind, given)
