"""The answer of a search in words: what was chosen, by how much, and how far to trust it."""

from __future__ import annotations

import math

from results.labels import (
    METRIC_DIGITS,
    STREAM_LABELS,
    count_text,
    epsilon_text,
    mean_std_text,
    method_label,
    number_text,
    signed_text,
)
from results.record import RunRecord
from results.statistics import MOST_FLIPS, Paired, sign_flip_p, smallest_sign_flip_p
from results.study import StudyResults
from results.tables import by_epsilon, compare

LEVEL = 0.05
ERROR = "one standard error of the paired difference to it"


def answer(results: StudyResults) -> str:
    """Paragraphs of plain text with blank lines between: choice, comparison with ε = 0, evaluation, trust."""
    parts = (_choice(results), _against_zero(results), _evaluation(results), _trust(results))
    return "\n\n".join(part for part in parts if part)


def near_best(results: StudyResults) -> tuple[float, ...]:
    """The other tried ε whose mean A_T is at most one standard error of the paired difference below the
    chosen one's (or above it).
    """
    near = []
    for epsilon in results.epsilons:
        pair = compare(results.search, results.chosen_epsilon, epsilon)
        if epsilon != results.chosen_epsilon and pair.n > 1 and pair.mean <= pair.error:
            near.append(epsilon)
    return tuple(near)


def _choice(results: StudyResults) -> str:
    members = [r for r in results.search if r.epsilon == results.chosen_epsilon]
    stream = STREAM_LABELS[results.score_on]
    spread = "; mean ± standard deviation over seeds" if len(members) > 1 else ""
    values, repeats = count_text(len(results.epsilons), "value"), count_text(len(results.rounds), "repeat")
    tried = f"the best of {values} tried in {repeats}"
    chosen = f"The search chose ε = {epsilon_text(results.chosen_epsilon)}"
    if results.chosen_epsilon == 0:
        chosen += ", which is plain A-GEM"
    if not members:
        return f"{chosen}, {tried}: mean A_T {number_text(100 * results.chosen_score, 2)} % on the {stream}."
    size = f"{count_text(members[0].tasks, 'task')}, {_seeds(members)}"
    return f"{chosen}, {tried}: A_T {_metric(members, 'A_T')} % on the {stream} ({size}{spread})."


def _against_zero(results: StudyResults) -> str:
    if results.chosen_epsilon == 0:
        return "No tried ε > 0 scored higher than A-GEM: on this evidence the soft constraint brings nothing."
    if results.score_on == "eval" and results.evaluation:
        return ""  # the same members as in the evaluation, whose paragraph compares them
    pair = compare(results.search, results.chosen_epsilon, 0.0)
    if not pair.n:
        return "ε = 0 (A-GEM) shares no measured seed with the chosen ε, so the search cannot compare them."
    selected = (
        "The chosen ε is the maximum of noisy means, so the selection itself biases this difference upwards"
        if len(results.epsilons) > 2
        else "The same data chose ε, so the selection itself biases this difference upwards"
    )
    remedy = "; the evaluation below is free of that." if results.score_on == "cv" and results.evaluation else "."
    seeds = count_text(pair.n, "seed")
    return f"Against ε = 0 (A-GEM) on the same {seeds} of the search: {_points(pair)}. {selected}{remedy}"


def _evaluation(results: StudyResults) -> str:
    if not results.evaluation:
        return "The evaluation has not run yet: how the chosen ε does on the evaluation stream is unknown."
    stream = f"On the evaluation stream ({count_text(results.evaluation[0].tasks, 'task')})"
    chosen, zero = ([r for r in results.evaluation if r.epsilon == e] for e in (results.chosen_epsilon, 0.0))
    if not chosen:
        return f"{stream} only A-GEM was evaluated: A_T {_metric(zero, 'A_T')} %; the chosen ε was not."
    text = f"{stream} {_result(results.method, results.chosen_epsilon, chosen)}"
    if results.chosen_epsilon != 0 and zero:
        pair = compare(results.evaluation, results.chosen_epsilon, 0.0)
        seeds = count_text(pair.n, "seed")
        text += f"; {_result('agem', 0.0, zero)}. Difference on the same {seeds}: {_points(pair)}."
        text += "" if results.score_on == "eval" else f" {_test(pair)}"
    else:
        text += "." if results.chosen_epsilon == 0 else "; ε = 0 was not evaluated."
    if results.score_on == "eval":
        text += (
            " ε was chosen on this very stream: its figures are flattered, the difference is biased upwards, "
            "and no test is given, because none would be valid after the selection."
        )
    return text.strip()


def _trust(results: StudyResults) -> str:
    sentences = [_resolution(results), _at_the_end(results), _diverged(results)]
    return " ".join(sentence for sentence in sentences if sentence)


def _resolution(results: StudyResults) -> str:
    """How well the search can tell the chosen ε from its rivals."""
    others = len(results.epsilons) - 1
    seeds = len({r.seed for r in results.search})
    if seeds < 2:
        return "With one seed there is no estimate of the noise: the ranking of the tried ε may be chance."
    near = near_best(results)
    if not near:
        return f"None of the other {others} tried ε lies within {ERROR} ({seeds} seeds)."
    low, high = epsilon_text(near[0]), epsilon_text(near[-1])
    span = f"ε = {low}" if len(near) == 1 else f"the smallest is {low}, the largest {high}"
    zero = ", and ε = 0 (A-GEM) is among them" if 0 in near and results.chosen_epsilon != 0 else ""
    lie = "lies" if len(near) == 1 else "lie"
    return (
        f"{len(near)} of the other {others} tried ε {lie} within {ERROR} ({seeds} seeds): {span}{zero}. "
        "Take the chosen value as one good value among these, not as an optimum known to its last digit."
    )


def _at_the_end(results: StudyResults) -> str:
    """A warning where the best lies on an edge that the rule cannot cross."""
    for r in results.rounds[:1] + results.rounds[-1:]:
        if results.chosen_epsilon in (r.low, r.high):
            first = r is results.rounds[0]
            what = "the whole searched interval" if first else f"the interval of repeat {r.number}"
            why = "better values may lie beyond it" if first else "the rule cannot look beyond it again"
            return f"The chosen ε is an end of {what} [{epsilon_text(r.low)}, {epsilon_text(r.high)}]: {why}."
    return ""


def _diverged(results: StudyResults) -> str:
    members = {r.key: r for r in (*results.search, *results.evaluation)}.values()
    broken = [r for r in members if r.status != "ok"]
    if not broken:
        return ""
    values = ", ".join(epsilon_text(e) for e in sorted({r.epsilon for r in broken}))
    share = f"{len(broken)} of {count_text(len(members), 'member')}"
    return f"{share} diverged (ε = {values}); they are counted, not averaged."


def _test(pair: Paired) -> str:
    """The exact test, and what it cannot show with so few seeds."""
    if not 2 <= pair.n <= MOST_FLIPS:
        return ""
    smallest = smallest_sign_flip_p(pair.n)
    text = f"Exact two-sided sign-flip test: p = {sign_flip_p(pair.differences):.3g}"
    if smallest >= LEVEL:
        bound = f"the smallest possible p is 2/2^{pair.n} = {smallest:.4g}"
        return f"{text}; {pair.n} seeds cannot reach p < {LEVEL}, because {bound}."
    return f"{text} ({pair.n} seeds, one comparison)."


def _points(pair: Paired) -> str:
    if not pair.n:
        return "no seed measured for both"
    error = f" ± {number_text(pair.error, 2)}" if math.isfinite(pair.error) else ""
    kind = "mean of the paired differences ± its standard error; " if error else "one pair, no standard error; "
    difference = f"{signed_text(pair.mean, 2)}{error}"
    return f"{difference} percentage points of A_T ({kind}higher in {pair.wins} of {pair.n})"


def _result(method: str, epsilon: float, members: list[RunRecord]) -> str:
    label = "A-GEM" if epsilon == 0 else f"{method_label(method)} with ε = {epsilon_text(epsilon)}"
    return f"{label} reaches A_T {_metric(members, 'A_T')} % and F_T {_metric(members, 'F_T')}"


def _metric(members: list[RunRecord], metric: str) -> str:
    row = by_epsilon(members).iloc[0]
    if len(members) == 1:
        return number_text(float(row[f"{metric}_mean"]), METRIC_DIGITS[metric])
    return mean_std_text(float(row[f"{metric}_mean"]), float(row[f"{metric}_std"]), METRIC_DIGITS[metric])


def _seeds(members: list[RunRecord]) -> str:
    return count_text(len({r.seed for r in members}), "seed")
