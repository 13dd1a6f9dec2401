"""Values of each setting that a check trains with: far ones, and some between them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from search_spaces.space import Parameter, Space, Value
from trainers.hyperparameters import Hyperparameter

FEW = 5  # values at most: with so many equal results nobody doubts
FAR = 10  # factor and divisor of the usual value, where nothing is searched


class Setting(NamedTuple):
    """A setting and the values to try, all different."""

    name: str
    usual: Value
    """Its value while other settings vary."""
    far: tuple[Value, ...]
    """Tried in any case."""
    between: tuple[Value, ...]
    """Tried if the far ones change nothing."""

    @property
    def values(self) -> tuple[Value, ...]:
        """All values, the usual one first."""
        return (self.usual, *self.far, *self.between)


def of_space(space: Space) -> tuple[Setting, ...]:
    """Returns settings of a search space: ends and middle of intervals, the farthest of choices.

    >>> of_space(Space((Parameter("lr", 0.01, 1, log=True), Parameter("memory", choices=(50, 5, 10)))))[0]
    Setting(name='lr', usual=0.1, far=(0.01, 1.0), between=())
    >>> of_space(Space((Parameter("memory", choices=(50, 5, 20, 10)), Parameter("kind", choices=("a", "b", "c")))))[1]
    Setting(name='kind', usual='a', far=('c',), between=('b',))
    """
    return tuple(map(_of_parameter, space.parameters))


def of_declared(declared: Iterable[Hyperparameter], values: Mapping[str, Any]) -> tuple[Setting, ...]:
    """Returns settings of a trainer's declarations: all words; of a number, a tenth and ten times, within its bounds.

    values: the usual ones, by name.

    >>> of_declared([Hyperparameter("memory", "", low=1, high=40, whole=True)], {"memory": 5})
    (Setting(name='memory', usual=5, far=(1, 40), between=()),)
    """
    return tuple(
        _of_declared(hyperparameter, values[hyperparameter.name])
        for hyperparameter in declared
        if values.get(hyperparameter.name) is not None
    )


def usual(settings: Sequence[Setting], others: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the usual value of each setting, and others."""
    return dict(others) | {setting.name: setting.usual for setting in settings}


def _of_parameter(parameter: Parameter) -> Setting:
    name, choices = parameter.name, parameter.choices
    if not choices:
        axis = parameter.axis()
        ends = (parameter.value(axis.low), parameter.value(axis.high))
        return _setting(name, parameter.value((axis.low + axis.high) / 2), ends, ())
    if any(isinstance(value, str) for value in choices):
        return _setting(name, choices[0], choices[-1:], choices[1:-1])
    numbers = sorted(choices, key=float)
    return _setting(name, numbers[len(numbers) // 2], (numbers[0], numbers[-1]), numbers[1:-1])


def _of_declared(declared: Hyperparameter, value: Any) -> Setting:
    if declared.choices:
        return _setting(declared.name, value, declared.choices[-1:], declared.choices)
    far = (value / FAR, value * FAR) if value else (-1, 1)
    low = declared.low if declared.search_low is None else declared.search_low
    inside = (min(max(number, low), declared.high) for number in far)
    fitting = [round(number) if declared.whole else number for number in inside]
    return _setting(declared.name, value, [number for number in fitting if declared.fits(number)], ())


def _setting(name: str, usual: Value, far: Iterable[Value], between: Iterable[Value]) -> Setting:
    """Makes a setting of at most FEW values, each listed once."""
    first = tuple(value for value in dict.fromkeys(far) if value != usual)
    others = tuple(value for value in dict.fromkeys(between) if value != usual and value not in first)
    return Setting(name, usual, first, others[: FEW - 1 - len(first)])
