"""The drawing of `parameter_curve`, and what it shows."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from results.figures.style import (
    BLUE,
    INK,
    ORANGE,
    VERMILLION,
    add_legend_entry,
    axis_title,
    faint,
    finish,
    on_axis,
    ordered_colours,
    padded,
    plotly,
    value_axis,
)
from results.labels import subscripts
from results.metrics import METRICS
from results.points import parameter_label, value_text
from results.verdict.peak import Peak

MOST_ZOOMS = 4
"""Panels of single repeats; narrower ones than these would be unreadable."""


SET_HEIGHT = 0.025
"""Height of the bar of the confidence set, as a part of a panel."""

MOST_BARS = 100
"""Error bars that the width of a figure has room for."""


class ParameterCurve(NamedTuple):
    """Data of the figure; values in the units of `summarize`."""

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
    role: str
    """Its name in the figure: "chosen", or "leading" before the first round is finished."""
    baseline: float | None
    """The value of the baseline; None if there is none."""
    baseline_text: str
    """Its name in the legend."""
    zero_is_agem: bool
    """Whether the parameter is ε of ε-SOFT-GEM, which has another formula at 0: A-GEM's."""
    members: pd.DataFrame
    """One row a tried value and seed: repeat, <parameter>, seed, value."""
    points: pd.DataFrame
    """One row a tried value: repeat, <parameter>, n, diverged, mean, std (of the seeds), within_error (of the mean)."""
    intervals: tuple[int, ...]
    """Numbers of the rounds that searched an interval; without any, all points have the same colour."""
    peak: Peak | None
    """The curve and the confidence set of its top."""
    by_curve: bool
    """True for the choice of the curve."""
    at_summit: bool
    """True if the curve is highest at the chosen value."""
    objective: str
    """The metric that made the choice."""

    @property
    def label(self) -> str:
        """The name of the parameter as people write it."""
        return parameter_label(self.parameter)

    @property
    def zooms(self) -> tuple[int, ...]:
        """Numbers of the rounds with a panel of their own; not the first, whose interval is that of the upper panel."""
        return tuple(number for number in self.intervals if number > 1)[-MOST_ZOOMS:]

    def has_room(self, number: int) -> bool:
        """Returns whether the bars of a round stand apart in the upper panel; else they would be a block of colour."""
        places = [on_axis(value, self.log) for value in self.points[self.parameter]]
        own = [on_axis(value, self.log) for value in self.points[self.points["repeat"] == number][self.parameter]]
        return (
            max(own) - min(own) >= (max(places) - min(places)) * (len(own) - 1) / MOST_BARS or number not in self.zooms
        )

    @property
    def at_baseline(self) -> float | None:
        """The mean at the baseline; None where it has none."""
        rows = self.points[(self.points[self.parameter] == self.baseline) & self.points["mean"].notna()]
        return None if rows.empty else float(rows["mean"].iloc[0])


def draw(curve: ParameterCurve) -> Any:
    """Returns a plotly figure: the whole interval on top, below it the last repeats on one common scale.

    Dots are means with bars of ± one standard error within seeds, faint dots single seeds, in the colour of their round
    from dark (early) to light. A search without intervals has one panel and one colour.
    """
    curve = _displayed(curve)
    rounds = sorted(int(r) for r in curve.points["repeat"].unique())
    figure = _panels(curve.zooms)
    coloured = ordered_colours(len(rounds)) if curve.intervals else [BLUE] * len(rounds)
    colours = dict(zip(rounds, coloured, strict=True))
    for number in rounds:
        _add_round(figure, curve, number, colours[number], row=1, col=1)
    # Above all points of the upper panel: what comes later is drawn on top.
    _add_curve(figure, curve)
    for col, number in enumerate(curve.zooms, start=1):
        _add_round(figure, curve, number, colours[number], row=2, col=col)
    _add_reference_lines(figure, curve)
    _add_bands(figure, curve)
    finish(figure, height=780 if curve.zooms else 460)
    _title_axes(figure, curve)
    return figure


def _displayed(curve: ParameterCurve) -> ParameterCurve:
    """Returns the points in the unit that people see; the fitted curve follows in `_add_curve`."""
    points, columns = curve.points, ["mean", "std", "within_error"]
    return curve._replace(
        members=curve.members.assign(value=_factor(curve) * curve.members["value"]),
        points=points.assign(**{column: _factor(curve) * points[column] for column in columns}),
    )


def _factor(curve: ParameterCurve) -> float:
    return METRICS.get(curve.metric, METRICS["A_T"]).display_factor


def _panels(zooms: tuple[int, ...]) -> Any:
    """Returns an empty figure with all panels: one of full width, below it one for each number of `zooms`."""
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
    # "tried" where no round has an interval: then rounds are batches, whose number says nothing.
    name = f"{'repeat' if number in curve.intervals else 'batch'} {number}" if curve.intervals else "tried"
    hover = f"{curve.label} = %{{x:.6g}}<br>{subscripts(curve.metric)} = %{{y:.4g}}"
    figure.add_scatter(
        x=seeds[curve.parameter],
        y=seeds["value"],
        customdata=seeds["seed"],
        mode="markers",
        marker={"size": 4, "color": colour, "opacity": 0.3},
        legendgroup=name,
        showlegend=False,
        hovertemplate=f"{hover}<br>seed %{{customdata}}<extra></extra>",
        row=row,
        col=col,
    )
    # The baseline is shared by all repeats: it has one marker and one entry above, and one marker in each panel below.
    shown, plain = {trace.name for trace in figure.data}, means[curve.parameter] != curve.baseline
    dot = {"size": 6 if row == 1 else 7, "color": colour}
    bars = row == 2 or curve.has_room(number)
    diamond = {"symbol": "diamond", "size": 11, "color": VERMILLION}
    for label, part, marker, rank in (
        (name, means[plain], dot, 2),
        (curve.baseline_text, means[~plain], diamond, 1),
    ):
        if part.empty or (row == 1 and rank == 1 and label in shown):
            continue
        figure.add_scatter(
            x=part[curve.parameter],
            y=part["mean"],
            error_y={
                "array": part["within_error"].fillna(0),
                "thickness": 1.2,
                "width": 3,
                "visible": bars or rank == 1,
            },
            customdata=part[["n", "within_error"]],
            mode="markers",
            hovertemplate=f"{hover} ± %{{customdata[1]:.2g}} (n = %{{customdata[0]}})<extra></extra>",
            marker=marker,
            name=label,
            legendgroup=label,
            showlegend=row == 1 and label not in shown,
            legendrank=rank,
            row=row,
            col=col,
        )


def _add_curve(figure: Any, curve: ParameterCurve) -> None:
    """Adds the curve with its band as far as values were tried, and the choice as a star."""
    drawn = None if curve.peak is None else curve.peak.curve
    values = curve.points[curve.parameter]
    if drawn is not None:
        drawn = drawn.assign(**{column: _factor(curve) * drawn[column] for column in ("mean", "low", "high")})
        # Not beyond the tried values, where nothing but the model speaks.
        drawn = drawn[(drawn["value"] >= values.min()) & (drawn["value"] <= values.max())]
        if curve.zero_is_agem:
            usual = values[values > 0]
            drawn = drawn[drawn["value"] >= usual.min()]
        both = {"x": [*drawn["value"], *drawn["value"][::-1]], "y": [*drawn["high"], *drawn["low"][::-1]]}
        band = {"fill": "toself", "fillcolor": faint(INK), "line": {"width": 0}, "hoverinfo": "skip"}
        figure.add_scatter(**both, **band, mode="lines", showlegend=False, legendgroup="curve", row=1, col=1)
        figure.add_scatter(
            x=drawn["value"],
            y=drawn["mean"],
            mode="lines",
            line={"color": INK, "width": 1.6},
            legendrank=3,
            legendgroup="curve",
            name="curve, 95 % band",
            hoverinfo="skip",
            row=1,
            col=1,
        )
    height = _height_of_the_choice(curve, drawn)
    if height is None or (curve.chosen == curve.baseline and drawn is None):
        return
    figure.add_scatter(
        x=[curve.chosen],
        y=[height],
        mode="markers",
        marker={"symbol": "star", "size": 14, "color": ORANGE, "line": {"width": 1, "color": INK}},
        name=curve.role,
        legendrank=4,
        hovertemplate=f"{curve.role} {curve.label} = %{{x:.4g}}<extra></extra>",
        row=1,
        col=1,
    )


def _height_of_the_choice(curve: ParameterCurve, drawn: pd.DataFrame | None) -> float | None:
    """Returns where the star stands: on the curve if that has chosen, else on the choice's mean."""
    if curve.by_curve and drawn is not None and not (curve.zero_is_agem and curve.chosen == 0):
        return float(np.interp(curve.chosen, drawn["value"], drawn["mean"]))
    means = curve.points[(curve.points[curve.parameter] == curve.chosen) & curve.points["mean"].notna()]
    return None if means.empty else float(means["mean"].iloc[0])


def _add_bands(figure: Any, curve: ParameterCurve) -> None:
    """Adds the confidence set of the best value, a bar along the axis of every panel as far as its points go."""
    if curve.peak is None:
        return
    values = curve.points[curve.parameter]
    zooms = enumerate((values[curve.points["repeat"] == number] for number in curve.zooms), start=1)
    for row, col, shown in [(1, 1, values), *((2, col, inside) for col, inside in zooms)]:
        # Cut off at the points: a wider rectangle would widen the axis.
        low, high = max(curve.peak.low, float(shown.min())), min(curve.peak.high, float(shown.max()))
        if low < high:
            style = {"fillcolor": BLUE, "opacity": 0.55, "line_width": 0, "layer": "below"}
            figure.add_vrect(x0=low, x1=high, y0=0, y1=SET_HEIGHT, **style, row=row, col=col)
    # A rectangle has no entry in the legend.
    add_legend_entry(figure, "best may lie here (95 %)", {"symbol": "square", "size": 12, "color": BLUE}, rank=5)


def _add_reference_lines(figure: Any, curve: ParameterCurve) -> None:
    """Adds the level of the baseline to every panel, and the chosen value to the first."""
    if (level := curve.at_baseline) is not None:
        dashed = {"color": VERMILLION, "dash": "dash", "width": 1}
        for row, col in [(1, 1), *((2, col + 1) for col in range(len(curve.zooms)))]:
            figure.add_hline(y=level, line=dashed, layer="below", row=row, col=col)
    if curve.chosen == curve.baseline:
        return
    figure.add_vline(x=curve.chosen, line={"color": BLUE, "width": 1}, layer="below", row=1, col=1)
    # Not the annotation of add_vline, which is misplaced on a logarithmic axis: that expects the logarithm.
    figure.add_annotation(
        x=on_axis(curve.chosen, curve.log),
        y=1,
        xref="x",
        yref="y domain",
        text=f"{curve.role} {curve.label} = {value_text(curve.chosen)}",
        font={"color": BLUE, "size": 12},
        showarrow=False,
        yanchor="bottom",
        xanchor="left" if _is_left(curve) else "right",
    )


def _is_left(curve: ParameterCurve) -> bool:
    """Returns whether the chosen value is in the left half, where there is more room for its name on the right."""
    chosen = on_axis(curve.chosen, curve.log)
    places = [on_axis(value, curve.log) for value in curve.points[curve.parameter]] or [chosen]
    return chosen < (min(places) + max(places)) / 2


def _title_axes(figure: Any, curve: ParameterCurve) -> None:
    """Sets titles and types of all axes, and one vertical range for the lower panels."""
    title, zooms = axis_title(curve.metric, METRICS.get(curve.metric, METRICS["A_T"]).display_unit), curve.zooms
    figure.update_xaxes(title_text=curve.label, **value_axis(curve.points[curve.parameter], curve.log))
    figure.update_yaxes(title_text=title, row=1, col=1)
    if not zooms:
        return
    figure.update_yaxes(title_text=title, row=2, col=1)
    means = curve.points[curve.points["repeat"].isin(zooms)]
    seeds = curve.members[curve.members["repeat"].isin(zooms)]["value"]
    bars = [
        means["mean"] + sign * means["within_error"].fillna(0) for sign in (-1, 1)
    ]  # a bar may end beyond every seed
    shown = [value for column in (seeds, *bars) for value in column.dropna().tolist()]
    shown += [] if curve.at_baseline is None else [curve.at_baseline]
    if shown:
        figure.update_yaxes(range=padded(min(shown), max(shown)), row=2)
    for col in range(2, len(zooms) + 1):  # they share the scale of the first
        figure.update_yaxes(showticklabels=False, ticks="", row=2, col=col)
