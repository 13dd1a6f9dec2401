"""The verdict on a search, by its curve or its points."""

import math

import numpy as np

from results.inert import INERT, inert
from results.labels import count_text, number_text, outwards, signed_text
from results.metrics import METRICS
from results.points import Point, is_number, point_text, value_text
from results.search import SearchResults
from results.search_tables import baseline_pair
from results.statistics.confidence_set import Maximum
from results.statistics.paired import CONFIDENCE, Paired, student_quantile
from results.statistics.racing import adjusted_means
from results.verdict import wording
from results.verdict.curve import BEST_TRIED, Verdict, verdict
from results.verdict.peak import Peak, complete
from results.verdict.points import verdict_of_points

DIGITS = METRICS["A_T"].digits

NEAR = 0.05
"""Values this close to an end, as a part of the axis, count as being at the end."""


def judge(results: SearchResults, peak: Peak | None) -> tuple[Verdict, tuple[Point, ...]]:
    """Returns the verdict, and the points that cannot be told apart from the best if there is no curve.

    The interval of the verdict is in values of the parameter; NaN where the points lie on no curve.
    """
    scores = complete(results)
    if nothing := _inert(results, scores):
        scored = (s for s, row in zip(results.points, scores, strict=True) if not np.isnan(row).all())
        return Verdict(INERT, math.nan, math.nan, *nothing), tuple(s for s in scored if s != results.chosen)
    if peak is not None:
        return with_evaluation(results, _of_first_stage(results, _on_the_curve(results, peak, scores))), ()
    judged = verdict_of_points(
        scores,
        _divergence_mask(results),
        bounds=[_bound(results, point) for point in results.points],
        label="value" if len(results.parameters) == 1 else "point",
        members=_members(results),
    )
    return with_evaluation(results, _of_first_stage(results, judged)), tuple(results.points[k] for k in judged.rivals)


REJECTED, UNCONFIRMED = "rejects", "does not confirm"
"""Objections of an evaluation to a choice that is not better than the baseline on its tasks."""


def objection(results: SearchResults) -> str | None:
    """Returns `REJECTED` or `UNCONFIRMED` where the evaluation speaks against the choice, else None.

    Only where the evaluation has data that did not choose, and the chosen point is not the baseline itself.
    """
    if results.score_on == "eval" or results.baseline in (None, results.chosen):
        return None
    pair = baseline_pair(results, evaluation=True)
    if pair.n < 2 or not pair.mean < 0:  # NaN without a pair
        return None
    return REJECTED if pair.mean + half_width(pair) < 0 else UNCONFIRMED


def half_width(pair: Paired) -> float:
    """Returns half the width of Student's 95 % t interval of a mean paired difference; infinite below two pairs."""
    return student_quantile((1 + CONFIDENCE) / 2, pair.n - 1) * pair.error


def with_evaluation(results: SearchResults, judged: Verdict) -> Verdict:
    """Returns the verdict, which first says so where the evaluation speaks against the choice, and then advises less.

    See `objection`.
    """
    against, pair = objection(results), baseline_pair(results, evaluation=True)
    if against is None:
        return judged
    name, label = wording.baseline_name(results), wording.subject(results)
    size = f"{signed_text(pair.mean, DIGITS)} ± {number_text(pair.error, DIGITS)} points against {name}"
    advice = f"Take {name}."
    if against == UNCONFIRMED:
        advice = f"Take {name}, or evaluate both with more seeds: the chosen {label} is not shown to be better."
    text = f"The evaluation {against} the choice: {size} on {count_text(pair.n, 'seed')}."
    return judged._replace(text=f"{text} {judged.text}", advice=advice)


def _of_first_stage(results: SearchResults, judged: Verdict) -> Verdict:
    """Returns the verdict, of a search along tasks as one on the tasks of its first stage, which did not choose."""
    if not results.stages:
        return judged
    tasks = count_text(int(results.config["cv_tasks"]), "task")
    advice = judged.advice if judged.kind == "diverging" else ""  # the choice is not by these scores
    return judged._replace(text=f"Of {tasks} alone, which did not choose: {judged.text}", advice=advice)


def _inert(results: SearchResults, scores: np.ndarray) -> tuple[str, str] | None:
    """Returns (finding, advice) for an inert search; None for any other."""
    searched = wording.searched_parameters(results)
    of = f"values of {searched}" if len(results.parameters) == 1 else f"points of {searched}"
    # Fingerprints are hashes of the final parameters: one for each unit means that no point changed the training.
    networks = {(record.unit, record.fingerprint) for record in results.search}
    same = len(networks) == len({unit for unit, _ in networks})
    widest = all(all(results.at_limits(name)) for name in results.parameters)
    return inert(scores, of, searched, same_networks=same, widest=widest)


def _on_the_curve(results: SearchResults, peak: Peak, scores: np.ndarray) -> Verdict:
    """Returns the verdict by the curve, with advice that names tried values."""
    # Values, where the axis is a logarithm.
    maximum = peak.maximum._replace(low=peak.low, high=peak.high, best=peak.best)
    label, names = wording.subject(results), _natural(results)
    judged = verdict(
        maximum,
        scores,
        _divergence_mask(results),
        label=label,
        natural=names,
        members=_members(results),
        where=f" on {wording.stream(results)}",
    )
    within, advice = peak.low <= float(results.chosen[0]) <= peak.high, judged.advice
    if judged.kind == "resolved":
        # The advice of `verdict` names the top of the curve, a value that nobody trained.
        advice = f"The chosen {label} lies within it: take it." if within else _inside(results, peak, scores)
    elif judged.kind == "edge" and within:
        advice = _chosen_or_end(results, maximum, names) or advice
    if results.by_curve:  # which is better than the highest of noisy means, whatever is known of the maximum
        advice = advice.replace(BEST_TRIED, f"Take the chosen {label}.")
    return judged._replace(low=peak.low, high=peak.high, advice=advice)


def _inside(results: SearchResults, peak: Peak, scores: np.ndarray) -> str:
    """Returns the advice for a chosen value that lies outside a resolved interval."""
    label, means = wording.subject(results), adjusted_means(scores)
    values = [float(point[0]) for point in results.points]
    tried = [k for k, v in enumerate(values) if peak.low <= v <= peak.high and not math.isnan(means[k])]
    if tried:
        best = values[max(tried, key=lambda k: float(means[k]))]
        return f"Take {label} = {value_text(best)}, the best tried value within it."
    low, high = outwards(*peak.ends)
    if low == high:  # without noise the curve leaves its top alone open
        return f"No tried value lies within it: try {label} = {low}."
    # Only ε has --interval; for other parameters the user writes --search as before.
    how = f" (--extend --interval {low} {high})" if results.of_epsilon else ""
    return f"No tried value lies within it: search that interval again{how}."


def _chosen_or_end(results: SearchResults, maximum: Maximum, names: tuple[str, str]) -> str:
    """Returns the advice for an open end that cannot be crossed, if the chosen value is as good as it; else ""."""
    assert results.domain[0] is not None
    side = 0 if maximum.at_low else 1
    name, end, label = names[side], results.domain[0][side], wording.subject(results)
    if not name or maximum.worse_ends[side] or results.chosen[0] == end:
        return ""
    return f"The chosen {label} lies within it: take it, or {name}, beyond which {label} cannot go."


def _divergence_mask(results: SearchResults) -> np.ndarray:
    """Returns bool [K, R]: the members that diverged, a row a point and a column a seed."""
    seeds = sorted({r.unit for r in results.search})
    rows = [{r.unit for r in results.members_of(s) if r.status != "ok"} for s in results.points]
    # Reshaped, because without points or seeds NumPy makes an array of one dimension.
    return np.array([[seed in row for seed in seeds] for row in rows], dtype=bool).reshape(len(rows), len(seeds))


def _members(results: SearchResults) -> int:
    """Returns the number of members, counted once for every point to which they belong."""
    return sum(len(results.members_of(point)) for point in results.points)


def _natural(results: SearchResults) -> tuple[str, str]:
    """Returns the names of the ends that no search can cross; "" for other ends."""
    ends, (low, high) = results.domain[0], results.at_limits(results.parameters[0])
    if ends is None:
        return "", ""
    lowest, highest = (f"{wording.subject(results)} = {value_text(end)}" for end in ends)
    return ("A-GEM" if results.zero_is_agem else lowest) if low else "", highest if high else ""


def _bound(results: SearchResults, point: Point) -> str:
    """Returns the first value of a point that lies at an end of its interval that could be moved, or ""."""
    for name, value, ends in zip(results.parameters, point, results.domain, strict=True):
        if ends is None or not is_number(value):
            continue
        near = _near_the_ends(float(value), ends, name in results.log)
        if any(close and not fixed for close, fixed in zip(near, results.at_limits(name), strict=True)):
            return point_text((name,), (value,))
    return ""


def _near_the_ends(value: float, ends: tuple[float, float], log: bool) -> tuple[bool, bool]:
    """Returns whether a value is within `NEAR` of each end: samplers almost never draw the end of a continuous axis."""
    low, high, at = (math.log10(v) if log else v for v in (*ends, value))  # near on the axis that was searched
    return at - low <= NEAR * (high - low), high - at <= NEAR * (high - low)
