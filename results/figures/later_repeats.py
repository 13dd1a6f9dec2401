"""Figure: a metric versus the searched parameter in the later repeats, each over its own interval."""

from typing import Any

import pandas as pd

from results.figures.noise import left_out_text
from results.figures.parameter_curve import figure_name
from results.figures.parameter_drawing import (
    ParameterCurve,
    add_level,
    add_round,
    add_set,
    colours,
    title,
    to_display_unit,
)
from results.figures.style import finish, pad_range, plotly, value_axis

MOST_PANELS = 4
"""Panels of repeats side by side; narrower ones than these would be unreadable."""


def panels(curve: ParameterCurve) -> tuple[int, ...]:
    """Returns the numbers of the repeats with a panel: the last ones whose values do not differ by noise alone."""
    return tuple(number for number in curve.later if number not in curve.indistinct)[-MOST_PANELS:]


def draw(curve: ParameterCurve) -> Any:
    """Returns a plotly figure: a panel for each repeat over its own interval, all with one vertical scale.

    Marks and colours are those of `parameter_curve`.
    """
    curve, repeats = to_display_unit(curve), panels(curve)
    titles = [f"Repeat {number}" for number in repeats]
    figure = plotly("subplots").make_subplots(
        rows=1, cols=max(len(repeats), 1), horizontal_spacing=0.03, subplot_titles=titles
    )
    of_round = colours(curve)
    for col, number in enumerate(repeats, start=1):
        add_round(figure, curve, number, of_round[number], col)
        add_level(figure, curve, col)
        add_set(figure, curve, curve.points[curve.points["repeat"] == number][curve.parameter], col)
    finish(figure, height=320)
    figure.update_layout(showlegend=False, margin_t=36)
    figure.update_xaxes(title_text=curve.label, **value_axis(curve.points[curve.parameter], curve.log))
    figure.update_yaxes(title_text=title(curve), col=1)
    if (ends := _ends(curve, repeats)) is not None:
        figure.update_yaxes(range=ends)
    for col in range(2, len(repeats) + 1):  # they share the scale of the first
        figure.update_yaxes(showticklabels=False, ticks="", col=col)
    return figure


def caption(curve: ParameterCurve) -> str:
    """Returns the caption, with the number of repeats that have no panel."""
    repeats, later = panels(curve), [number for number in curve.later if number not in curve.indistinct]
    text = f"{curve.metric} in later repeats, each over its own interval, on one vertical scale."
    if earlier := len(later) - len(repeats):
        text += f" Of {len(later)} the last {len(repeats)} are drawn, without {earlier} earlier."
    left_out = left_out_text(tuple(number for number in curve.indistinct if number in curve.later))
    return " ".join(filter(None, (text, left_out, "Marks as in the figure of all repeats.")))


def tables(curve: ParameterCurve) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure: those rows of `parameter_curve` that have a panel."""
    return {f"{figure_name(curve.parameter, curve.metric)}_repeats": _rows(curve)}


def _rows(curve: ParameterCurve) -> pd.DataFrame:
    return curve.points[curve.points["repeat"].isin(panels(curve))].reset_index(drop=True)


def _ends(curve: ParameterCurve, repeats: tuple[int, ...]) -> tuple[float, float] | None:
    """Returns the vertical range of all panels; None where nothing has a score."""
    means = curve.points[curve.points["repeat"].isin(repeats)]
    seeds = curve.members[curve.members["repeat"].isin(repeats)]["value"]
    # A bar may end beyond every seed.
    bars = [means["mean"] + sign * means["within_error"].fillna(0) for sign in (-1, 1)]
    values = [value for column in (seeds, *bars) for value in column.dropna().tolist()]
    values += [] if curve.at_baseline is None else [curve.at_baseline]
    return pad_range(min(values), max(values)) if values else None
