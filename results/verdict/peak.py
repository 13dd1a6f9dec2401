"""Where a metric is best along the one searched number.

The confidence set of `results.statistics.confidence_set`, in the searched values.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from results.inert import all_equal
from results.metrics import summarize
from results.search import SearchResults
from results.statistics.confidence_set import Maximum, best_interval


class Peak(NamedTuple):
    """A `Maximum` on the axis of the parameter, and the way back to its values."""

    maximum: Maximum
    log: bool
    """Whether the axis is log10 of the parameter."""
    sign: int
    """1, or −1 where the metric is better when lower, so that `maximum` is of its negative."""
    curve: tuple[float, float, float] | None
    """Coefficients c₂, c₁, c₀ of the metric on the axis, in its own sign; None without a curve."""

    @property
    def low(self) -> float:
        """Low end of the confidence set, a value of the parameter."""
        return self.value(self.maximum.low)

    @property
    def high(self) -> float:
        """High end of the confidence set."""
        return self.value(self.maximum.high)

    @property
    def best(self) -> float:
        """The value where the curve is best; without a curve the best tried one."""
        return self.value(self.maximum.best)

    @property
    def window(self) -> tuple[float, float] | None:
        """The values that the curve was fitted to."""
        window = self.maximum.window
        return None if window is None else (self.value(window.low), self.value(window.high))

    def value(self, place: float) -> float:
        """The value at a place on the axis, with twelve significant digits: 10^log10(0.003) is 0.003."""
        return float(f"{10**place:.12g}") if self.log else place

    def at(self, place: float) -> float:
        """The fitted metric at a place on the axis; NaN without a curve."""
        return math.nan if self.curve is None else float(np.polyval(self.curve, place))


@lru_cache(maxsize=16)
def peak(results: SearchResults, metric: str = "A_T") -> Peak | None:
    """Of the members of the search; None without any, where all score the same, or unless one number was searched over
    an interval.

    ε = 0 of ε-SOFT-GEM is A-GEM, another formula, and no part of the curve. A value that lost a seed has no score.
    """
    ends, log = results.domain[0], results.parameters[0] in results.log
    if not results.is_curve or not results.settings or ends is None or not ends[0] < ends[1]:
        return None
    if is_inert(results, metric):
        return None
    values = [float(setting[0]) for setting in results.settings]
    x = [_place(v, log) for v in values]
    sign = -1 if metric == "F_T" else 1
    apart = [i for i, value in enumerate(values) if results.zero_is_agem and value == 0]
    # A study that was extended may have tried values beyond the interval of today.
    low, high = (_place(end, log) for end in ends)
    found = best_interval(x, sign * complete(results, metric), min(low, *x), max(high, *x), apart=apart)
    return Peak(found, log, sign, _curve(x, found, sign))


@lru_cache(maxsize=16)
def table(results: SearchResults, metric: str = "A_T") -> np.ndarray:
    """[K, R] in the units of `summarize`: one row a setting of `results.points`, one column a seed; NaN where a
    member was not trained or diverged. Read-only.
    """
    values = dict(zip((r.key for r in results.search), summarize(results.search)[metric].astype(float), strict=True))
    seeds = sorted({r.seed for r in results.search})
    rows = [{r.seed: values[r.key] for r in results.members_of(setting)} for setting in results.settings]
    found = np.array([[row.get(seed, math.nan) for seed in seeds] for row in rows]).reshape(len(rows), len(seeds))
    found.setflags(write=False)
    return found


def complete(results: SearchResults, metric: str = "A_T") -> np.ndarray:
    """`table`, with NaN throughout the rows of settings that lost a seed: the search gives them no score."""
    found = table(results, metric).copy()
    for row, setting in zip(found, results.settings, strict=True):
        if lost(results, setting):
            row[:] = math.nan
    return found


def is_inert(results: SearchResults, metric: str = "A_T") -> bool:
    """Whether all settings score the same bit for bit, so that nothing was measured."""
    return all_equal(complete(results, metric))


def lost(results: SearchResults, setting: tuple[float | int | str, ...]) -> int:
    """Members of the setting that diverged."""
    return sum(r.status != "ok" for r in results.members_of(setting))


def _place(value: float, log: bool) -> float:
    return math.log10(value) if log else value


def _curve(x: list[float], found: Maximum, sign: int) -> tuple[float, float, float] | None:
    """Through the fitted values: a quadratic goes exactly through any three of them."""
    fitted = [(place, y) for place, y in zip(x, found.fitted, strict=True) if not math.isnan(y)]
    if len(fitted) < 3:
        return None
    places, values = map(np.asarray, zip(*fitted, strict=True))
    c2, c1, c0 = (sign * np.polyfit(places, values, 2)).tolist()
    return c2, c1, c0
