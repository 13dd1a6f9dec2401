"""The best value of a metric, in a search of one number.

The confidence set of `results.statistics.confidence_set`, in values of the parameter.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from results.inert import all_equal
from results.labels import about_text
from results.metrics import METRICS
from results.search import SearchResults
from results.statistics.confidence_set import Maximum, best_interval
from results.statistics.paired import CONFIDENCE, student_quantile


class Peak(NamedTuple):
    """A `Maximum` on the axis of the parameter, converted to its values."""

    maximum: Maximum
    """On the axis."""
    log: bool
    """Whether the axis is log10 of the parameter."""
    sign: int
    """1, or −1 for a metric of which lower is better; then `maximum` is that of its negative."""

    @property
    def low(self) -> float:
        """Low end of the confidence set, a value of the parameter."""
        return self.value(self.maximum.low)

    @property
    def high(self) -> float:
        """High end of the confidence set, a value of the parameter."""
        return self.value(self.maximum.high)

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high

    @property
    def text(self) -> str:
        """The confidence set as an interval, for people."""
        return about_text(self.ends, self.maximum.worse_ends)

    @property
    def best(self) -> float:
        """The value at which the curve is best; without a curve the best tried value."""
        return self.value(self.maximum.best)

    @property
    def curve(self) -> pd.DataFrame | None:
        """The curve: value, mean, low, high (its 95 % band), best_share; one row a place, None without a curve.

        mean, low and high are in the unit of the metric. The band is that of the paired score: the effects of the
        seeds, which all values share, are not in it.
        """
        curve = self.maximum.curve
        if curve is None:
            return None
        half = student_quantile((1 + CONFIDENCE) / 2, math.inf) * curve.error
        mean = self.sign * curve.mean
        values = [self.value(place) for place in curve.places.tolist()]
        rows = {"value": values, "mean": mean, "low": mean - half, "high": mean + half, "best_share": curve.best_share}
        return pd.DataFrame(rows)

    def value(self, place: float) -> float:
        """Returns the value at a place on the axis, with twelve significant digits: 10^log10(0.003) is 0.003."""
        return float(f"{10**place:.12g}") if self.log else place


def peak(results: SearchResults, metric: str = "") -> Peak | None:
    """Returns where a metric of the search is best; None unless one number was searched over an interval.

    metric: by default what was maximised. Also None without members, and for an inert search. ε = 0 of ε-SOFT-GEM is
    A-GEM, which has another formula, so it is not part of the curve. A value of which a seed diverged has no score.
    """
    return _peak(results, metric or results.objective)


@lru_cache(maxsize=16)  # verdict, figures and sections ask for it
def _peak(results: SearchResults, metric: str) -> Peak | None:
    ends, log = results.domain[0], results.parameters[0] in results.log
    if not results.is_curve or not results.points or ends is None or not ends[0] < ends[1] or is_inert(results, metric):
        return None
    values = [float(point[0]) for point in results.points]
    x = [_place(v, log) for v in values]
    sign = -1 if metric == "F_T" else 1  # forgetting is the only metric of which less is better
    apart = [i for i, value in enumerate(values) if results.zero_is_agem and value == 0]
    # A study that was extended may have tried values outside of its present interval.
    low, high = (_place(end, log) for end in ends)
    low, high = min(low, *x), max(high, *x)
    scores = sign * complete(results, metric)
    maximum = best_interval(x, np.where(_took_part(results)[:, None], scores, math.nan), low, high, apart=apart)
    if results.by_curve and metric == results.objective:
        # It names the same value, but rounds it to few digits, and takes members of earlier searches, too.
        maximum = maximum._replace(best=_place(float(results.chosen[0]), log))
    return Peak(maximum, log, sign)


@lru_cache(maxsize=16)
def table(results: SearchResults, metric: str = "") -> np.ndarray:
    """Returns a metric [K, R] in the units of `summarize`: one row a point of `results.points`, one column a seed.

    metric: by default what was maximised.

    NaN where a member was not trained or diverged. The array is read-only, because it is cached.
    """
    of = METRICS[metric or results.objective].of
    seeds = sorted({r.unit for r in results.search})
    rows = [{r.unit: of(r) for r in results.members_of(point)} for point in results.points]
    # Reshaped, because without points or seeds NumPy makes an array of one dimension.
    scores = np.array([[row.get(seed, math.nan) for seed in seeds] for row in rows]).reshape(len(rows), len(seeds))
    scores.setflags(write=False)
    return scores


def complete(results: SearchResults, metric: str = "") -> np.ndarray:
    """Returns `table` with NaN in the whole row of a point of which a seed diverged: the search gives it no score."""
    whole = np.array([not count_diverged(results, point) for point in results.points], dtype=bool)
    return np.where(whole[:, None], table(results, metric), math.nan)


def is_inert(results: SearchResults, metric: str = "") -> bool:
    """Returns whether all points score the same bit for bit, so that nothing was measured."""
    return all_equal(complete(results, metric))


def _took_part(results: SearchResults) -> np.ndarray:
    """Returns bool [K]: the points whose members took part in the choice, all but one that the curve has named."""
    last = results.rounds[-1] if results.rounds else None
    if last is None or not last.named:
        return np.ones(len(results.points), dtype=bool)
    tried = {point for search_round in results.rounds[:-1] for point in search_round.points}
    return np.array([point in tried for point in results.points], dtype=bool)


def count_diverged(results: SearchResults, point: tuple[float | int | str, ...]) -> int:
    """Returns the number of the point's members that diverged."""
    return sum(r.status != "ok" for r in results.members_of(point))


def _place(value: float, log: bool) -> float:
    """Returns the place of a value on the axis."""
    return math.log10(value) if log else value
