"""Figure: A_T against each of several searched parameters."""

import math
from typing import Any

import pandas as pd

from results.figures.scores import Scores
from results.figures.style import BLUE, FAINT, INK, VERMILLION, finish, plotly, value_axis, value_places
from results.labels import STREAM_LABELS, subscripts
from results.metrics import mean_and_std
from results.points import Point, by_point, parameter_label, point_text
from results.search import SearchResults
from results.verdict import wording

PANELS_A_ROW = 3
"""Most panels in a row; four panels are two and two."""
TRIED, CHOSEN, LEADING, BASELINE = "tried", "chosen", "leading", "baseline"
STYLES = {
    **{TRIED: (FAINT, "circle"), BASELINE: (VERMILLION, "square")},
    **{CHOSEN: (BLUE, "diamond"), LEADING: (BLUE, "diamond")},
}
"""Colour and marker of each kind; drawn in this order, so that the chosen point is on top."""


def numbers(results: SearchResults) -> Scores:
    """Returns every tried point with its mean over the seeds that did not diverge.

    Columns: one for each parameter, n, diverged, mean, std (percent), kind (a key of STYLES), text.
    Points come in the order of `SearchResults.points`. Each has one kind: the chosen point is "chosen", or
    "leading" before the first round is finished, also where it is the baseline.
    """
    groups = {point: results.members_of(point) for point in results.points}
    table = by_point(groups, results.parameters).rename(
        columns={column: part for part, column in mean_and_std(results.objective).items()}
    )
    points = table[[*results.parameters, "n", "diverged", "mean", "std"]].assign(
        kind=[_kind(results, point) for point in groups],
        text=[point_text(results.parameters, point) for point in groups],
    )
    return Scores(results.score_on, results.objective, points, results.parameters, results.log)


def draw(slices: Scores) -> Any:
    """Returns a plotly figure: one panel for each parameter, all with the same vertical axis, the score in percent.

    A panel is a projection, not a section: the other parameters vary within it. Hovering shows the whole point.
    """
    cols = 2 if len(slices.parameters) == 4 else min(len(slices.parameters), PANELS_A_ROW)
    rows = math.ceil(len(slices.parameters) / cols)
    figure = plotly("subplots").make_subplots(
        rows=rows, cols=cols, shared_yaxes=True, horizontal_spacing=0.04, vertical_spacing=0.3 / rows
    )
    for position, name in enumerate(slices.parameters):
        row, col = (place + 1 for place in divmod(position, cols))
        for kind in STYLES:
            _add_points(figure, slices, name, kind, row, col)
        figure.update_xaxes(
            title_text=parameter_label(name), **value_axis(slices.points[name], name in slices.log), row=row, col=col
        )
    finish(figure, height=90 + (330 if rows == 1 else 240) * rows)  # four panels fit on a screen
    figure.update_yaxes(title_text=subscripts(f"{slices.objective} (%)"), col=1)  # the panels of a row share their axis
    return figure


def caption(slices: Scores) -> str:
    """Returns the caption."""
    role = LEADING if (slices.points["kind"] == LEADING).any() else CHOSEN
    square = "; square: the baseline" if (slices.points["kind"] == BASELINE).any() else ""
    panels = (
        "bars are ± one standard deviation"
        if len(slices.parameters) == 1
        else "each panel shows all of them against one hyperparameter, while the others vary"
    )
    what, stream = wording.objective(slices.objective), STREAM_LABELS[slices.stream]
    return (
        f"{what} of every tried point on the {stream}, mean over the seeds "
        f"that did not diverge; {panels}. Diamond: the {role} point{square}. Hover over a marker to see the whole "
        "point."
    )


def tables(slices: Scores) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure."""
    return {"slices": slices.points.drop(columns="text").rename(columns=mean_and_std(slices.objective))}


def _kind(results: SearchResults, point: Point) -> str:
    if point == results.chosen:
        return results.role
    return BASELINE if point == results.baseline else TRIED


def _add_points(figure: Any, slices: Scores, name: str, kind: str, row: int, col: int) -> None:
    part = slices.points[(slices.points["kind"] == kind) & slices.points["mean"].notna()]
    if part.empty:
        return
    colour, symbol = STYLES[kind]
    figure.add_scatter(
        x=value_places(part[name], slices.points[name]),
        y=part["mean"],
        # One seed has no spread: its bar has the length 0.
        error_y={"array": part["std"].fillna(0), "thickness": 1, "width": 0, "color": colour},
        customdata=part[["text", "std", "n"]],
        mode="markers",
        marker={
            "color": colour,
            "size": 7 if kind == TRIED else 12,
            "symbol": symbol,
            "opacity": 0.65 if kind == TRIED else 1,
            "line": {"width": 0 if kind == TRIED else 1, "color": INK},
        },
        name=kind,
        legendgroup=kind,  # a click hides the kind in all panels, and only the first has an entry
        showlegend=name == slices.parameters[0],
        hovertemplate="%{customdata[0]}<br>"
        + subscripts(slices.objective)
        + " = %{y:.2f} ± %{customdata[1]:.2g} % (n = %{customdata[2]})<extra></extra>",
        row=row,
        col=col,
    )
