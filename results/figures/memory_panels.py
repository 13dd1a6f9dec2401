"""Figure: A_T, a_1, a_t and F_T against the memory's size."""

from itertools import product
from typing import Any

import pandas as pd

from results.figures.style import FAINT, add_legend_entry, axis_title, finish, legend_beside, line_style, plotly
from results.labels import subscripts
from results.metrics import METRICS
from results.paper.differences import spread_name

PANELS = ("A_T", "a_1", "a_t", "F_T")
"""The metrics of the paper's memory tables 9 and 10, in their order."""

DODGE = 1.022
"""Neighbouring lines are shifted by this factor on the memory axis, so that their error bars do not overlap."""

PRINTED_MARKER = {"size": 12, "line_width": 1.6}
"""Marker of printed values: larger than ours, so that one around ours is seen."""

MOST_ABOVE = 4
"""With more lines the legend is beside the panels, where it covers nothing."""


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """Returns one row a method and size of a `results.pages.memory.memory_table`, ordered by line and memory.

    Columns: row (label), line (number of the label, from 0), memory (examples per class and task), n, then <m>_mean,
    <m>_std, <m>_printed_mean and <m>_printed_std of the four metrics in the units of `summarize`.

    Rows without a measured member and without a printed value are left out. Lines are numbered before, so that a
    method keeps its look while it is still being trained.
    """
    columns = [f"{m}_{kind}" for m in PANELS for kind in ("mean", "std", "printed_mean", "printed_std")]
    lines = {label: i for i, label in enumerate(dict.fromkeys(table["row"]))}
    placed = table.assign(line=table["row"].map(lines).astype(int))
    has_value = (placed["n"] > 0) | placed["A_T_printed_mean"].notna()
    points = placed[has_value][["row", "line", "memory", "n", *columns]]
    return points.sort_values(["line", "memory"], ignore_index=True)


def draw(panels: pd.DataFrame) -> Any:
    """Returns a plotly figure of four panels with a logarithmic memory axis.

    All metrics are in percent. Bars are ± one standard deviation; that of a printed value is in its hover text.
    """
    figure = plotly("subplots").make_subplots(
        rows=2, cols=2, shared_xaxes=True, horizontal_spacing=0.1, vertical_spacing=0.07
    )
    lines = panels["line"].unique().tolist()
    places = dict(zip(PANELS, product((1, 2), (1, 2)), strict=True))
    for metric, (row, col) in places.items():
        for line in lines:
            points = panels[panels["line"] == line]
            shift = DODGE ** (line - max(lines) / 2)  # a factor, because the axis is logarithmic
            figure.add_traces(_traces(points, metric, line, shift), rows=row, cols=col)
    if _any_printed(panels):
        # One for the open markers of all methods.
        add_legend_entry(figure, "printed in the paper", {**PRINTED_MARKER, "symbol": "circle-open", "color": FAINT})
    finish(figure, height=640)
    if len(lines) > MOST_ABOVE:
        legend_beside(figure)
    # Ticks at the trained sizes alone: plotly's own would be at powers of ten, where nothing was measured.
    sizes = sorted(int(m) for m in panels["memory"].unique())
    figure.update_xaxes(type="log", tickvals=sizes, ticktext=[str(m) for m in sizes], minor={"ticks": ""})
    figure.update_xaxes(title_text="memory (examples per class and task)", row=2)
    for metric, (row, col) in places.items():
        figure.update_yaxes(title_text=axis_title(metric, METRICS[metric].display_unit), row=row, col=col)
    return figure


def caption(panels: pd.DataFrame) -> str:
    """Returns the caption."""
    text = (
        "Final average accuracy A_T, accuracy on the first and the last task a_1 and a_t, and forgetting F_T (lower "
        "is better) against the episodic memory (logarithmic axis). Dots: mean over the seeds that did not diverge; "
        f"bars: ± one {spread_name(_any_printed(panels))}. Lines are shifted slightly sideways so that their bars do "
        "not overlap."
    )
    return f"{text} Open markers: the paper's printed means." if _any_printed(panels) else text


def tables(panels: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure, with the true sizes of the memory."""
    return {"memory_panels": panels.drop(columns="line")}


def _any_printed(panels: pd.DataFrame) -> bool:
    return bool(panels[[f"{m}_printed_mean" for m in PANELS]].notna().to_numpy().any())


def _traces(points: pd.DataFrame, metric: str, line: int, shift: float) -> list[Any]:
    """Returns our line, and the printed values as open markers in its colour.

    Both are shifted by the same factor, so that a printed value stays beside ours.
    """
    scatter, (colour, dash, symbol) = plotly("graph_objects").Scatter, line_style(line)
    name = str(points["row"].iloc[0])
    # The true size and not x, which is shifted; "~" leaves out the zeros at the end of a spread.
    declared = METRICS[metric]
    values = f"%{{y:.{declared.digits}f}} ± %{{customdata[1]:.3~f}} {declared.display_unit}"
    columns = [f"{metric}_{kind}" for kind in ("mean", "std", "printed_mean", "printed_std")]
    points = points.assign(**{column: declared.display_factor * points[column] for column in columns})
    hover = f"%{{fullData.name}}, %{{customdata[0]}} examples<br>{subscripts(metric)} = {values}<extra></extra>"
    ours, printed = points[points["n"] > 0], points[points[f"{metric}_printed_mean"].notna()]
    return [
        scatter(
            x=ours["memory"] * shift,
            y=ours[f"{metric}_mean"],
            customdata=ours[["memory", f"{metric}_std"]],
            error_y={"array": ours[f"{metric}_std"], "thickness": 1.2, "width": 3},
            name=name,
            legendgroup=name,
            showlegend=metric == PANELS[0],
            mode="lines+markers",
            line={"color": colour, "dash": dash, "width": 2},
            marker={"symbol": symbol, "size": 8, "color": colour},
            hovertemplate=hover,
        ),
        scatter(
            x=printed["memory"] * shift,
            y=printed[f"{metric}_printed_mean"],
            customdata=printed[["memory", f"{metric}_printed_std"]],
            name=f"{name}, printed",
            legendgroup=name,
            showlegend=False,
            mode="markers",
            # The markers of the second seven looks are open already.
            marker={
                **PRINTED_MARKER,
                "symbol": symbol.removesuffix("-open") + "-open",
                "color": colour,
            },
            hovertemplate=hover,
        ),
    ]
