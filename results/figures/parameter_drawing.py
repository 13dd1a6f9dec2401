"""The drawing of `parameter_curve`, and what it shows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from results.figures.style import (
    BLUE,
    FAINT,
    INK,
    ORANGE,
    VERMILLION,
    faint,
    finish,
    ordered_colours,
    plotly,
    value_axis,
)
from results.labels import subscripts
from results.metrics import METRICS
from results.points import parameter_label, value_text
from results.verdict.peak import Peak

if TYPE_CHECKING:
    import pandas as pd


MOST_ZOOMS = 4
"""Panels of single repeats; narrower ones than these would be unreadable."""


class ParameterCurve(NamedTuple):
    """What the figure shows; values in the units of `summarize`."""

    metric: str
    """"A_T" or "F_T"."""
    stream: str
    """The stream of the search: "cv" or "eval"."""
    parameter: str
    """Name of the parameter, which is also a column of `members` and `points`."""
    log: bool
    """Whether its axis is logarithmic."""
    chosen: float
    """The chosen value."""
    baseline: float | None
    """The value of the baseline; None without one."""
    baseline_text: str
    """Its name in the legend."""
    zero_is_agem: bool
    """Whether the parameter is ε of ε-SOFT-GEM, which has another formula at 0: A-GEM's."""
    members: pd.DataFrame
    """One row a tried value and seed: repeat, <parameter>, seed, value."""
    points: pd.DataFrame
    """One row a tried value: repeat, <parameter>, n, diverged, mean, std."""
    intervals: tuple[int, ...]
    """Numbers of the rounds that searched an interval; without any, all points have the same colour."""
    peak: Peak | None
    """The fitted curve and its confidence set."""

    @property
    def label(self) -> str:
        """The name of the parameter as people write it."""
        return parameter_label(self.parameter)

    @property
    def zooms(self) -> tuple[int, ...]:
        """Numbers of the rounds with a panel of their own."""
        return tuple(number for number in self.intervals if number > 1)[-MOST_ZOOMS:]

    @property
    def at_baseline(self) -> float | None:
        """The mean at the baseline; None where it has none."""
        rows = self.points[(self.points[self.parameter] == self.baseline) & self.points["mean"].notna()]
        return None if rows.empty else float(rows["mean"].iloc[0])

    def on_axis(self, value: float) -> float:
        """Returns a value's place on the axis."""
        return math.log10(value) if self.log else value


def draw(curve: ParameterCurve) -> Any:
    """Returns the plotly figure of `parameter_curve.draw`."""
    rounds = sorted(int(r) for r in curve.points["repeat"].unique())
    zooms = list(curve.zooms)  # not the first round, whose interval is that of the upper panel
    figure = _panels(curve, zooms)
    coloured = ordered_colours(len(rounds)) if curve.intervals else [BLUE] * len(rounds)
    colours = dict(zip(rounds, coloured, strict=True))
    for number in rounds:
        _add_round(figure, curve, number, colours[number], row=1, col=1)
    _add_curve(figure, curve)
    for col, number in enumerate(zooms, start=1):
        _add_round(figure, curve, number, colours[number], row=2, col=col)
    _add_reference_lines(figure, curve, len(zooms))
    _add_bands(figure, curve, zooms)
    finish(figure, height=780 if zooms else 460)
    _title_axes(figure, curve, zooms)
    return figure


def _hover(curve: ParameterCurve) -> str:
    return f"{curve.label} = %{{x:.6g}}<br>{subscripts(curve.metric)} = %{{y:.4g}}"


def _panels(curve: ParameterCurve, zooms: list[int]) -> Any:
    """Returns an empty figure with all panels."""
    if not zooms:
        return plotly("subplots").make_subplots(rows=1, cols=1)
    return plotly("subplots").make_subplots(
        rows=2,
        cols=len(zooms),
        specs=[[{"colspan": len(zooms)}, *[None] * (len(zooms) - 1)], [{}] * len(zooms)],
        row_heights=[0.56, 0.44],
        vertical_spacing=0.17,
        horizontal_spacing=0.03,
        subplot_titles=["", *(f"Repeat {r}" for r in zooms)],
    )


def _add_round(figure: Any, curve: ParameterCurve, number: int, colour: str, row: int, col: int) -> None:
    """Adds faint seeds, then means with error bars; the baseline has its own marker."""
    seeds = curve.members[(curve.members["repeat"] == number) & curve.members["value"].notna()]
    means = curve.points[(curve.points["repeat"] == number) & curve.points["mean"].notna()]
    name = f"{'repeat' if number in curve.intervals else 'batch'} {number}" if curve.intervals else "tried"
    dot = {"size": 4, "color": colour, "opacity": 0.3}
    dots = plotly("graph_objects").Scatter(
        x=seeds[curve.parameter], y=seeds["value"], customdata=seeds["seed"], mode="markers", marker=dot,
        legendgroup=name, showlegend=False,
        hovertemplate=f"{_hover(curve)}<br>seed %{{customdata}}<extra></extra>",
    )  # fmt: skip
    figure.add_trace(dots, row=row, col=col)
    look = {"size": 6 if row == 1 else 7, "color": colour}
    plain = means[curve.parameter] != curve.baseline
    shown = {trace.name for trace in figure.data}
    named = {"name": name, "legendgroup": name, "showlegend": row == 1 and name not in shown, "legendrank": 2}
    _add_means(figure, curve, means[plain], {"marker": look, **named}, row, col)
    if row == 2 or curve.baseline_text not in shown:
        diamond = {"symbol": "diamond", "size": 11, "color": VERMILLION}
        text = curve.baseline_text
        named = {"name": text, "legendgroup": text, "showlegend": row == 1, "legendrank": 1}
        _add_means(figure, curve, means[~plain], {"marker": diamond, **named}, row, col)


def _add_means(
    figure: Any, curve: ParameterCurve, means: pd.DataFrame, look: dict[str, Any], row: int, col: int
) -> None:
    if means.empty:
        return
    bars = {"array": means["std"].fillna(0), "thickness": 1.2, "width": 3}
    hover = f"{_hover(curve)} ± %{{customdata[1]:.2g}} (n = %{{customdata[0]}})<extra></extra>"
    points = plotly("graph_objects").Scatter(
        x=means[curve.parameter], y=means["mean"], error_y=bars, customdata=means[["n", "std"]],
        mode="markers", hovertemplate=hover, **look,
    )  # fmt: skip
    figure.add_trace(points, row=row, col=col)


def _add_curve(figure: Any, curve: ParameterCurve) -> None:
    """Adds the fitted curve over its window, and a star where it is best."""
    found, scatter = curve.peak, plotly("graph_objects").Scatter
    if found is None or found.curve is None or found.maximum.window is None:
        return
    places = np.linspace(found.maximum.window.low, found.maximum.window.high, 201).tolist()
    line = {"color": FAINT, "dash": "dot", "width": 1.6}
    shape = scatter(
        x=[found.value(place) for place in places],
        y=[found.at(place) for place in places],
        mode="lines",
        line=line,
        legendrank=3,
        name="fitted curve",
        hoverinfo="skip",
    )
    figure.add_trace(shape, row=1, col=1)
    star = {"symbol": "star", "size": 12, "color": ORANGE, "line": {"width": 1, "color": INK}}
    hover = f"best of the curve: {curve.label} = %{{x:.4g}}<extra></extra>"
    best = scatter(
        x=[found.best], y=[found.at(found.maximum.best)], mode="markers", marker=star, name="its best",
        legendrank=4, hovertemplate=hover,
    )  # fmt: skip
    figure.add_trace(best, row=1, col=1)


def _add_bands(figure: Any, curve: ParameterCurve, zooms: list[int]) -> None:
    """Adds the confidence set, shaded in every panel as far as its points go."""
    if curve.peak is None:
        return
    panels = [(1, 1, curve.points), *((2, c, _of(curve, n)) for c, n in enumerate(zooms, start=1))]
    for row, col, points in panels:
        low = max(curve.peak.low, float(points[curve.parameter].min()))
        high = min(curve.peak.high, float(points[curve.parameter].max()))
        if low < high:
            figure.add_vrect(x0=low, x1=high, fillcolor=faint(BLUE), line_width=0, layer="below", row=row, col=col)
    # A shaded rectangle has no entry in the legend, so a trace without points stands for it.
    swatch = {"symbol": "square", "size": 12, "color": faint(BLUE)}
    figure.add_trace(
        plotly("graph_objects").Scatter(
            x=[None], y=[None], mode="markers", marker=swatch, name="best may lie here", legendrank=5, hoverinfo="skip"
        ),
        row=1,
        col=1,
    )


def _of(curve: ParameterCurve, number: int) -> pd.DataFrame:
    return curve.points[curve.points["repeat"] == number]


def _add_reference_lines(figure: Any, curve: ParameterCurve, zooms: int) -> None:
    """Adds the level of the baseline to every panel, and the chosen value to the first."""
    places = [(1, 1), *((2, c) for c in range(1, zooms + 1))]
    for row, col in places:
        if curve.at_baseline is not None:
            figure.add_hline(
                y=curve.at_baseline,
                line={"color": VERMILLION, "dash": "dash", "width": 1},
                layer="below",
                row=row,
                col=col,
            )
    if curve.chosen == curve.baseline:
        return
    figure.add_vline(x=curve.chosen, line={"color": BLUE, "width": 1}, layer="below", row=1, col=1)
    # Not the annotation of add_vline, which is misplaced on a logarithmic axis: that expects the logarithm.
    figure.add_annotation(
        x=curve.on_axis(curve.chosen),
        y=1,
        xref="x",
        yref="y domain",
        text=f"chosen {curve.label} = {value_text(curve.chosen)}",
        font={"color": BLUE, "size": 12},
        showarrow=False,
        yanchor="bottom",
        xanchor="left" if _is_left(curve) else "right",
    )


def _is_left(curve: ParameterCurve) -> bool:
    """Returns whether the chosen value is in the left half, where there is more room for its name on the right."""
    places = [curve.on_axis(value) for value in curve.points[curve.parameter]] or [curve.on_axis(curve.chosen)]
    return curve.on_axis(curve.chosen) < (min(places) + max(places)) / 2


def _title_axes(figure: Any, curve: ParameterCurve, zooms: list[int]) -> None:
    title = subscripts(f"{curve.metric} (%)" if METRICS[curve.metric].unit else f"{curve.metric} (fraction)")
    figure.update_xaxes(title_text=curve.label, **value_axis(curve.points[curve.parameter], curve.log))
    figure.update_yaxes(title_text=title, row=1, col=1)
    if not zooms:
        return
    figure.update_yaxes(title_text=title, row=2, col=1)
    means = curve.points[curve.points["repeat"].isin(zooms)]
    seeds = curve.members[curve.members["repeat"].isin(zooms)]["value"]
    bars = [means["mean"] + sign * means["std"].fillna(0) for sign in (-1, 1)]  # a bar may end beyond every seed
    shown = [value for column in (seeds, *bars) for value in column.dropna().tolist()]
    shown += [] if curve.at_baseline is None else [curve.at_baseline]
    if shown:
        pad = 0.06 * (max(shown) - min(shown)) or 1e-3
        figure.update_yaxes(range=[min(shown) - pad, max(shown) + pad], row=2)
    for col in range(2, len(zooms) + 1):
        figure.update_yaxes(showticklabels=False, ticks="", row=2, col=col)
