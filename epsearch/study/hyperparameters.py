"""The hyperparameters that a search may name, which values they take, and how users write a space of them."""

import math
import re
from dataclasses import replace
from typing import Any

from epsearch.failures.errors import UsageError, brief, refused, unknown
from epsearch.study import limits
from epsearch.study.parsers import hyperparameter, listed, one_of, word
from results.points import COLUMNS
from search_spaces.space import Parameter, Space, Value
from trainers.hyperparameters import Hyperparameter, anything
from trainers.hyperparameters import Value as Given
from trainers.methods import hyperparameters, own_hyperparameters
from trainers.methods import method as declaration

EPSILON = "epsilon"
FORMS = "LOW..HIGH, log:LOW..HIGH or A,B,…"
MOST = 32  # hyperparameters that a study gives values to: far more than anybody searches


def searched(name: str, method: str | None = None) -> Hyperparameter:
    """The declaration as a search may try it: `all` is no number, and what switches a method off is no value of it.

    method: whose own hyperparameters are known, too, where it is not ours. Raises UsageError, with the nearest name,
    where no method has such a hyperparameter.
    """
    if method is not None and declaration(method).takes_any:
        return anything(identifier(name))
    ours = {} if method is not None and declaration(method).foreign else hyperparameters()
    known = ours | ({} if method is None else own_hyperparameters(method))
    one = known[one_of(name, "hyperparameter", known)]
    return replace(one, low=one.low if one.search_low is None else one.search_low, all_for_none=False)


def _allowed(one: Hyperparameter) -> str:
    """In words.

    >>> _allowed(searched("epsilon")), _allowed(searched("memory")), _allowed(searched("lr"))
    ('in [0, 1]', 'whole, >= 1 and <= 1000000000', '> 0 and <= 1e+30')
    """
    return one.allowed if one.high <= 1 else f"{'whole, ' if one.whole else ''}{one.allowed} and <= {one.high:.10g}"


@refused(ValueError)
def space(value: Any, name: str, method: str | None = None) -> Space:
    """What is searched, from `lr=log:0.003..0.3 memory=10,25` or a list of such.

    name: as messages call the option; method: the study's. Raises UsageError for a part that is not NAME=VALUES, a
    hyperparameter that is unknown or stands there twice, and a value that it cannot have.

    >>> str(space("epsilon=0..0.5", "search").parameters[0])
    'epsilon=0..0.5'
    """
    parts = listed(value, separator=None)
    if len(parts) > MOST:
        raise UsageError(f"{name} takes at most {MOST} hyperparameters once, got {len(parts)} parts")
    return Space(tuple(_parameter(str(part), method) for part in parts))


def space_shown(value: Space) -> list[str]:
    """The inverse of `space`."""
    return [str(parameter) for parameter in value.parameters]


@refused(ValueError)
def own_values(value: Any, name: str, method: str | None = None) -> tuple[tuple[str, Given], ...]:
    """Values of a method's own hyperparameters, from `pull=0.5 when=odd` or a YAML mapping of the same.

    name: as messages call the option; method: the study's. Raises UsageError for what is not NAME=VALUE, unknown, given
    twice or cannot be.
    """
    pairs = value.items() if isinstance(value, dict) else [str(one).split("=", 1) for one in listed(value, None)]
    own, found = {} if method is None else own_hyperparameters(method), dict[str, Given]()
    declared = None if method is None else declaration(method)
    for pair in pairs:
        if len(pair) != 2:
            raise UsageError(f"{name} takes NAME=VALUE, got {brief('='.join(pair))}")
        one = str(pair[0]).strip().replace("-", "_")
        if declared is not None and declared.takes_any:
            own[one] = anything(identifier(one))
        if one not in own and one in hyperparameters() and not (declared and declared.foreign):
            raise UsageError(f"{name} is for what a method of others has alone; {one} is --{one.replace('_', '-')}")
        if one not in own:
            none = f"{method} has no hyperparameter that is no option"
            raise UsageError(f"{name}: {unknown('hyperparameter', one, own) if own else none}, got {one}")
        if one in found:
            raise UsageError(f"{name} gives {one} twice")
        found[one] = (
            any_value(str(pair[1])) if declared and declared.takes_any else hyperparameter(pair[1], one, own[one])
        )
    return tuple(found.items())


def identifier(name: str) -> str:
    """A name that Python code could use. Raises UsageError."""
    if not name.isidentifier():
        raise UsageError(f"the name of a hyperparameter must be letters, digits and _, got {brief(name)}")
    check_column(name)
    return name


def any_value(text: str) -> Value:
    """A whole number, another finite number, or a word.

    >>> any_value("10"), any_value("1e-3"), any_value("adam"), any_value("nan")
    (10, 0.001, 'adam', 'nan')
    """
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if math.isfinite(number):
            return number + 0
    return text


def check_column(name: str) -> None:
    """Raises UsageError for a name that tables have for something else."""
    if name in COLUMNS:
        raise UsageError(f"{name!r} is a column of every table of runs; give the hyperparameter another name")


def own_shown(value: tuple[tuple[str, Given], ...]) -> dict[str, Given]:
    """The inverse of `own_values`."""
    return dict(value)


def _parameter(text: str, method: str | None) -> Parameter:
    """One part of a space, NAME=VALUES. Raises UsageError; ValueError where the ends or choices do not make a space."""
    name, _, values = text.partition("=")
    name = name.strip().replace("-", "_")
    if not values:
        raise UsageError(f"search takes NAME={FORMS}, got {brief(text)}")
    one = searched(name, method)
    # Of words there is no interval.
    if (ends := re.fullmatch(r"(log:)?(.+)\.\.(.+)", values)) and not one.choices:
        low, high = (_value(one, part) for part in ends.groups()[1:])
        return Parameter(name, float(low), float(high), log=bool(ends[1]), whole=one.whole)
    choices = [part.strip() for part in values.split(",")]
    if len(choices) > limits.CHOICES:
        raise UsageError(f"choices of {name} must be <= {limits.CHOICES} in number, got {len(choices)}")
    if method is not None and declaration(method).takes_any:
        return Parameter(name, choices=tuple(map(any_value, choices)))
    return Parameter(name, choices=tuple(_value(one, part) for part in choices))


def _value(one: Hyperparameter, text: str) -> Value:
    """One value of a hyperparameter that a search may try. Raises UsageError."""
    if one.choices:
        return word(text, f"{one.name} (search)", one)
    try:
        value = float(text) + 0.0  # −0 is 0
    except ValueError:
        raise UsageError(f"search takes {one.name}={FORMS} with numbers, got {brief(text)}") from None
    if not one.fits(value):
        raise UsageError(f"{one.name} must be {_allowed(one)}, got {brief(value)}")
    return int(value) if one.whole else value
