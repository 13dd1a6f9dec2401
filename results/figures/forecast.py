"""Figure: A_T predicted for the tasks of the evaluation, beside what the search has seen."""

from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from results.figures.style import BLUE, FAINT, INK, ORANGE, faint, finish, plotly, value_axis
from results.labels import A_T, subscripts
from results.metrics import METRICS
from results.points import parameter_label, point_text
from results.search import SearchResults
from results.verdict.forecast import Forecast, forecast

Numbers: TypeAlias = tuple[SearchResults, Forecast, pd.DataFrame]
"""Results, prediction; one row a tried value: <parameter>, seen, mean, low, high (predicted), measured; in percent.

measured: mean A_T of the evaluation, NaN of values that were not evaluated.
"""


def numbers(results: SearchResults) -> Numbers | None:
    """Returns the prediction for every tried value; None without one."""
    prediction = forecast(results)
    if prediction is None:
        return None
    model = prediction.model
    measured = [_mean_accuracy(results, value) for value in prediction.values]
    columns = {"seen": model.seen, "mean": model.mean, "low": model.low, "high": model.high}
    percent = {name: 100 * np.clip(column, 0, 1) for name, column in columns.items()}
    return (
        results,
        prediction,
        pd.DataFrame({results.parameters[0]: prediction.values, **percent, "measured": measured}),
    )


def draw(data: Numbers) -> Any:
    """Returns a plotly figure: the curve that was seen, the predicted one with its 95 % band, measured values."""
    results, prediction, table = data
    name, figure = results.parameters[0], plotly("graph_objects").Figure()
    table = table.dropna(subset=["mean"])  # a value of which a member diverged would cut the band
    x = table[name]
    band = {"x": [*x, *x[::-1]], "y": [*table["high"], *table["low"][::-1]]}
    look = {"fill": "toself", "fillcolor": faint(BLUE), "line": {"width": 0}, "hoverinfo": "skip"}
    figure.add_scatter(**band, **look, mode="lines", name="95 % interval")  # plotly marks the corners of short ones
    hover = f"{parameter_label(name)} = %{{x:.6g}}<br>{subscripts(A_T)} = %{{y:.2f}} %<extra>%{{fullData.name}}</extra>"
    lines = (
        (f"seen, {prediction.seen} tasks", "seen", FAINT, "dot"),
        (f"predicted, {prediction.tasks} tasks", "mean", BLUE, "solid"),
    )
    for label, column, colour, dash in lines:
        figure.add_scatter(
            x=x,
            y=table[column],
            mode="lines+markers",
            line={"color": colour, "dash": dash, "width": 2},
            marker={"size": 5},
            name=label,
            hovertemplate=hover,
        )
    points = (
        ("measured, evaluation", "diamond", 11, table[table["measured"].notna()], "measured"),
        ("chosen", "star", 14, table[table[name] == results.chosen[0]] if results.stages else table[:0], "mean"),
    )
    for label, symbol, size, rows, column in points:
        if len(rows):
            marker = {"symbol": symbol, "size": size, "color": ORANGE, "line": {"width": 1, "color": INK}}
            hovers = {"name": label, "hovertemplate": hover}
            figure.add_scatter(x=rows[name], y=rows[column], mode="markers", marker=marker, **hovers)
    finish(figure, height=430 if results.stages else 330)  # first on the page where predictions choose
    figure.update_xaxes(title_text=parameter_label(name), **value_axis(x, name in results.log))
    figure.update_yaxes(title_text=subscripts(f"{A_T} (%)"))
    return figure


def caption(data: Numbers) -> str:
    """Returns the caption: what is predicted of what, and by which model."""
    results, prediction, _ = data
    best = point_text(results.parameters, (prediction.values[prediction.model.choice],))
    last = results.stages[-1] if results.stages else None
    stage = "" if last is None or last.tasks == results.search[0].tasks else ", with the values of its last stage"
    return (
        f"A_T after {prediction.seen} tasks of the search{stage}, and predicted for {prediction.tasks}, by what each "
        f"value learns and forgets. Predicted highest: {best}. The interval has the noise between seeds, the spread of "
        "tasks that these share, and the error of the model (docs/along.md)."
    )


def tables(data: Numbers) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure."""
    return {"forecast": data[2]}


def _mean_accuracy(results: SearchResults, value: float) -> float:
    """Returns the mean A_T of a value in the evaluation, in percent; NaN without one."""
    members = results.evaluation_of((value,)) if (value,) in results.evaluated else ()
    scores = [METRICS[A_T].of(record) for record in members if record.status == "ok"]
    return float(np.mean(scores)) if scores else float("nan")
