"""How anything is printed: as it is. Names and paths come from outside, and none of our own text is markup."""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")  # but for the end of a line


class PlainConsole(Console):
    """A console to which `[red]` and `:cat:` are text, wherever a text is printed: in lines, cells and titles."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich's, but what would steer a terminal is shown as an escape: names and messages come from outside."""
        for segment in super().render(renderable, options):
            if segment.control or not CONTROLS.search(segment.text):
                yield segment
            else:
                yield Segment(CONTROLS.sub(lambda found: ascii(found[0])[1:-1], segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Nobody reads any longer: BrokenPipeError instead of rich's silent end of the program."""
        raise BrokenPipeError(f"standard {'error' if self.stderr else 'output'} is closed")


def as_text(shown: RenderableType, width: int, colours: bool) -> str:
    """What a terminal of so many columns shows."""
    console = PlainConsole(
        file=io.StringIO(), width=width, force_terminal=colours, color_system="standard" if colours else None
    )
    with console.capture() as capture:
        console.print(shown)
    return capture.get()


@dataclass(frozen=True)
class Fitting:
    """A table with as many columns as there is room for, from the left; a line below names those that are left out.

    titles, rows: of equally many columns; a cell may have several lines. folded: for labels with figures beside them,
    which are set to the right: the first column may take less than it needs, a third of the width, and go on below;
    else it is always whole.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[Text]]
    elsewhere: str
    folded: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
        room, kept = options.max_width, 0
        columns = [*zip(*self.rows, strict=True)] or [()] * len(self.titles)
        for title, cells in zip(self.titles, columns, strict=True):
            width = max(map(cell_len, (title, *(line for cell in cells for line in cell.plain.splitlines()))))
            fold = self.folded and not kept and width > (third := options.max_width // 3)
            room -= (third if fold else width) + 2
            if kept and room < -2:  # behind the last column there need be no space
                break
            kept += 1
            # Names to the left, as all that is read; figures below each other to the right.
            left = kept == 1 or not self.folded
            justify: Any = "left" if left else "right"
            if fold:
                shown.add_column(title, justify=justify, width=third, overflow="fold")
            else:
                shown.add_column(title, justify=justify, no_wrap=True, min_width=width)
        for row in self.rows:
            shown.add_row(*row[:kept])
        yield shown
        if left_out := list(dict.fromkeys(self.titles[kept:])):
            yield Text(f"no room for {', '.join(left_out)}: {self.elsewhere}", style="dim")


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
