"""What training a member again, alone, showed: how far it is from the result the member had among others."""

from __future__ import annotations

import math
from dataclasses import dataclass

DIFFERENCES = ("accuracy_difference", "parameter_difference")


@dataclass(frozen=True)
class Certificate:
    """The largest differences between one member trained alone and the same member trained among others.

    0 is bit for bit the same. A difference that is NaN is kept as infinite: one of the two values is no number.
    ValueError where a difference is negative.

    >>> Certificate("00ff", 0.0, float("nan"), "2026-01-01T00:00:00+00:00").parameter_difference
    inf
    """

    key: str
    """Content key of the member."""
    accuracy_difference: float
    """Largest difference of any accuracy, fraction in [0, 1]; infinite where only one of the two was measured."""
    parameter_difference: float
    """Largest absolute difference of any final parameter."""
    created: str
    """ISO-8601 time, UTC."""

    def __post_init__(self) -> None:
        for name in DIFFERENCES:
            value = float(getattr(self, name))
            if value < 0:
                raise ValueError(f"{name} must be >= 0, got {value}")
            object.__setattr__(self, name, math.inf if math.isnan(value) else value)

    def within(self, tolerance: float) -> bool:
        """True where no accuracy differs by more than `tolerance` and, where that is 0, no parameter at all."""
        allowed = math.inf if tolerance > 0 else 0.0
        return self.accuracy_difference <= tolerance and self.parameter_difference <= allowed
