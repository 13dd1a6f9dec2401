"""The section of the report on how far to trust the search."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from results.html import page
from results.inert import INERT
from results.labels import MISSING, about_text, count_text, interval_text, number_text, signed_text
from results.metrics import METRICS
from results.points import parameter_label, point_text, value_text
from results.search import Evaluated, SearchResults
from results.statistics.paired import sign_flip_name
from results.statistics.spread import Against
from results.verdict.assessment import Assessment, TrustedPoint, trust

MOST_OPEN = 15
"""A table with more rows is folded."""

KIND_LABELS = {
    "resolved": "resolved",
    "flat": "flat",
    "edge": "at the edge",
    "diverging": "diverging",
    INERT: "inert: all score the same",
}
DIGITS = METRICS["A_T"].digits


def how_far(results: SearchResults) -> str:
    """Returns the section with the verdict, its reasons, and every tried point."""
    found = trust(results)
    label = KIND_LABELS.get(found.verdict.kind, found.verdict.kind)
    banner = page.banner(found.verdict.kind, label, found.verdict.text, found.verdict.advice)
    heading = f"Every tried {'value' if len(found.parameters) == 1 else 'point'}"
    table = page.table(_header(found), (_row(found, one) for one in found.points), heading)
    folded = page.folded(heading, table + page.small(_remark(found)), len(found.points) <= MOST_OPEN)
    return page.section("How far to trust it", banner, page.facts(dict(_facts(results, found))), folded)


def looks_text(results: SearchResults) -> str:
    """Returns a warning where several choices were evaluated on the evaluation stream; "" otherwise."""
    found = trust(results)
    return looks_words(found.looks, found.look)


def looks_words(looks: Sequence[Evaluated], this: int = 0) -> str:
    """Returns this warning for any choices, of which number `this` (from 1; 0: none) is the study's own."""
    if len(looks) < 2:
        return ""
    first = f"This choice is number {this} of the {len(looks)}" if this else f"There are {len(looks)} choices"
    others = "; ".join(f"{one.point} ({one.when[:10]})" for i, one in enumerate(looks, 1) if i != this)
    return (
        f"{first} that were evaluated on this evaluation stream. {'The others' if this else 'They are'}: {others}. "
        "Picking one of them by these figures is a selection on the evaluation stream, and the figures of the best of "
        "several choices are biased upwards."
    )


def _facts(results: SearchResults, found: Assessment) -> Iterator[tuple[str, str]]:
    """Yields (label, text) of what the verdict rests on."""
    if found.peak is not None:
        yield from _of_the_curve(results, found)
    if not math.isnan(found.probability) and found.seeds > 1:
        share = f"{100 * found.probability:.0f} % of resamples of the {found.seeds} seeds"
        yield "The choice is the best tried in", f"{share} (an overestimate with few seeds)"
    if found.comparisons:
        yield "Smallest p possible", _smallest(found)
    if found.race is not None:
        saved = 1 - found.race.trained / found.race.plain
        yield (
            "Racing",
            f"{found.race.trained} of {found.race.plain} member runs ({100 * saved:.0f} % saved); the best point of "
            f"a round is dropped with a probability of at most {100 * found.race.level:g} % in each round",
        )
    if found.seal:
        yield "Search and evaluation", found.seal
    if found.looks:
        yield (
            "Choices evaluated on this evaluation stream",
            "; ".join(f"{one.point} ({one.when[:10]}{', this study' * one.mine})" for one in found.looks),
        )


def _of_the_curve(results: SearchResults, found: Assessment) -> Iterator[tuple[str, str]]:
    peak = found.peak
    assert peak is not None
    label = parameter_label(found.parameters[0])
    yield "The best may lie in", f"{label} in {about_text((peak.low, peak.high))} (95 % confidence, seeds as units)"
    if peak.curve is None or peak.window is None or peak.maximum.window is None:
        yield "Fitted curve", "none"
        return
    window = peak.maximum.window
    low, high = (peak.value(end) for end in (peak.maximum.bootstrap_low, peak.maximum.bootstrap_high))
    if math.isfinite(low) and math.isfinite(high):
        yield "Bootstrap over the seeds", f"{label} in {about_text((low, high))} (too short with few seeds)"
    of = "all" if window.whole else f"{window.points}"
    tested = window.lack_of_fit_p
    fit = "lack of fit cannot be tested" if math.isnan(tested) else f"lack of fit p = {tested:.2g}"
    apart = ", without ε = 0" if results.zero_is_agem else ""
    yield "Fitted curve", f"quadratic fitted to {of} values in {interval_text(peak.window)}{apart}; {fit}"


def _smallest(found: Assessment) -> str:
    """Returns the smallest p that is possible, before and after the correction."""
    one = f"{found.smallest_p:.3g} in one comparison"
    if found.comparisons < 2:
        return one
    return f"{one}, {found.smallest_p_holm:.3g} after Holm's correction for {found.comparisons}"


def _header(found: Assessment) -> list[tuple[str, str]]:
    raced = [("adjusted", "%")] if found.race is not None else []
    compared = [("difference", "± s.e."), ("p", ""), ("p", "Holm")] if found.comparisons else []
    return [
        *((parameter_label(name), "") for name in found.parameters),
        ("n", "seeds"),
        ("A_T", "%"),
        *raced,
        ("sd", "sample"),
        ("sd", "population"),
        ("95 % interval", "Student's t"),
        ("95 % interval", "bootstrap"),
        *compared,
        ("best in", "% of resamples"),
    ]


def _row(found: Assessment, one: TrustedPoint) -> tuple[str, list[str]]:
    spread = one.spread
    raced = [number_text(one.adjusted, DIGITS)] if found.race is not None else []
    cells = [
        *map(value_text, one.point),
        f"{spread.n}" + (f" ({one.diverged} diverged)" if one.diverged else ""),
        number_text(spread.mean, DIGITS),
        *raced,
        number_text(spread.std, DIGITS),
        number_text(spread.population_std, DIGITS),
        _between(spread.low, spread.high),
        _between(spread.bootstrap_low, spread.bootstrap_high),
        *(_against(one.against) if found.comparisons else ()),
        number_text(100 * one.probability, 0) if found.seeds > 1 else MISSING,
    ]
    return "chosen" if one.point == found.chosen else "", cells


def _against(pair: Against | None) -> tuple[str, ...]:
    if pair is None or not pair.n:
        return (MISSING,) * 3
    difference = f"{signed_text(pair.mean, DIGITS)} ± {number_text(pair.error, DIGITS)}"
    return difference, *(MISSING if math.isnan(p) else f"{p:.3g}" for p in (pair.p, pair.p_holm))


def _between(low: float, high: float) -> str:
    if math.isnan(low) or math.isnan(high):
        return MISSING
    return f"{number_text(low, DIGITS)} to {number_text(high, DIGITS)}"


def _remark(found: Assessment) -> str:
    """Returns what a reader of the table has to know."""
    text = (
        f"A_T on the stream of the search, over {count_text(found.seeds, 'seed')}. Sample sd (n − 1) estimates the "
        "spread of seeds not yet tried, population sd (n) is what the paper prints. Bootstrap intervals are BCa, and "
        "too short with few seeds; the share of resamples is then an overestimate for the best value."
    )
    if not found.comparisons or found.baseline is None:
        return text
    name = point_text(found.parameters, found.baseline)
    return (
        f"{text} Differences are to {name}, paired by seed; p: {sign_flip_name(found.seeds)}, then with Holm's "
        f"correction for all {found.comparisons} comparisons."
    )
