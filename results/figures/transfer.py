"""Figure: bars of LCA_10, BWT and FWT, one panel each."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from results.figures.style import INK, axis_title, finish, line_style, plotly
from results.labels import subscripts
from results.ledger.record import RunRecord
from results.metrics import METRICS, mean_and_std, mean_std

PANELS = ("LCA_10", "BWT", "FWT")


def numbers(rows: Iterable[tuple[str, Sequence[RunRecord]]]) -> pd.DataFrame:
    """Returns the bars of each (label, members), one row each.

    Columns: row, place (among all rows, from 0), n, then <m>_mean and <m>_std of the three metrics in the units of
    `summarize`.

    Rows are numbered before those without a measured member are left out, so that a row has the colour that its line
    has in the other figures.
    """
    columns = ["row", "place", "n", *(column for metric in PANELS for column in mean_and_std(metric).values())]
    bars = [{"row": label, "place": place} | mean_std(members, PANELS) for place, (label, members) in enumerate(rows)]
    return pd.DataFrame([bar for bar in bars if bar["n"]], columns=columns)


def draw(bars: pd.DataFrame) -> Any:
    """Returns a plotly figure with the first row on top, in the colours of the other figures.

    LCA_10 is a fraction, BWT and FWT are in percentage points; lines are ± one standard deviation.
    """
    figure = plotly("subplots").make_subplots(rows=1, cols=len(PANELS), shared_yaxes=True, horizontal_spacing=0.035)
    for col, metric in enumerate(PANELS, start=1):
        _add_bars(figure, bars, metric, col)
    finish(figure, height=110 + 27 * max(len(bars), 2))  # bars are as thick in a long table as in a short one
    figure.update_layout(showlegend=False, bargap=0.32, margin_t=16)
    # Reversed, because plotly puts the first bar at the bottom, and the table has that row on top.
    figure.update_yaxes(autorange="reversed", ticksuffix=" ", showgrid=False, ticks="", showline=False)
    for col, metric in enumerate(PANELS, start=1):
        title = axis_title(metric, METRICS[metric].display_unit)
        # Transfer may be negative: the line at 0 parts what was gained from what was lost.
        figure.update_xaxes(title_text=title, zeroline=True, zerolinecolor=INK, zerolinewidth=1, row=1, col=col)
    return figure


def caption(bars: pd.DataFrame) -> str:
    """Returns the caption."""
    return (
        "Learning speed LCA_10 (area under the first ten mini-batches of a task), backward transfer BWT and forward "
        "transfer FWT. Higher is better in all three. Bars: mean over the seeds that did not diverge; lines: ± one "
        "standard deviation. Rows without a measured seed are left out."
    )


def tables(bars: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure, without the place, which only decides colours."""
    return {"transfer": bars.drop(columns="place")}


def _add_bars(figure: Any, bars: pd.DataFrame, metric: str, col: int) -> None:
    declared = METRICS[metric]
    values = f"%{{x:.{declared.digits}f}} ± %{{customdata:.{declared.digits}f}} {declared.display_unit}"
    means, stds = (declared.display_factor * bars[column] for column in mean_and_std(metric).values())
    figure.add_bar(
        x=means,
        y=bars["row"],
        customdata=stds,
        orientation="h",
        marker={"color": [line_style(int(place))[0] for place in bars["place"]], "opacity": 0.82},
        error_x={"array": stds, "color": INK, "thickness": 1.2, "width": 3},
        hovertemplate=f"%{{y}}<br>{subscripts(metric)} = {values}<extra></extra>",
        row=1,
        col=col,
    )
