"""Figure: the best value of each order of tasks, a row an order."""

from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from results.figures.style import BLUE, INK, ORANGE, finish, plotly, value_axis
from results.labels import STREAM_LABELS, count_text, number_text, subscripts
from results.metrics import METRICS
from results.orders import scores, units
from results.points import parameter_label, value_text
from results.search import SearchResults
from results.statistics.order_effect import best_values

PALEST = 0.12
"""Opacity of the dots that lie furthest below the best one of their order."""
MOST_PIXELS = 640
"""Most height of all rows; more orders than 20 are closer together."""

Numbers: TypeAlias = tuple[SearchResults, pd.DataFrame]
"""Results; one row an order and tried value: order, <parameter>, n, missing, mean, below, best.

n: seeds with a result; missing: those without one, as runs diverged. mean: over these seeds; below: how far it lies
under the highest of the order, NaN without a result; both in the unit in which people see the metric. best: whether the
value is the best one of the order, see `best_values`.
"""


def numbers(results: SearchResults) -> Numbers | None:
    """Returns the means of what was maximised by order and tried value; None for fewer than two orders.

    Only for results whose `is_curve` is true.
    """
    orders, _ = units(results.search)
    if len(orders) < 2:
        return None
    values = np.array([float(point[0]) for point in results.points])
    table = METRICS[results.objective].display_factor * scores(results)
    best = dict(zip(orders, best_values(values, table).tolist(), strict=True))
    rows = [
        (order, value, int(finite.sum()), int((~finite).sum()), float(cells[finite].mean()) if finite.any() else np.nan)
        for place, order in enumerate(orders)
        for value, cells in zip(values.tolist(), table[:, place], strict=True)
        for finite in [~np.isnan(cells)]
    ]
    name = results.parameters[0]
    frame = pd.DataFrame(rows, columns=["order", name, "n", "missing", "mean"])
    below = frame.groupby("order")["mean"].transform("max") - frame["mean"]
    return results, frame.assign(below=below, best=frame[name] == frame["order"].map(best))


def draw(data: Numbers) -> Any:
    """Returns a plotly figure: a row of dots for each order, the first on top, and a line at the chosen value."""
    results, frame = data
    name, log = results.parameters[0], results.parameters[0] in results.log
    figure, palest = plotly("graph_objects").Figure(), _palest(frame)
    orders = frame["order"].drop_duplicates().tolist()
    rows = {order: -place for place, order in enumerate(orders)}  # downwards
    scored = frame[frame["mean"].notna()]
    hover = (
        f"order %{{customdata[0]}}, {parameter_label(name)} = %{{x:.6g}}<br>{subscripts(results.objective)} = "
        "%{customdata[1]:.4g}, %{customdata[2]:.3g} below the best<br>n = %{customdata[3]}<extra></extra>"
    )
    chosen, ends = results.chosen[0], [0.5, 0.5 - len(orders)]
    # A trace, first: a shape below all dots would lie below the grid, too.
    figure.add_scatter(
        x=[chosen, chosen],
        y=ends,
        mode="lines",
        line={"color": BLUE, "width": 1},
        name=f"{results.role} {parameter_label(name)} = {value_text(chosen)}",
        legendrank=1001,  # after the others, which have 1000
        hoverinfo="skip",
    )
    best = {"symbol": "diamond", "size": 12, "color": ORANGE, "line": {"width": 1, "color": INK}}
    dots = {"size": 9, "color": BLUE, "opacity": 1 - (1 - PALEST) * np.minimum(scored["below"] / palest, 1)}
    for label, part, marker in (("tried", scored, dots), ("best of the order", scored[scored["best"]], best)):
        figure.add_scatter(
            x=part[name],
            y=part["order"].map(rows),
            customdata=part[["order", "mean", "below", "n"]],
            mode="markers",
            marker=marker,
            name=label,
            hovertemplate=hover,
        )
    finish(figure, height=round(150 + min(32 * len(orders), MOST_PIXELS)))
    figure.update_xaxes(title_text=parameter_label(name), **value_axis(frame[name], log))
    figure.update_yaxes(
        title_text="order of tasks",
        range=ends[::-1],
        tickvals=list(rows.values()),
        ticktext=list(map(str, rows)),
        showgrid=False,
    )
    return figure


def caption(data: Numbers) -> str:
    """Returns the caption: what the marks are, and how many orders have a best value near the chosen one."""
    results, frame = data
    name, metric = parameter_label(results.parameters[0]), results.objective
    unit = METRICS.get(metric, METRICS["A_T"]).display_unit  # an objective, which is in percent, too
    best = frame.loc[frame["best"], results.parameters[0]]
    ends = (
        f" In {count_text(len(best), 'order')} it lies between {value_text(best.min())} and {value_text(best.max())}."
        if len(best)
        else ""
    )
    return (
        f"Best {name} by order of tasks, on the {STREAM_LABELS[results.score_on]}. Dots: tried values, paler the "
        f"further their mean {metric} over the seeds of the order lies below the highest of the order, palest from "
        f"{number_text(_palest(frame), 2)} {'points' if unit == '%' else unit or 'of a fraction'} on. Diamond: the "
        f"highest, among values of which no run is missing or diverged.{ends} Line: the {results.role} {name}, "
        "over all orders. The highest of many noisy means is also the luckiest: orders differ by chance, too."
    )


def tables(data: Numbers) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure."""
    return {"orders": data[1]}


def _palest(frame: pd.DataFrame) -> float:
    """Returns from which distance below the highest mean on dots are palest.

    Twice the median, so that a few very low values do not make all others alike.
    """
    distance = 2 * float(frame["below"].median())
    return distance if distance > 0 else 1.0
