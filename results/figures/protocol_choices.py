"""Figure: the values that protocols choose once, over orders of tasks, a row a protocol."""

import math
from textwrap import wrap
from typing import Any, TypeAlias

import pandas as pd

from results.figures.style import BLUE, INK, ORANGE, VERMILLION, finish, plotly, value_axis
from results.labels import count_text
from results.points import parameter_label, value_text
from results.protocol_tables import choice_table, hindsight, in_table_order
from results.protocols import ProtocolResults

LETTERS = 22
"""Most letters of a line of a protocol's title beside the panel."""
SMALLEST, LARGEST = 11, 24
"""Pixels across of dots of one order, and of all orders."""

Numbers: TypeAlias = tuple[ProtocolResults, pd.DataFrame]
"""Results; one row a protocol and value: protocol, title, value, n (orders that chose it), orders (their numbers)."""


def numbers(results: ProtocolResults) -> Numbers | None:
    """Returns how many orders chose each value, of protocols that choose once; None where none has a choice."""
    once = {row.name for row in results.rows if not row.per_task}
    table = choice_table(results)
    table = table[table["protocol"].isin(once)]
    if table.empty:
        return None
    grouped = table.groupby(["protocol", "title", "value"], sort=False)["order"]
    counts = grouped.agg(n="size", orders=lambda group: " ".join(map(str, group))).reset_index()
    names = [row.name for row in in_table_order(results)]
    at = counts["protocol"].map(names.index)
    return results, counts.assign(at=at).sort_values(["at", "value"], ignore_index=True).drop(columns="at")


def draw(data: Numbers) -> Any:
    """Returns a plotly figure: dots with the number of orders, and a line at the best constant value in hindsight."""
    results, table = data
    figure = plotly("graph_objects").Figure()
    titles = table["title"].drop_duplicates().tolist()
    rows = {title: -i for i, title in enumerate(titles)}  # downwards
    ends = [0.6, 0.4 - len(titles)]
    best, label = hindsight(results), parameter_label(results.parameter)
    bounds = {row.title for row in results.rows if row.bound}
    if best is not None:
        # A trace, first: a shape below all dots would lie below the grid, too.
        figure.add_scatter(
            x=[best, best],
            y=ends,
            mode="lines",
            line={"color": ORANGE, "width": 2},
            name=f"best constant in hindsight, {label} = {value_text(best)}",
            hoverinfo="skip",
        )
    most = int(table.groupby("title")["n"].sum().max())
    for name, part in (("choice", table[~table["title"].isin(bounds)]), ("bound", table[table["title"].isin(bounds)])):
        if part.empty:
            continue
        figure.add_scatter(
            x=part["value"],
            y=part["title"].map(rows),
            text=part["n"] if most > 1 else None,
            customdata=part[["title", "n", "orders"]],
            mode="markers+text" if most > 1 else "markers",
            textfont={"size": 11, "color": "white" if name == "choice" else INK},
            marker={
                "symbol": "circle" if name == "choice" else "circle-open",
                "size": [SMALLEST + (LARGEST - SMALLEST) * math.sqrt(n / most) for n in part["n"]],
                "color": BLUE if name == "choice" else VERMILLION,
                "line": {"width": 2},
                "opacity": 1,
            },
            name=name,
            hovertemplate=f"%{{customdata[0]}}<br>{label} = %{{x:.6g}} in %{{customdata[1]}} of {most} orders: "
            "%{customdata[2]}<extra></extra>",
        )
    finish(figure, height=130 + 46 * len(titles))
    figure.update_xaxes(title_text=label, **value_axis((*results.candidates, *table["value"]), logarithmic(results)))
    lines = ["<br>".join(wrap(title, LETTERS)) for title in titles]
    figure.update_yaxes(range=ends[::-1], tickvals=list(rows.values()), ticktext=lines, ticks="")
    return figure


def caption(data: Numbers) -> str:
    """Returns the caption."""
    results, table = data
    label = parameter_label(results.parameter)
    orders = int(table.groupby("title")["n"].sum().max())
    most = "" if orders < 2 else f" Numbers and sizes of dots: of {count_text(orders, 'order')}, how many chose it."
    best = hindsight(results)
    line = "" if best is None else " Line: the best constant value in hindsight."
    return f"Values of {label} that protocols choose once, before the training that is judged.{most}{line}"


def tables(data: Numbers) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure."""
    return {"protocol_choices": data[1]}


def logarithmic(results: ProtocolResults) -> bool:
    """Returns whether the axis of values is logarithmic: a value of 0 would not be on it."""
    values = (
        *results.candidates,
        *(value for row in results.rows for schedule in row.choices.values() for _, value in schedule),
    )
    return results.log and min(values) > 0
