"""How far a search can be trusted: everything its seeds can and cannot tell, computed once."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from results.inert import INERT
from results.points import Setting
from results.search import Look, Race, SearchResults
from results.statistics.racing import adjusted_means
from results.statistics.spread import Against, Spread, against, probability_best, spread
from results.verdict.curve import Verdict
from results.verdict.judge import judge
from results.verdict.peak import Peak, complete, lost, peak, table


class TrustedSetting(NamedTuple):
    """What the seeds say of one tried setting; A_T in percent."""

    setting: Setting
    diverged: int
    """Members that diverged: such a setting has no score and cannot be the best."""
    spread: Spread
    adjusted: float
    """Mean as if the setting had every seed, see `racing.adjusted_means`; NaN where a member diverged."""
    against: Against | None
    """Minus the baseline; None for the baseline itself, or without one in the search."""
    probability: float
    """Share of resamples of the seeds in which it is the best, see `spread.probability_best`."""


class Trust(NamedTuple):
    """Everything that says how far to trust a search; A_T in percent, values as they were searched."""

    parameters: tuple[str, ...]
    chosen: Setting
    baseline: Setting | None
    seeds: int
    settings: tuple[TrustedSetting, ...]
    """Every tried setting, in the order of the study."""
    peak: Peak | None
    """Of a search of one number over an interval; else None."""
    verdict: Verdict
    """Its interval in values of the parameter."""
    rivals: tuple[Setting, ...]
    """Settings that cannot be told from the best, where they lie on no curve."""
    race: Race | None
    seal: str
    looks: tuple[Look, ...]

    @property
    def probability(self) -> float:
        """Of the chosen setting to be the best of the tried ones; NaN where it was not tried."""
        found = [one.probability for one in self.settings if one.setting == self.chosen]
        return found[0] if found else math.nan

    @property
    def comparisons(self) -> int:
        """Settings that share a seed with the baseline."""
        return sum(one.against is not None and one.against.n > 0 for one in self.settings)

    @property
    def smallest_p(self) -> float:
        """The smallest p that the seeds allow in any comparison with the baseline; NaN without one."""
        return min((one.against.smallest_p for one in self.settings if one.against and one.against.n), default=math.nan)

    @property
    def smallest_p_holm(self) -> float:
        """The same after the correction for the number of comparisons."""
        pairs = [one.against for one in self.settings if one.against and one.against.n]
        return min((pair.smallest_p_holm for pair in pairs), default=math.nan)

    @property
    def look(self) -> int:
        """Which look at the evaluation stream this study's is, from 1; 0 where it is none of them."""
        return max((i for i, one in enumerate(self.looks, start=1) if one.mine), default=0)


@lru_cache(maxsize=16)
def trust(results: SearchResults) -> Trust:
    """Compute everything; the members of the search are the only data."""
    found = peak(results)
    verdict, rivals = judge(results, found)
    return Trust(
        parameters=results.parameters,
        chosen=results.chosen,
        baseline=results.baseline,
        seeds=len({r.seed for r in results.search}),
        settings=_settings(results, verdict.kind == INERT),
        peak=found,
        verdict=verdict,
        rivals=rivals,
        race=results.race,
        seal=results.seal,
        looks=results.looks,
    )


def trust_as_json(trust: Trust) -> dict[str, Any]:
    """What `Trust` holds, as JSON writes it: NaN and infinity are null, A_T is in percent.

    kind, interval, text, advice, rivals (the verdict); seeds, probability_best, smallest_p, smallest_p_holm; curve
    (null without one); tests: one a setting; race, seal, looks.
    """
    verdict = trust.verdict
    found: dict[str, Any] = {
        "kind": verdict.kind,
        "interval": _ends(verdict.low, verdict.high),
        "text": verdict.text,
        "advice": verdict.advice,
        "rivals": [list(setting) for setting in trust.rivals],
        "seeds": trust.seeds,
        "probability_best": _number(trust.probability),
        "smallest_p": _number(trust.smallest_p),
        "smallest_p_holm": _number(trust.smallest_p_holm),
        "curve": None if trust.peak is None else _curve_as_json(trust.peak),
        "tests": [_setting_as_json(trust, one) for one in trust.settings],
        "race": None if trust.race is None else trust.race._asdict(),
        "seal": trust.seal,
        "looks": [look._asdict() for look in trust.looks],
    }
    return found


def trust_rows(trust: Trust) -> list[dict[str, Any]]:
    """One row a setting, for a table: a key a parameter, then n, diverged, mean, std, population_std, low, high,
    bootstrap_low, bootstrap_high, adjusted_mean, difference, standard_error, p, p_holm, smallest_p, probability_best.
    NaN where there is nothing.
    """
    return [_row(trust, one) for one in trust.settings]


def _settings(results: SearchResults, inert: bool) -> tuple[TrustedSetting, ...]:
    """inert: all score the same, so that none is tested, nor the best in any resample."""
    scores, whole = table(results), complete(results)
    pairs = {} if inert else _against(results, scores)
    adjusted = adjusted_means(whole)
    probable = np.full(len(whole), math.nan) if inert else probability_best(whole)
    return tuple(
        TrustedSetting(s, lost(results, s), spread(row.tolist()), float(a), pairs.get(s), float(p))
        for s, row, a, p in zip(results.settings, scores, adjusted, probable, strict=True)
    )


def _against(results: SearchResults, scores: np.ndarray) -> dict[Setting, Against]:
    if results.baseline not in results.settings:
        return {}
    base = results.settings.index(results.baseline)
    others = [i for i in range(len(scores)) if i != base]
    pairs = against(scores[others], scores[base].tolist()) if others else ()
    return {results.settings[i]: pair for i, pair in zip(others, pairs, strict=True)}


def _row(trust: Trust, one: TrustedSetting) -> dict[str, Any]:
    spread, pair = one.spread, one.against
    nan = math.nan
    difference = (nan,) * 5 if pair is None else (pair.mean, pair.error, pair.p, pair.p_holm, pair.smallest_p)
    return {
        **dict(zip(trust.parameters, one.setting, strict=True)),
        "n": spread.n,
        "diverged": one.diverged,
        "mean": spread.mean,
        "std": spread.std,
        "population_std": spread.population_std,
        "low": spread.low,
        "high": spread.high,
        "bootstrap_low": spread.bootstrap_low,
        "bootstrap_high": spread.bootstrap_high,
        "adjusted_mean": one.adjusted,
        **dict(zip(("difference", "standard_error", "p", "p_holm", "smallest_p"), difference, strict=True)),
        "probability_best": one.probability,
    }


def _setting_as_json(trust: Trust, one: TrustedSetting) -> dict[str, Any]:
    return {name: _number(v) if isinstance(v, float) else v for name, v in _row(trust, one).items()}


def _curve_as_json(peak: Peak) -> dict[str, Any]:
    found, window = peak.maximum, peak.maximum.window
    return {
        "best": _number(peak.best),
        "interval": _ends(peak.low, peak.high),
        "bootstrap_interval": _ends(peak.value(found.bootstrap_low), peak.value(found.bootstrap_high)),
        "window": None if peak.window is None else list(peak.window),
        "points": 0 if window is None else window.points,
        "lack_of_fit_p": None if window is None else _number(window.lack_of_fit_p),
        "seeds_needed": _number(found.seeds_needed),
    }


def _ends(low: float, high: float) -> list[float] | None:
    return [float(low), float(high)] if math.isfinite(low) and math.isfinite(high) else None


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
