"""The hyperparameters that a search may name, which values they take, and how users write a space of them."""

import re
from dataclasses import replace

from epsearch.failures.errors import UsageError, brief, unknown
from epsearch.study import limits
from search_spaces.space import Parameter, Space, Value
from trainers.hyperparameters import Hyperparameter
from trainers.methods import hyperparameters

EPSILON = "epsilon"
FORMS = "LOW..HIGH, log:LOW..HIGH or A,B,…"


def searched(name: str) -> Hyperparameter:
    """As a search may try it: `all` is no number, and what switches a method off is no value of it.

    Raises UsageError.
    """
    known = hyperparameters()
    if name not in known:
        raise UsageError(unknown("hyperparameter", name, known))
    one = known[name]
    return replace(one, low=one.low if one.search_low is None else one.search_low, all_for_none=False)


def _allowed(one: Hyperparameter) -> str:
    """In words.

    >>> _allowed(searched("epsilon")), _allowed(searched("memory")), _allowed(searched("lr"))
    ('in [0, 1]', 'whole, >= 1 and <= 1000000000', '> 0 and <= 1e+30')
    """
    if one.choices or one.high <= 1:
        return one.allowed
    return f"{'whole, ' if one.whole else ''}{one.allowed} and <= {one.high:.10g}"


def space(value: object) -> Space:
    """What is searched, from `lr=log:0.003..0.3 memory=10,25` or a list of such. Raises UsageError.

    >>> str(space("epsilon=0..0.5").parameters[0])
    'epsilon=0..0.5'
    """
    parts = value.split() if isinstance(value, str) else list(value) if isinstance(value, (list, tuple)) else [value]
    if len(parts) > (most := len(hyperparameters())):
        raise UsageError(f"search takes each of {most} hyperparameters once, got {len(parts)} parts")
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
    one = searched(name)
    if (ends := re.fullmatch(r"(log:)?(.+)\.\.(.+)", values)) and not one.choices:
        low, high = (_number(one, part) for part in ends.groups()[1:])
        return Parameter(name, float(low), float(high), log=bool(ends[1]), whole=one.whole)
    choices = values.split(",")
    if len(choices) > limits.CHOICES:
        raise UsageError(f"choices of {name} must be <= {limits.CHOICES} in number, got {len(choices)}")
    return Parameter(name, choices=tuple(_choice(one, part.strip()) for part in choices))


def epsilon(low: float, high: float) -> Parameter:
    """ε over an interval."""
    return Parameter(EPSILON, low, high)


def _choice(one: Hyperparameter, text: str) -> Value:
    if not one.choices:
        return _number(one, text)
    if text not in one.choices:
        raise UsageError(unknown(f"{one.name} (search)", text, one.choices))
    return text


def _number(one: Hyperparameter, text: str) -> float | int:
    try:
        value = float(text) + 0.0  # −0 is 0
    except ValueError:
        raise UsageError(f"search takes {one.name}={FORMS} with numbers, got {brief(text)}") from None
    if not one.fits(value):
        raise UsageError(f"{one.name} must be {_allowed(one)}, got {brief(value)}")
    return int(value) if one.whole else value
