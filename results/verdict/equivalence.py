"""What the certificates of a study say, in words."""

from __future__ import annotations

from collections.abc import Sequence

from results.labels import count_text, difference_text, points_text
from results.ledger.certificate import Certificate
from results.search import SearchResults


def summary(results: SearchResults) -> str:
    """How far the members that were trained again alone are from what they gave among others; "" where there
    were none.
    """
    known = results.certificates
    if not known:
        return ""
    again = (
        "was trained a second time, alone, and compared with its result"
        if len(known) == 1
        else "were trained a second time, alone, and compared with their results"
    )
    allowed = f" {_allowed(results.tolerance)}" if results.tolerance > 0 else ""
    return f"{count_text(len(known), 'member')} {again} in a cohort: {_largest(known)}.{allowed}"


def warning(results: SearchResults) -> str:
    """What is wrong where a member differs by more than is allowed; "" where none does."""
    known = results.certificates
    outside = [c for c in known if not c.within(results.tolerance)]
    if not outside:
        return ""
    return (
        f"Trained a second time, alone, {len(outside)} of {count_text(len(known), 'member')} had another result than "
        f"in a cohort: {_largest(outside)}. {_allowed(results.tolerance)}"
    )


def _largest(certificates: Sequence[Certificate]) -> str:
    accuracy = points_text(max(c.accuracy_difference for c in certificates))
    parameter = difference_text(max(c.parameter_difference for c in certificates))
    return f"the largest difference of any accuracy is {accuracy}, of any parameter {parameter}"


def _allowed(tolerance: float) -> str:
    if tolerance > 0:
        return f"Accuracies may differ by up to {points_text(tolerance)}."
    return "No difference is allowed."
