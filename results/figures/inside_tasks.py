"""Figure: accuracy over SGD steps, from tests inside tasks, a line a row."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from results.figures.style import GRID, finish, legend_beside, line_style, plotly
from results.ledger.record import RunRecord

PANELS = {"seen": "accuracy on the tasks so far (%)", "first": "accuracy on task 1 (%)"}
"""Panel -> title of its axis."""
MOST_ABOVE = 3
"""With more rows the legend stands beside the panels."""


def numbers(rows: Iterable[tuple[str, Sequence[RunRecord]]]) -> pd.DataFrame:
    """Returns the points of each (label, members), one row each; none of rows that were not tested inside tasks.

    Columns: row, place (among all rows, from 0), task (from 1), step within it, total (steps since the first task
    began), then seen_mean and seen_std of the mean accuracy on the tasks so far, first_mean and first_std of that on
    task 1, in percent, over the n seeds that did not diverge; the standard deviation is the sample's, NaN of one seed.
    """
    columns = [
        "row",
        "place",
        "task",
        "step",
        "total",
        *(f"{p}_{part}" for p in PANELS for part in ("mean", "std")),
        "n",
    ]
    frames = [_of_row(label, place, members) for place, (label, members) in enumerate(rows)]
    frames = [frame for frame in frames if len(frame)]
    return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)


def draw(points: pd.DataFrame) -> Any:
    """Returns a plotly figure with a panel for the tasks so far and one for task 1, over the same steps."""
    figure = plotly("subplots").make_subplots(rows=len(PANELS), cols=1, shared_xaxes=True, vertical_spacing=0.05)
    labels = points["row"].unique()
    for label in labels:
        line = points[points["row"] == label]
        for row, panel in enumerate(PANELS, start=1):
            _add_line(figure, line, panel, row)
    finish(figure, height=max(600, 60 + 25 * len(labels)))
    if len(labels) > MOST_ABOVE:
        legend_beside(figure)
    for row, title in enumerate(PANELS.values(), start=1):
        figure.update_yaxes(title_text=title, row=row)
    for end in sorted(points.groupby("task")["total"].max())[:-1]:
        figure.add_vline(x=end, line_color=GRID, line_width=1, layer="below")
    figure.update_xaxes(title_text="SGD steps", row=len(PANELS))
    return figure


def caption(points: pd.DataFrame) -> str:
    """Returns the caption."""
    return (
        "Accuracy over SGD steps on a fixed part of the test sets, tested inside tasks, too: above, the mean over the "
        "tasks so far, with the one that is trained; below, task 1 alone. Drops behind the start of a task, a vertical "
        "line, that are made up for within it are the stability gap. Lines: mean over the seeds that did not diverge; "
        "hover over a line to see the standard deviation."
    )


def tables(points: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure, without the place, which only decides colours."""
    return {"accuracy_over_steps": points.drop(columns="place")}


def _of_row(label: str, place: int, members: Sequence[RunRecord]) -> pd.DataFrame:
    """Returns the rows of `numbers` of one label, in order of time; tasks are as long as that of the longest seed."""
    measured = [
        record.inside
        for record in members
        if record.status == "ok" and record.inside is not None and record.inside.size
    ]
    if not measured:
        return pd.DataFrame()
    points = np.concatenate(measured)
    table = pd.DataFrame(
        {
            "task": points[:, 0].astype(int) + 1,
            "step": points[:, 1].astype(int),
            "seen": 100 * np.nanmean(points[:, 2:], axis=1),
            "first": 100 * points[:, 2],
        }
    )
    grouped = table.groupby(["task", "step"])
    means = pd.DataFrame({f"{p}_{part}": getattr(grouped[p], part)() for p in PANELS for part in ("mean", "std")})
    means = means.assign(n=grouped.size()).reset_index()
    length = table.groupby("task")["step"].max()
    before = means["task"].map(length.cumsum() - length)
    return means.assign(row=label, place=place, total=before + means["step"])


def _add_line(figure: Any, line: pd.DataFrame, panel: str, row: int) -> None:
    label, place = str(line["row"].iloc[0]), int(line["place"].iloc[0])
    colour, dash, _ = line_style(place)
    figure.add_scatter(
        x=line["total"],
        y=line[f"{panel}_mean"],
        customdata=line[["task", "step", f"{panel}_std"]],
        name=label,
        legendgroup=label,  # a click hides the line in both panels
        showlegend=row == 1,
        mode="lines",
        line={"color": colour, "dash": dash, "width": 1.5},
        hovertemplate="%{fullData.name}<br>task %{customdata[0]}, step %{customdata[1]}: "
        "%{y:.2f} ± %{customdata[2]:.2f} %<extra></extra>",
        row=row,
        col=1,
    )
