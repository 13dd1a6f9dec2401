"""Figure: a metric versus the searched parameter.

With mean and spread of every round, all seeds and the curve.
"""

import math
import re

import pandas as pd

from results.figures.parameter_drawing import ParameterCurve, draw
from results.labels import STREAM_LABELS, count_text, estimate_text, number_text
from results.metrics import METRICS, mean_std, summarize
from results.search import SearchResults
from results.verdict import wording
from results.verdict.peak import Peak
from results.verdict.peak import peak as peak_of

__all__ = ["caption", "draw", "numbers", "tables"]

CURVE_COLUMNS = [
    *("low", "high", "bootstrap_low", "bootstrap_high", "best"),
    *("window_low", "window_high", "points", "whole", "lack_of_fit_p", "seeds", "c2", "c1", "c0"),
]
"""Columns of the CSV file of the fitted curve: confidence set, bootstrap interval and best value; window of the fit,
number of its values, whether they are all, p of its lack of fit; seeds; c₂x² + c₁x + c₀ on the axis."""


def named(parameter: str, metric: str) -> str:
    """Returns the name of the figure, and of its files.

    >>> named("epsilon", "A_T"), named("lr", "A_T − 0.5 F_T")
    ('epsilon_A_T', 'lr_A_T_0_5_F_T')
    """
    return re.sub(r"\W+", "_", f"{parameter}_{metric}")


def numbers(results: SearchResults, metric: str = "A_T") -> ParameterCurve:
    """Returns the values of the search by round, in the units of `summarize`.

    A value of two rounds is in both, because each has a panel of its own; the curve counts it once. Only for results
    whose `is_curve` is true.
    """
    name = results.parameters[0]
    members = _members(results, metric)
    means = [
        (number, value, *mean_std(results.members_of((value,)), [metric]).values())
        for number, value in sorted({*zip(members["repeat"], members[name], strict=True)})
    ]
    points = pd.DataFrame(means, columns=["repeat", name, "n", "diverged", "mean", "std"])
    return ParameterCurve(
        metric=metric,
        stream=results.score_on,
        parameter=name,
        log=name in results.log,
        chosen=float(results.chosen[0]),
        baseline=None if results.baseline is None else float(results.baseline[0]),
        baseline_text=wording.baseline(results).removeprefix("the "),  # a legend has no articles
        zero_is_agem=results.zero_is_agem,
        members=members.rename(columns={metric: "value"})[["repeat", name, "seed", "value"]],
        points=points,
        intervals=tuple(r.number for r in results.rounds if r.span is not None and r.number in set(points["repeat"])),
        peak=peak_of(results, metric),
    )


def caption(curve: ParameterCurve) -> str:
    """Returns the caption: what the marks are, the baseline, the fitted curve and the confidence set."""
    what = {"A_T": "Final average accuracy A_T", "F_T": "Forgetting F_T (lower is better)"}.get(
        curve.metric, curve.metric
    )
    text = (
        f"{what} versus {curve.label} on the {STREAM_LABELS[curve.stream]}. Dots: mean over seeds; "
        "bars: ± one population standard deviation; faint dots: single seeds."
    )
    if curve.zooms:
        # A study may have batches, too, if it was extended by another strategy.
        noun = "repeat" if {*curve.points["repeat"]} <= {*curve.intervals} else "round"
        text += (
            f" Above: every {noun} over the whole interval, with bars where there is room. "
            "Below: the later repeats, each over its own interval, with a common vertical scale."
        )
    if (level := curve.at_baseline) is not None:
        metric = METRICS.get(curve.metric, METRICS["A_T"])  # an objective, which is in percent, too
        value = f"({number_text(level, metric.digits)} {metric.unit}".rstrip() + ")"
        agem = curve.zero_is_agem and curve.baseline == 0
        which = f"ε = 0, where the formula switches to A-GEM {value}" if agem else f"the {curve.baseline_text} {value}"
        text += f" Diamond and dashed line: {which}."
    return f"{text} {_curve_caption(curve)}"


def tables(curve: ParameterCurve) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure: means, single seeds, and the curve of `CURVE_COLUMNS`.

    The last is empty where no place of the best can be said.
    """
    name = named(curve.parameter, curve.metric)
    fitted = pd.DataFrame([] if curve.peak is None else [_row(curve.peak)], columns=CURVE_COLUMNS)
    return {name: curve.points, f"{name}_seeds": curve.members, f"{name}_curve": fitted}


def _members(results: SearchResults, metric: str) -> pd.DataFrame:
    """Returns one row a round, tried value and member: repeat, <parameter>, seed, status, <metric>.

    The value is that of the point: a record whose method does not use the parameter has none of its own.
    """
    kept = [(r.number, s[0], record) for r in results.rounds for s in r.points for record in results.members_of(s)]
    frame = summarize(record for _, _, record in kept)[["seed", "status", metric]]
    places = pd.DataFrame([(number, value) for number, value, _ in kept], columns=["repeat", results.parameters[0]])
    return pd.concat([places, frame], axis=1)


def _row(peak: Peak) -> tuple[object, ...]:
    """Returns the row of CURVE_COLUMNS: values of the parameter, but coefficients on its axis."""
    top, window = peak.maximum, peak.maximum.window
    fit = (0, False, math.nan) if window is None else window[2:]
    return (
        *(peak.low, peak.high, peak.value(top.bootstrap_low), peak.value(top.bootstrap_high), peak.best),
        *(*(peak.window or 2 * (math.nan,)), *fit, top.seeds),
        *(peak.curve or 3 * (math.nan,)),
    )


def _curve_caption(curve: ParameterCurve) -> str:
    """Returns the part of the caption about the fitted curve; "" without a confidence set."""
    peak = curve.peak
    if peak is None:
        return ""
    best = "lowest" if curve.metric == "F_T" else "highest"
    apart = "; ε = 0 is left out because another formula holds there" if curve.zero_is_agem else ""
    ends, window = peak.text, peak.maximum.window
    top = f"{curve.label} = {estimate_text(peak.best, peak.ends)}"
    where = f"where {curve.metric} is {best}: {curve.label} in {ends}, from {count_text(peak.maximum.seeds, 'seed')}"
    if peak.curve is None or window is None:
        which = "no quadratic curve can be fitted" if peak.maximum.seeds > 1 else "one seed gives no measure of noise"
        return f"Shaded: the values that cannot be excluded as the place {where} ({which})."
    over = "all tried values" if window.whole else f"the {window.points} values that such a curve fits"
    fit = "" if math.isnan(window.lack_of_fit_p) else f", lack of fit p = {window.lack_of_fit_p:.2g}"
    return (
        f"Dotted: quadratic curve fitted to {over}, with an intercept for each seed{fit}{apart}; star: where it is "
        f"{best}, {top}. Shaded: 95 % confidence set of the place {where}, each seed being one "
        "unit. This curve describes the shape; it is not the one that names a value."
    )
