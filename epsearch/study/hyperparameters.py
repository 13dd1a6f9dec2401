"""The hyperparameters that a search may name, which values they take, and how users write a space of them."""

import math
import re
from dataclasses import dataclass

from epsearch.failures.errors import UsageError, brief, unknown
from epsearch.study import limits
from search_spaces.space import Parameter, Space, Value
from trainers.methods import hyperparameters

EPSILON = "epsilon"
FORMS = "LOW..HIGH, log:LOW..HIGH or A,B,…"


@dataclass(frozen=True)
class Kind:
    """Values that a hyperparameter takes: numbers from `low` (itself only where `closed`) to `high`, or `texts`."""

    low: float = 0.0
    high: float = limits.FLOAT
    closed: bool = True
    whole: bool = False
    texts: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """In words.

        >>> Kind(0, 1).allowed, Kind(1, 1e9, whole=True).allowed, Kind(closed=False).allowed
        ('in [0, 1]', 'whole, >= 1 and <= 1000000000', '> 0 and <= 1e+30')
        """
        if self.texts:
            return f"one of {', '.join(self.texts)}"
        if self.high <= 1:
            return f"in [{self.low:g}, {self.high:g}]"
        return f"{'whole, ' if self.whole else ''}{'>=' if self.closed else '>'} {self.low:g} and <= {self.high:.10g}"

    def fits(self, value: float) -> bool:
        above = value >= self.low if self.closed else value > self.low
        return math.isfinite(value) and above and value <= self.high and (not self.whole or float(value).is_integer())


KINDS: dict[str, Kind] = {
    EPSILON: Kind(0, 1),
    "lr": Kind(closed=False),
    "strength": Kind(),
    "margin": Kind(),
    "batch_size": Kind(1, limits.COUNT, whole=True),
    "memory": Kind(1, limits.COUNT, whole=True),
    "memory_batch": Kind(1, limits.COUNT, whole=True),
    "fisher_every": Kind(1, limits.COUNT, whole=True),
    **{one.name: Kind(texts=one.choices) for one in hyperparameters().values() if one.choices},
}


def space(value: object) -> Space:
    """What is searched, from `lr=log:0.003..0.3 memory=10,25` or a list of such. Raises UsageError.

    >>> str(space("epsilon=0..0.5").parameters[0])
    'epsilon=0..0.5'
    """
    parts = value.split() if isinstance(value, str) else list(value) if isinstance(value, (list, tuple)) else [value]
    if len(parts) > len(KINDS):
        raise UsageError(f"search takes each of {len(KINDS)} hyperparameters once, got {len(parts)} parts")
    try:
        return Space(tuple(_parameter(str(part)) for part in parts))
    except ValueError as error:
        raise UsageError(str(error)) from None


def space_shown(value: Space | None) -> list[str] | None:
    """The inverse of `space`."""
    return None if value is None else [str(parameter) for parameter in value.parameters]


def _parameter(text: str) -> Parameter:
    name, equals, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not values:
        raise UsageError(f"search takes NAME={FORMS}, got {brief(text)}")
    if name not in KINDS:
        raise UsageError(unknown("hyperparameter", name, KINDS))
    kind = KINDS[name]
    if (found := re.fullmatch(r"(log:)?(.+)\.\.(.+)", values)) and not kind.texts:
        low, high = (_number(name, part, kind) for part in found.groups()[1:])
        return Parameter(name, float(low), float(high), log=bool(found[1]), whole=kind.whole)
    choices = values.split(",")
    if len(choices) > limits.CHOICES:
        raise UsageError(f"choices of {name} must be <= {limits.CHOICES} in number, got {len(choices)}")
    return Parameter(name, choices=tuple(_choice(name, part.strip(), kind) for part in choices))


def epsilon(low: float, high: float) -> Parameter:
    """ε over an interval."""
    return Parameter(EPSILON, low, high)


def _choice(name: str, text: str, kind: Kind) -> Value:
    if not kind.texts:
        return _number(name, text, kind)
    if text not in kind.texts:
        raise UsageError(unknown(f"{name} (search)", text, kind.texts))
    return text


def _number(name: str, text: str, kind: Kind) -> float | int:
    try:
        value = float(text) + 0.0  # −0 is 0
    except ValueError:
        raise UsageError(f"search takes {name}={FORMS} with numbers, got {brief(text)}") from None
    if not kind.fits(value):
        raise UsageError(f"{name} must be {kind.allowed}, got {brief(value)}")
    return int(value) if kind.whole else value
