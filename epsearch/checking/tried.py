"""Which values of a setting are tried, to see whether it does anything: far ones, and some between them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from search_spaces.space import Parameter, Space, Value
from trainers.hyperparameters import Hyperparameter

FEW = 5  # values at most: with so many equal results nobody doubts
FAR = 10  # times the usual value, and a part of it, where nothing is searched


class Tried(NamedTuple):
    """Values of one setting, all different."""

    name: str
    usual: Value
    """With which the others are tried."""
    far: tuple[Value, ...]
    """Tried in any case."""
    between: tuple[Value, ...]
    """Tried where the far ones change nothing."""

    @property
    def values(self) -> tuple[Value, ...]:
        """All of them, the usual one first."""
        return (self.usual, *self.far, *self.between)


def of_space(space: Space) -> tuple[Tried, ...]:
    """Of what a search varies: both ends of an interval around its middle, the farthest of several choices.

    >>> of_space(Space((Parameter("lr", 0.01, 1, log=True), Parameter("memory", choices=(50, 5, 10)))))[0]
    Tried(name='lr', usual=0.1, far=(0.01, 1.0), between=())
    >>> of_space(Space((Parameter("memory", choices=(50, 5, 20, 10)), Parameter("kind", choices=("a", "b", "c")))))[1]
    Tried(name='kind', usual='a', far=('c',), between=('b',))
    """
    return tuple(map(_of_parameter, space.parameters))


def of_declared(declared: Iterable[Hyperparameter], values: Mapping[str, Any]) -> tuple[Tried, ...]:
    """Of what a trainer declares: all words; a tenth of a number and ten times it, as far as it may be that.

    values: the usual ones, by name.

    >>> of_declared([Hyperparameter("memory", "", low=1, high=40, whole=True)], {"memory": 5})
    (Tried(name='memory', usual=5, far=(1, 40), between=()),)
    """
    return tuple(_of_declared(one, values[one.name]) for one in declared if values.get(one.name) is not None)


def usual(tried: Sequence[Tried], others: Mapping[str, Any]) -> dict[str, Any]:
    """The values with which each setting is tried; others: of what is not."""
    return dict(others) | {one.name: one.usual for one in tried}


def _of_parameter(one: Parameter) -> Tried:
    if not one.choices:
        axis = one.axis()
        ends = (one.value(axis.low), one.value(axis.high))
        return _made(one.name, one.value((axis.low + axis.high) / 2), ends, ())
    if any(isinstance(value, str) for value in one.choices):
        return _made(one.name, one.choices[0], one.choices[-1:], one.choices[1:-1])
    numbers = sorted(one.choices, key=float)
    return _made(one.name, numbers[len(numbers) // 2], (numbers[0], numbers[-1]), numbers[1:-1])


def _of_declared(one: Hyperparameter, value: Any) -> Tried:
    if one.choices:
        return _made(one.name, value, one.choices[-1:], one.choices)
    far = (value / FAR, value * FAR) if value else (-1, 1)
    low = one.low if one.search_low is None else one.search_low
    inside = (min(max(number, low), one.high) for number in far)
    fitting = [round(number) if one.whole else number for number in inside]
    return _made(one.name, value, [number for number in fitting if one.fits(number)], ())


def _made(name: str, value: Value, far: Iterable[Value], between: Iterable[Value]) -> Tried:
    """With each value in one place, and FEW at most."""
    first = tuple(one for one in dict.fromkeys(far) if one != value)
    others = tuple(one for one in dict.fromkeys(between) if one != value and one not in first)
    return Tried(name, value, first, others[: FEW - 1 - len(first)])
