"""How anything is printed: as it is. Names and paths come from outside, and none of our own text is markup."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text


class PlainConsole(Console):
    """A console to which `[red]` and `:cat:` are text, wherever a text is printed: in lines, cells and titles."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def on_broken_pipe(self) -> None:
        """Nobody reads any longer: BrokenPipeError instead of rich's silent end of the program."""
        raise BrokenPipeError(f"standard {'error' if self.stderr else 'output'} is closed")


def facts(lines: Mapping[str, str]) -> RenderableType:
    """Names with values beside them."""
    table = Table(show_header=False, box=None)
    for name, value in lines.items():
        table.add_row(Text(name, style="bold"), Text(value, overflow="fold"))
    return table
