"""The assessment of a search: all that its seeds say."""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from results.inert import INERT
from results.ledger.record import Unit
from results.points import Point
from results.search import EvaluatedChoice, Race, SearchResults
from results.statistics.bootstrap import FEWEST_SEEDS
from results.statistics.outliers import outliers
from results.statistics.racing import adjusted_means
from results.statistics.spread import PairedTest, Spread, against, probability_best, spread
from results.verdict.curve import Verdict
from results.verdict.judge import judge
from results.verdict.peak import Peak, complete, count_diverged, peak, table


class TrustedPoint(NamedTuple):
    """The statistics of one tried point, of what was maximised, in percent."""

    point: Point
    """The point."""
    diverged: int
    """Members that diverged: a point that has any has no score and cannot be the best."""
    spread: Spread
    """What was maximised, over its seeds."""
    adjusted: float
    """Mean as if the point had every seed, see `racing.adjusted_means`; NaN where a member diverged."""
    biased: bool
    """Whether a race dropped it: its means are biased downwards, as it got no more seeds because the first were low."""
    against: PairedTest | None
    """Difference to the baseline; None for the baseline itself, or without one in the search."""
    probability: float
    """Share of resamples of the seeds in which it is the best, see `spread.probability_best`; NaN below ten seeds."""


class Assessment(NamedTuple):
    """All statistics of the trust in a search; scores in percent, values as they were searched."""

    objective: str
    """What was maximised."""
    parameters: tuple[str, ...]
    """Names of the searched hyperparameters."""
    chosen: Point
    """The chosen point."""
    baseline: Point | None
    """The point it is compared with; None if there is none."""
    seeds: int
    """Seeds of the search that have a record."""
    points: tuple[TrustedPoint, ...]
    """Every tried point, in the order of the study."""
    peak: Peak | None
    """The curve and its confidence set, for a search of one number over an interval; else None."""
    verdict: Verdict
    """Its interval is in values of the parameter."""
    rivals: tuple[Point, ...]
    """Points that cannot be told apart from the best, if they lie on no curve."""
    far_off: tuple[tuple[Point, Unit, float], ...]
    """Outliers, such as failed runs that still have a score: point, seed, and A_T minus the fit of the other members in
    percentage points (`outliers.outliers`)."""
    race: Race | None
    """As in `SearchResults`."""
    disjointness: str
    """As in `SearchResults`."""
    evaluated_choices: tuple[EvaluatedChoice, ...]
    """As in `SearchResults`."""

    @property
    def probability(self) -> float:
        """Share of resamples in which the chosen point is the best of the tried ones.

        NaN where it was not tried, and below ten seeds.
        """
        return next((point.probability for point in self.points if point.point == self.chosen), math.nan)

    @property
    def comparisons(self) -> int:
        """The number of points that share a seed with the baseline."""
        return len(self._pairs)

    @property
    def smallest_p(self) -> float:
        """The smallest p that the seeds allow in any comparison with the baseline; NaN without a comparison."""
        return min((pair.smallest_p for pair in self._pairs), default=math.nan)

    @property
    def smallest_p_holm(self) -> float:
        """The same after Holm's correction for the number of comparisons."""
        return min((pair.smallest_p_holm for pair in self._pairs), default=math.nan)

    @property
    def _pairs(self) -> list[PairedTest]:
        return [point.against for point in self.points if point.against is not None and point.against.n > 0]

    @property
    def choice_number(self) -> int:
        """The number of this study's choice among those evaluated on the stream, from 1; 0 where it is none of them."""
        return max((i for i, choice in enumerate(self.evaluated_choices, start=1) if choice.mine), default=0)


@lru_cache(maxsize=16)  # every section of the report asks for it
def trust(results: SearchResults) -> Assessment:
    """Returns the whole assessment; the members of the search are its only data."""
    best = peak(results)
    verdict, rivals = judge(results, best)
    return Assessment(
        objective=results.objective,
        parameters=results.parameters,
        chosen=results.chosen,
        baseline=results.baseline,
        seeds=len({r.unit for r in results.search}),
        points=_points(results, verdict.kind == INERT),
        peak=best,
        verdict=verdict,
        rivals=rivals,
        far_off=_far_off(results),
        race=results.race,
        disjointness=results.disjointness,
        evaluated_choices=results.evaluated_choices,
    )


def trust_as_json(trust: Assessment) -> dict[str, Any]:
    """Returns an assessment as JSON: NaN and infinity are null, scores are in percent.

    kind, interval, text, advice, rivals (the verdict); far_off; seeds, probability_best, smallest_p, smallest_p_holm;
    curve (null without one); tests: one for each point; race, seal, looks.
    """
    verdict = trust.verdict
    return {
        "kind": verdict.kind,
        "interval": _ends(verdict.low, verdict.high),
        "text": verdict.text,
        "advice": verdict.advice,
        "rivals": [list(point) for point in trust.rivals],
        "far_off": [{"point": list(point), **_as_json(unit), "by": by} for point, unit, by in trust.far_off],
        "seeds": trust.seeds,
        "probability_best": _number(trust.probability),
        "smallest_p": _number(trust.smallest_p),
        "smallest_p_holm": _number(trust.smallest_p_holm),
        "curve": None if trust.peak is None else _curve_as_json(trust.peak),
        "tests": [{n: _number(v) if isinstance(v, float) else v for n, v in row.items()} for row in trust_rows(trust)],
        "race": None if trust.race is None else trust.race._asdict(),
        "seal": trust.disjointness,
        "looks": [choice.as_json() for choice in trust.evaluated_choices],
    }


def _as_json(unit: Unit) -> dict[str, int]:
    """Returns a unit's seed, and its order where it is not the stream's own."""
    return {"seed": unit.seed} | ({"order": unit.order} if unit.order else {})


def trust_rows(trust: Assessment) -> list[dict[str, Any]]:
    """Returns one row a point, for a table; NaN where there is nothing.

    A key for each parameter, then n, diverged, mean, std, population_std, low, high, bootstrap_low, bootstrap_high,
    adjusted_mean, biased (whether a race dropped the point, so that its means are), difference, standard_error, p,
    p_holm, smallest_p, probability_best.
    """
    return [_row(trust, point) for point in trust.points]


def _far_off(results: SearchResults) -> tuple[tuple[Point, Unit, float], ...]:
    seeds = sorted({r.unit for r in results.search})
    # ε = 0 of ε-SOFT-GEM is A-GEM: seeds have another effect on another method, and none of its members has failed.
    other = [results.zero_is_agem and point == (0.0,) for point in results.points]
    scores = np.where(np.array(other, dtype=bool)[:, None], math.nan, table(results))
    return tuple((results.points[row], seeds[column], by) for row, column, by in outliers(scores))


def _points(results: SearchResults, inert: bool) -> tuple[TrustedPoint, ...]:
    """Returns the statistics of all points; for an inert search without tests and probabilities, which mean nothing."""
    scores, whole = table(results), complete(results)
    resampled = not inert and scores.shape[1] >= FEWEST_SEEDS
    pairs = {} if inert else _against(results, scores)
    adjusted = adjusted_means(whole)
    probable = probability_best(whole) if resampled else np.full(len(whole), math.nan)
    dropped = () if results.race is None else results.race.dropped
    return tuple(
        TrustedPoint(
            s, count_diverged(results, s), spread(row.tolist()), float(a), s in dropped, pairs.get(s), float(p)
        )
        for s, row, a, p in zip(results.points, scores, adjusted, probable, strict=True)
    )


def _against(results: SearchResults, scores: np.ndarray) -> dict[Point, PairedTest]:
    """Returns point -> its comparison with the baseline; empty where the baseline was not tried."""
    if results.baseline not in results.points:
        return {}
    base = results.points.index(results.baseline)
    pairs = against(np.delete(scores, base, axis=0), scores[base].tolist())
    return dict(zip((point for point in results.points if point != results.baseline), pairs, strict=True))


def _row(trust: Assessment, point: TrustedPoint) -> dict[str, Any]:
    pair = point.against or PairedTest(0, *6 * (math.nan,))  # the baseline, or a search without one
    return {
        **dict(zip(trust.parameters, point.point, strict=True)),
        **{"n": point.spread.n, "diverged": point.diverged},  # beside each other in tables
        **point.spread._asdict(),
        "adjusted_mean": point.adjusted,
        "biased": point.biased,
        "difference": pair.mean,
        "standard_error": pair.error,
        "p": pair.p,
        "p_holm": pair.p_holm,
        "smallest_p": pair.smallest_p,
        "probability_best": point.probability,
    }


def _curve_as_json(peak: Peak) -> dict[str, Any]:
    maximum, curve = peak.maximum, peak.maximum.curve
    return {
        "best": _number(peak.best),
        "interval": _ends(peak.low, peak.high),
        "difference_at_most": None if curve is None else _number(curve.largest_difference),
        "loss_at_most": None if curve is None else _number(curve.largest_loss),
        "parabola_p": _number(maximum.parabola_p),
        "seeds_needed": _number(maximum.seeds_needed),
    }


def _ends(low: float, high: float) -> list[float] | None:
    return [float(low), float(high)] if math.isfinite(low) and math.isfinite(high) else None


def _number(value: float) -> float | None:
    # JSON has neither NaN nor ∞; Python would write names for them that other readers refuse.
    return float(value) if math.isfinite(value) else None
