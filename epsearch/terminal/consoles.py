"""Consoles and tables that print every text literally, without markup."""

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")  # but for the end of a line

GAP = 2  # columns between two columns of a table
NAME = 8  # columns of the name before a `line`


class PlainConsole(Console):
    """A console that prints `[red]` and `:cat:` as text, in lines, cells and titles."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Renders as rich does, with escapes for control characters: names and messages come from outside."""
        for segment in super().render(renderable, options):
            if segment.control or not CONTROLS.search(segment.text):
                yield segment
            else:
                yield Segment(CONTROLS.sub(lambda match: ascii(match[0])[1:-1], segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Raises BrokenPipeError, where rich would end the program silently."""
        raise BrokenPipeError(f"standard {'error' if self.stderr else 'output'} is closed")


def as_text(renderable: RenderableType, width: int, colours: bool) -> str:
    """Returns the output on a terminal of a width in columns."""
    console = PlainConsole(
        file=io.StringIO(), width=width, force_terminal=colours, color_system="standard" if colours else None
    )
    with console.capture() as capture:
        console.print(renderable, crop=False)
    return capture.get()


@dataclass(frozen=True)
class FittingTable:
    """A table with as many columns as fit, from the left; a line below names the columns left out.

    titles, rows: of equally many columns; a cell may have several lines. elsewhere: says where columns left out are.
    folds: column -> the part of the terminal's width, 3 for a third, at which it folds where the table is too wide.
    narrower: for labels with figures beside them, which are right-aligned: makes another table from the columns of the
    terminal, printed where not all of them fit, and none is left out.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[Text]]
    elsewhere: str = ""
    narrower: Callable[[int], RenderableType] | None = None
    folds: Mapping[int, int] = field(default_factory=dict)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fitted = Table(box=None, header_style="bold", padding=(0, GAP, 0, 0))
        columns = [*zip(*self.rows, strict=True)] or [()] * len(self.titles)
        widths = [text_width(title, *cells) for title, cells in zip(self.titles, columns, strict=True)]
        narrow = set[int]()
        for column, part in sorted(self.folds.items(), key=lambda fold: -widths[fold[0]]):
            if sum(widths) + GAP * (len(widths) - 1) > options.max_width and widths[column] > options.max_width // part:
                narrow.add(column)
                widths[column] = options.max_width // part
        room, count = options.max_width, 0
        for column, (title, width) in enumerate(zip(self.titles, widths, strict=True)):
            room -= width + GAP
            if count and room < -GAP:  # the last column needs no space behind it
                break
            count += 1
            # Text is left-aligned, figures are right-aligned.
            justify: Any = "left" if count == 1 or self.narrower is None else "right"
            if column in narrow:
                fitted.add_column(title, justify=justify, width=width, overflow="fold")
            else:
                fitted.add_column(title, justify=justify, no_wrap=True, min_width=width)
        if self.narrower is not None and (count < len(self.titles) or room < -GAP):
            yield self.narrower(options.max_width)
            return
        for row in self.rows:
            fitted.add_row(*row[:count])
        yield fitted
        if left_out := list(dict.fromkeys(self.titles[count:])):
            yield Text(f"no room for {', '.join(left_out)}: {self.elsewhere}", style="dim")


def text_width(*texts: str | Text) -> int:
    """Returns the columns of the longest line."""
    return max((cell_len(line) for text in texts for line in str(text).splitlines()), default=0)


def table(rows: Iterable[Iterable[RenderableType]], *titles: str) -> Table:
    """Returns rows without a frame, below titles in bold, if any."""
    grid = Table(*titles, show_header=bool(titles), box=None, header_style="bold")
    for row in rows:
        grid.add_row(*row)
    return grid


def line(name: str, text: str) -> Text:
    """Returns a name with a text beside it, which is never folded: a command is copied as one line."""
    return Text.assemble((f"{name:<{NAME}}", "bold"), text, no_wrap=True, overflow="ignore")


def facts(lines: Mapping[str, str]) -> RenderableType:
    """Returns names with values beside them."""
    # Folded, not cut: paths and hashes must be complete.
    return table((Text(name, style="bold"), Text(value, overflow="fold")) for name, value in lines.items())
