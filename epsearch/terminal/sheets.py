"""Tables of results on a terminal, transposed where not all columns fit."""

from collections.abc import Iterator, Sequence
from functools import partial

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from epsearch.terminal.consoles import GAP, FittingTable, text_width
from results.metrics import METRICS
from results.pages.cells import PRINTED_LABEL
from results.pages.sheet import Cell, Line, Sheet

STYLES = {"": "", "soft": "dim", "apart": "yellow"}

HEAD = 16
"""Columns of a terminal that the name of a row has in a transposed table, where it is longer; it folds behind them."""


def sheet_table(sheet: Sheet) -> FittingTable:
    """Returns a printed table for a terminal; the lines of a cell stand below each other.

    Where not all columns fit, `transpose` is for it.
    """
    rows = [[_text(cell) for cell in row] for row in sheet.rows]
    return FittingTable(_titles(sheet), rows, narrower=partial(transpose, sheet), folds={0: 3})


def transpose(sheet: Sheet, width: int) -> RenderableType:
    """Returns the table with a column for each row, in blocks of as many as fit in `width`; nothing is left out."""
    titles = _titles(sheet)
    label = min(text_width(*titles), width // 3)
    most = max(1, width - label - GAP)
    widths = [min(most, _width(row)) for row in sheet.rows]
    parts: list[RenderableType] = []
    for block in _blocks(widths, width - label):
        parts += [Text("")] if parts else []
        parts.append(_block(titles, label, [sheet.rows[i] for i in block], [widths[i] for i in block]))
    return Group(*parts)


def _width(row: Sequence[Cell]) -> int:
    """Returns the columns that a row of the sheet takes as a column."""
    name, *cells = map(_text, row)
    return max(text_width(*cells), min(text_width(name), HEAD))


def _blocks(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Yields the indices of as many columns as fit side by side, at least one."""
    block: list[int] = []
    left = room
    for i, width in enumerate(widths):
        if block and left < GAP + width:
            yield block
            block, left = [], room
        block.append(i)
        left -= GAP + width
    if block:
        yield block


def _block(titles: Sequence[str], label: int, rows: Sequence[Sequence[Cell]], widths: Sequence[int]) -> Table:
    """Returns some rows of the sheet as columns; label, widths: columns of the terminal."""
    block = Table(box=None, header_style="bold", padding=(0, GAP, 0, 0), pad_edge=False)
    block.add_column(Text(titles[0]), width=label, overflow="fold")
    # The label of the printed values stands beside them, so that it is no part of a row's name.
    in_print = any(PRINTED_LABEL in name for name, *_ in rows)
    for (name, *_), width in zip(rows, widths, strict=True):
        head = _text(tuple(line for line in name if line != PRINTED_LABEL))
        block.add_column(head, justify="right", width=width, overflow="fold")
    for title, *cells in zip(titles[1:], *(row[1:] for row in rows), strict=True):
        printed = in_print and title.partition(" ")[0] in METRICS and max(map(len, cells)) > 1
        block.add_row(Text("\n").join((Text(title), *((_line(PRINTED_LABEL),) if printed else ()))), *map(_text, cells))
    return block


def _titles(sheet: Sheet) -> list[str]:
    return [f"{title} {unit}".strip() for title, unit in sheet.header]


def _text(cell: Cell) -> Text:
    return Text("\n").join(map(_line, cell))


def _line(line: Line) -> Text:
    return Text("".join((line.text, *(f" {mark}" for mark in line.marks))), style=STYLES[line.look])
