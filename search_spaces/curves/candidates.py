"""Candidate points of a space, and their places for a model."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from search_spaces.interval import exact
from search_spaces.space import Parameter, Point, Space, Value

TICKS = 1000
"""Steps of an axis: values are multiples of a thousandth of it, so that they are short."""
DIGITS = 3
"""Significant digits of values on a logarithmic axis."""
SPREAD = 256
"""Points that are spread over a space of several parameters."""


def candidates(space: Space, every: int = 1) -> list[Point]:
    """Returns points that cover the space: every so-manieth tick of one parameter, else `SPREAD` points, spread evenly.

    These are the first of a sequence that leaves no gaps in any number of dimensions (Roberts 2018, R_d): multiples of
    powers of 1/φ_d, the root of φ^(d+1) = φ + 1.
    """
    if len(space.parameters) == 1:
        return list(dict.fromkeys((value,) for value in ticks(space.parameters[0], every)))
    root = 2.0
    for _ in range(64):  # a contraction, to the last digit
        root = (1 + root) ** (1 / (len(space.parameters) + 1))
    steps = [root ** -(axis + 1) for axis in range(len(space.parameters))]
    shares = ([(0.5 + number * step) % 1 for step in steps] for number in range(1, SPREAD + 1))
    return list(dict.fromkeys(tuple(map(_at, space.parameters, share)) for share in shares))


def ticks(parameter: Parameter, every: int = 1) -> list[Value]:
    """Returns the values of a parameter at every so-manieth tick, ascending; all of a list of choices."""
    if parameter.choices:
        return list(parameter.choices)
    return list(dict.fromkeys(_tick(parameter, number) for number in range(0, TICKS + 1, every)))


def places(space: Space, points: Iterable[Point]) -> list[list[float]]:
    """Returns points as rows of numbers in [0, 1]: the place on each axis, and 0 or 1 for each choice of a list.

    >>> places(Space((Parameter("lr", 0.01, 1, log=True), Parameter("kind", choices=("a", "b")))), [(0.1, "b")])
    [[0.5, 0.0, 1.0]]
    """
    return [
        [place for parameter, value in zip(space.parameters, point, strict=True) for place in _places(parameter, value)]
        for point in points
    ]


def _places(parameter: Parameter, value: Value) -> Sequence[float]:
    if parameter.choices:
        return [float(value == choice) for choice in parameter.choices]
    axis = parameter.axis()
    return [(parameter.coordinate(float(value)) - axis.low) / axis.width]


def _at(parameter: Parameter, share: float) -> Value:
    """Returns the value at a share of the axis, in [0, 1)."""
    if parameter.choices:
        return parameter.choices[int(share * len(parameter.choices))]
    return _tick(parameter, round(share * TICKS))


def _tick(parameter: Parameter, number: int) -> Value:
    """Returns the value of a tick, counted from the low end."""
    axis = parameter.axis()
    low, width = exact(axis.low), exact(axis.high) - exact(axis.low)
    value = parameter.value(float(low + width * Fraction(number, TICKS)))
    if not parameter.log or parameter.whole or number in (0, TICKS):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else value
