"""The reference rows of a search in words."""

import math

from results.labels import STREAM_LABELS, number_text
from results.ledger.record import RunRecord
from results.metrics import METRICS, mean_and_std, mean_std
from results.search import SearchResults
from results.search_tables import by_seed, compare, reference_label
from results.verdict.wording import subject


def in_words(results: SearchResults) -> tuple[str, ...]:
    """Returns a line for each reference row: its score ± standard deviation, and where the chosen point is.

    By what was maximised; by A_T where a row does not have that, as joint training has no F_T.
    """
    return tuple(_in_words(results, row, members) for row, members in results.references.items())


def _in_words(results: SearchResults, row: str, members: tuple[RunRecord, ...]) -> str:
    scored = by_seed(members, results.objective)
    metric = results.objective if any(not math.isnan(score) for score in scored.values()) else "A_T"
    chosen, declared = results.members_of(results.chosen), METRICS[metric]
    mean, std = (mean_std(members, [metric])[column] for column in mean_and_std(metric).values())
    pair = compare(members, chosen, metric)
    head = f"{reference_label(row)}, {STREAM_LABELS[results.score_on]}: {metric}"
    if not pair.n:
        return f"{head} {declared.mean_std_text(mean, std)} %"
    error = f" ± {number_text(pair.error, declared.digits)} (s.e.)" if pair.n > 1 else ""
    gap = f"{number_text(abs(pair.mean), declared.digits)}{error} {'below' if pair.mean >= 0 else 'above'}"
    return f"{head} {declared.mean_std_text(mean, std)} %; the chosen {subject(results)} is {gap}"
