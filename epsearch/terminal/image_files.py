"""Paths of the files of figures, below the results to which they belong."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text


def with_paths(results: Any, paths: Sequence[Path]) -> RenderableType:
    """Returns results with a line for each file, the paths in the order in which they were written."""
    lines = (Text.assemble(("figure  ", "bold"), str(path)) for path in paths)
    return Group(results, *lines)
