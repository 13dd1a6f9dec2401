"""Intervals on the axis of a parameter, and grids in them.

Ends and points are exact fractions internally and floats for callers: a point that two grids share is the same float
in both, so results that are stored under this value are found again.
"""

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Interval:
    """A closed interval, in the unit of the axis. Raises ValueError unless both ends are finite and low < high."""

    low: float
    """Low end, part of the interval."""
    high: float
    """High end, part of the interval."""

    def __post_init__(self) -> None:
        for end, value in (("low", self.low), ("high", self.high)):
            if not math.isfinite(value):
                raise ValueError(f"interval {end} must be finite, got {value}")
        if not self.low < self.high:
            raise ValueError(f"interval low must be < high, got {self.low} and {self.high}")

    @property
    def width(self) -> float:
        """The difference of the ends, rounded only once: the fractions are subtracted, not the floats.

        >>> Interval(0.0678, 0.0759).width
        0.0081
        """
        return float(exact(self.high) - exact(self.low))


@dataclass(frozen=True)
class Grid:
    """N evenly spaced points from low to high, exact (ε-SOFT-GEM paper, exploration of ε: δ = width/(N − 1))."""

    low: Fraction
    """The first point."""
    high: Fraction
    """The last point."""
    points: int
    """N >= 2, both ends included."""

    @classmethod
    def over(cls, interval: Interval, points: int) -> "Grid":
        """Returns the grid of N = `points` over an interval. Raises ValueError when points < 2."""
        if points < 2:
            raise ValueError(f"points must be >= 2, got {points}")
        return cls(exact(interval.low), exact(interval.high), points)

    @property
    def step(self) -> Fraction:
        """δ, the distance between neighbours."""
        return (self.high - self.low) / (self.points - 1)

    @property
    def coordinates(self) -> tuple[float, ...]:
        """The points as floats, ascending.

        >>> Grid.over(Interval(0.0, 0.3), 4).coordinates
        (0.0, 0.1, 0.2, 0.3)
        """
        return tuple(float(self.low + index * self.step) for index in range(self.points))

    @property
    def interval(self) -> Interval:
        """The ends as floats."""
        return Interval(float(self.low), float(self.high))

    def between(self, first: int, last: int) -> "Grid":
        """Returns a grid of N points from point `first` to point `last` of this one (indices from 0, first < last)."""
        return Grid(self.low + first * self.step, self.low + last * self.step, self.points)


def exact(value: float) -> Fraction:
    """Returns the decimal number that a float is printed as.

    >>> exact(0.3)
    Fraction(3, 10)
    """
    # From the shortest decimal, not from the binary value: 0.3 must mean 3/10, or the grid of [0, 1] with eleven points
    # and a narrower one through 0.3 would disagree in the last bit.
    return Fraction(repr(float(value)))
