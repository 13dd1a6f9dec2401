"""Text or a YAML value on the command line's way to a field's value; each raises UsageError in one line."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from epsearch.failures.errors import UsageError, brief, unknown
from epsearch.study import limits
from search_spaces.published.definition import UnknownDataset, load_definition
from trainers.hyperparameters import Hyperparameter, Value
from trainers.methods import METHODS, hyperparameters
from trainers.methods.rules import SAMPLED
from trainers.numeric_path import NumericPath

SHARED = ("batch_size", "memory")  # by the methods of a comparison


def whole(name: str, low: int, high: int = limits.COUNT) -> Callable[[Any], int]:
    """A whole number from `low` to `high`."""

    def parse(value: Any) -> int:
        try:
            number = int(str(value))
        except ValueError:
            raise UsageError(f"{name} must be a whole number >= {low}, got {brief(value)}") from None
        if number < low:
            raise UsageError(f"{name} must be >= {low}, got {brief(number)}")
        if number > high:
            raise UsageError(f"{name} must be <= {high}, got {brief(number)}")
        return number

    return parse


def or_all(parse: Callable[[Any], int]) -> Callable[[Any], int | None]:
    """What `parse` takes, or `all`, which is None."""

    def parse_or_all(value: Any) -> int | None:
        if isinstance(value, str) and value.lower() == "all":
            return None
        try:
            return parse(value)
        except UsageError as error:
            raise UsageError(f"{error}; or all" if "whole" in str(error) else str(error)) from None

    return parse_or_all


def one_of(name: str, *allowed: str) -> Callable[[Any], str]:
    """One of some words, as it is written."""

    def parse(value: Any) -> str:
        if value not in allowed:
            raise UsageError(unknown(name, value, allowed))
        return str(value)

    return parse


def dataset(value: Any) -> str:
    """A dataset's name, folder:/path (made absolute) or module:factory."""
    kind, colon, rest = str(value).partition(":")
    if colon and not (kind and rest):
        raise UsageError(f"dataset must be a name, folder:PATH or module:factory, got {value!r}")
    if kind == "folder":
        return f"folder:{path('dataset')(rest).absolute()}"
    try:
        return load_definition(str(value)).name
    except UnknownDataset as error:
        raise UsageError(str(error)) from None


def pretrained(value: Any) -> str | None:
    """imagenet, none, or a file's path (made absolute)."""
    text = str(value)
    if text.lower() in ("none", "imagenet"):
        return None if text.lower() == "none" else "imagenet"
    return str(path("pretrained")(text).absolute())


def method(value: Any) -> str:
    """One method."""
    return one_of("method", *METHODS)(str(value).replace("-", "_"))


def methods(value: Any) -> tuple[str, ...]:
    """Some methods, each once: a list, names with commas between, or all."""
    if value == "all":
        return tuple(METHODS)
    names = [str(part).strip().replace("-", "_") for part in listed(value)]
    for written in names:
        if written not in METHODS:
            raise UsageError(unknown("method", written, METHODS))
    if not names or len(set(names)) < len(names):
        raise UsageError(f"methods must be different names with commas between, or all; got {value!r}")
    return tuple(names)


def of_sampled_memory() -> tuple[str, ...]:
    """Methods that draw from a memory of so many examples per class and task: those of the paper's memory study."""
    return tuple(name for name, one in METHODS.items() if one.memory == SAMPLED)


def listed(value: Any) -> list[Any]:
    """The parts of a text with commas, of a YAML list, or of a single value."""
    if isinstance(value, str):
        return value.split(",")
    return list(value) if isinstance(value, (list, tuple)) else [value]


def sizes(value: Any) -> tuple[int, ...]:
    """Memory sizes, ascending: 25,50,100 or a list."""
    found = [whole("sizes", 1)(part) for part in listed(value)]
    if not found or len(set(found)) < len(found):
        raise UsageError(f"sizes must be different numbers with commas between, like 25,50,100; got {brief(value)}")
    return tuple(sorted(found))


def number(name: str, allowed: str, fits: Callable[[float], bool]) -> Callable[[Any], float]:
    """A number that fits and that float32 has; `allowed` says in words which do."""

    def parse(value: Any) -> float:
        try:
            found = float(value) + 0.0  # −0 is 0
        except (TypeError, ValueError, OverflowError):
            found = float("nan")
        if found > limits.FLOAT and fits(found):
            raise UsageError(f"{name} must be a number <= {limits.FLOAT:g}, got {brief(value)}")
        if not (math.isfinite(found) and fits(found)):
            raise UsageError(f"{name} must be a number {allowed}, got {brief(value)}")
        return found

    return parse


def fraction(name: str) -> Callable[[Any], float]:
    """A number in [0, 1]."""
    return number(name, "in [0, 1]", lambda value: 0 <= value <= 1)


def positive(name: str) -> Callable[[Any], float]:
    """A number > 0."""
    return number(name, "> 0", lambda value: value > 0)


def at_least_zero(name: str) -> Callable[[Any], float]:
    """A number >= 0."""
    return number(name, ">= 0", lambda value: value >= 0)


def hyperparameter(one: Hyperparameter, name: str | None = None) -> Callable[[Any], Any]:
    """A value of what is declared; name: as messages call it."""
    written = name or one.name.replace("_", "-")
    if one.choices:
        return one_of(written, *one.choices)
    if one.whole:
        parse = whole(written, int(one.low), int(one.high))
        return or_all(parse) if one.all_for_none else parse
    return number(
        written,
        one.allowed,
        lambda value: (
            (value >= one.low if one.closed else value > one.low) and (value <= one.high or one.high == limits.FLOAT)
        ),
    )


def settings(value: Any) -> tuple[tuple[str, str, Value], ...]:
    """(method, hyperparameter, value) from ewc.lr=0.01,ewc.strength=100 or a YAML mapping of the same."""
    pairs = list(value.items()) if isinstance(value, dict) else [part.split("=") for part in str(value).split(",")]
    parsed: dict[tuple[str, str], Value] = {}
    for pair in pairs:
        target, dot, field = str(pair[0]).strip().rpartition(".")
        if len(pair) != 2 or not dot:
            raise UsageError(
                "settings takes METHOD.HYPERPARAMETER with a value, like ewc.strength=100; "
                f"got {'='.join(map(str, pair))!r}"
            )
        (name,), field = methods(target), field.replace("-", "_")
        if field not in (allowed := settable(name)):
            raise UsageError(f"method {name!r}: {unknown('hyperparameter', field, allowed)} (settings)")
        if (name, field) in parsed:
            raise UsageError(f"settings name {name}.{field} twice: {value!r}")
        parsed[name, field] = hyperparameter(hyperparameters()[field], f"{name}.{field}")(pair[1])
    return tuple((name, field, one) for (name, field), one in parsed.items())


def settable(method: str) -> tuple[str, ...]:
    """What can be set for a method alone: all but what the steps and the memories of all methods share."""
    return tuple(one.name for one in METHODS[method].hyperparameters if one.name not in SHARED)


def settings_shown(value: tuple[tuple[str, str, Value], ...]) -> dict[str, Value]:
    """The inverse of `settings`."""
    return {f"{name}.{field}": number for name, field, number in value}


def seeds(value: Any, name: str = "seeds") -> tuple[int, ...]:
    """A count (5), a list (0,1,2 or a YAML list) or a range (0..4)."""
    wrong = UsageError(f"{name} must be a count >= 1, a list like 0,1,2 or a range like 0..4, got {brief(value)}")
    try:
        found = _seeds(value)
    except ValueError:
        raise wrong from None
    if (found.stop - found.start if isinstance(found, range) else len(found)) > limits.SEEDS:
        raise UsageError(f"{name} must be <= {limits.SEEDS} in number, got {brief(value)}")
    if not found or min(found) < 0 or len(set(found)) < len(found):
        raise wrong
    if max(found) > limits.LARGEST_SEED:
        raise UsageError(f"{name} must be numbers <= {limits.LARGEST_SEED}, got {brief(value)}")
    return tuple(found)


def _seeds(value: Any) -> range | list[int]:
    """As written; a range is not made yet. Raises ValueError."""
    if isinstance(value, (list, tuple)):
        return [int(str(seed)) for seed in value]
    text = str(value)
    if ".." in text:
        first, last = text.split("..")
        return range(int(first), int(last) + 1)
    return [int(part) for part in text.split(",") if part.strip()] if "," in text else range(int(text))


def interval(value: Any) -> tuple[float, float]:
    """Two numbers, 0 <= low < high <= 1: a text or a YAML list."""
    try:
        parts = value.replace(",", " ").split() if isinstance(value, str) else value
        low, high = (float(part) + 0.0 for part in parts)  # −0 is 0
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"interval must be two numbers LOW HIGH, got {brief(value)}") from None
    if not 0.0 <= low < high <= 1.0:
        raise UsageError(f"interval must satisfy 0 <= low < high <= 1, got {low:g} {high:g}")
    return low, high


def yes_or_no(name: str) -> Callable[[Any], bool]:
    """True or false of a YAML file, or a flag of the command line."""

    def parse(value: Any) -> bool:
        if str(value).lower() not in ("true", "false"):
            raise UsageError(f"{name} must be true or false, got {value!r}")
        return str(value).lower() == "true"

    return parse


def numeric_path(value: Any) -> str:
    """A numeric path's name, as the ledger writes it."""
    try:
        return str(NumericPath.parse(str(value)))
    except ValueError as error:
        raise UsageError(str(error)) from None


def name(value: Any) -> str:
    """A study's name, which must do as the name of a folder."""
    name = str(value)
    if not name or name.startswith(".") or not all(letter.isalnum() or letter in "._-" for letter in name):
        raise UsageError(f"name must consist of letters, digits, '.', '_' and '-', got {value!r}")
    return name


def path(name: str) -> Callable[[Any], Path]:
    """A file or folder; ~ and ~user are homes where there are any; a folder of such a name is ./~."""

    def parse(value: Any) -> Path:
        text = str(value)
        if "\0" in text:
            raise UsageError(f"{name} must be a path, got {text!r}")
        return Path(os.path.expanduser(text))

    return parse


def path_shown(value: Path) -> str:
    """The inverse of `path`."""
    return f"./{value}" if str(value).startswith("~") else str(value)


def none_for_none(value: Any) -> Any:
    """The inverse of a parser that takes `none` for None."""
    return "none" if value is None else value


def all_for_none(value: Any) -> Any:
    """The inverse of a parser that takes `all` for None."""
    return "all" if value is None else value


def list_or_none(value: Any) -> Any:
    """A tuple as YAML has it; None stays None."""
    return None if value is None else list(value)
