"""How anything is printed: as it is. Names and paths come from outside, and none of our own text is markup."""

from collections.abc import Iterable, Mapping
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


def table(rows: Iterable[Iterable[RenderableType]], *titles: str) -> Table:
    """Rows without a frame, below the titles in bold where there are any."""
    made = Table(*titles, show_header=bool(titles), box=None, header_style="bold")
    for row in rows:
        made.add_row(*row)
    return made


def facts(lines: Mapping[str, str]) -> RenderableType:
    """Names with values beside them."""
    # Folded, not cut: a path or a hash must be there to its last letter.
    return table((Text(name, style="bold"), Text(value, overflow="fold")) for name, value in lines.items())
