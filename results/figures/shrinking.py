"""Figure: how the interval shrank.

One bar for each repeat, each as wide as the figure, with a funnel from the part of it that the next repeat kept.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd

from results.figures.noise import indistinct_rounds, left_out_text
from results.figures.style import BLUE, FAINT, INK, ORANGE, finish, on_axis, plotly
from results.labels import epsilon_text
from results.points import EPSILON, parameter_label, value_text
from results.search import SearchResults
from results.search_tables import search_table

BAR = 0.16
"""Half the height of a bar; repeats are one unit apart."""
MOST_PIXELS = 330
"""Most height of all bars; more repeats than three are closer together."""


class _Shrinking(NamedTuple):
    """Data of the figure."""

    intervals: pd.DataFrame
    """One row a repeat: repeat, low, high, width (in decades if the axis is logarithmic), note."""
    points: pd.DataFrame
    """One row a tried value: repeat, <parameter>, position (0..1 within its interval), best (1, 2, 0), mean (in %)."""
    parameter: str
    """Name of the searched parameter."""
    log: bool
    """Whether its axis is logarithmic."""
    objective: str
    """What was maximised."""
    indistinct: tuple[int, ...] = ()
    """Numbers of later repeats whose values differ by noise alone: they have no bar, see `noise.indistinct_rounds`."""

    @property
    def bars(self) -> list[Any]:
        """The rows of `intervals` that have a bar."""
        return [row for row in self.intervals.itertuples() if row.repeat not in self.indistinct]


def numbers(results: SearchResults) -> _Shrinking:
    """Returns the intervals and tried values of every round that has an interval.

    A study that was extended by another strategy may have rounds without one; they are left out. Only for results whose
    `has_spans` is true.
    """
    name = results.parameters[0]
    log = name in results.log
    rows = [(r.number, *r.span, _width(*r.span, log), r.note) for r in results.rounds if r.span]
    table = search_table(results).dropna(subset=["low"])
    places = [
        _width(low, value, log) / (_width(low, high, log) or 1.0)  # the interval may be a single value
        for value, low, high in zip(table[name], table["low"], table["high"], strict=True)
    ]
    points = table.assign(position=places).rename(columns={f"{results.objective}_mean": "mean"})
    return _Shrinking(
        pd.DataFrame(rows, columns=["repeat", "low", "high", "width", "note"]),
        points[["repeat", name, "position", "best", "mean"]],
        name,
        log,
        results.objective,
        indistinct_rounds(results),
    )


def draw(shrinking: _Shrinking) -> Any:
    """Returns a plotly figure with the first repeat on top.

    Every bar is as wide as the figure, because at a common scale the last of five repeats would be too narrow to see.
    The ends of each interval are written below its bar. Repeats whose values differ by noise alone have no bar.
    """
    figure = plotly("graph_objects").Figure()
    rows = shrinking.bars
    places = {row.repeat: place for place, row in enumerate(rows, start=1)}
    for upper, lower in pairwise(rows):
        if _within(lower, upper):  # else another search began, and nothing was kept
            _add_funnel(figure, upper, lower, places, shrinking.log)
    for row in rows:
        _add_bar(figure, row, places[row.repeat])
    for rank in (0, 2, 1):  # the best last, on top of all others
        _add_points(figure, shrinking, places, rank)
    last = max(len(rows), 1)
    finish(figure, height=110 + round(min(92 * last, MOST_PIXELS)))
    figure.update_layout(margin_b=16)  # there is no axis below
    figure.update_xaxes(visible=False, range=[-0.03, 1.03])
    # Downwards, because the first repeat is on top.
    figure.update_yaxes(
        range=[last + 0.55, 0.45],
        tickvals=[*places.values()],
        ticktext=[f"repeat {number}" for number in places],
        showgrid=False,
        showline=False,
        ticks="",
    )
    return figure


def caption(shrinking: _Shrinking) -> str:
    """Returns the caption, with the number of repeats that have no bar."""
    every, rows = list(shrinking.intervals.itertuples()), shrinking.bars
    chain = _last_chain(every)
    text = "Intervals of the repeats, each at its own scale."
    text = " ".join(filter(None, (text, left_out_text(shrinking.indistinct))))
    text += " The ends of an interval stand below its bar."
    if len(rows) > 1:
        text += " The grey funnel shows which part of an interval the next bar searched."
    text += f" Dots: {_dots_label(shrinking)}; diamond: best of the repeat; ring: second best."
    if len(chain) < len(every):
        text += " Where there is no funnel, a new search began."
    if len(chain) > 1 and chain[-1].width > 0:
        first = "the first" if len(chain) == len(every) else f"repeat {chain[0].repeat}"
        narrower = f"{chain[0].width / chain[-1].width:.3g} times narrower"
        axis = " on the logarithmic axis" if shrinking.log else ""
        text += f" From {first} to the last repeat the interval became {narrower}{axis}."
    return text


def tables(shrinking: _Shrinking) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure; the notes of the rounds are in it, too."""
    return {"shrinking_intervals": shrinking.intervals, "shrinking_points": shrinking.points}


def _within(later: Any, earlier: Any) -> bool:
    """Returns whether an interval is inside the one before; it may not be if a study was extended by a search."""
    return bool(earlier.low <= later.low and later.high <= earlier.high)


def _last_chain(rows: list[Any]) -> list[Any]:
    """Returns the last rows of which each is inside the one before."""
    start = max((i for i in range(1, len(rows)) if not _within(rows[i], rows[i - 1])), default=0)
    return rows[start:]


def _width(low: float, high: float, log: bool) -> float:
    """Returns the width of an interval, in decades on a logarithmic axis."""
    return on_axis(high, log) - on_axis(low, log)


def _dots_label(shrinking: _Shrinking) -> str:
    return "tried ε" if shrinking.parameter == EPSILON else "tried values"


def _add_funnel(figure: Any, upper: Any, lower: Any, places: dict[int, int], log: bool) -> None:
    """Adds the funnel from the kept part of the upper bar to the whole lower bar."""
    if upper.width <= 0:  # a single value has no part that could be kept
        return
    left, right = (_width(upper.low, end, log) / upper.width for end in (lower.low, lower.high))
    top, bottom = places[upper.repeat] + BAR, places[lower.repeat] - BAR
    figure.add_scatter(
        x=[left, right, 1, 0, left],
        y=[top, top, bottom, bottom, top],
        fill="toself",
        mode="lines",
        line_width=0,
        fillcolor="rgba(0,0,0,0.06)",
        showlegend=False,
        hoverinfo="skip",
    )


def _add_bar(figure: Any, row: Any, place: int) -> None:
    """Adds the bar of one repeat, a row of `intervals`, with the ends of its interval."""
    figure.add_shape(
        type="rect",
        x0=0,
        x1=1,
        y0=place - BAR,
        y1=place + BAR,
        line_width=0,
        fillcolor="#dfe7ee",
        layer="below",
    )
    for x, anchor, value in ((0, "left", row.low), (1, "right", row.high)):
        figure.add_annotation(
            x=x,
            y=place + BAR,
            text=epsilon_text(value),
            showarrow=False,
            xanchor=anchor,
            yanchor="top",
            font={"size": 12, "color": INK},
        )


def _add_points(figure: Any, shrinking: _Shrinking, places: dict[int, int], rank: int) -> None:
    """Adds the tried values of one rank: 1 best, 2 second best, 0 the others; only the first two are labelled."""
    points = shrinking.points[shrinking.points["repeat"].isin(places)]
    parameter, part = shrinking.parameter, points[points["best"] == rank]
    styles = {
        0: (_dots_label(shrinking), {"size": 7, "color": FAINT}),
        1: ("best", {"size": 12, "color": BLUE, "symbol": "diamond"}),
        2: ("second best", {"size": 11, "color": ORANGE, "symbol": "circle-open", "line": {"width": 2.5}}),
    }
    name, marker = styles[rank]
    figure.add_scatter(
        x=part["position"],
        y=part["repeat"].map(places),
        mode="markers+text" if rank else "markers",
        marker=marker,
        name=name,
        legendrank=rank or 3,  # best, second best, others; drawn in another order
        text=[value_text(value) for value in part[parameter]] if rank else None,
        textposition="top center",
        textfont={"size": 12},
        customdata=part[[parameter, "mean"]],
        hovertemplate=f"{parameter_label(parameter)} = %{{customdata[0]:.6g}}<br>"
        f"{shrinking.objective} = %{{customdata[1]:.4g}} %<extra></extra>",
    )
