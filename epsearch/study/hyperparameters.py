"""Parsers of search spaces and of hyperparameters by name."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from epsearch.failures.errors import UsageError, as_usage_error, brief
from epsearch.study import limits
from epsearch.study.parsers import digits, hyperparameter, split_list, word
from results.points import COLUMNS
from search_spaces.space import Parameter, Space, Value
from trainers.hyperparameters import Hyperparameter, anything
from trainers.hyperparameters import Value as Given
from trainers.methods import hyperparameters, own_hyperparameters
from trainers.methods import method as declaration
from trainers.spelling import unknown

EPSILON = "epsilon"
FORMS = "LOW..HIGH, log:LOW..HIGH or A,B,…"
# As in the core schema of YAML 1.2 and in Python; for hyperparameters without declared words.
TRUTHS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "None"), None),
}
MOST = 32  # hyperparameters in an option


def search_declaration(name: str, method: str | None = None) -> Hyperparameter:
    """Returns the declaration for a search: without `all`, and without values that switch a method off.

    method: a plug-in, whose own hyperparameters are known, too. Raises UsageError, with the nearest name, for an
    unknown hyperparameter.
    """
    if method is not None and declaration(method).takes_any:
        return anything(identifier(name))
    declarations = hyperparameters() if method is None else _of_method(method)
    if name not in declarations:
        of_method = "" if method is None else f"method {method!r}: "
        raise UsageError(of_method + unknown("hyperparameter", name, declarations))
    declared = declarations[name]
    return replace(declared, low=declared.smallest_searched, all_for_none=False)


def _of_method(method: str) -> dict[str, Hyperparameter]:
    """Returns a method's hyperparameters by name: first those that it alone has."""
    own = own_hyperparameters(method)
    return own | {declared.name: declared for declared in declaration(method).hyperparameters}


def _range_text(declared: Hyperparameter) -> str:
    """Returns the allowed values in words.

    >>> [_range_text(search_declaration(name)) for name in ("epsilon", "memory", "lr")]
    ['in [0, 1]', 'whole, >= 1 and <= 1000000000', '> 0 and <= 1e+30']
    """
    return (
        declared.allowed
        if declared.high <= 1
        else f"{'whole, ' if declared.whole else ''}{declared.allowed} and <= {declared.high:.10g}"
    )


@as_usage_error(ValueError)
def space(value: Any, name: str, method: str | None = None) -> Space:
    """Returns a space from `lr=log:0.003..0.3 memory=10,25`, a list of parts, or a mapping.

    name: of the option, for messages; method: of the study. Raises UsageError for a part that is not NAME=VALUES, an
    unknown or repeated hyperparameter, and an invalid value.

    >>> str(space("epsilon=0..0.5", "search").parameters[0])
    'epsilon=0..0.5'
    """
    parts = [{key: value[key]} for key in value] if isinstance(value, dict) else split_list(value, separator=None)
    if len(parts) > MOST:
        raise UsageError(f"{name} takes at most {MOST} hyperparameters once, got {len(parts)} parts")
    return Space(tuple(_parameter(part, method) for part in parts))


def format_space(value: Space) -> list[str | dict[str, list[Value]]]:
    """Returns a space as `space` reads it: texts, or mappings for choices with truth values."""
    return [
        {parameter.name: list(parameter.choices)}
        if any(isinstance(choice, bool) for choice in parameter.choices)
        else str(parameter)
        for parameter in value.parameters
    ]


def stored_space(parts: Iterable[Any]) -> list[Any]:
    """Returns a stored space for `space`: in old ledgers, True was a word."""
    read = []
    for part in parts:
        name, _, values = part.partition("=") if isinstance(part, str) else ("", "", "")
        choices = values.split(",")
        read.append({name: choices} if TRUTHS.keys() & choices else part)
    return read


@as_usage_error(ValueError)
def own_values(value: Any, name: str, method: str | None = None) -> tuple[tuple[str, Given], ...]:
    """Returns values of a method's own hyperparameters, from `pull=0.5 when=odd` or a YAML mapping.

    name: of the option, for messages; method: of the study. Raises UsageError for a part that is not NAME=VALUE, an
    unknown or repeated name, and an invalid value.
    """
    pairs = (
        list(value.items())
        if isinstance(value, dict)
        else [str(part).split("=", 1) for part in split_list(value, None)]
    )
    declarations, values = {} if method is None else own_hyperparameters(method), dict[str, Given]()
    declared = None if method is None else declaration(method)
    for pair in pairs:
        if len(pair) != 2:
            raise UsageError(f"{name} takes NAME=VALUE, got {brief('='.join(pair))}")
        key = str(pair[0]).strip().replace("-", "_")
        if declared is not None and declared.takes_any:
            declarations[key] = anything(identifier(key))
        if key not in declarations and key in hyperparameters() and not (declared and declared.foreign):
            raise UsageError(f"{name} is for hyperparameters of a plug-in method; {key} is --{key.replace('_', '-')}")
        if key not in declarations:
            none = f"{method} has no hyperparameter that is no option"
            raise UsageError(
                f"{name}: {unknown('hyperparameter', key, declarations) if declarations else none}, got {key}"
            )
        if key in values:
            raise UsageError(f"{name} gives {key} twice")
        if declared and declared.takes_any:
            # A text in a mapping has its type from YAML, JSON or Python: only numbers are parsed.
            values[key] = any_value(pair[1], key, truths=not isinstance(value, dict))
        else:
            values[key] = hyperparameter(pair[1], key, declarations[key])
    return tuple(values.items())


def identifier(name: str) -> str:
    """Returns a name that is a Python identifier. Raises UsageError."""
    if not name.isidentifier():
        raise UsageError(f"the name of a hyperparameter must be letters, digits and _, got {brief(name)}")
    check_column(name)
    return name


def any_value(value: Any, name: str, truths: bool = True) -> Given:
    """Returns a value of an undeclared hyperparameter: a finite number, True, False, None, or a word.

    truths: whether a text can be one of TRUTHS. Raises UsageError for a list, a mapping, and a text with an empty part.

    >>> [any_value(text, "x") for text in ("10", "1e-3", "adam", "nan", "False", "null", True)]
    [10, 0.001, 'adam', 'nan', False, None, True]
    """
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, (str, int, float)):
        raise UsageError(f"{name} must be a number, a word, true, false or null, got {brief(value)}")
    text = str(value).strip()
    if truths and text in TRUTHS:
        return TRUTHS[text]
    if not all(part.strip() for part in text.split(",")):
        raise UsageError(f"{name} must be a number or a word, got {brief(value)}, which has an empty part")
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if math.isfinite(number):
            return number + 0
    return text


def check_column(name: str) -> None:
    """Raises UsageError for a name that is a column of tables."""
    from results.metrics import METRICS, mean_and_std  # late: most studies need no check

    if name in COLUMNS or any(name in (metric, *mean_and_std(metric).values()) for metric in METRICS):
        raise UsageError(f"{name!r} is a column of every table of runs; give the hyperparameter another name")


def format_values(value: tuple[tuple[str, Given], ...]) -> dict[str, Given]:
    """Returns values as `own_values` reads them."""
    return dict(value)


def _parameter(part: Any, method: str | None) -> Parameter:
    """Returns a parameter from NAME=VALUES, or from a mapping of a name to a text or a list of choices.

    Raises UsageError; ValueError for invalid ends or choices.
    """
    pairs = list(part.items()) if isinstance(part, dict) else [str(part).partition("=")[::2]]
    name, values = pairs[0] if len(pairs) == 1 else ("", "")
    name = str(name).strip().replace("-", "_")
    if values is None or not (values or isinstance(values, (bool, int, float))):
        raise UsageError(f"search takes NAME={FORMS}, got {brief(part)}")
    declared = search_declaration(name, method)
    if isinstance(values, list):
        return _choices(declared, values, method, truths=False)
    values = str(values)
    # Words have no interval.
    if (ends := re.fullmatch(r"(log:)?(.+)\.\.(.+)", values)) and not declared.choices:
        low, high = (_value(declared, part) for part in ends.groups()[1:])
        return Parameter(name, float(low), float(high), log=bool(ends[1]), whole=declared.whole)
    return _choices(declared, values.split(","), method, truths=True)


def _choices(declared: Hyperparameter, values: Sequence[Any], method: str | None, truths: bool) -> Parameter:
    """Returns a parameter of choices; truths: see `any_value`. Raises UsageError; ValueError for equal choices."""
    name, choices = declared.name, [part.strip() if isinstance(part, str) else part for part in values]
    if len(choices) > limits.CHOICES:
        raise UsageError(f"choices of {name} must be <= {limits.CHOICES} in number, got {len(choices)}")
    if "" in choices:
        raise UsageError(f"choices of {name} must be values with commas between, got {brief(values)}; one is empty")
    if method is not None and declaration(method).takes_any:
        tried = [any_value(choice, name, truths) for choice in choices]
        if None in tried:
            raise UsageError(f"search cannot try null as {name}, which means not used; give a word for it, like off")
        return Parameter(name, choices=tuple(choice for choice in tried if choice is not None))
    return Parameter(name, choices=tuple(_value(declared, choice) for choice in choices))


def _value(declared: Hyperparameter, text: Any) -> Value:
    """Returns a value of a searched hyperparameter. Raises UsageError."""
    if declared.choices:
        return word(text, f"{declared.name} (search)", declared)
    try:
        value = float(digits(text)) + 0.0  # −0 is 0
    except ValueError:
        raise UsageError(f"search takes {declared.name}={FORMS} with numbers, got {brief(text)}") from None
    if not declared.fits(value):
        raise UsageError(f"{declared.name} must be {_range_text(declared)}, got {brief(value)}")
    return int(value) if declared.whole else value
