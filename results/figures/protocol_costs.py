"""Figure: the regret of protocols against what their choices cost in SGD steps."""

import math
from typing import Any

import pandas as pd

from results.figures.style import FAINT, INK, VERMILLION, add_legend_entry, finish, legend_beside, line_style, plotly
from results.protocol_tables import hindsight, protocol_table
from results.protocols import ProtocolResults

COLUMNS = ("protocol", "title", "bound", "peeks", "steps", "relative_steps", "regret", "regret_low", "regret_high")
FREE = 0.5
"""Decades of the axis by which a choice without any step stands left of the cheapest other one."""
CLOSE, DODGE = 0.03, 0.035
"""Decades of the axis: below this distance two choices count as equally dear, and by this they are set apart."""
MOST_ABOVE = 4
"""With more protocols the legend is beside the panel."""
RING = {"symbol": "circle-open", "size": 19, "color": VERMILLION, "line": {"width": 1.6}}
"""Marker around a protocol that peeks."""


def numbers(results: ProtocolResults) -> pd.DataFrame:
    """Returns one row a protocol whose regret and cost are ticks.

    Columns: place (among all protocols, from 0), then COLUMNS of `results.protocol_tables.protocol_table`: steps are
    those of one order of tasks, regrets are in points of A_T with the ends of their interval.
    """
    table = protocol_table(results)
    if hindsight(results) is None or table.empty:
        return pd.DataFrame(columns=["place", *COLUMNS])
    points = table[list(COLUMNS)].assign(place=range(len(table)))
    complete = points["regret"].notna() & points["steps"].notna()
    return points.loc[complete, ["place", *COLUMNS]].reset_index(drop=True)


def draw(points: pd.DataFrame) -> Any:
    """Returns a plotly figure with a logarithmic axis of steps, left of which stand choices without any.

    Bars are 95 % intervals; bounds are hollow, and protocols that peek have a ring.
    """
    figure = plotly("subplots").make_subplots(rows=1, cols=1)
    places = _places(points["steps"].tolist())
    for place, (_, point) in zip(places, points.iterrows(), strict=True):
        _add_point(figure, point, place)
    rings = [(place, y) for place, y, peeks in zip(places, points["regret"], points["peeks"], strict=True) if peeks]
    if rings:
        x, y = zip(*rings, strict=True)
        figure.add_scatter(x=x, y=y, mode="markers", marker=RING, name="peeks", hoverinfo="skip")
    if points["bound"].any():
        add_legend_entry(figure, "hollow: a bound", {"symbol": "circle-open", "size": 9, "color": FAINT})
    finish(figure, height=max(440, 80 + 24 * len(points)))
    if len(points) > MOST_ABOVE:
        legend_beside(figure)
    figure.add_hline(y=0, line={"color": INK, "width": 1}, layer="below")
    figure.update_xaxes(title_text="SGD steps to choose", type="log")
    if len(places):
        low, high = (math.log10(end(places)) for end in (min, max))
        figure.update_xaxes(range=[low - 0.15, high + 0.15])
    if (points["steps"] == 0).any():
        figure.update_xaxes(**_ticks(points["steps"].tolist(), places))
    figure.update_yaxes(title_text="regret (points of A<sub>T</sub>)")
    return figure


def caption(points: pd.DataFrame) -> str:
    """Returns the caption."""
    parts = (
        "Regret of each protocol against the SGD steps of its choice (logarithmic axis); lower and further left is "
        "better.",
        "The regret is to the best constant value in hindsight, the steps are those of one order of tasks.",
        "Bars: 95 % intervals, over orders where there are several, else over seeds.",
        "Below the line at 0 a protocol is better than any constant value." if (points["regret"] < 0).any() else "",
        "Left end: choices without a step." if (points["steps"] == 0).any() else "",
        "Hollow: bounds that nobody can reach." if points["bound"].any() else "",
        "Ringed: tests that judge also choose, so that the regret is too small." if points["peeks"].any() else "",
        "Protocols that cost the same stand slightly apart.",
    )
    return " ".join(filter(None, parts))


def tables(points: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure, without the place, which only decides looks."""
    return {"protocol_costs": points.drop(columns="place")}


def _places(steps: list[float]) -> list[float]:
    """Returns where each protocol stands on the axis, in steps; none at the same place as another."""
    paid = [count for count in steps if count > 0]
    free = math.log10(min(paid)) - FREE if paid else 0.0
    logs = [math.log10(count) if count > 0 else free for count in steps]
    apart = list(logs)
    for i, log in enumerate(logs):
        alike = [j for j, other in enumerate(logs) if abs(other - log) < CLOSE]
        apart[i] += DODGE * (alike.index(i) - (len(alike) - 1) / 2)
    return [10**power for power in apart]


def _ticks(steps: list[float], places: list[float]) -> dict[str, Any]:
    """Returns the ticks of an axis on which some choices take no step: 0, then powers of ten and their halves."""
    free = [place for place, count in zip(places, steps, strict=True) if not count]
    at = 10 ** (sum(math.log10(place) for place in free) / len(free))
    paid = [place for place, count in zip(places, steps, strict=True) if count]
    decades = range(math.floor(math.log10(min(paid))), math.ceil(math.log10(max(paid))) + 1) if paid else range(0)
    ticks = [part * 10**decade for decade in decades for part in (1, 2, 5)]
    if len(decades) > 3:
        ticks = ticks[::3]
    ticks = [tick for tick in ticks if min(paid) / 1.3 <= tick <= max(paid) * 1.3]
    return {"tickvals": [at, *ticks], "ticktext": ["0", *map(_short, ticks)]}


def _short(steps: float) -> str:
    """Returns a number of steps as plotly writes it.

    >>> _short(200), _short(5_000), _short(2e6)
    ('200', '5k', '2M')
    """
    size, prefix = next((unit for unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if steps >= unit[0]), (1, ""))
    return f"{steps / size:g}{prefix}"


def _add_point(figure: Any, point: pd.Series, place: float) -> None:
    colour, _, symbol = line_style(int(point["place"]))
    # The looks of the second seven are hollow, too, which here is for bounds.
    symbol = symbol.removesuffix("-open") + ("-open" if point["bound"] else "")
    half = point["regret_high"] - point["regret"]
    ends = "" if math.isnan(half) else "<br>95 % interval %{customdata[2]:.2f} to %{customdata[3]:.2f}"
    beside = "" if math.isnan(point["relative_steps"]) else ", %{customdata[1]:.3g} × the training that is judged"
    figure.add_scatter(
        x=[place],
        y=[point["regret"]],
        error_y={"array": [0 if math.isnan(half) else half], "thickness": 1.4, "width": 4, "color": colour},
        customdata=[[point["steps"], point["relative_steps"], point["regret_low"], point["regret_high"]]],
        mode="markers",
        marker={"symbol": symbol, "size": 10, "color": colour, "line": {"width": 2 if point["bound"] else 0}},
        name=str(point["title"]),
        hovertemplate=f"%{{fullData.name}}<br>regret %{{y:.2f}} points{ends}<br>%{{customdata[0]:,.0f}} steps{beside}"
        "<extra></extra>",
    )
