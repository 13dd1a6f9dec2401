"""Figure: A_k or F_k over the tasks, a line a row."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from results.figures.style import axis_title, faint, finish, legend_beside, line_style, pad_range, plotly
from results.labels import count_text, subscripts
from results.ledger.record import RunRecord
from results.metrics import METRICS, PERCENT, average_accuracy_curve, forgetting_curve

MOST_BANDS = 3
"""With more lines, bands would cover each other: the spread is then only in the hover text and the CSV file."""


CURVES = {
    "A_k": ("A_T", 1, "accuracy_curve", "Average accuracy A_k on the tasks seen so far"),
    "F_k": ("F_T", 2, "forgetting_curve", "Forgetting F_k of the earlier tasks (lower is better)"),
}
"""Curve -> (metric of the last task, first k at which it is defined, name of the CSV file, words for the caption)."""


class Curve(NamedTuple):
    """A line of the figure, A_k in percent or F_k as a fraction, as in its CSV file."""

    label: str
    """The row's name."""
    epsilon: float
    """ε of its members; NaN if they differ."""
    mean: tuple[float, ...]
    """The metric at k = 1..T, mean over the seeds that did not diverge; F_1 is NaN."""
    std: tuple[float, ...]
    """Standard deviation (of the sample) at k = 1..T; NaN below two seeds."""
    n: int
    """Seeds that did not diverge."""
    place: int
    """Position of the row among all rows, measured or not: it decides the style, which so is the same in every
    figure."""


Numbers: TypeAlias = tuple[str, tuple[Curve, ...]]
""""A_k" or "F_k", and the lines in the order of the rows."""


def numbers(rows: Iterable[tuple[str, Sequence[RunRecord]]], metric: str = "A_k") -> Numbers:
    """Returns the curve of each (label, members); rows without a member that was trained to the end are left out.

    The members of a row must have the same number of tasks. Raises ValueError for other metrics than A_k and F_k.
    """
    if metric not in CURVES:
        raise ValueError(f"no curve of {metric!r}; known: {', '.join(CURVES)}")
    # Numbered before rows are left out, so that a line looks the same once the others are measured, too.
    return metric, tuple(
        _curve(label, members, metric, place)
        for place, (label, records) in enumerate(rows)
        if (members := [r for r in records if r.status == "ok"])
    )


def draw(data: Numbers) -> Any:
    """Returns a plotly figure with a line for each row.

    Few lines have a band of ± one standard deviation. Many lines have a second panel for the better half of them, if
    these are close together. Both metrics are in percent; the task k counts from 1.
    """
    data = metric, curves = _to_display_unit(data)
    few, closer = len(curves) <= MOST_BANDS, zoom(data)
    panels = [1] if closer is None else [1, 2]
    figure = plotly("subplots").make_subplots(rows=len(panels), cols=1, shared_xaxes=True, vertical_spacing=0.05)
    for curve in curves:
        if few:
            _add_band(figure, curve, faint(line_style(curve.place)[0]))
        for row in panels:
            _add_line(figure, curve, metric, row)
    # Beside the panels, the legend has a line for each row and must fit into the figure's height.
    finish(figure, height=370 if few else max(460 * len(panels), 60 + 25 * len(curves)))
    if not few:
        legend_beside(figure)
    _title_axes(figure, data, panels)
    if closer is not None:
        figure.update_yaxes(range=closer, row=2)
    return figure


def zoom(data: Numbers) -> tuple[float, float] | None:
    """Returns the range of the better half of many curves, if it is less than half of the whole range; else None."""
    metric, curves = data
    if len(curves) <= MOST_BANDS:
        return None
    ordered = sorted(curves, key=lambda c: c.mean[-1], reverse=metric == "A_k")
    _, first, _, _ = CURVES[metric]
    values = [np.array(c.mean)[first - 1 :] for c in ordered]
    values = [row[~np.isnan(row)] for row in values]  # joint training may have its last task alone
    best = np.concatenate(values[: (len(values) + 1) // 2])
    # A second panel that shows half of the range or more would show nothing new.
    if not best.size or np.ptp(best) > 0.5 * np.ptp(np.concatenate(values)):
        return None
    return pad_range(float(best.min()), float(best.max()))


def caption(data: Numbers) -> str:
    """Returns the caption; it names the lines if they are few, else the legend does."""
    metric, curves = data
    what = f"{CURVES[metric][-1]}, after task k of the evaluation stream"
    if len(curves) <= MOST_BANDS:
        names = " and ".join(f"{c.label} ({count_text(c.n, 'seed')})" for c in curves)
        return f"{what}: {names}. Lines: mean over seeds; bands: ± one standard deviation."
    below = " Below: the better half of the rows again, on its own scale." if zoom(data) else ""
    return (
        f"{what}, mean over the seeds that did not diverge.{below} Hover over a marker to see its standard deviation; "
        "click a name to hide its line."
    )


def tables(data: Numbers) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure.

    One row a line and task: row, epsilon (NaN where the members differ), k, <metric>_mean, <metric>_std, n.
    """
    metric, curves = data
    _, first, table, _ = CURVES[metric]
    rows = [
        (c.label, c.epsilon, k, mean, std, c.n)
        for c in curves
        for k, (mean, std) in enumerate(zip(c.mean, c.std, strict=True), start=1)
        if k >= first
    ]
    return {table: pd.DataFrame(rows, columns=["row", "epsilon", "k", f"{metric}_mean", f"{metric}_std", "n"])}


def _curve(label: str, members: list[RunRecord], metric: str, place: int) -> Curve:
    """Returns mean and spread of a metric over the members of a row, which have the same number of tasks T.

    Their accuracies are stacked as [R, T, T] for R members.
    """
    accuracies = np.stack([r.accuracies for r in members])
    curve = average_accuracy_curve if metric == "A_k" else forgetting_curve
    values = (100.0 if METRICS[CURVES[metric][0]].unit == PERCENT else 1.0) * curve(accuracies)
    std = values.std(axis=0, ddof=1) if len(members) > 1 else np.full(values.shape[1], np.nan)
    epsilon, *others = {r.epsilon for r in members}
    epsilon = float("nan") if others else epsilon
    return Curve(label, epsilon, tuple(values.mean(axis=0).tolist()), tuple(std.tolist()), len(members), place)


def _to_display_unit(data: Numbers) -> Numbers:
    """Returns the lines in the unit that people see."""
    metric, curves = data
    factor = METRICS[CURVES[metric][0]].display_factor
    return metric, tuple(
        curve._replace(mean=tuple(factor * y for y in curve.mean), std=tuple(factor * y for y in curve.std))
        for curve in curves
    )


def _add_band(figure: Any, curve: Curve, colour: str) -> None:
    """Adds the band of ± one standard deviation, below all lines; nothing where no task has a spread."""
    edges = [
        (k, mean - std, mean + std)
        for k, (mean, std) in enumerate(zip(curve.mean, curve.std, strict=True), start=1)
        if not math.isnan(std)  # one seed has no spread, and F_1 is not defined
    ]
    if edges:
        k, lower, upper = zip(*edges, strict=True)
        figure.add_scatter(
            x=[*k, *k[::-1]],  # a closed outline: along the upper edge and back along the lower one
            y=[*upper, *lower[::-1]],
            fill="toself",
            fillcolor=colour,
            mode="lines",
            line_width=0,
            showlegend=False,
            hoverinfo="skip",
        )


def _add_line(figure: Any, curve: Curve, metric: str, row: int) -> None:
    """Adds the line to the panel of a row; its spread is in the hover text."""
    kind, (colour, dash, symbol) = METRICS[CURVES[metric][0]], line_style(curve.place)
    values = f"%{{y:.{kind.digits}f}} ± %{{customdata:.{kind.digits}f}} {kind.display_unit}"
    figure.add_scatter(
        x=list(range(1, len(curve.mean) + 1)),
        y=curve.mean,
        customdata=curve.std,
        name=curve.label,
        legendgroup=curve.label,  # a click hides the line in both panels
        showlegend=row == 1,
        mode="lines+markers",
        line={"color": colour, "dash": dash, "width": 2},
        marker={"symbol": symbol, "size": 7, "color": colour},
        hovertemplate=f"%{{fullData.name}}<br>after task %{{x}}: {subscripts(metric)} = {values}<extra></extra>",
        row=row,
        col=1,
    )


def _title_axes(figure: Any, data: Numbers, panels: list[int]) -> None:
    metric, curves = data
    tasks, (kind, first, _, _) = max((len(c.mean) for c in curves), default=1), CURVES[metric]
    figure.update_xaxes(range=[first - 0.3, tasks + 0.3], dtick=1)  # a tick a task, markers not cut in half
    figure.update_xaxes(title_text="tasks learned, k", row=panels[-1])
    figure.update_yaxes(title_text=axis_title(metric, METRICS[kind].display_unit))
