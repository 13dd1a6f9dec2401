"""The reference rows of a search in words."""

import math

from results.labels import number_text
from results.ledger.record import RunRecord
from results.metrics import METRICS, mean_and_std, mean_std
from results.search import SearchResults
from results.search_tables import by_seed, compare, reference_label
from results.verdict.wording import stream, subject


def in_lines(results: SearchResults) -> tuple[str, ...]:
    """Returns a line for each reference row: its score ± standard deviation, and how far off the chosen point is.

    By what was maximised; by A_T where a row does not have that, as joint training has no F_T.
    """
    return tuple(_line(results, row, members) for row, members in results.references.items())


def in_full(results: SearchResults) -> str:
    """Returns the same as a sentence, which says what ± is; "" without reference rows."""
    if not results.references:
        return ""
    spreads = "mean ± standard deviation, paired difference ± standard error"
    return f"Beside the curve, on {stream(results)} with its seeds ({spreads}): {'; '.join(in_lines(results))}."


def _line(results: SearchResults, row: str, members: tuple[RunRecord, ...]) -> str:
    scores = by_seed(members, results.objective).values()
    metric = "A_T" if all(map(math.isnan, scores)) else results.objective
    declared = METRICS[metric]
    mean, std = (mean_std(members, [metric])[column] for column in mean_and_std(metric).values())
    line = f"{reference_label(row)} in the search: {metric} {declared.mean_std_text(mean, std)} %"
    pair = compare(members, results.members_of(results.chosen), metric)
    if not pair.n:
        return line
    error = f" ± {number_text(pair.error, declared.digits)}" if pair.n > 1 else ""
    gap = f"{number_text(abs(pair.mean), declared.digits)}{error} {'below' if pair.mean >= 0 else 'above'}"
    return f"{line}, chosen {subject(results)} {gap}"
