"""The certificates of a study, and its rounding noise, in words."""

import math
from collections.abc import Sequence

from results.labels import count_text, difference_text, points_text
from results.ledger.record import Certificate
from results.search import SearchResults
from results.search_tables import baseline_pair
from results.statistics.paired import rounding_noise
from results.verdict import wording


def summary(results: SearchResults) -> str:
    """Returns how far the results of members trained alone are from those in a cohort; "" without certificates."""
    certificates = results.certificates
    if not certificates:  # a study before its end, or one with --certify 0
        return ""
    if results.trainer_repeats is not None:
        return _repeatability(certificates, results.trainer_repeats)
    was, result = ("was", "its result") if len(certificates) == 1 else ("were", "their results")
    again = f"{was} trained a second time, alone, and compared with {result}"
    allowed = f" {_tolerance_text(results.tolerance)}" if results.tolerance > 0 else ""
    return f"{count_text(len(certificates), 'member')} {again} in a cohort: {_largest(certificates)}.{allowed}"


def warning(results: SearchResults) -> str:
    """Returns a warning where a member differs by more than is allowed; "" where none does."""
    outside = [c for c in results.certificates if not c.within(results.tolerance)]
    if not outside or results.trainer_repeats is False:
        return ""
    if results.trainer_repeats:
        return f"{_repeatability(outside, True)} It is declared to repeat itself, and does not."
    of = f"{len(outside)} of {count_text(len(results.certificates), 'member')}"
    return (
        f"Trained a second time, alone, {of} had another result than in a cohort: {_largest(outside)}. "
        f"{_tolerance_text(results.tolerance)}"
    )


def rounding(results: SearchResults) -> str:
    """Returns how far members moved whose start was moved by as little as rounding; "" without any."""
    if not results.perturbed:
        return ""
    what, again = results.objective, "was" if len(results.perturbed) == 1 else "were"
    text = (
        f"{count_text(len(results.perturbed), 'member')} {again} trained once more from a start in which each "
        f"parameter was moved by 1e-7 of itself: {what} moved by up to {points_text(max(results.perturbed))}."
    )
    noise = rounding_noise(results.perturbed)
    if not 0 < noise < math.inf:
        return text
    return (
        f"{text} Rounding noise: ± {points_text(noise)} in every run. Every value has its own, which pairing by seed "
        "does not remove: it is part of every interval and of what so many seeds can tell."
    )


def rounding_warning(results: SearchResults) -> str:
    """Returns a sentence where rounding noise is larger than the difference from the baseline; "" elsewhere."""
    pair = baseline_pair(results, evaluation=True)
    if not results.perturbed or not pair.n:
        return ""
    # The difference of two runs has the variance of both.
    noise = rounding_noise(results.perturbed) * math.sqrt(2 / pair.n)
    if noise <= abs(pair.mean) / 100:
        return ""
    return (
        f"Rounding noise alone moves the mean difference from {wording.baseline_name(results)} over "
        f"{count_text(pair.n, 'seed')} by ± {points_text(noise)}, which is more than that difference."
    )


def _repeatability(certificates: Sequence[Certificate], declared: bool) -> str:
    """Returns in words how far a trainer's results repeat themselves; declared: whether it says that they do."""
    again = "was trained a second time, in a process of its own" + (" with the same seed" if declared else "")
    members = count_text(len(certificates), "member")
    text = f"{members} {again if len(certificates) == 1 else again.replace('was', 'were', 1)}"
    largest = max(c.accuracy_difference for c in certificates)
    if all(c.within(0.0) for c in certificates):
        return f"{text}: every prediction was the same."
    if not largest:
        return f"{text}: accuracies were the same, predictions were not."
    noise = f"{text}: accuracies differ by up to {points_text(largest)}."
    if declared:
        return noise
    return (
        f"{noise} This is rerun noise, which the trainer declares: every member has its own, so that it is part of the "
        "spread over seeds, of every interval and of what so many seeds can tell."
    )


def _largest(certificates: Sequence[Certificate]) -> str:
    """Returns the largest differences of accuracies and parameters, in words."""
    accuracy = points_text(max(c.accuracy_difference for c in certificates))
    parameter = difference_text(max(c.parameter_difference for c in certificates))
    return f"the largest difference of any accuracy is {accuracy}, of any parameter {parameter}"


def _tolerance_text(tolerance: float) -> str:
    return f"Accuracies may differ by up to {points_text(tolerance)}." if tolerance > 0 else "No difference is allowed."
