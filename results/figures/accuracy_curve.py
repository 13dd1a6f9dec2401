"""A_k over the tasks of the evaluation stream: the chosen ε against A-GEM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from results.figures.style import BLUE, VERMILLION, finish, plotly
from results.labels import setting_label, subscripts
from results.metrics import average_accuracy_curve
from results.record import RunRecord
from results.study import StudyResults

if TYPE_CHECKING:
    import pandas as pd


class Curve(NamedTuple):
    """One line of the figure, percent."""

    label: str
    epsilon: float
    mean: tuple[float, ...]
    """A_k for k = 1..T, mean over the seeds that did not diverge."""
    std: tuple[float, ...]
    """Population standard deviation; NaN below two seeds."""
    n: int


class AccuracyCurve(NamedTuple):
    """What the figure shows: the chosen ε first."""

    curves: tuple[Curve, ...]


def numbers(results: StudyResults) -> AccuracyCurve:
    """A_k of the evaluated ε; empty where the evaluation has not run."""
    found = []
    for epsilon in results.evaluated_epsilons:
        members = [r for r in results.evaluation if r.epsilon == epsilon and r.status == "ok"]
        if members:
            found.append(_curve(setting_label(results.method, epsilon), epsilon, members))
    return AccuracyCurve(tuple(found))


def draw(accuracy: AccuracyCurve) -> Any:
    """A plotly figure: a line and a band of ± one standard deviation each."""
    figure = plotly("graph_objects").Figure()
    looks = (
        (BLUE, "rgba(0,114,178,0.16)", "circle", "solid"),
        (VERMILLION, "rgba(213,94,0,0.16)", "square", "dash"),
    )
    for curve, (colour, band, symbol, dash) in zip(accuracy.curves, looks, strict=False):
        _add_band(figure, curve, band)
        _add_line(figure, curve, colour, symbol, dash)
    finish(figure, height=430)
    tasks = max((len(c.mean) for c in accuracy.curves), default=1)
    figure.update_xaxes(title_text="tasks learned, k", range=[0.7, tasks + 0.3], dtick=1)
    figure.update_yaxes(title_text=subscripts("A_k (%)"))
    return figure


def caption(accuracy: AccuracyCurve) -> str:
    """What is seen, in words."""
    names = " and ".join(f"{c.label} ({c.n} {'seed' if c.n == 1 else 'seeds'})" for c in accuracy.curves)
    return (
        f"Average accuracy A_k on the tasks seen so far, after task k of the evaluation stream: {names}. "
        "Lines: mean over seeds; bands: ± one standard deviation."
    )


def tables(accuracy: AccuracyCurve) -> dict[str, pd.DataFrame]:
    """Name -> table of the data behind the figure."""
    import pandas as pd

    rows = [
        (c.label, c.epsilon, k, mean, std, c.n)
        for c in accuracy.curves
        for k, (mean, std) in enumerate(zip(c.mean, c.std, strict=True), start=1)
    ]
    return {"accuracy_curve": pd.DataFrame(rows, columns=["row", "epsilon", "k", "A_k_mean", "A_k_std", "n"])}


def _curve(label: str, epsilon: float, members: list[RunRecord]) -> Curve:
    values = 100.0 * average_accuracy_curve(np.stack([r.accuracies for r in members]))
    std = values.std(axis=0) if len(members) > 1 else np.full(values.shape[1], np.nan)
    return Curve(label, epsilon, tuple(values.mean(axis=0).tolist()), tuple(std.tolist()), len(members))


def _add_band(figure: Any, curve: Curve, colour: str) -> None:
    if curve.n < 2:
        return
    k = list(range(1, len(curve.mean) + 1))
    upper = [m + s for m, s in zip(curve.mean, curve.std, strict=True)]
    lower = [m - s for m, s in zip(curve.mean, curve.std, strict=True)]
    figure.add_trace(
        plotly("graph_objects").Scatter(
            x=[*k, *k[::-1]],
            y=[*upper, *lower[::-1]],
            fill="toself",
            fillcolor=colour,
            mode="lines",
            line_width=0,
            showlegend=False,
            hoverinfo="skip",
        )
    )


def _add_line(figure: Any, curve: Curve, colour: str, symbol: str, dash: str) -> None:
    figure.add_trace(
        plotly("graph_objects").Scatter(
            x=list(range(1, len(curve.mean) + 1)),
            y=curve.mean,
            customdata=curve.std,
            name=curve.label,
            mode="lines+markers",
            line={"color": colour, "dash": dash, "width": 2},
            marker={"symbol": symbol, "size": 7, "color": colour},
            hovertemplate="after task %{x}: A_k = %{y:.2f} ± %{customdata:.2f} %<extra></extra>",
        )
    )
