"""The verdict on a search of one number, in words."""

import math
from typing import NamedTuple

import numpy as np

from results.inert import INERT, inert
from results.labels import about_text, count_text, epsilon_text, estimate_text
from results.statistics.anova import no_difference
from results.statistics.confidence_set import Maximum
from results.statistics.curve import FEWEST_POINTS
from results.statistics.paired import ALPHA, CONFIDENCE
from results.statistics.power import LEAST_FOR_A_TEST
from results.statistics.slope_tests import rivals

LOST_SHARE = 0.25
"""With this share of diverged members or more, a search says more about divergence than about the parameter."""

FEWEST_SEEDS = 3
"""With these the noise can be estimated well enough for a verdict."""

MANY_SEEDS = 100
"""A larger number of needed seeds is printed as "more than 100"."""

MARGIN = 0.5
"""Differences below this, in percentage points of what is maximised, do not matter: values that differ by less with
`CONFIDENCE` are called level."""

WIDE = 0.15
"""A set of level values that is at least this part of the searched interval is a plateau, not a top at its end."""

BEST_TRIED = "Take the best tried value."

FOR_A_TEST = f"a paired test can reach p < {ALPHA} with {LEAST_FOR_A_TEST}"


class Verdict(NamedTuple):
    """The verdict on the best value. An end of the searched interval is open if it may be the best."""

    kind: str
    """One of

    resolved   neither end is open
    one-sided  one end is open, and the curve is level from somewhere inside up to it: which of these values is the best
               is not known, that it is none of the others is
    edge       one end is open, and the curve rises to it: the best value lies there or cannot be distinguished from it
    level      all values differ by less than a margin
    open       both ends are open and the curve is not level: too few seeds
    diverging  too many members diverged for a verdict
    inert      all scores are equal bit for bit: nothing was measured
    """
    low: float
    """Low end of the interval of values that may be the best; NaN without a curve."""
    high: float
    """Its high end."""
    text: str
    """What is known, in a sentence."""
    advice: str
    """What to do, in a sentence."""
    best: int | None = None
    """Row of the best point, for points that lie on no curve; None without a score, and with a curve."""
    rivals: tuple[int, ...] = ()
    """Rows of the points that cannot be told apart from it."""


def verdict(
    maximum: Maximum,
    scores: np.ndarray,
    lost: np.ndarray | None = None,
    *,
    label: str = "ε",
    natural: tuple[str, str] = ("", ""),
    members: int | None = None,
    where: str = "",
) -> Verdict:
    """Returns the verdict on scores [K, R] in percent from what `best_interval` returned; rows ascend by their value.

    lost     bool [K, R]: members that diverged; other members without a score were never trained, or belong to a value
             of which a seed diverged
    label    the name of the parameter
    natural  names of the limits that cannot be crossed, such as ("A-GEM", "ε = 1"); "" where the interval could be
             wider
    members  number of trained members; if left out, those with a score and those that diverged
    where    what the scores are from, such as " on the cross-validation stream of 3 tasks": the best value is that of
             this stream, and another stream may have another
    """
    if nothing := inert(scores, f"values of {label}", label):
        return Verdict(INERT, maximum.low, maximum.high, *nothing)
    if reason := diverging(scores, lost, FEWEST_POINTS, "value", members):
        return Verdict("diverging", maximum.low, maximum.high, reason, stable(label))
    seeds, subject, curve = count_text(maximum.seeds, "seed"), f"{label}{where}", maximum.curve
    if maximum.seeds < 2:
        text = f"{seeds.capitalize()} gave scores, so there is no estimate of the noise: the best {subject} is unknown."
        return Verdict("open", maximum.low, maximum.high, text, more_seeds("value"))
    differ = f"differ by less than {MARGIN:g} percentage points with {100 * CONFIDENCE:.0f} % confidence"
    if maximum.at_low and maximum.at_high:
        if curve is not None and curve.largest_difference < MARGIN:
            text = f"All values of {label} in {_span(maximum)}{where} {differ} ({seeds}): the choice hardly matters."
            return Verdict("level", maximum.low, maximum.high, text, BEST_TRIED)
        return _open(maximum, scores, f"{seeds} cannot tell which {subject} is best: ")
    lies = f"The best {subject} lies in {_span(maximum)} with {100 * CONFIDENCE:.0f} % confidence ({seeds})"
    if not maximum.at_low and not maximum.at_high:
        top = "" if math.isnan(maximum.best) else f"; the curve names {_best(maximum)}"
        advice = f"Take {label} = {_best(maximum)}."
        return Verdict("resolved", maximum.low, maximum.high, f"{lies}{top}.", advice)
    if curve is not None and curve.largest_loss < MARGIN and maximum.share >= WIDE:
        text = f"{lies}, where values {differ}; outside of it scores are lower."
        return Verdict("one-sided", maximum.low, maximum.high, text, BEST_TRIED)
    return _edge(maximum, label, natural, lies)


def _best(maximum: Maximum) -> str:
    return estimate_text(maximum.best, (maximum.low, maximum.high))


def _open(maximum: Maximum, scores: np.ndarray, text: str) -> Verdict:
    """Returns the verdict with both ends open; text: its beginning."""
    closed, span = maximum.worse_ends, _span(maximum)
    usual = scores[~np.isnan(scores).all(axis=1)][closed[0] : -1 if closed[1] else None]
    ends, differ = "" if any(closed) else ", both ends included", no_difference(usual)
    # The middle half: next to the ends, values are naturally hard to distinguish from them.
    quarter = len(usual) // 4
    inner = rivals(usual, CONFIDENCE).worse[quarter : len(usual) - quarter]
    # That no difference is found does not make values equal, so nothing but the best tried one is ever advised.
    advice = BEST_TRIED
    if len(inner) and inner.all():  # a single value among many may be worse for other reasons
        text += f"it may lie near either end of {span}, while the values between are significantly worse."
        advice = "Take the better end, or search near each end separately."
    elif differ <= ALPHA:
        text += f"some values are worse than others (p = {differ:.2g}), but the best may lie near both ends of {span}."
    else:
        tested = (
            "" if math.isnan(differ) else f"; a test of all tried values at once finds no difference (p = {differ:.2g})"
        )
        text += f"it may lie anywhere in {span}{ends}{tested}."
    return Verdict("open", maximum.low, maximum.high, text, seeds_advice(maximum.seeds_needed, advice))


def _span(maximum: Maximum) -> str:
    """Returns the interval; a round bracket stands at an end that is itself significantly worse."""
    return about_text((maximum.low, maximum.high), maximum.worse_ends)


def _edge(maximum: Maximum, label: str, natural: tuple[str, str], lies: str) -> Verdict:
    """Returns the verdict with one open end; the advice depends on whether that end can be crossed.

    lies: where the best is, as the beginning of a sentence
    """
    side, value, name = ("low", maximum.low, natural[0]) if maximum.at_low else ("high", maximum.high, natural[1])
    end = epsilon_text(value)
    text = f"{lies}: at the {side} end or too close to be distinguished from it."
    # The end is open only as a limit: its own value follows another formula, and was measured to be worse.
    if maximum.worse_ends[side == "high"]:
        advice = f"{name or f'{label} = {end}'} itself is significantly worse: try values closer to {end}."
    elif name:
        valid = f"{label} cannot go beyond {end}, so the end itself is a valid answer: take {name}."
        advice = seeds_advice(maximum.seeds_needed, valid)
    else:
        beyond = "below" if side == "low" else "above"
        advice = f"Better values may lie {beyond} {end}: search a wider interval."
    return Verdict("edge", maximum.low, maximum.high, text, advice)


def diverging(scores: np.ndarray, lost: np.ndarray | None, fewest: int, label: str, members: int | None) -> str:
    """Returns why too many members diverged for a verdict, or "".

    Too many are a share of `LOST_SHARE`, or so many that fewer than `fewest` values have a score.
    """
    gone = 0 if lost is None else int(lost.sum())  # without divergence, missing scores are the race's
    if not gone:
        return ""
    total = gone + int((~np.isnan(scores)).sum()) if members is None else members
    of = f"{gone} of {count_text(total, 'member')}"
    if gone / total >= LOST_SHARE:
        return f"{of} ({100 * gone / total:.0f} %) diverged: too few are left for a verdict."
    values = int((~np.isnan(scores)).any(axis=1).sum())
    if values >= fewest:
        return ""
    left = f"{count_text(values, label)} of {len(scores)} {'has' if values == 1 else 'have'} a score"
    return f"{left}, as {of} diverged: too few are left for a verdict."


def stable(label: str) -> str:
    """Returns the advice for a search whose members diverge."""
    again = "" if "learning rate" in label else " and search again"  # a lower rate is another search anyway
    return f"Lower the learning rate{again}, or leave out the values that diverge."


def seeds_advice(needed: float, otherwise: str) -> str:
    """Returns the advice `otherwise`, with the number of seeds that would decide, if any would."""
    if math.isinf(needed) or not needed:
        return otherwise
    # A difference that was just significant is smaller in truth on average, so the number is a lower bound.
    number = f"at least {needed:.0f}" if needed <= MANY_SEEDS else f"more than {MANY_SEEDS}"
    advice = (
        f"{otherwise} It would take {number} seeds to decide, if the differences measured here are the true ones "
        "(--extend --seeds)"
    )
    # Fewer may close an end of the interval; the test against the baseline has its own least number.
    return f"{advice}; {FOR_A_TEST}." if needed < LEAST_FOR_A_TEST else f"{advice}."


def more_seeds(label: str) -> str:
    """Returns the advice where one seed gave scores; label: what a row is."""
    return f"Train at least {FEWEST_SEEDS} seeds of every {label}; {FOR_A_TEST}."
