"""Figure: tried points of several studies, coloured by strategy."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from results.figures.scores import Scores
from results.figures.style import INK, finish, legend_beside, line_style, plotly, value_axis, value_places
from results.labels import STREAM_LABELS, subscripts
from results.metrics import mean_and_std
from results.points import by_point, parameter_label
from results.search import SearchResults
from results.verdict import wording


def numbers(studies: Sequence[tuple[str, SearchResults]]) -> Scores:
    """Returns the points of several (label, study); parameters that not all of them searched have no panel.

    Columns: row (label), place (of the study, from 0), chosen, one for each parameter, n, mean, std (percent).

    In the order of the studies, which decides their colours; within one as in `SearchResults.points`. The score is that
    of the search, mean over the seeds that did not diverge.
    """
    shared = [n for n in studies[0][1].parameters if all(n in s.parameters for _, s in studies)]
    frames = [
        by_point({point: study.members_of(point) for point in study.points}, study.parameters)
        .assign(row=label, place=place, chosen=[point == study.chosen for point in study.points])
        .rename(columns={column: part for part, column in mean_and_std(study.objective).items()})[
            ["row", "place", "chosen", *shared, "n", "mean", "std"]
        ]
        for place, (label, study) in enumerate(studies)
    ]
    # Logarithmic as soon as one study searched it so: its small values would all be in one place on a linear axis.
    log = {name for _, study in studies for name in study.log}
    return Scores(
        studies[0][1].score_on,
        studies[0][1].objective,
        pd.concat(frames, ignore_index=True),
        tuple(shared),
        tuple(n for n in shared if n in log),
    )


def draw(tried: Scores) -> Any:
    """Returns a plotly figure: one panel for each parameter; the chosen point of each study is larger.

    A point is in every panel, at its value of that parameter; what else varies shows as scatter.
    """
    rows = max(len(tried.parameters), 1)  # plotly makes no figure without a panel
    figure = plotly("subplots").make_subplots(rows=rows, cols=1, vertical_spacing=0.24 / rows)
    for row, name in enumerate(tried.parameters, start=1):
        for place in sorted(set(tried.points["place"])):
            for chosen in (False, True):  # the choice last, on top
                _add_points(figure, tried, name, place, chosen, row)
        figure.update_xaxes(
            title_text=parameter_label(name), **value_axis(tried.points[name], name in tried.log), row=row, col=1
        )
    finish(figure, height=60 + 380 * rows)
    legend_beside(figure)
    figure.update_yaxes(title_text=subscripts(f"{tried.objective} (%)"))
    return figure


def caption(tried: Scores) -> str:
    """Returns the caption; without a common parameter it says why there is nothing."""
    empty = " The studies searched no hyperparameter in common, so there is nothing to draw."
    what, stream = wording.objective(tried.objective), STREAM_LABELS[tried.stream]
    return (
        f"{what} of every tried point on the {stream}: mean over the seeds "
        "that did not diverge, coloured by strategy. Large and outlined: the choice of the strategy. Click a name to "
        f"hide its dots.{'' if tried.parameters else empty}"
    )


def tables(tried: Scores) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure."""
    return {"tried": tried.points.drop(columns="place").rename(columns=mean_and_std(tried.objective))}


def _add_points(figure: Any, tried: Scores, name: str, place: int, chosen: bool, row: int) -> None:
    points = tried.points
    part = points[(points["place"] == place) & (points["chosen"] == chosen) & points["mean"].notna()]
    if part.empty:
        return
    (colour, _, symbol), label = line_style(place), str(part["row"].iloc[0])
    figure.add_scatter(
        x=value_places(part[name], points[name]),
        y=part["mean"],
        # As text, because plotly cannot leave out the ± of a point that has one seed.
        customdata=[[n, "" if math.isnan(s) else f" ± {s:.2g}"] for n, s in zip(part["n"], part["std"], strict=True)],
        mode="markers",
        marker={
            "color": colour,
            "symbol": symbol,
            "size": 14 if chosen else 7,
            "opacity": 1 if chosen else 0.55,
            "line": {"width": 1.5 if chosen else 0, "color": INK},
        },
        name=label,
        legendgroup=label,
        showlegend=chosen and row == 1,  # every study has one chosen point, but may have no other with a score
        hovertemplate=f"%{{fullData.name}}<br>{parameter_label(name)} = %{{x}}<br>{subscripts(tried.objective)} = "
        "%{y:.2f}%{customdata[1]} % (n = %{customdata[0]})<extra></extra>",
        row=row,
        col=1,
    )
