"""Plots as SVG text, bars and small line panels, and tables. Written here, so that equal figures give equal files.

plotly, which draws the reports, needs a browser to make a picture that a Markdown page can show.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from results.figures.style import BLUE, FAINT, GREEN, GRID, INK, ORANGE, PURPLE, VERMILLION

SKY = "#56B4E9"
ON_DARK = {
    "white": "#0d1117",  # the ground of a dark page of code hosts
    INK: "#e6e8ea",
    FAINT: "#a7adb3",
    GRID: "#33383d",
    BLUE: "#3594da",
    VERMILLION: "#f0873d",
    SKY: "#94d6ff",
}
"""Colours on a dark page, as results/html/figures.js has them; those left out can be seen on both."""
COLOURS = (BLUE, ORANGE, VERMILLION, GREEN, PURPLE, SKY)
LABELS, WIDTH, BAR, GAP = 250, 860, 13, 12
PANEL_WIDTH, PANEL_HEIGHT, COLUMNS = 280, 210, 3
CURVES_WIDTH, CURVES_HEIGHT, LINE = 400, 280, 16
LEFT, SIDE_BY_SIDE = 46, 10
COSTS = (0, 1, 3, 7, 20, 60, 200)
"""Labels of an axis of costs."""


class Range(NamedTuple):
    """A median and the lowest and highest value seen."""

    median: float
    low: float
    high: float


def dark(svg: str) -> str:
    """The plot in the colours of a dark page.

    >>> dark('<rect fill="white"/><line stroke="#1a1a1a"/><circle fill="#009E73"/>')
    '<rect fill="#0d1117"/><line stroke="#e6e8ea"/><circle fill="#009E73"/>'
    """
    for light, other in ON_DARK.items():
        svg = svg.replace(f'"{light}"', f'"{other}"')
    return svg


def bars(series: Sequence[str], rows: Mapping[str, Sequence[Range]], unit: str) -> str:
    """Horizontal bars in groups, one group a row, one bar a series; whiskers from the lowest to the highest value."""
    top = nice(max(value.high for values in rows.values() for value in values))
    scale = (WIDTH - LABELS - 70) / top
    parts, y = [], 34.0
    start, apart = (LABELS, 190) if len(series) <= 3 else (10, (WIDTH - 10) / len(series))
    for index, name in enumerate(series):
        x = start + apart * index
        parts += [_box(x, 8, 10, 10, COLOURS[index]), _text(x + 16, 17, name)]
    for label, values in rows.items():
        parts.append(_text(LABELS - 10, y + len(values) * BAR / 2 + 4, label, "end"))
        for colour, value in zip(COLOURS, values, strict=False):
            end, middle = LABELS + value.median * scale, y + BAR / 2
            parts.append(_box(LABELS, y + 1, value.median * scale, BAR - 2, colour))
            parts.append(_line(LABELS + value.low * scale, middle, LABELS + value.high * scale, middle, INK))
            parts.append(
                _text(max(end, LABELS + value.high * scale) + 6, middle + 4, number(value.median), "start", FAINT)
            )
            y += BAR
        y += GAP
    parts.append(_line(LABELS, 28, LABELS, y, INK))
    parts.append(_text(LABELS, y + 14, unit, "start", FAINT))
    return _svg(WIDTH, y + 24, parts)


def panels(lines: Mapping[str, Sequence[tuple[float, Range]]], unit: str) -> str:
    """One small plot for each name: values over a logarithmic x axis, the y axis from zero."""
    parts = []
    for index, (name, points) in enumerate(lines.items()):
        x, y = index % COLUMNS * PANEL_WIDTH, index // COLUMNS * PANEL_HEIGHT
        parts += [f'<g transform="translate({x} {y})">', *_panel(name, points, unit), "</g>"]
    height = -(-len(lines) // COLUMNS) * PANEL_HEIGHT
    return _svg(COLUMNS * PANEL_WIDTH, height, parts)


def _panel(name: str, points: Sequence[tuple[float, Range]], unit: str) -> list[str]:
    left, right, above, below = 46, PANEL_WIDTH - 14, 30, PANEL_HEIGHT - 34
    top = nice(max(value.high for _, value in points))
    first, last = math.log(points[0][0]), math.log(points[-1][0])

    def across(x: float) -> float:
        return left + (math.log(x) - first) / (last - first) * (right - left)

    def up(y: float) -> float:
        return below - y / top * (below - above)

    parts = [_text(left, 18, f"{name}, {unit}")]
    for share in (0, 0.5, 1):
        parts += [_line(left, up(share * top), right, up(share * top), INK if share == 0 else GRID)]
        parts += [_text(left - 5, up(share * top) + 4, number(share * top), "end", FAINT)]
    path = " ".join(f"{across(x):.1f},{up(value.median):.1f}" for x, value in points)
    parts.append(f'<polyline points="{path}" fill="none" stroke="{BLUE}" stroke-width="2"/>')
    for x, value in points:
        parts += [_line(across(x), up(value.low), across(x), up(value.high), INK)]
        parts += [f'<circle cx="{across(x):.1f}" cy="{up(value.median):.1f}" r="3.5" fill="{BLUE}"/>']
        parts += [_text(across(x), below + 16, f"{x:g}", "middle", FAINT)]
    return parts


Series = Mapping[str, Sequence[tuple[float, Range]]]
"""Label -> values over x, ascending."""


def curves(plots: Mapping[str, Series], ticks: Sequence[float], across: int) -> str:
    """Panels of lines with whiskers, so many beside each other; the x axis is that of √x, finer near 0.

    ticks: values that are written below the axis. Every panel has y axis and legend of its own.
    """
    rows = [list(plots.items())[start : start + across] for start in range(0, len(plots), across)]
    parts, y = [], 0.0
    for row in rows:
        for column, (name, series) in enumerate(row):
            parts += [
                f'<g transform="translate({column * CURVES_WIDTH} {y:.0f})">',
                *_curves(name, series, ticks),
                "</g>",
            ]
        y += CURVES_HEIGHT + LINE * max(len(series) for _, series in row)
    return _svg(min(across, len(plots)) * CURVES_WIDTH, y, parts)


def _curves(name: str, series: Series, ticks: Sequence[float]) -> list[str]:
    ranges = [value for points in series.values() for _, value in points]
    parts, along, up, below = _axes(name, ranges, max(x for points in series.values() for x, _ in points), ticks)
    for row, (colour, (label, points)) in enumerate(zip(COLOURS, series.items(), strict=False)):
        path = " ".join(f"{along(x):.1f},{up(value.median):.1f}" for x, value in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, value in points:
            parts += [_line(along(x), up(value.low), along(x), up(value.high), colour)]
            parts += [f'<circle cx="{along(x):.1f}" cy="{up(value.median):.1f}" r="3" fill="{colour}"/>']
        legend = below + 26 + LINE * row
        parts += [_box(LEFT, legend, 10, 10, colour), _text(LEFT + 16, legend + 9, label)]
    return parts


def _axes(
    name: str, ranges: Sequence[Range], last: float, ticks: Sequence[float]
) -> tuple[list[str], Callable[[float], float], Callable[[float], float], float]:
    """Axes of a panel, the place of an x from 0 to `last` and of a y, and where the panel ends below."""
    right, above, below = CURVES_WIDTH - 14, 30, CURVES_HEIGHT - 34
    levels = between(min(value.low for value in ranges), max(value.high for value in ranges))

    def along(x: float) -> float:
        return LEFT + math.sqrt(x / last) * (right - LEFT)

    def up(y: float) -> float:
        return below - (y - levels[0]) / (levels[-1] - levels[0]) * (below - above)

    parts = [_text(LEFT, 18, name)]
    for level in levels:
        parts += [_line(LEFT, up(level), right, up(level), INK if level == levels[0] else GRID)]
        parts += [_text(LEFT - 5, up(level) + 4, f"{level:g}", "end", FAINT)]
    parts += [_text(along(x), below + 16, f"{x:g}", "middle", FAINT) for x in ticks]
    return parts, along, up, below


class Point(NamedTuple):
    """A point of a scatter plot."""

    x: float
    y: Range
    hollow: bool


def scatter(plots: Mapping[str, Mapping[str, Point]], axes: str, across: int) -> str:
    """Panels of points with whiskers and letters, which the legend explains; the x axis is that of √x, from 0.

    Points that would lie on each other stand side by side. axes: what x and y are.
    """
    top = max([1.0, *(point.x for points in plots.values() for point in points.values())])
    width = CURVES_WIDTH - 14 - LEFT
    room = SIDE_BY_SIDE * max(len(points) for points in plots.values())
    last = top * (width / (width - room)) ** 2  # so that those beside the dearest point lie in the panel
    rows = [list(plots.items())[start : start + across] for start in range(0, len(plots), across)]
    parts, y = [], 0.0
    for row in rows:
        for column, (name, points) in enumerate(row):
            parts += [f'<g transform="translate({column * CURVES_WIDTH} {y:.0f})">']
            parts += [*_scattered(name, points, axes, last, [tick for tick in COSTS if tick <= top]), "</g>"]
        y += CURVES_HEIGHT + LINE * (1 + max(len(points) for _, points in row))
    return _svg(min(across, len(plots)) * CURVES_WIDTH, y, parts)


def _scattered(name: str, points: Mapping[str, Point], axes: str, last: float, ticks: Sequence[float]) -> list[str]:
    ranges = [Range(0.0, 0.0, 0.0), *(point.y for point in points.values())]
    parts, along, up, below = _axes(name, ranges, last, ticks)
    parts += [_line(LEFT, up(0.0), CURVES_WIDTH - 14, up(0.0), INK), _text(LEFT, below + 32, axes, "start", FAINT)]
    free = 0.0
    for row, (label, point) in enumerate(sorted(points.items(), key=lambda one: one[1].x)):
        colour, letter = COLOURS[row % len(COLOURS)], chr(ord("a") + row)
        x, y = max(along(point.x), free), up(point.y.median)
        free = x + SIDE_BY_SIDE
        fill = "white" if point.hollow else colour
        parts += [_line(x, up(point.y.low), x, up(point.y.high), colour)]
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{fill}" stroke="{colour}"/>']
        parts += [_text(x, up(point.y.high) - 4, letter, "middle", colour)]
        parts += [_text(LEFT, below + 50 + LINE * row, f"{letter}  {label}", "start", colour)]
    return parts


def between(low: float, high: float) -> list[float]:
    """Round levels of an axis that has both ends, at least two.

    >>> between(67.8, 95.3), between(1.0, 1.0)
    ([66.0, 72.0, 78.0, 84.0, 90.0, 96.0], [1.0, 2.0])
    """
    step = nice((high - low) / 5 or 1.0)
    first = math.floor(low / step)
    last = max(math.ceil(high / step), first + 1)
    return [round(step * level, 12) for level in range(first, last + 1)]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; columns behind the first are right-aligned."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def nice(value: float) -> float:
    """The next of 1, 2, 3, 4, 5, 6, 8 or 10 times a power of ten.

    >>> nice(0.73), nice(1234), nice(10)
    (0.8, 2000.0, 10.0)
    """
    power = 10.0 ** math.floor(math.log10(value))
    return next(round(step * power, 12) for step in (1, 2, 3, 4, 5, 6, 8, 10) if step * power >= value * (1 - 1e-9))


def number(value: float) -> str:
    """Three digits, thousands grouped.

    >>> number(12345.6), number(123.4), number(1.234), number(0.01234), number(0)
    ('12,346', '123', '1.23', '0.0123', '0')
    """
    if value == 0:
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    return f"{value:,.{max(digits, 0)}f}"


def percent(share: float) -> str:
    """A share in whole percent.

    >>> percent(0.876)
    '88 %'
    """
    return f"{100 * share:.0f} %"


def _svg(width: float, height: float, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
    font = 'font-family="Helvetica, Arial, sans-serif" font-size="12"'
    box = f'viewBox="0 0 {width:.0f} {height:.0f}"'
    return "\n".join([f"{head} {box} {font}>", _box(0, 0, width, height, "white"), *parts, "</svg>\n"])


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
