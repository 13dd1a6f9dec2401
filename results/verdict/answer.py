"""The answer of a search in words: choice, advantage, trust."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from results.labels import (
    STREAM_LABELS,
    count_text,
    estimate_text,
    interval_text,
    number_text,
    signed_text,
)
from results.ledger.record import RunRecord
from results.metrics import METRICS, mean_and_std, mean_std
from results.points import Point, is_number, point_label, point_of, point_text, value_text
from results.search import SearchResults
from results.search_tables import baseline_pair
from results.statistics.paired import ALPHA, Paired, sign_flip_name, sign_flip_p, smallest_sign_flip_p
from results.statistics.spread import share_of_luck
from results.verdict import along_tasks, certificates, forecast, references, wording
from results.verdict.assessment import trust
from results.verdict.orders import of_search
from results.verdict.peak import is_inert

DIGITS = METRICS["A_T"].digits

MOST_LISTED = 6
"""Points that are listed by name; of the others only the number is given."""


def answer(results: SearchResults, judged: bool = True) -> str:
    """Returns paragraphs of plain text with blank lines between.

    The choice with the verdict on it; the comparison with the baseline; the evaluation; and what else bears on how far
    to trust the choice. judged: whether the verdict is in it, which may stand beside it.
    """
    verdict, moved = trust(results).verdict, certificates.rounding_warning(results)
    first = (
        (along_tasks.in_words(results), _describe_trials(results), verdict.text * judged, verdict.advice * judged)
        if results.stages
        else (
            _choice(results),
            _best_tried(results),
            _ended_early(results),
            _not_by_curve(results),
            verdict.text * judged,
            verdict.advice * judged,
        )
    )
    of_scores = () if results.stages else (_share(results), _outside(results), _at_the_end(results))
    last = (*of_scores, _divergence(results), _far_off(results))
    compared = (
        _against_baseline(results),
        _evaluation(results),
        forecast.in_words(results),
        references.in_full(results),
        of_search(results),
    )
    parts = (_join(first), *compared, _join((*last, moved)))
    return "\n\n".join(filter(None, parts))


def _describe_trials(results: SearchResults) -> str:
    """Returns how many values were tried in how many rounds, in a sentence."""
    return f"{wording.count_points(results)} were tried in {wording.rounds(results)}."


def _join(sentences: Iterable[str]) -> str:
    return " ".join(filter(None, sentences))


def _choice(results: SearchResults) -> str:
    """Returns the sentence that names the chosen point and its A_T."""
    members = results.members_of(results.chosen)
    stream = STREAM_LABELS[results.score_on]
    spread = "; mean ± standard deviation over seeds" if len(members) > 1 else ""
    inert = is_inert(results)
    tried = f"{wording.count_points(results)} tried in {wording.rounds(results)}"
    rank = "one of" if wording.higher(results) else "the best of"
    best = f"by the rule for ties among the {tried}" if inert else f"{rank} {tried}{_highest(results)}"
    if results.by_curve and not inert:
        best = "where a curve through all scores is highest"
        if not results.at_summit:
            best += " among the values that no paired test puts below the best tried one"
    chosen = f"The search {'kept' if inert else 'chose'} {point_text(results.parameters, results.chosen)}"
    if results.chosen == results.baseline:
        chosen += ", which is plain A-GEM" if wording.is_agem(results) else ", which is the baseline"
    what = results.objective
    if not members:
        return f"{chosen}, {best}: mean {what} {number_text(100 * results.chosen_score, DIGITS)} % on the {stream}."
    size = f"{count_text(members[0].tasks, 'task')}, {wording.units(members)}"
    return f"{chosen}, {best}: {what} {_metric(members, what)} % on the {stream} ({size}{spread})."


def _ended_early(results: SearchResults) -> str:
    """Returns why the search ended before its budget was spent; "" where the budget ended it."""
    last = results.searching[-1] if results.searching else None
    if last is None or not last.note:
        return ""
    return f"It ended after {count_text(len(results.searching), wording.round_noun(last))}: {last.note}."


def _best_tried(results: SearchResults) -> str:
    """Returns how many points were tried, and the one with the highest mean where it is not the chosen one.

    "" where no curve names the choice.
    """
    choice = results.choice
    if choice is None or not results.by_curve or is_inert(results):
        return ""
    tried = f"{wording.count_points(results)} were tried in {wording.rounds(results)}"
    if choice.tried is None or choice.tried == results.chosen:
        return f"{tried}."
    best = point_text(results.parameters, choice.tried)
    return f"{tried}; the highest of their means is that of {best}: of many noisy means it is too high on average."


def _not_by_curve(results: SearchResults) -> str:
    """Returns why the chosen point is not the one that a curve names, where it was to be; else ""."""
    choice = results.choice
    if choice is None or results.by_curve or is_inert(results):
        return ""
    if choice.point is None:
        return f"No curve names another one: {choice.why}."
    named = point_text(results.parameters, choice.point)
    return f"A curve through all scores names {named}, of which a member diverged."


def _highest(results: SearchResults) -> str:
    """Returns which point has the highest mean, where it is not the chosen one; else "".

    A strategy may exclude that point, or the study may have been extended.
    """
    higher = wording.higher(results)
    if not higher:
        return ""
    seeds, every = ({r.unit for r in records} for records in (results.members_of(higher[0]), results.search))
    few = f", with {len(seeds)} of the {len(every)} seeds" if len(seeds) < len(every) else ""
    return f" (the highest mean of a round is that of {point_text(results.parameters, higher[0])}{few})"


def _against_baseline(results: SearchResults) -> str:
    """Returns the comparison with the baseline on the seeds of the search, with its bias."""
    if results.baseline is None or is_inert(results) or results.stages:
        return ""
    if results.chosen == results.baseline:
        left = " that the search left open" if wording.higher(results) else ""
        if wording.is_agem(results):
            none = f"No ε > 0{left}" if left else "No tried ε > 0"
            return f"{none} scored higher than A-GEM: on this evidence the soft constraint brings no benefit."
        return f"None of the other {wording.others(results)}{left} scored higher than the baseline."
    if results.score_on == "eval" and results.evaluation:
        return ""  # the same members as in the evaluation, whose paragraph compares them
    baseline, subject = wording.baseline(results), wording.subject(results)
    pair = baseline_pair(results)
    name = baseline[:1].upper() + baseline[1:] if baseline.startswith("the ") else baseline
    if results.baseline not in results.points:
        return f"{name} was not tried in the search, which therefore cannot compare it with the chosen {subject}."
    if not pair.n:
        return f"{name} shares no measured seed with the chosen {subject}, so the search cannot compare them."
    seeds = count_text(pair.n, "seed")
    if results.searching != results.rounds and results.by_curve:
        # Its seeds are those of all others, but not its noise.
        fresh = f"The members of the chosen {subject} took no part in its choice, which hardly biases this difference."
        return f"Against {baseline} on the same {seeds} of the search: {_points(pair, results.objective)}. {fresh}"
    # With two values, or after a choice by other rules, the choice is not the maximum of many means.
    selected = (
        f"The chosen {subject} is the maximum of noisy means, so the selection itself biases this difference upwards"
        if len(results.points) > 2 and not wording.higher(results)
        else f"The same data chose the {subject}, so the selection itself biases this difference upwards"
    )
    if results.of_epsilon:  # a symbol has no article
        selected = selected.replace("chose the ε", "chose ε")
    remedy = (
        "; the evaluation below does not have this bias." if results.score_on != "eval" and results.evaluation else "."
    )
    return (
        f"Against {baseline} on the same {seeds} of the search: {_points(pair, results.objective)}. {selected}{remedy}"
    )


def _evaluation(results: SearchResults) -> str:
    """Returns the figures of the evaluation, and their difference to those of the baseline."""
    subject = wording.subject(results)
    if not results.evaluation:
        return (
            f"The evaluation has not run yet: the figures of the chosen {subject} on the evaluation stream are unknown."
        )
    stream = f"On the evaluation stream ({count_text(results.evaluation[0].tasks, 'task')})"
    # The baseline may be there first: it is needed whatever the search chooses, so workers that wait train it.
    chosen = results.evaluation_of(results.chosen)
    base = results.evaluation_of(results.baseline) if results.baseline is not None else ()
    if not chosen:
        name, what = wording.baseline_name(results), results.objective
        return f"{stream} only {name} was evaluated: {what} {_metric(base, what)} %; the chosen {subject} was not."
    text = f"{stream} {_result(results, results.chosen, chosen)}"
    if results.baseline is None or results.baseline == results.chosen:
        text += "."
    elif base:
        text += f"; {_result(results, results.baseline, base)}. {_difference(results)}"
    else:
        text += f"; {'ε = 0' if wording.is_agem(results) else 'the baseline'} was not evaluated."
    flattered = results.score_on == "eval" and not is_inert(results)  # by a choice, where there was one
    return (text + (_bias(results) if flattered else "")).strip()


def _difference(results: SearchResults) -> str:
    """Returns the chosen point minus the baseline on the evaluation stream, and a test where one is valid."""
    pair = baseline_pair(results, evaluation=True)
    seeds = count_text(pair.n, "seed")
    if pair.n and not any(pair.differences):
        return f"Both score the same bit for bit on the same {seeds}: there is nothing to test."
    # A choice on the same data would make any p-value too small.
    test = "" if results.score_on == "eval" else f" {_test(pair)}"
    return f"Difference on the same {seeds}: {_points(pair, results.objective)}.{test}"


def _bias(results: SearchResults) -> str:
    subject = "ε" if results.of_epsilon else f"The {wording.subject(results)}"
    return (
        f" {subject} was chosen on this same stream, so its figures and the difference are biased upwards. No test is "
        "given, because none would be valid after the selection."
    )


def _share(results: SearchResults) -> str:
    """Returns how often the chosen point is the best tried one in resamples of the seeds; "" with few seeds."""
    seeds, probability, points = trust(results).seeds, trust(results).probability, len(results.points)
    if math.isnan(probability) or points < 2 or results.by_curve:
        return ""
    drawn = f"{100 * probability:.0f} % of the bootstrap resamples of the {seeds} seeds"
    luck = f"the best of {points} equal ones would be in about {100 * share_of_luck(points):.0f} %"
    return f"The chosen {wording.subject(results)} is the best of the tried ones in {drawn}; {luck}."


def _outside(results: SearchResults) -> str:
    """Returns a sentence where the chosen value lies outside the confidence set of the curve; else ""."""
    peak = trust(results).peak
    if peak is None or peak.curve is None or peak.low <= float(results.chosen[0]) <= peak.high:
        return ""
    ends, best = peak.text, estimate_text(peak.best, peak.ends)
    luck = "" if wording.higher(results) else ", as can happen to the highest of noisy means"
    return (
        f"The chosen {wording.subject(results)} lies outside the interval {ends} that the fitted curve leaves open"
        f"{luck}; the curve itself names {best}."
    )


def _at_the_end(results: SearchResults) -> str:
    """Returns a warning where the choice is an end of the last interval, which narrowing cannot leave; else "".

    The ends of the whole searched interval are a matter of the verdict.
    """
    last = results.searching[-1]
    inner = set(last.span or ()) - set(results.domain[0] or ())
    if is_inert(results) or last is results.searching[0] or last.span is None or results.chosen[0] not in inner:
        return ""
    what = f"the interval of {wording.round_name(last)} {interval_text(last.span)}"
    return f"The chosen {wording.subject(results)} is an end of {what}: the search cannot go beyond that end again."


def _divergence(results: SearchResults) -> str:
    # By key: the same members are in both where the search scored on the evaluation stream.
    members = {r.key: r for r in (*results.search, *results.evaluation)}.values()
    broken = [r for r in members if r.status != "ok"]
    if not broken:
        return ""
    points = {point_of(r, results.parameters) for r in broken}
    # Numbers before words, which Python cannot compare with each other.
    listed = _point_list(results, sorted(points, key=lambda s: [(not is_number(v), v) for v in s]))
    of = f"{len(broken)} of {count_text(len(members), 'member')}"
    return f"{of} diverged ({listed}); they are counted but not averaged."


def _far_off(results: SearchResults) -> str:
    far = sorted(trust(results).far_off, key=lambda member: -abs(member[2]))
    if not far:
        return ""
    listed = "; ".join(
        f"{point_text(results.parameters, point)}, seed {seed}: {signed_text(by, DIGITS)} percentage points"
        for point, seed, by in far[:MOST_LISTED]
    )
    more = f"; and {len(far) - MOST_LISTED} more" if len(far) > MOST_LISTED else ""
    lie = "lies far off what its" if len(far) == 1 else "lie far off what their"
    what = f"{lie} {wording.subject(results)} and seed suggest"
    return f"{count_text(len(far), 'member')} {what} ({listed}{more}): see whether training failed."


def _point_list(results: SearchResults, points: list[tuple[Any, ...]]) -> str:
    """Returns a few points, and how many more there are: "ε = 0.5, 0.6 and 3 more"."""
    first = points[:MOST_LISTED]
    if len(results.parameters) == 1:
        text = f"{wording.subject(results)} = {', '.join(value_text(s[0]) for s in first)}"
    else:
        text = "; ".join(point_text(results.parameters, s) for s in first)
    return text + (f" and {len(points) - len(first)} more" if len(points) > len(first) else "")


def _test(pair: Paired) -> str:
    """Returns the sign-flip test, and its limit with few seeds."""
    if pair.n < 2:
        return ""
    smallest = smallest_sign_flip_p(pair.n)
    text = f"{wording.heading(sign_flip_name(pair.n))}: p = {sign_flip_p(pair.differences):.3g}"
    if smallest < ALPHA:
        return f"{text} ({pair.n} seeds, one comparison)."
    # 2/2ⁿ stands in the sentence, because only an exact test, of few seeds, comes here.
    bound = f"the smallest possible p is 2/2^{pair.n} = {smallest:.4g}"
    return f"{text}; {pair.n} seeds cannot reach p < {ALPHA}, because {bound}."


def _points(pair: Paired, objective: str) -> str:
    """Returns a mean paired difference of what was maximised in percentage points, in words."""
    if not pair.n:
        return "no seed measured for both"
    error = f" ± {number_text(pair.error, DIGITS)}" if math.isfinite(pair.error) else ""
    kind = "mean of the paired differences ± its standard error; " if error else "one pair, no standard error; "
    difference = f"{signed_text(pair.mean, DIGITS)}{error} percentage points of {objective}"
    return f"{difference} ({kind}higher in {pair.wins} of {pair.n})"


def _result(results: SearchResults, point: Point, members: Sequence[RunRecord]) -> str:
    # "ε-SOFT-GEM, ε = 0.1 reaches …" would read as two subjects.
    label = point_label(results.method, results.parameters, point).replace(", ", " with ", 1)
    if results.zero_is_agem and point == (0.0,):
        label = "A-GEM"
    scored = "" if results.objective == "A_T" else f"{results.objective} {_metric(members, results.objective)} %, "
    return f"{label} reaches {scored}A_T {_metric(members, 'A_T')} % and F_T {_metric(members, 'F_T')} %"


def _metric(members: Sequence[RunRecord], metric: str) -> str:
    """Returns mean ± standard deviation for people; the mean alone for one member, which has no spread."""
    row, declared = mean_std(members, [metric]), METRICS[metric]
    mean, std = (row[column] for column in mean_and_std(metric).values())
    return declared.number_text(mean) if len(members) == 1 else declared.mean_std_text(mean, std)
