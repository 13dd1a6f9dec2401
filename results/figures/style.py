"""The style that all figures share."""

import math
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import zip_longest
from typing import Any

from results.labels import subscripts
from results.points import Value, is_number, value_text

FONT = "Inter, 'Helvetica Neue', Helvetica, Arial, sans-serif"
INK, FAINT, GRID = "#1a1a1a", "#6b6b6b", "#e8e8e8"

# Okabe & Ito 2008: distinguishable with every common colour-vision deficiency.
BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY = "#CC79A7", "#56B4E9"
LINE_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, INK)
MOST_TICKS = 8
"""Most values of a hyperparameter that each have a tick."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down")
DASHES = ("solid", "dash", "dot", "dashdot")

# Viridis from dark to green; its yellow end is too pale for a white page.
VIRIDIS = ("#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#86c53a")


def plotly(module: str) -> Any:
    """Returns plotly.<module>, imported at the first call, because that takes most of a second."""
    return import_module(f"plotly.{module}")


def line_style(i: int) -> tuple[str, str, str]:
    """Returns (hex colour, dash, marker) of the i-th line; dash and marker serve readers who do not see the colour.

    The first 28 all differ, neighbours in colour and marker.

    >>> line_style(0), line_style(7)
    (('#0072B2', 'solid', 'circle'), ('#0072B2', 'dash', 'triangle-down-open'))
    """
    turn, place = divmod(i, len(LINE_COLOURS))
    # Shifted at each turn, so that two lines of one colour have different shapes, not only filled and open ones.
    symbol = SYMBOLS[(place - turn) % len(SYMBOLS)] + ("-open" if turn % 2 else "")
    return LINE_COLOURS[place], DASHES[turn % len(DASHES)], symbol


def faint(colour: str) -> str:
    """Returns a hex colour as a translucent fill.

    >>> faint("#0072B2")
    'rgba(0,114,178,0.16)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"


def ordered_colours(n: int) -> list[str]:
    """Returns n colours from dark to light, for things that have an order.

    >>> ordered_colours(2)
    ['#440154', '#86c53a']
    """
    last = len(VIRIDIS) - 1
    return [VIRIDIS[round(i * last / max(n - 1, 1))] for i in range(n)]


AXIS = {
    "showline": True,
    "linecolor": INK,
    "linewidth": 1,
    "ticks": "outside",
    "ticklen": 4,
    "tickcolor": INK,
    "gridcolor": GRID,
    "zeroline": False,
    "title": {"standoff": 8},
    "automargin": True,  # long tick labels widen the margin instead of being cut off
}
DRAWN = ("scatter", "bar")
"""Kinds of traces of all figures."""
OF_OTHERS = ("coloraxis", "colorscale", "geo", "map", "mapbox", "polar", "scene", "smith", "ternary")
"""Parts of a template for other kinds of traces."""


@cache
def _template() -> Any:
    """Returns plotly's white template with the common axes, without other kinds of traces.

    Made once: plotly copies a whole template, and checks axes that a figure sets itself, in 50 ms a figure.
    """
    white = plotly("io").templates["plotly_white"].to_plotly_json()
    layout = {name: part for name, part in white["layout"].items() if name not in OF_OTHERS}
    layout |= {name: layout[name] | AXIS for name in ("xaxis", "yaxis")}
    traces = {kind: white["data"][kind] for kind in DRAWN}
    return plotly("graph_objects").layout.Template({"layout": layout, "data": traces})


def finish(figure: Any, height: int) -> None:
    """Gives a figure of this height, in pixels, the common fonts, margins and axes.

    Called when all panels are there, and before a figure changes what is particular to it.
    """
    figure.update_layout(
        template=_template(),
        height=height,
        font={"family": FONT, "size": 13, "color": INK},
        paper_bgcolor="rgba(0,0,0,0)",  # the page's own, in both colour schemes
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 64, "r": 20, "t": 64, "b": 52},
        hoverlabel={"font": {"family": FONT}},
        # At the top of the whole figure, in its margin: the height of the panels differs between figures.
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "top", "yref": "container"},
    )


def axis_title(metric: str, unit: str) -> str:
    """Returns the title of an axis of a metric; one without a unit is a fraction.

    >>> axis_title("F_T", "")
    'F<sub>T</sub> (fraction)'
    """
    return subscripts(f"{metric} ({unit or 'fraction'})")


def pad_range(low: float, high: float, share: float = 0.06, least: float = 1e-3) -> tuple[float, float]:
    """Returns the range of an axis from low to high, with a share of its length free at both ends.

    Values that are all equal get `least`, because an axis of length 0 has no scale.

    >>> pad_range(0.0, 50.0), pad_range(1.0, 1.0, least=0.5)
    ((-3.0, 53.0), (0.5, 1.5))
    """
    pad = share * (high - low) or least
    return low - pad, high + pad


def heights(figure: Any) -> Iterator[float]:
    """Yields the heights of all points of a figure and of the ends of their error bars."""
    for trace in figure.data:
        bars = trace.error_y.array if trace.type == "scatter" and trace.error_y.array is not None else ()
        for y, bar in zip_longest(() if trace.y is None else trace.y, bars, fillvalue=0.0):
            ends = [y - bar, y + bar] if _is_finite(y) and _is_finite(bar) else [y]
            yield from (float(end) for end in ends if _is_finite(end))


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def on_axis(value: float, log: bool) -> float:
    """Returns a value's place on an axis; plotly, too, counts in powers of ten on a logarithmic one.

    >>> on_axis(100.0, log=True), on_axis(100.0, log=False)
    (2.0, 100.0)
    """
    return math.log10(value) if log else value


def value_axis(values: Iterable[Value], log: bool) -> dict[str, Any]:
    """Returns the axis for values of a hyperparameter; choices that are not numbers keep their order.

    A few whole numbers have their own ticks: between 5 and 10 examples there may be none to try.

    >>> value_axis([0.1, 10], log=True), value_axis(["raw", "unit", "raw"], log=False)["categoryarray"]
    ({'type': 'log'}, ['raw', 'unit'])
    >>> value_axis([5, 10, 5], log=False)
    {'type': 'linear', 'tickvals': [5, 10], 'ticktext': ['5', '10']}
    """
    different = list(dict.fromkeys(values))
    if all(map(is_number, different)):
        whole = len(different) <= MOST_TICKS and all(isinstance(value, int) for value in different)
        ticks = {"tickvals": different, "ticktext": list(map(value_text, different))} if whole else {}
        return {"type": "log" if log else "linear"} | ticks
    # plotly's own order is that of its traces, which would put the baseline's and the chosen value last.
    return {"type": "category", "categoryorder": "array", "categoryarray": [value_text(v) for v in different]}


def value_places(values: Iterable[Value], of_axis: Iterable[Value]) -> Iterable[Value]:
    """Returns where values stand on the `value_axis` of all values `of_axis`: numbers as they are, choices as texts.

    >>> value_places([1], [1, 2]), value_places([1], [1, "mean"])
    ([1], ['1'])
    """
    return values if all(map(is_number, of_axis)) else [value_text(value) for value in values]


def add_legend_entry(figure: Any, name: str, marker: dict[str, Any], rank: int | None = None) -> None:
    """Adds an entry to the legend for what is no trace or is many: a trace without points, seen only there.

    rank    entries with smaller ones come first; None leaves the entry in the order of the traces
    """
    figure.add_scatter(
        x=[None], y=[None], mode="markers", marker=marker, name=name, legendrank=rank, hoverinfo="skip", row=1, col=1
    )


def legend_beside(figure: Any) -> None:
    """Moves the legend to the right of the panels: many entries above them would cover something.

    Called after `finish`, whose legend and upper margin it replaces.
    """
    figure.update_layout(
        legend={"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1, "yanchor": "top", "yref": "paper"},
        margin_t=24,
    )
