"""Figure: bars of LCA_10, BWT and FWT, one panel each."""

from typing import Any

import pandas as pd

from results.figures.style import INK, axis_title, finish, line_style, plotly
from results.labels import subscripts
from results.metrics import METRICS

PANELS = ("LCA_10", "BWT", "FWT")


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the bars of a `results.pages.comparison_numbers.comparison_table`, one row each.

    Columns: row, place (among all rows, from 0), n, then <m>_mean and <m>_std of the three metrics in the units of
    `summarize`.

    Rows are numbered before those without a measured member are left out, so that a row has the colour that its line
    has in the other figures.
    """
    columns = [f"{m}_{kind}" for m in PANELS for kind in ("mean", "std")]
    placed = table.assign(place=range(len(table)))
    return placed[placed["n"] > 0][["row", "place", "n", *columns]].reset_index(drop=True)


def draw(bars: pd.DataFrame) -> Any:
    """Returns a plotly figure with the first row on top, in the colours of the other figures.

    LCA_10 is a fraction, BWT and FWT are in percentage points; lines are ± one population standard deviation.
    """
    figure = plotly("subplots").make_subplots(rows=1, cols=len(PANELS), shared_yaxes=True, horizontal_spacing=0.035)
    for col, metric in enumerate(PANELS, start=1):
        _add_bars(figure, bars, metric, col)
    finish(figure, height=110 + 27 * max(len(bars), 2))  # bars are as thick in a long table as in a short one
    figure.update_layout(showlegend=False, bargap=0.32, margin_t=16)
    # Reversed, because plotly puts the first bar at the bottom, and the table has that row on top.
    figure.update_yaxes(autorange="reversed", ticksuffix=" ", showgrid=False, ticks="", showline=False)
    for col, metric in enumerate(PANELS, start=1):
        title = axis_title(metric, METRICS[metric].unit)
        # Transfer may be negative: the line at 0 parts what was gained from what was lost.
        figure.update_xaxes(title_text=title, zeroline=True, zerolinecolor=INK, zerolinewidth=1, row=1, col=col)
    return figure


def caption(bars: pd.DataFrame) -> str:
    """Returns the caption."""
    return (
        "Learning speed LCA_10 (area under the first ten mini-batches of a task), backward transfer BWT and forward "
        "transfer FWT. Higher is better in all three. Bars: mean over the seeds that did not diverge; lines: ± one "
        "population standard deviation. Rows without a measured seed are left out."
    )


def tables(bars: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure, without the place, which only decides colours."""
    return {"transfer": bars.drop(columns="place")}


def _add_bars(figure: Any, bars: pd.DataFrame, metric: str, col: int) -> None:
    digits, unit = METRICS[metric].digits, METRICS[metric].unit
    values = f"%{{x:.{digits}f}} ± %{{customdata:.{digits}f}} {unit}"
    figure.add_bar(
        x=bars[f"{metric}_mean"],
        y=bars["row"],
        customdata=bars[f"{metric}_std"],
        orientation="h",
        marker={"color": [line_style(int(place))[0] for place in bars["place"]], "opacity": 0.82},
        error_x={"array": bars[f"{metric}_std"], "color": INK, "thickness": 1.2, "width": 3},
        hovertemplate=f"%{{y}}<br>{subscripts(metric)} = {values}<extra></extra>",
        row=1,
        col=col,
    )
