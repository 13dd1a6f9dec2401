"""The certificate of a member: how far its result, trained once more, alone, is from the one that is stored."""

import math
from dataclasses import dataclass

ALONE, RERUN = "alone", "rerun"
KINDS = (ALONE, RERUN)
"""The kinds of certificates: made by the study itself, of members that it trained in cohorts; made by `epsearch verify`
of any stored run, the last time."""

DIFFERENCES = ("accuracy_difference", "parameter_difference")
"""The fields that are differences."""


@dataclass(frozen=True)
class Certificate:
    """The largest differences between one member trained once more, alone, and what is stored of it.

    0 means the same bit for bit. A difference that is NaN, because one of the two values is not a number, is stored as
    infinite. Raises ValueError for a negative difference and for a kind that there is not.

    >>> Certificate("00ff", 0.0, float("nan"), "2026-01-01T00:00:00+00:00").parameter_difference
    inf
    """

    key: str
    """Content key of the member."""
    accuracy_difference: float
    """Largest difference of any accuracy, fraction in [0, 1]; infinite where only one of the two was measured."""
    parameter_difference: float
    """Largest absolute difference of any final parameter; infinite where they differ, and nobody knows by how much."""
    created: str
    """ISO-8601 time, UTC."""
    kind: str = ALONE
    """One of KINDS, each of which has a table of its own."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no kind of certificate {self.kind!r}; known: {', '.join(KINDS)}")
        for name in DIFFERENCES:
            value = float(getattr(self, name))
            if value < 0:
                raise ValueError(f"{name} must be >= 0, got {value}")
            # Not an assignment, which a frozen dataclass refuses.
            object.__setattr__(self, name, math.inf if math.isnan(value) else value)

    def within(self, tolerance: float) -> bool:
        """Returns whether no accuracy differs by more than `tolerance`; with 0 no parameter may differ either."""
        allowed = math.inf if tolerance > 0 else 0.0
        return self.accuracy_difference <= tolerance and self.parameter_difference <= allowed
