"""Figure: best mean A_T against member runs, a line a study."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from results.figures import best_so_far
from results.figures.scores import Scores
from results.figures.style import finish, legend_beside, line_style, plotly
from results.labels import STREAM_LABELS, subscripts
from results.search import SearchResults


def numbers(studies: Sequence[tuple[str, SearchResults]]) -> Scores:
    """Returns the lines of several (label, study), in their order; the first has the stream of all scores.

    Columns: row (label), place (of the study, from 0), then those of `best_so_far`.

    The studies must be comparable, see `results.pages.side_by_side_numbers.check_studies`.
    """
    frames = [
        best_so_far.numbers(study).points.assign(row=label, place=place) for place, (label, study) in enumerate(studies)
    ]
    points = pd.concat(frames, ignore_index=True)
    return Scores(
        studies[0][1].score_on,
        studies[0][1].objective,
        points[["row", "place", *points.columns.drop(["row", "place"])]],
    )


def draw(races: Scores) -> Any:
    """Returns a plotly figure: staircases in the colours of the other figures, scores in percent over member runs."""
    figure = plotly("graph_objects").Figure()
    for place in sorted(set(races.points["place"].tolist())):
        (colour, dash, _), points = line_style(place), races.points[races.points["place"] == place]
        best_so_far.add_staircase(figure, points, races.objective, str(points["row"].iloc[0]), colour, dash)
    finish(figure, height=420)
    legend_beside(figure)
    # From 0, as all searches begin there.
    figure.update_xaxes(title_text="member runs", range=[0, 1.03 * races.points["members"].max()])
    figure.update_yaxes(title_text=subscripts(f"{races.objective} (%)"))
    return figure


def caption(races: Scores) -> str:
    """Returns the caption."""
    return (
        f"Highest mean {races.objective} so far on the {STREAM_LABELS[races.stream]}, against the number of member "
        "runs of the strategy until then; a member is one point with one seed. The best of noisy means rises with "
        "their number by chance alone, so strategies with different numbers of member runs cannot be compared by "
        "height."
    )


def tables(races: Scores) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure."""
    return {"best_so_far": races.points.drop(columns=["place", "name"])}
