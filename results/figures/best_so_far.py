"""Figure: best mean A_T so far against member runs."""

import math
from typing import Any

import pandas as pd

from results.figures.scores import Scores
from results.figures.style import BLUE, FAINT, finish, pad_range, plotly
from results.labels import STREAM_LABELS, count_text, number_text, subscripts
from results.points import point_text
from results.search import SearchResults
from results.verdict import wording


def numbers(results: SearchResults) -> Scores:
    """Returns the scores in the order of the rounds; a member that two points or two rounds share is counted once.

    Columns: repeat, members (different member runs up to this point), setting (the point in words), score (mean in %;
    NaN where a member diverged), name (of the round: "repeat 1" or "batch 1"), best (highest score so far).
    """
    keys: set[str] = set()
    rows = []
    for r in results.rounds:
        for point, score in zip(r.points, r.scores, strict=True):
            # By key: ε = 0 of two repeats, or A-GEM at any trigger, is the same run and cost nothing the second time.
            keys |= {record.key for record in results.members_of(point)}
            percent = math.nan if score is None else 100 * score
            rows.append((r.number, len(keys), point_text(results.parameters, point), percent, wording.round_name(r)))
    points = pd.DataFrame(rows, columns=["repeat", "members", "setting", "score", "name"])
    best = points["score"].cummax().ffill()  # a point without a score leaves the best as it was
    return Scores(results.score_on, results.objective, points.assign(best=best))


def draw(spent: Scores) -> Any:
    """Returns a plotly figure: a dot for each point, and the best so far as a staircase.

    Across: member runs until the point's last seed. Up: the mean score in percent. Hovering over a dot shows the whole
    point and its round.
    """
    figure = plotly("graph_objects").Figure()
    tried = spent.points.dropna(subset=["score"])
    figure.add_scatter(
        x=tried["members"],
        y=tried["score"],
        customdata=tried[["setting", "name"]],
        mode="markers",
        marker={"size": 6, "color": FAINT, "opacity": 0.5},
        name="tried",
        hovertemplate="%{customdata[0]} (%{customdata[1]})<br>"
        f"{subscripts(spent.objective)} = %{{y:.2f}} %<extra></extra>",
    )
    add_staircase(figure, spent.points, spent.objective, "best so far", BLUE, "solid")
    finish(figure, height=290)
    # From 0, so that the share of the work after the last rise can be read off.
    figure.update_xaxes(title_text="member runs", rangemode="tozero")
    figure.update_yaxes(title_text=subscripts(f"{spent.objective} (%)"), range=visible_range(spent.points))
    return figure


def visible_range(points: pd.DataFrame) -> tuple[float, float] | None:
    """Returns the vertical range of the line and the better half of the dots; None where nothing has a score.

    A few very low scores would otherwise flatten the line.
    """
    scores = points["score"].dropna()
    if scores.empty:
        return None
    low = min(float(scores.median()), float(points["best"].min()))
    return pad_range(low, float(scores.max()), share=0.08, least=0.1)


def add_staircase(figure: Any, points: pd.DataFrame, objective: str, name: str, colour: str, dash: str) -> None:
    """Adds the line of the best so far to a figure; also used for the comparison of strategies."""
    scored = points.dropna(subset=["best"])
    figure.add_scatter(
        x=scored["members"],
        y=scored["best"],
        mode="lines",
        # First across, then up: the best so far holds until the next point is complete.
        line={"shape": "hv", "width": 2, "color": colour, "dash": dash},
        name=name,
        hovertemplate="%{fullData.name}: "
        + subscripts(objective)
        + " = %{y:.2f} % after %{x} member runs<extra></extra>",
    )


def caption(spent: Scores) -> str:
    """Returns the caption, with the last rise and the number of dots that are not shown."""
    stream = STREAM_LABELS[spent.stream]
    text = (
        f"Mean {spent.objective} of every tried point (dots) and the highest so far (line), against member runs. "
        f"The scores are those of the {stream}; a member is one point with one seed. "
        "The best of noisy means rises with their number by chance alone."
    )
    visible = visible_range(spent.points)
    if visible is not None and (below := int((spent.points["score"] < visible[0]).sum())):
        text += f" Not shown: {count_text(below, 'dot')} below {number_text(visible[0], 1)} %."
    scored = spent.points.dropna(subset=["best"])
    if scored.empty:
        return text
    first = scored[scored["best"] == scored["best"].iloc[-1]].iloc[0]  # where the last best was first reached
    best, runs = number_text(float(first["best"]), 2), count_text(int(first["members"]), "member run")
    return f"{text} The last rise, to {best} %, was after {runs} of {int(spent.points['members'].iloc[-1])}."


def tables(spent: Scores) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure: all points, also those that it does not show."""
    return {"best_so_far": spent.points.drop(columns="name")}
