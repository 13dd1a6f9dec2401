"""The certificates of a study in words: whether training in a cohort changes a result."""

from collections.abc import Sequence

from results.labels import count_text, difference_text, points_text
from results.ledger.record import Certificate
from results.search import SearchResults


def summary(results: SearchResults) -> str:
    """Returns how far the results of members trained alone are from those in a cohort; "" without certificates."""
    known = results.certificates
    if not known:  # a study before its end, or one with --certify 0
        return ""
    was, result = ("was", "its result") if len(known) == 1 else ("were", "their results")
    again = f"{was} trained a second time, alone, and compared with {result}"
    allowed = f" {_allowed(results.tolerance)}" if results.tolerance > 0 else ""
    return f"{count_text(len(known), 'member')} {again} in a cohort: {_largest(known)}.{allowed}"


def warning(results: SearchResults) -> str:
    """Returns a warning where a member differs by more than is allowed; "" where none does."""
    outside = [c for c in results.certificates if not c.within(results.tolerance)]
    if not outside:
        return ""
    of = f"{len(outside)} of {count_text(len(results.certificates), 'member')}"
    return (
        f"Trained a second time, alone, {of} had another result than in a cohort: {_largest(outside)}. "
        f"{_allowed(results.tolerance)}"
    )


def _largest(certificates: Sequence[Certificate]) -> str:
    """Returns the largest differences of accuracies and parameters, in words."""
    accuracy = points_text(max(c.accuracy_difference for c in certificates))
    parameter = difference_text(max(c.parameter_difference for c in certificates))
    return f"the largest difference of any accuracy is {accuracy}, of any parameter {parameter}"


def _allowed(tolerance: float) -> str:
    return f"Accuracies may differ by up to {points_text(tolerance)}." if tolerance > 0 else "No difference is allowed."
