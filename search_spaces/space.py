"""The space of a search: hyperparameters with intervals or choices."""

import math
from dataclasses import dataclass

from search_spaces.interval import Grid, Interval

Value = float | int | str
"""One value of a hyperparameter."""
Point = tuple[Value, ...]
"""One value for each hyperparameter of a space, in their order."""
DIGITS = 12
"""Significant digits of a value on a logarithmic axis: 10**log10(0.003) must be 0.003."""


@dataclass(frozen=True)
class Parameter:
    """A hyperparameter and its values: the closed interval [low, high], or a list of choices.

    Raises ValueError for ends that are not finite and ascending, ends <= 0 on a logarithmic axis, and repeated choices.
    """

    name: str
    """As on the command line: "epsilon", "lr", …"""
    low: float | None = None
    """Low end of the interval; None with `choices`."""
    high: float | None = None
    """High end of the interval; None with `choices`."""
    log: bool = False
    """Whether the axis is log10 of the value, so that the points of a grid have equal ratios."""
    whole: bool = False
    """Whether only whole numbers are values."""
    choices: tuple[Value, ...] = ()
    """All values, in no order; empty for an interval."""
    apart: tuple[float, ...] = ()
    """Values with another formula, such as ε = 0 of ε-SOFT-GEM, which is A-GEM: they are tried like any other value,
    but left out of a curve that is fitted to the scores."""

    def __post_init__(self) -> None:
        if self.choices:
            if len(set(self.choices)) < len(self.choices):
                raise ValueError(f"choices of {self.name} must differ, got {self._choices()}")
            return
        if self.low is None or self.high is None:
            raise ValueError(f"{self.name} must have an interval LOW..HIGH or choices A,B,…, got neither")
        if self.log and self.low <= 0:
            raise ValueError(f"{self.name} must be > 0 on a logarithmic axis, got {self.low:g}")
        if self.whole and not (float(self.low).is_integer() and float(self.high).is_integer()):
            raise ValueError(f"ends of {self.name} must be whole numbers, got {self.low:g}..{self.high:g}")
        try:
            Interval(self.low, self.high)
        except ValueError as error:  # which says "low" and "high", but not of what
            raise ValueError(f"{self.name}: {error}") from None

    def axis(self) -> Interval:
        """Returns the interval on the axis, where grids are evenly spaced. Raises ValueError for choices."""
        if self.low is None or self.high is None:
            raise ValueError(f"{self.name} must be an interval LOW..HIGH, got the choices {self._choices()}")
        return Interval(math.log10(self.low), math.log10(self.high)) if self.log else Interval(self.low, self.high)

    def value(self, coordinate: float) -> float | int:
        """Returns the value at a coordinate of the axis, never beyond the ends.

        >>> Parameter("lr", 0.003, 0.3, log=True).value(-2.5228787452803374)
        0.003
        """
        value = float(f"{10**coordinate:.{DIGITS}g}") if self.log else coordinate
        if self.low is not None and self.high is not None:
            # An end with more than DIGITS digits may have been rounded to a value outside.
            value = min(max(value, self.low), self.high)
        return round(value) if self.whole else value

    def coordinate(self, value: float) -> float:
        """Returns the place of a value on the axis, never beyond its ends.

        >>> Parameter("lr", 0.001, 1, log=True).coordinate(0.01)
        -2.0
        """
        axis = self.axis()
        return min(max(math.log10(value) if self.log else value, axis.low), axis.high)

    def points(self, grid: Grid) -> tuple[Point, ...]:
        """Returns the points of a grid on the axis, for a space of this parameter alone.

        Neighbours may be the same whole number.

        >>> Parameter("memory", 0, 2, whole=True).points(Grid.over(Interval(0, 2), 4))
        ((0,), (1,), (1,), (2,))
        """
        return tuple((self.value(coordinate),) for coordinate in grid.coordinates)

    def span(self, grid: Grid) -> tuple[float, float]:
        """Returns the smallest and the largest value of a grid on the axis."""
        return float(self.value(float(grid.low))), float(self.value(float(grid.high)))

    def has_room(self, grid: Grid) -> bool:
        """Returns whether all points of a grid are different values."""
        return len(set(self.points(grid))) == grid.points

    def __str__(self) -> str:
        """Returns the parameter as users write it after --search.

        >>> print(Parameter("lr", 0.003, 0.3, log=True), Parameter("memory", choices=(10, 25)))
        lr=log:0.003..0.3 memory=10,25
        """
        if self.choices:
            return f"{self.name}={self._choices()}"
        return f"{self.name}={'log:' if self.log else ''}{_text(self.low)}..{_text(self.high)}"

    def _choices(self) -> str:
        return ",".join(map(str, self.choices))


def _text(value: float | None) -> str:
    """Returns a number with few digits, but enough to be read back as the same number."""
    short = f"{value:.12g}"
    return short if float(short) == value else repr(value)


@dataclass(frozen=True)
class Space:
    """The hyperparameters of a search. Raises ValueError unless there are one or more with different names."""

    parameters: tuple[Parameter, ...]
    """In the order of the values of a point."""

    def __post_init__(self) -> None:
        if not self.parameters or len(set(self.names)) < len(self.names):
            raise ValueError(f"a space must have one or more different parameters, got {', '.join(self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in their order."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def finite(self) -> bool:
        """True if the number of different points is finite, so that a sampler may suggest a point twice."""
        return all(parameter.choices or parameter.whole for parameter in self.parameters)

    def __str__(self) -> str:
        """Returns the parameters as users write them after --search."""
        return " ".join(map(str, self.parameters))
