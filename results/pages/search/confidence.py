"""The section of the report on how far to trust the search."""

import math
from collections.abc import Iterator, Sequence

from results.html import page
from results.inert import INERT
from results.labels import MISSING, count_text, number_text
from results.metrics import METRICS
from results.pages.cells import paired_text
from results.points import parameter_label, point_text, value_text
from results.search import EvaluatedChoice, Race, SearchResults
from results.statistics.bootstrap import FEWEST_SEEDS
from results.statistics.paired import ALPHA, sign_flip_name
from results.statistics.spread import PairedTest, share_of_luck
from results.verdict import wording
from results.verdict.assessment import Assessment, TrustedPoint, trust
from results.verdict.peak import Peak

MOST_OPEN = 15
"""A table with more rows is folded, so that the sections below it are still found."""

KIND_LABELS = {
    "resolved": "resolved",
    "one-sided": "resolved from one side",
    "edge": "at an end",
    "level": "level",
    "open": "not resolved",
    "diverging": "diverging",
    INERT: "inert: all score the same",
}
MOST_LISTED = 5
"""Choices that are told one by one; where there are more, the others are counted."""
DIGITS = METRICS["A_T"].digits


def how_far(results: SearchResults) -> str:
    """Returns the section with the verdict, its reasons, and every tried point with its tests.

    The members of the search are its only data; A_T is in percent.
    """
    trusted = trust(results)
    heading = f"Every tried {'value' if len(trusted.parameters) == 1 else 'point'}"
    table = page.table(_header(trusted), (_row(trusted, point) for point in trusted.points), heading)
    folded = page.fold(heading, table + page.small(_remark(trusted)), len(trusted.points) <= MOST_OPEN)
    facts = page.facts(dict(_facts(results, trusted)))
    return page.section("How far to trust it", verdict(results), facts, folded, unfolds=True)


def verdict(results: SearchResults) -> str:
    """Returns the banner with the verdict, which is that of the first stage where predictions have chosen."""
    said = trust(results).verdict
    alone = f"{count_text(results.search[0].tasks, 'task')} alone: " if results.stages else ""
    return page.banner(said.kind, f"{alone}{KIND_LABELS[said.kind]}", said.text, said.advice)


def evaluation_notes(evaluated: Sequence[EvaluatedChoice], this: int = 0) -> Iterator[str]:
    """Yields a warning where several choices of this ledger were evaluated on the evaluation stream.

    Number `this` of all choices (from 1; 0: none) is the study's own.
    """
    mine = evaluated[this - 1] if this else None
    evaluated = [choice for choice in evaluated if not choice.elsewhere]
    this = 0 if mine is None else evaluated.index(mine) + 1
    if len(evaluated) > 1:
        first = (
            f"This choice is number {this} of the {len(evaluated)}" if this else f"There are {len(evaluated)} choices"
        )
        others = _evaluated_text([choice for i, choice in enumerate(evaluated, 1) if i != this])
        yield (
            f"{first} that were evaluated on this evaluation stream. {'The others' if this else 'They are'}: {others}. "
            "Picking one of them by these figures is a selection on the evaluation stream, and the figures of the best "
            "of several choices are biased upwards."
        )


def _facts(results: SearchResults, trusted: Assessment) -> Iterator[tuple[str, str]]:
    """Yields (label, text) of what the verdict rests on."""
    if trusted.peak is not None:
        yield from _of_the_curve(results, trusted.peak)
    if not math.isnan(trusted.probability):
        share = f"{100 * trusted.probability:.0f} % of resamples of the {trusted.seeds} seeds"
        luck = f"{100 * share_of_luck(len(trusted.points)):.0f} %"
        stage = f" on {count_text(results.search[0].tasks, 'task')}" if results.stages else ""
        yield f"The choice is the best tried{stage} in", f"{share} (about {luck} for the best of equal ones)"
    # With few seeds even the clearest difference has a large p: without this line that reads as "no difference".
    if trusted.comparisons:
        holm = f", {trusted.smallest_p_holm:.3g} after Holm's correction for {trusted.comparisons}"
        smallest = f"{trusted.smallest_p:.3g} in one comparison"
        yield "Smallest p possible", f"{smallest}{holm if trusted.comparisons > 1 else ''}"
    if trusted.race is not None:
        yield "Racing", _of_the_race(trusted.race)
    if trusted.disjointness:
        yield "Search and evaluation", trusted.disjointness
    if trusted.evaluated_choices:
        here = [choice for choice in trusted.evaluated_choices if not choice.elsewhere]
        others = len(trusted.evaluated_choices) - len(here)
        more = f"; {count_text(others, 'other choice')} in other ledgers of this user" if others else ""
        yield "Choices evaluated on this evaluation stream", (_evaluated_text(here) or "none of this ledger") + more


def _of_the_race(race: Race) -> str:
    """Returns what a race saved or added, and how often one drops the best point."""
    change = 100 * (race.trained / race.plain - 1)
    runs = f"{race.trained} member runs, {abs(change):.0f} % {'more' if change > 0 else 'fewer'} than the {race.plain}"
    return (
        f"{runs} without a race; the best point of a round is dropped with a probability of at most "
        f"{100 * race.level:g} % in each round"
    )


def _evaluated_text(evaluated: Sequence[EvaluatedChoice]) -> str:
    """Returns choices; of many, how many came before the last ones."""
    before = len(evaluated) - MOST_LISTED
    texts = [f"{before} earlier ones"] if before > 1 else []
    return "; ".join([*texts, *map(_choice_text, evaluated[before if before > 1 else 0 :])])


def _choice_text(choice: EvaluatedChoice) -> str:
    """Returns a choice, and when it was evaluated."""
    mine = "this study" if choice.mine else ""
    remarks = (choice.when[:10], mine)
    return f"{choice.point} ({', '.join(filter(None, remarks))})"


def _of_the_curve(results: SearchResults, peak: Peak) -> Iterator[tuple[str, str]]:
    """Yields (label, text) of the curve and where its top may lie."""
    label, curve = parameter_label(results.parameters[0]), peak.maximum.curve
    of = f"95 % confidence, seeds as units; for {wording.stream(results)}, not for other tasks"
    yield "The best may lie in", f"{label} in {peak.text} ({of})"
    if curve is None:
        yield "Curve", "none"
        return
    # A-GEM's formula at 0 is not that of small ε, so its value says nothing about the curve.
    apart = "; ε = 0, with another formula, is no part of it" if results.zero_is_agem else ""
    yield "Curve", f"Gaussian process through all scores, with an effect of each seed{apart}"
    largest = f"at most {number_text(curve.largest_difference, DIGITS)} points between any two values"
    yield (
        "Differences",
        f"{largest}, {number_text(curve.largest_loss, DIGITS)} below the top within the interval (95 %)",
    )
    p = peak.maximum.parabola_p
    if not math.isnan(p):
        verdict = "a parabola fits the means" if p >= ALPHA else "no parabola fits the means"
        yield "Parabola", f"{verdict} (lack of fit p = {p:.2g}); nothing here rests on it"


def _header(trusted: Assessment) -> list[tuple[str, str]]:
    """Returns (name, unit) of the columns; those of a race and of tests only where there are any."""
    return [
        *((parameter_label(name), "") for name in trusted.parameters),
        ("n", "seeds"),
        (trusted.objective, "%"),
        *([("adjusted", "%")] if trusted.race is not None else []),
        ("sd", "%"),
        ("95 % interval", "Student's t"),
        *([("95 % interval", "bootstrap")] if _has_resamples(trusted) else []),
        *([("difference", "± s.e."), ("p", ""), ("p", "Holm")] if trusted.comparisons else []),
        *([("best in", "% of resamples")] if _has_resamples(trusted) else []),
    ]


def _has_resamples(trusted: Assessment) -> bool:
    """Returns whether there are enough seeds for anything that rests on resamples."""
    return trusted.seeds >= FEWEST_SEEDS


def _row(trusted: Assessment, point: TrustedPoint) -> tuple[str, list[str]]:
    """Returns the class of a row and its cells, one for each column of `_header`."""
    spread = point.spread
    cells = [
        *map(value_text, point.point),
        f"{spread.n}" + (f" ({point.diverged} diverged)" if point.diverged else " (dropped)" if point.biased else ""),
        number_text(spread.mean, DIGITS),
        # Points that fell behind have fewer seeds, and so cannot be compared by their plain means.
        *([number_text(point.adjusted, DIGITS)] if trusted.race is not None else []),
        number_text(spread.std, DIGITS),
        _between(spread.low, spread.high),
        *([_between(spread.bootstrap_low, spread.bootstrap_high)] if _has_resamples(trusted) else []),
        *(_against(point.against) if trusted.comparisons else ()),
        *([number_text(100 * point.probability, 0)] if _has_resamples(trusted) else []),
    ]
    return "chosen" if point.point == trusted.chosen else "", cells


def _against(pair: PairedTest | None) -> tuple[str, ...]:
    """Returns the difference to the baseline with its p, plain and after Holm's correction."""
    if pair is None or not pair.n:
        return (MISSING,) * 3
    p_values = (MISSING if math.isnan(p) else f"{p:.3g}" for p in (pair.p, pair.p_holm))
    return paired_text(pair.mean, pair.error, DIGITS), *p_values


def _between(low: float, high: float) -> str:
    if math.isnan(low) or math.isnan(high):
        return MISSING
    return f"{number_text(low, DIGITS)} to {number_text(high, DIGITS)}"


def _remark(trusted: Assessment) -> str:
    """Returns what a reader of the table has to know."""
    text = (
        f"{trusted.objective} on the stream of the search, over {count_text(trusted.seeds, 'seed')}. The standard "
        "deviation sd is that of the sample (n − 1), which estimates the spread of seeds not yet tried."
    )
    if trusted.race is not None and trusted.race.dropped:
        text += " The race dropped values whose first seeds were low: their means are biased downwards."
    if _has_resamples(trusted):
        text += " Bootstrap intervals are BCa; the share of resamples is an overestimate for the best value."
    if not trusted.comparisons or trusted.baseline is None:
        return text
    name = point_text(trusted.parameters, trusted.baseline)
    return (
        f"{text} Differences are to {name}, paired by seed; p: {sign_flip_name(trusted.seeds)}, then with Holm's "
        f"correction for all {trusted.comparisons} comparisons."
    )
