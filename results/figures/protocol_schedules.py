"""Figure: the values of protocols that choose anew at every task, a panel a protocol and a line an order."""

from itertools import pairwise
from typing import Any, TypeAlias

import pandas as pd

from results.figures.protocol_choices import logarithmic
from results.figures.style import (
    FAINT,
    ORANGE,
    add_legend_entry,
    finish,
    legend_beside,
    on_axis,
    ordered_colours,
    pad_range,
    plotly,
    value_axis,
)
from results.labels import count_text
from results.points import parameter_label, value_text
from results.protocol_tables import hindsight, in_table_order
from results.protocols import ProtocolResults, Schedule

APART, MOST_APART = 0.022, 0.6
"""Lines of neighbouring orders are set apart, so that none covers another: by this share of the axis, but those of one
value within this share of the smallest distance between two values."""
MOST_ABOVE = 4
"""With more orders the legend is beside the panels."""

Numbers: TypeAlias = tuple[ProtocolResults, pd.DataFrame]
"""Results; one row a protocol, order and task: protocol, title, order, task (from 1), value (of the whole task)."""


def numbers(results: ProtocolResults) -> Numbers | None:
    """Returns the value of each task, of protocols that choose per task; None where none has a choice."""
    tasks = max((record.tasks for record in results.records), default=0)
    rows = [
        (row.name, row.title, order, task + 1, value)
        for row in in_table_order(results)
        if row.per_task
        for order, schedule in sorted(row.choices.items())
        for task, value in _by_task(schedule, tasks)
    ]
    table = pd.DataFrame(rows, columns=["protocol", "title", "order", "task", "value"])
    return None if table.empty else (results, table)


def draw(data: Numbers) -> Any:
    """Returns a plotly figure: value over tasks, one panel a protocol below the other, one line an order."""
    results, table = data
    titles, orders = table["title"].drop_duplicates().tolist(), sorted(table["order"].unique().tolist())
    figure = plotly("subplots").make_subplots(
        rows=len(titles),
        cols=1,
        shared_xaxes=True,
        shared_yaxes="all",
        subplot_titles=titles,
        vertical_spacing=0.16 / len(titles),
    )
    best, log, label = hindsight(results), logarithmic(results), parameter_label(results.parameter)
    colours = dict(zip(orders, ordered_colours(len(orders)), strict=True))
    values = table["value"].tolist()
    apart = _spacing(values, len(orders), log)
    for row, title in enumerate(titles, start=1):
        for place, order in enumerate(orders):
            part = table[(table["title"] == title) & (table["order"] == order)].sort_values("task")
            shift = apart * (place - (len(orders) - 1) / 2)
            heights = [on_axis(value, log) + shift for value in part["value"]]
            figure.add_scatter(
                x=part["task"],
                y=[10**height for height in heights] if log else heights,
                customdata=part["value"],
                mode="lines+markers",
                line={"color": colours[order], "width": 1.8, "shape": "hvh"},
                marker={"size": 6, "color": colours[order]},
                name=f"order {order}",
                legendgroup=f"order {order}",  # a click hides the order in all panels
                showlegend=row == 1,
                hovertemplate=f"order {order}, task %{{x}}: {label} = %{{customdata:.6g}}<extra></extra>",
                row=row,
                col=1,
            )
        if best is not None:
            figure.add_hline(y=best, line={"color": ORANGE, "width": 2, "dash": "dash"}, layer="below", row=row, col=1)
    if best is not None:
        marker = {"symbol": "line-ew", "size": 14, "line": {"width": 2, "color": ORANGE}}
        add_legend_entry(figure, f"best constant, {label} = {value_text(best)}", marker)
    finish(figure, height=110 + 210 * len(titles))
    if len(orders) > MOST_ABOVE:
        legend_beside(figure)
        figure.update_layout(margin_t=40)  # room for the title of the first panel
    figure.update_annotations(font={"size": 13, "color": FAINT})
    tasks = int(table["task"].max())
    figure.update_xaxes(range=[0.6, tasks + 0.4], tick0=1, dtick=max(1, round(tasks / 12)))
    figure.update_xaxes(title_text="task", row=len(titles))
    # Of what is drawn: candidates that no protocol takes would press the lines together.
    places = [on_axis(value, log) for value in (*values, *(() if best is None else (best,)))]
    more = apart * len(orders)
    ends = pad_range(min(places) - more, max(places) + more)
    figure.update_yaxes(title_text=label, range=ends, **value_axis(values, log))
    figure.update_layout(legend_tracegroupgap=0)
    return figure


def caption(data: Numbers) -> str:
    """Returns the caption."""
    results, table = data
    label, orders = parameter_label(results.parameter), table["order"].nunique()
    apart = " Lines stand slightly apart, so that none covers another." if orders > 1 else ""
    line = "" if hindsight(results) is None else " Dashed: the best constant value in hindsight."
    return (
        f"Value of {label} over tasks, of protocols that choose anew at every task: a line for each of "
        f"{count_text(orders, 'order')}.{line}{apart}"
    )


def tables(data: Numbers) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure."""
    return {"protocol_schedules": data[1]}


def _spacing(values: list[float], orders: int, log: bool) -> float:
    """Returns the distance between lines of neighbouring orders on the axis."""
    places = sorted({on_axis(value, log) for value in values})
    gaps = [high - low for low, high in pairwise(places)]
    return min([APART * (places[-1] - places[0]), *(MOST_APART * gap / orders for gap in gaps)])


def _by_task(schedule: Schedule, tasks: int) -> list[tuple[int, float]]:
    """Returns (task, value) of each task from the first of a schedule on, 0-based; tasks: how many there are at least.

    >>> _by_task(((0, 0.1), (2, 0.3)), 4)
    [(0, 0.1), (1, 0.1), (2, 0.3), (3, 0.3)]
    """
    ends = [*(first for first, _ in schedule[1:]), max(tasks, schedule[-1][0] + 1)]
    return [(task, value) for (first, value), end in zip(schedule, ends, strict=True) for task in range(first, end)]
