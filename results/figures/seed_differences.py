"""Figure: the chosen point minus the baseline on the evaluation stream, by seed."""

import math
from typing import Any, TypeAlias

import pandas as pd

from results.figures.style import BLUE, FAINT, INK, VERMILLION, finish, plotly
from results.labels import count_text, number_text, signed_text, subscripts
from results.metrics import METRICS, Metric
from results.search import SearchResults
from results.search_tables import baseline_pair, by_seed
from results.statistics.paired import Paired
from results.verdict import wording
from results.verdict.judge import half_width

MEAN = "mean"
"""Name of the last place on the axis."""
INTERVAL, MEAN_BAR = "95 % t interval", "mean ± standard error (thick), 95 % t interval (thin)"
"""Names of the traces of the mean: the first stands in the entry of the second."""
THIN, THICK = {"thickness": 1.4, "width": 9}, {"thickness": 6, "width": 0}
"""Looks of their bars."""


Numbers: TypeAlias = tuple[SearchResults, pd.DataFrame, Paired]
"""Results; one row a seed that both have: seed, chosen, baseline, difference; the mean of the differences.

All in the unit in which people see what was maximised.
"""


def numbers(results: SearchResults) -> Numbers:
    """Returns the differences by seed; without rows where the baseline was chosen or one of both was not evaluated."""
    metric, pair = results.objective, baseline_pair(results, evaluation=True)
    factor = METRICS[metric].display_factor
    sides: list[dict[int, float]] = [{}, {}]
    if pair.n and results.baseline is not None:
        sides = [by_seed(results.evaluation_of(point), metric) for point in (results.chosen, results.baseline)]
    rows = [
        (seed, factor * sides[0][seed], factor * sides[1][seed], factor * (sides[0][seed] - sides[1][seed]))
        for seed in sorted(sides[0].keys() & sides[1].keys())
        if not math.isnan(sides[0][seed] - sides[1][seed])
    ]
    seeds = pd.DataFrame(rows, columns=["seed", "chosen", "baseline", "difference"])
    difference = Paired(
        factor * pair.mean, factor * pair.error, tuple(factor * difference for difference in pair.differences)
    )
    return results, seeds, difference


def _metric(results: SearchResults) -> Metric:
    """Returns the metric; an objective that is not registered while a figure is drawn is in percent, too."""
    return METRICS.get(results.objective, METRICS["A_T"])


def draw(data: Numbers) -> Any:
    """Returns a plotly figure: a dot for each seed, then their mean with its standard error and 95 % t interval."""
    figure = plotly("graph_objects").Figure()
    results, seeds, pair = data
    metric, unit = subscripts(results.objective), _metric(results).display_unit
    hover = f"seed %{{x}}: {metric} %{{customdata[0]:.4g}} − %{{customdata[1]:.4g}} = %{{y:+.4g}}"
    figure.add_scatter(
        x=[str(seed) for seed in seeds["seed"]],
        y=seeds["difference"],
        customdata=seeds[["chosen", "baseline"]],
        mode="markers",
        marker={"size": 9, "color": FAINT},
        name="single seed",
        hovertemplate=f"{hover}<extra></extra>",
    )
    if pair.n:
        for name, half, bar in ((INTERVAL, half_width(pair), THIN), (MEAN_BAR, pair.error, THICK)):
            figure.add_scatter(
                x=[MEAN],
                y=[pair.mean],
                error_y={"array": [half], "color": BLUE, **bar} if pair.n > 1 else {},
                mode="markers",
                marker={"size": 9, "color": BLUE, "symbol": "diamond"},
                name=name if pair.n > 1 else MEAN,
                showlegend=name == MEAN_BAR,
                hovertemplate=f"{MEAN}: {signed_text(pair.mean, 2)} {unit}<extra></extra>",
            )
    finish(figure, height=270)
    figure.update_layout(margin_t=44)
    figure.add_hline(y=0, line={"color": VERMILLION, "dash": "dash", "width": 1}, layer="below")
    figure.add_annotation(
        **{"x": 0, "xref": "paper", "xanchor": "left", "y": 0, "yanchor": "bottom", "showarrow": False},
        text=f"{wording.baseline_name(results)}'s {metric}",
        font={"size": 12, "color": INK},
    )
    # 0 is no difference: the axis has to show it.
    figure.update_yaxes(
        title_text=f"{metric}, difference ({'points' if unit == '%' else unit or 'fraction'})",
        rangemode="tozero",
    )
    figure.update_xaxes(
        title_text="seed",
        type="category",
        categoryorder="array",
        categoryarray=[*(str(seed) for seed in seeds["seed"]), MEAN],
    )
    return figure


def caption(data: Numbers) -> str:
    """Returns the caption with the mean, its standard error and its interval."""
    results, _, pair = data
    metric, digits = results.objective, _metric(results).digits
    of = f"the chosen {wording.subject(results)} minus that of {wording.baseline_name(results)}"
    text = f"Difference by seed: {metric} of {of}"
    if not pair.n:
        return f"{text}; no seed has both."
    mean = signed_text(pair.mean, digits)
    if pair.n == 1:
        return f"{text}: {mean} points; one seed has no standard error."
    # What a plug-in trainer does with a seed is not known here.
    same = "tasks, order of examples and initial weights" if results.trainer_repeats is None else "seed and tasks"
    ends = (signed_text(pair.mean + sign * half_width(pair), digits) for sign in (-1, 1))
    return (
        f"{text}. Mean {mean} ± {number_text(pair.error, digits)} points (standard error); 95 % t interval "
        f"{' to '.join(ends)}. Of {count_text(pair.n, 'seed')}, each paired: both have the same {same}. The interval "
        "is Student's, which takes differences between seeds to be normal."
    )


def tables(data: Numbers) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure: the seeds, and their mean."""
    _, seeds, pair = data
    half = half_width(pair) if pair.n > 1 else math.nan
    row = [(pair.n, pair.mean, pair.error, pair.mean - half, pair.mean + half)] if pair.n else []
    mean = pd.DataFrame(row, columns=["n", "mean", "standard_error", "low", "high"])
    return {"seed_differences": seeds, "seed_differences_mean": mean}
