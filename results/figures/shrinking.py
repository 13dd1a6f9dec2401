"""How the interval shrank: one bar a repeat, each as wide as the page, joined by the part of it that the next
repeat kept.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from results.figures.style import BLUE, FAINT, INK, ORANGE, finish, plotly
from results.labels import epsilon_text
from results.study import StudyResults
from results.tables import search_table

if TYPE_CHECKING:
    import pandas as pd

BAR = 0.16
"""Half the height of a bar; repeats lie one unit apart."""


class Shrinking(NamedTuple):
    """What the figure shows."""

    intervals: pd.DataFrame
    """repeat, low, high, width, note: one row a repeat."""
    points: pd.DataFrame
    """repeat, epsilon, position (0..1 within its interval), best (1, 2, 0), mean (A_T in %): one row a grid
    point.
    """


def numbers(results: StudyResults) -> Shrinking:
    """Intervals and grid points of every repeat."""
    import pandas as pd

    rows = [(r.number, r.low, r.high, r.high - r.low, r.note) for r in results.rounds]
    intervals = pd.DataFrame(rows, columns=["repeat", "low", "high", "width", "note"])
    table = search_table(results)
    width = (table["high"] - table["low"]).where(table["high"] > table["low"], 1.0)
    points = pd.DataFrame(
        {
            "repeat": table["repeat"],
            "epsilon": table["epsilon"],
            "position": (table["epsilon"] - table["low"]) / width,
            "best": table["best"],
            "mean": table["A_T_mean"],
        }
    )
    return Shrinking(intervals, points)


def draw(shrinking: Shrinking) -> Any:
    """A plotly figure; the first repeat on top."""
    figure = plotly("graph_objects").Figure()
    rows = list(shrinking.intervals.itertuples())
    for upper, lower in pairwise(rows):
        _add_funnel(figure, upper, lower)
    for row in rows:
        _add_bar(figure, row)
    for rank in (0, 2, 1):
        _add_points(figure, shrinking.points, rank)
    last = max(shrinking.intervals["repeat"].tolist(), default=1)
    finish(figure, height=110 + 92 * max(len(rows), 1))
    figure.update_layout(margin_b=16)
    figure.update_xaxes(visible=False, range=[-0.03, 1.03])
    figure.update_yaxes(
        range=[last + 0.55, 0.45],
        tickvals=[r.repeat for r in rows],
        ticktext=[f"repeat {r.repeat}" for r in rows],
        showgrid=False,
        showline=False,
        ticks="",
    )
    return figure


def caption(shrinking: Shrinking) -> str:
    """What is seen, in words."""
    widths = shrinking.intervals["width"].tolist()
    text = (
        "Every bar is one repeat at its own scale, with its two ends written below it; the grey funnel shows "
        "which part of it the next repeat searched. Dots: tried ε; diamond: best of the repeat; "
        "ring: second best."
    )
    if len(widths) > 1 and widths[-1] > 0:
        narrower = f"{widths[0] / widths[-1]:.3g} times narrower"
        text += f" From the first to the last repeat the interval became {narrower}."
    return text


def tables(shrinking: Shrinking) -> dict[str, pd.DataFrame]:
    """Name -> table of the data behind the figure."""
    return {"shrinking_intervals": shrinking.intervals, "shrinking_points": shrinking.points}


def _add_funnel(figure: Any, upper: Any, lower: Any) -> None:
    """From the kept part of the upper bar to the whole lower bar."""
    if upper.width <= 0:
        return
    left, right = ((end - upper.low) / upper.width for end in (lower.low, lower.high))
    figure.add_trace(
        plotly("graph_objects").Scatter(
            x=[left, right, 1, 0, left],
            y=[
                upper.repeat + BAR,
                upper.repeat + BAR,
                lower.repeat - BAR,
                lower.repeat - BAR,
                upper.repeat + BAR,
            ],
            fill="toself",
            mode="lines",
            line_width=0,
            fillcolor="rgba(0,0,0,0.06)",
            showlegend=False,
            hoverinfo="skip",
        )
    )


def _add_bar(figure: Any, row: Any) -> None:
    figure.add_shape(
        type="rect",
        x0=0,
        x1=1,
        y0=row.repeat - BAR,
        y1=row.repeat + BAR,
        line_width=0,
        fillcolor="#dfe7ee",
        layer="below",
    )
    for x, anchor, value in ((0, "left", row.low), (1, "right", row.high)):
        figure.add_annotation(
            x=x,
            y=row.repeat + BAR,
            text=epsilon_text(value),
            showarrow=False,
            xanchor=anchor,
            yanchor="top",
            font={"size": 12, "color": INK},
        )


def _add_points(figure: Any, points: pd.DataFrame, rank: int) -> None:
    """The grid points of one rank: 1 best, 2 second, 0 the others."""
    part = points[points["best"] == rank]
    styles = {
        0: ("tried ε", {"size": 7, "color": FAINT}),
        1: ("best", {"size": 12, "color": BLUE, "symbol": "diamond"}),
        2: ("second best", {"size": 11, "color": ORANGE, "symbol": "circle-open", "line": {"width": 2.5}}),
    }
    name, marker = styles[rank]
    labels = [epsilon_text(e) for e in part["epsilon"]] if rank else None
    figure.add_trace(
        plotly("graph_objects").Scatter(
            x=part["position"],
            y=part["repeat"],
            mode="markers+text" if rank else "markers",
            marker=marker,
            name=name,
            legendrank=rank or 3,
            text=labels,
            textposition="top center",
            textfont={"size": 12},
            customdata=part[["epsilon", "mean"]],
            hovertemplate="ε = %{customdata[0]:.6g}<br>A_T = %{customdata[1]:.4g} %<extra></extra>",
        )
    )
