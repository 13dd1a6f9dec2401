"""Figure: A_T of every tried point of several studies against each searched parameter, coloured by strategy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from results.figures.style import INK, finish, has_numbers, legend_beside, look, plotly, value_axis
from results.labels import STREAM_LABELS, subscripts
from results.points import parameter_label, value_text
from results.search import SearchResults
from results.search_tables import by_point

if TYPE_CHECKING:
    import pandas as pd


class Tried(NamedTuple):
    """What the figure shows."""

    stream: str
    """The stream of the scores: "cv" or "eval"."""
    parameters: tuple[str, ...]
    """Those that all studies searched; panels in this order."""
    log: tuple[str, ...]
    """Those whose axis is logarithmic."""
    points: pd.DataFrame
    """One row a study and tried point: row (label), place (of the study, from 0), chosen, a column for each parameter,
    n, A_T_mean, A_T_std (percent)."""


def numbers(studies: Sequence[tuple[str, SearchResults]]) -> Tried:
    """Returns the points of several (label, study); parameters that not all of them searched have no panel."""
    import pandas as pd

    shared = [n for n in studies[0][1].parameters if all(n in s.parameters for _, s in studies)]
    frames = []
    for place, (label, study) in enumerate(studies):
        groups = {point: study.members_of(point) for point in study.points}
        table = by_point(groups, study.parameters)[[*shared, "n", "A_T_mean", "A_T_std"]]
        frames.append(table.assign(row=label, place=place, chosen=[s == study.chosen for s in groups]))
    points = pd.concat(frames, ignore_index=True)[["row", "place", "chosen", *shared, "n", "A_T_mean", "A_T_std"]]
    log = {name for _, study in studies for name in study.log}
    return Tried(studies[0][1].score_on, tuple(shared), tuple(n for n in shared if n in log), points)


def draw(tried: Tried) -> Any:
    """Returns a plotly figure: one panel for each parameter; the chosen point of each study is larger."""
    rows = max(len(tried.parameters), 1)
    figure = plotly("subplots").make_subplots(rows=rows, cols=1, vertical_spacing=0.24 / rows)
    for row, name in enumerate(tried.parameters, start=1):
        for place in sorted(set(tried.points["place"])):
            for chosen in (False, True):
                _add_points(figure, tried, name, place, chosen, row)
        figure.update_xaxes(
            title_text=parameter_label(name), **value_axis(tried.points[name], name in tried.log), row=row, col=1
        )
    finish(figure, height=60 + 380 * rows)
    legend_beside(figure)
    figure.update_yaxes(title_text=subscripts("A_T (%)"))
    return figure


def caption(tried: Tried) -> str:
    """Returns the caption."""
    text = (
        f"Final average accuracy A_T of every tried point on the {STREAM_LABELS[tried.stream]}: mean over the seeds "
        "that did not diverge, coloured by strategy. Large and outlined: the choice of the strategy. Click a name to "
        "hide its dots."
    )
    return (
        text
        if tried.parameters
        else f"{text} The studies searched no hyperparameter in common, so there is nothing to draw."
    )


def tables(tried: Tried) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure."""
    return {"tried": tried.points.drop(columns="place")}


def _add_points(figure: Any, tried: Tried, name: str, place: int, chosen: bool, row: int) -> None:
    points = tried.points
    part = points[(points["place"] == place) & (points["chosen"] == chosen) & points["A_T_mean"].notna()]
    if part.empty:
        return
    style, label = look(place), str(part["row"].iloc[0])
    marker = {
        "color": style.colour,
        "symbol": style.symbol,
        "size": 14 if chosen else 7,
        "opacity": 1 if chosen else 0.55,
        "line": {"width": 1.5 if chosen else 0, "color": INK},
    }
    shown, numeric = f"{parameter_label(name)} = %{{x}}", has_numbers(points[name])
    figure.add_trace(
        plotly("graph_objects").Scatter(
            x=part[name] if numeric else [value_text(value) for value in part[name]],
            y=part["A_T_mean"],
            customdata=[
                [n, "" if math.isnan(s) else f" ± {s:.2g}"] for n, s in zip(part["n"], part["A_T_std"], strict=True)
            ],
            mode="markers",
            marker=marker,
            name=label,
            legendgroup=label,
            showlegend=chosen and row == 1,
            hovertemplate=f"%{{fullData.name}}<br>{shown}<br>{subscripts('A_T')} = "
            "%{y:.2f}%{customdata[1]} % (n = %{customdata[0]})<extra></extra>",
        ),
        row=row,
        col=1,
    )
