"""The nouns of a study: searched values, rounds, baseline.

For a search of ε in the paper's words.
"""

from collections import Counter
from collections.abc import Iterable

from results.labels import STREAM_LABELS, count_text
from results.ledger.record import RunRecord
from results.points import Point, parameter_label, point_text
from results.search import SearchResults, SearchRound
from results.statistics.paired import RELATIVE_ZERO


def subject(results: SearchResults) -> str:
    """Returns what was chosen: "ε", "learning rate", or "point" where there are several parameters."""
    return parameter_label(results.parameters[0]) if len(results.parameters) == 1 else "point"


def searched_parameters(results: SearchResults) -> str:
    """Returns all that was searched: "ε", "learning rate and λ", "ε, learning rate and memory"."""
    *first, last = map(parameter_label, results.parameters)
    return f"{', '.join(first)} and {last}" if first else last


def objective(name: str) -> str:
    """Returns what was maximised as the start of a line."""
    return "Final average accuracy A_T" if name == "A_T" else heading(name)


def heading(text: str) -> str:
    """Returns words as the start of a line: capitalised, but a Greek letter is a symbol and stays as it is.

    >>> heading("learning rate"), heading("ε"), heading("λ and margin")
    ('Learning rate', 'ε', 'λ and margin')
    """
    return text[:1].upper() + text[1:] if text[:1].isascii() else text


def count_points(results: SearchResults) -> str:
    """Returns how many points were tried: "51 values", "40 points"."""
    return count_text(len(results.points), "value" if len(results.parameters) == 1 else "point")


def others(results: SearchResults) -> str:
    """Returns the tried points as a plural: "tried ε", "tried values", "tried points"."""
    if results.of_epsilon:
        return "tried ε"
    return "tried values" if len(results.parameters) == 1 else "tried points"


def stream(results: SearchResults) -> str:
    """Returns what the scores of the search are from: "the cross-validation stream of 3 tasks"."""
    of = f" of {count_text(results.search[0].tasks, 'task')}" if results.search else ""
    return f"the {STREAM_LABELS[results.score_on]}{of}"


def units(members: Iterable[RunRecord]) -> str:
    """Returns the numbers of orders, where there are several, and seeds of members."""
    distinct = {record.unit for record in members}
    seeds = count_text(len({unit.seed for unit in distinct}), "seed")
    orders = {unit.order for unit in distinct}
    return f"{count_text(len(orders), 'order')} × {seeds}" if len(orders) > 1 else seeds


def samples(number: int, orders: int) -> str:
    """Returns a number of seeds in words; of several orders of tasks, of pairs of an order and a seed.

    >>> samples(9, 1), samples(9, 3)
    ('9 seeds', '9 order-seed pairs')
    """
    return count_text(number, "seed" if orders == 1 else "order-seed pair")


def round_noun(search_round: SearchRound) -> str:
    """Returns the noun for a round: "repeat" if it searched an interval, else "batch".

    By round, because a study may have been extended by another strategy.
    """
    return "batch" if search_round.span is None else "repeat"


def round_name(search_round: SearchRound) -> str:
    """Returns the name of a round: "repeat 3", "batch 1", "the value that the curve names"."""
    return search_round.note if search_round.named else f"{round_noun(search_round)} {search_round.number}"


def rounds(results: SearchResults) -> str:
    """Returns how many rounds there were: "5 repeats", "1 batch", "3 repeats and 2 batches"."""
    counts = Counter(map(round_noun, results.searching))
    return " and ".join(count_text(count, noun) for noun, count in counts.items())


def round_nouns(results: SearchResults) -> str:
    """Returns the noun for all rounds: "repeats", "batches", or "rounds" where there are both."""
    nouns = {round_noun(search_round) for search_round in results.searching}
    return "rounds" if len(nouns) > 1 else "repeats" if "repeat" in nouns else "batches"


def baseline(results: SearchResults) -> str:
    """Returns the baseline in a sentence: "ε = 0 (A-GEM)", of another method "the baseline ε = 0"."""
    if results.baseline is None:
        return "no baseline"
    text = point_text(results.parameters, results.baseline)
    return f"{text} (A-GEM)" if is_agem(results) else f"the baseline {text}"


def baseline_name(results: SearchResults) -> str:
    """Returns a short name of the baseline: "A-GEM", "the baseline"."""
    return "A-GEM" if is_agem(results) else "the baseline"


def is_agem(results: SearchResults) -> bool:
    """Returns whether the baseline of a search of ε alone is A-GEM."""
    return results.zero_is_agem and results.baseline == (0.0,)


def has_baseline(results: SearchResults) -> bool:
    """Returns whether there is a baseline other than the chosen point."""
    return results.baseline is not None and results.baseline != results.chosen


def higher(results: SearchResults) -> tuple[Point, ...]:
    """Returns the points that scored higher in a round than the chosen one in any round, the highest first."""
    best: dict[Point, float] = {}
    for search_round in results.rounds:
        for point, score in zip(search_round.points, search_round.scores, strict=True):
            if score is not None:
                best[point] = max(score, best.get(point, score))
    chosen = max(results.chosen_score, best.get(results.chosen, results.chosen_score))
    # Beyond rounding: equal points of two rounds may differ in the last bit of their mean.
    above = [s for s, score in best.items() if s != results.chosen and score > chosen + RELATIVE_ZERO]
    return tuple(sorted(above, key=lambda s: -best[s]))
