"""Figure: a metric versus the searched parameter.

With mean and spread of every round, all seeds and the curve.
"""

import math
import re

import pandas as pd

from results.figures.noise import indistinct_rounds
from results.figures.parameter_drawing import ParameterCurve, draw
from results.labels import STREAM_LABELS, count_text
from results.metrics import METRICS, mean_std, summarize
from results.points import value_text
from results.search import SearchResults
from results.search_tables import by_seed, reference_label
from results.statistics.spread import spread, within_errors
from results.verdict import along_tasks, wording
from results.verdict.peak import peak as peak_of
from results.verdict.peak import table

__all__ = ["caption", "draw", "numbers", "tables"]


def figure_name(parameter: str, metric: str) -> str:
    """Returns the name of the figure, and of its files.

    >>> figure_name("epsilon", "A_T"), figure_name("lr", "A_T − 0.5 F_T")
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
    errors = dict(zip(results.points, within_errors(table(results, metric)).tolist(), strict=True))
    means = [
        (number, value, *mean_std(results.members_of((value,)), [metric]).values(), errors[(value,)])
        for number, value in sorted({*zip(members["repeat"], members[name], strict=True)})
    ]
    points = pd.DataFrame(means, columns=["repeat", name, "n", "diverged", "mean", "std", "within_error"])
    return ParameterCurve(
        metric=metric,
        stream=results.score_on,
        parameter=name,
        log=name in results.log,
        chosen=float(results.chosen[0]),
        role=results.role,
        baseline=None if results.baseline is None else float(results.baseline[0]),
        baseline_text=wording.baseline(results).removeprefix("the "),  # a legend has no articles
        zero_is_agem=results.zero_is_agem,
        members=members.rename(columns={metric: "value"})[["repeat", name, "seed", "value"]],
        points=points,
        intervals=tuple(r.number for r in results.rounds if r.span is not None and r.number in set(points["repeat"])),
        peak=peak_of(results, metric),
        by_curve=results.by_curve and metric == results.objective,
        at_summit=results.at_summit,
        objective=results.objective,
        references=_references(results, metric),
        indistinct=indistinct_rounds(results),
        scope=along_tasks.scope(results),
    )


def caption(curve: ParameterCurve) -> str:
    """Returns the caption: what the marks are, the baseline, the fitted curve and the confidence set."""
    what = {"A_T": "Final average accuracy A_T", "F_T": "Forgetting F_T (lower is better)"}.get(
        curve.metric, curve.metric
    )
    text = (
        f"{what} versus {curve.label} on the {STREAM_LABELS[curve.stream]}. Dots: mean over seeds; bars: ± one "
        "standard error within seeds; faint dots: single seeds. That standard error is Cousineau–Morey's, without the "
        "effects of seeds."
    )
    if curve.later:
        text += " Later repeats have bars where there is room."
    if (level := curve.at_baseline) is not None:
        metric = METRICS.get(curve.metric, METRICS["A_T"])  # an objective, which is in percent, too
        value = f"({metric.number_text(level)} {metric.display_unit}".rstrip() + ")"
        agem = curve.zero_is_agem and curve.baseline == 0
        which = f"ε = 0, where the formula switches to A-GEM {value}" if agem else f"the {curve.baseline_text} {value}"
        text += f" Diamond and dashed line: {which}."
    parts = (text + _references_caption(curve), curve.scope, _curve_caption(curve))
    return " ".join(part for part in parts if part)


def tables(curve: ParameterCurve) -> dict[str, pd.DataFrame]:
    """Returns name -> table of the data of the figure: means, single seeds, and the curve (`Peak.curve`).

    The last is empty where there is no curve. With reference rows there is a table of these, too.
    """
    name = figure_name(curve.parameter, curve.metric)
    fitted = None if curve.peak is None else curve.peak.curve
    columns = ["value", "mean", "low", "high", "best_share"]
    drawn = pd.DataFrame(columns=columns) if fitted is None else fitted
    line = drawn.rename(columns={"value": curve.parameter})
    beside = {} if curve.references.empty else {f"{name}_references": curve.references}
    return {name: curve.points, f"{name}_seeds": curve.members, f"{name}_curve": line, **beside}


def _members(results: SearchResults, metric: str) -> pd.DataFrame:
    """Returns one row a round, tried value and member: repeat, <parameter>, seed, status, <metric>.

    The value is that of the point: a record whose method does not use the parameter has none of its own.
    """
    rows = [(r.number, s[0], record) for r in results.rounds for s in r.points for record in results.members_of(s)]
    frame = summarize(record for _, _, record in rows)[["seed", "status", metric]]
    if any(record.unit.order for _, _, record in rows):
        frame["seed"] = [str(record.unit) for _, _, record in rows]
    places = pd.DataFrame([(number, value) for number, value, _ in rows], columns=["repeat", results.parameters[0]])
    return pd.concat([places, frame], axis=1)


def _references(results: SearchResults, metric: str) -> pd.DataFrame:
    """Returns `ParameterCurve.references`; without rows that do not have the metric, as joint training has no F_T."""
    spreads = {row: spread([*by_seed(members, metric).values()]) for row, members in results.references.items()}
    rows = [
        (reference_label(row), estimate.n, estimate.mean, estimate.high - estimate.mean)
        for row, estimate in spreads.items()
        if not math.isnan(estimate.mean)
    ]
    return pd.DataFrame(rows, columns=["row", "n", "mean", "half_width"])


def _references_caption(curve: ParameterCurve) -> str:
    """Returns the part of the caption about reference rows; "" without any."""
    metric = METRICS.get(curve.metric, METRICS["A_T"])
    rows = [
        f"{row.row} ({metric.number_text(float(row.mean))} {metric.display_unit}".rstrip() + ")"  # type: ignore[arg-type]
        for row in curve.references.itertuples()
    ]
    far = "; an arrow points to one beyond the axis" if rows else ""
    return f" Labelled lines: {' and '.join(rows)}, with the same seeds on the same tasks{far}." if rows else ""


def _curve_caption(curve: ParameterCurve) -> str:
    """Returns the part of the caption about the curve and its top; "" without a confidence set."""
    peak = curve.peak
    if peak is None:
        return ""
    best = "lowest" if curve.metric == "F_T" else "highest"
    seeds = count_text(peak.maximum.seeds, "seed")
    where = f"where {curve.metric} may be {best}: {curve.label} in {peak.text} (95 %, {seeds})"
    if peak.maximum.curve is None:
        which = "too few values for a curve" if peak.maximum.seeds > 1 else "one seed gives no measure of noise"
        return f"Bar along the axis: {where}; {which}."
    apart = "; ε = 0, with another formula, is no part of it" if curve.zero_is_agem else ""
    return (
        f"Line: Gaussian process through all scores, with an effect of each seed{apart}; shaded: its 95 % band for "
        f"paired scores. {_star(curve)} Bar along the axis: {where}."
    )


def _star(curve: ParameterCurve) -> str:
    """Returns what the star is: the choice, and by which rule it was made."""
    chosen = f"Star: the {curve.role} {curve.label} = {value_text(curve.chosen)}"
    if curve.scope:
        return f"{chosen}, by predicted A_T."
    if curve.metric != curve.objective:
        return f"{chosen}, by {curve.objective}."
    if curve.by_curve:
        among = "" if curve.at_summit else " among values that no paired test excludes"
        return f"{chosen}, where the curve is highest{among}."
    return f"{chosen}, the best tried value."
