"""What is searched: hyperparameters by name, each over an interval or a list of choices."""

import math
from dataclasses import dataclass

from search_spaces.interval import Grid, Interval

Value = float | int | str
Point = tuple[Value, ...]
DIGITS = 12  # significant digits of a value on a logarithmic axis: 10**log10(0.003) must be 0.003


@dataclass(frozen=True)
class Parameter:
    """One hyperparameter and its values: the closed interval [low, high], or `choices` (then both ends are None).

    log    its axis is log10, so that a grid on it is evenly spaced in ratios
    whole  whole numbers only
    apart  values where another formula holds, such as ε = 0 of ε-SOFT-GEM, which is A-GEM: they are tried like any
           other, but a curve through the scores leaves them out
    Raises ValueError on ends that are not finite and ascending, a logarithm of what is not > 0, or repeated choices.
    """

    name: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    whole: bool = False
    choices: tuple[Value, ...] = ()
    apart: tuple[float, ...] = ()

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
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None

    def axis(self) -> Interval:
        """The interval in the coordinate that a grid spaces evenly. Raises ValueError where there are choices."""
        if self.low is None or self.high is None:
            raise ValueError(f"{self.name} must be an interval LOW..HIGH here, got the choices {self._choices()}")
        return Interval(math.log10(self.low), math.log10(self.high)) if self.log else Interval(self.low, self.high)

    def value(self, coordinate: float) -> float | int:
        """The value at a coordinate of the axis, never beyond the ends.

        >>> Parameter("lr", 0.003, 0.3, log=True).value(-2.5228787452803374)
        0.003
        """
        found = float(f"{10**coordinate:.{DIGITS}g}") if self.log else coordinate
        if self.low is not None and self.high is not None:
            found = min(max(found, self.low), self.high)  # an end of more digits is rounded to beyond itself
        return round(found) if self.whole else found

    def coordinate(self, value: float) -> float:
        """Where a value lies on the axis, never beyond its ends.

        >>> Parameter("lr", 0.001, 1, log=True).coordinate(0.01)
        -2.0
        """
        axis = self.axis()
        return min(max(math.log10(value) if self.log else value, axis.low), axis.high)

    def points(self, grid: Grid) -> tuple[Point, ...]:
        """The points of a grid on the axis, of this parameter alone. Neighbours may be the same whole number.

        >>> Parameter("memory", 0, 2, whole=True).points(Grid.over(Interval(0, 2), 4))
        ((0,), (1,), (1,), (2,))
        """
        return tuple((self.value(coordinate),) for coordinate in grid.coordinates)

    def span(self, grid: Grid) -> tuple[float, float]:
        """Smallest and largest value of a grid on the axis."""
        return float(self.value(float(grid.low))), float(self.value(float(grid.high)))

    def has_room(self, grid: Grid) -> bool:
        """Whether the points of a grid are different values."""
        return len(set(self.points(grid))) == grid.points

    def __str__(self) -> str:
        """As a user writes it.

        >>> print(Parameter("lr", 0.003, 0.3, log=True), Parameter("memory", choices=(10, 25)))
        lr=log:0.003..0.3 memory=10,25
        """
        if self.choices:
            return f"{self.name}={self._choices()}"
        return f"{self.name}={'log:' if self.log else ''}{_text(self.low)}..{_text(self.high)}"

    def _choices(self) -> str:
        return ",".join(map(str, self.choices))


def _text(value: float | None) -> str:
    """So short that it reads back as the same number."""
    short = f"{value:.12g}"
    return short if float(short) == value else repr(value)


@dataclass(frozen=True)
class Space:
    """The hyperparameters of a search; a point holds one value of each, in their order."""

    parameters: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        if not self.parameters or len(set(self.names)) < len(self.names):
            raise ValueError(f"a space must have one or more different parameters, got {', '.join(self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def finite(self) -> bool:
        """Whether there is only a number of different points, so that a sampler meets some again."""
        return all(parameter.choices or parameter.whole for parameter in self.parameters)

    def only(self, strategy: str) -> Parameter:
        """The one parameter of a search along a line. Raises ValueError where there are more."""
        if len(self.parameters) > 1:
            raise ValueError(f"strategy {strategy} searches one parameter, got {', '.join(self.names)}")
        return self.parameters[0]
