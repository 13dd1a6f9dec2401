"""Text or a YAML value on the command line's way to a field's value; each raises UsageError in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from epsearch.errors import UsageError, unknown
from search_spaces.definition import UnknownDataset, load_definition
from trainers.numeric_path import NumericPath
from trainers.streams import STREAMS

SEARCHABLE_METHODS = ("soft_agem",)
WITH_A_MEMORY_PER_CLASS = ("agem", "a_agem", "soft_agem")
METHODS = ("van", "ewc", "pi", "mas", "rwalk", "er", "gem", "agem", "a_agem", "soft_agem", "prognn")


def whole(name: str, low: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        try:
            number = int(str(value))
        except ValueError:
            raise UsageError(f"{name} must be a whole number >= {low}, got {value!r}") from None
        if number < low:
            raise UsageError(f"{name} must be >= {low}, got {number}")
        return number

    return parse


def or_all(parse: Callable[[Any], int]) -> Callable[[Any], int | None]:
    def parse_or_all(value: Any) -> int | None:
        if str(value).lower() == "all":
            return None
        try:
            return parse(value)
        except UsageError as error:
            raise UsageError(f"{error}; or all" if "whole" in str(error) else str(error)) from None

    return parse_or_all


def one_of(name: str, *allowed: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in allowed:
            raise UsageError(unknown(name, value, allowed))
        return str(value)

    return parse


def dataset(value: Any) -> str:
    try:
        name = load_definition(str(value)).name
    except UnknownDataset as error:
        raise UsageError(str(error)) from None
    if name not in STREAMS:
        raise UsageError(f"dataset {name} is defined, but its stream is not built yet; ready: {', '.join(STREAMS)}")
    return name


def method(value: Any) -> str:
    name = str(value).replace("-", "_")
    if name in OTHER_METHODS:
        raise UsageError(f"method {name!r} has no ε to search; allowed: {', '.join(SEARCHABLE_METHODS)}")
    if name not in SEARCHABLE_METHODS:
        raise UsageError(unknown("method", value, SEARCHABLE_METHODS + OTHER_METHODS))
    return name


def seeds(value: Any) -> tuple[int, ...]:
    """A count (5), a list (0,1,2 or a YAML list) or a range (0..4)."""
    wrong = UsageError(f"seeds must be a count >= 1, a list like 0,1,2 or a range like 0..4, got {value!r}")
    try:
        if isinstance(value, (list, tuple)):
            seeds = tuple(int(seed) for seed in value)
        elif ".." in str(value):
            first, last = str(value).split("..")
            seeds = tuple(range(int(first), int(last) + 1))
        elif "," in str(value):
            seeds = tuple(int(part) for part in str(value).split(",") if part.strip())
        else:
            seeds = tuple(range(int(str(value))))
    except ValueError:
        raise wrong from None
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise wrong
    return seeds


def interval(value: Any) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in (value.replace(",", " ").split() if isinstance(value, str) else value))
    except (TypeError, ValueError):
        raise UsageError(f"interval must be two numbers LOW HIGH, got {value!r}") from None
    if not 0.0 <= low < high <= 1.0:
        raise UsageError(f"interval must satisfy 0 <= low < high <= 1, got {low:g} {high:g}")
    return low, high


def rate(value: Any) -> float:
    try:
        rate = float(value)
    except (TypeError, ValueError):
        rate = float("nan")
    if not 0 < rate < float("inf"):
        raise UsageError(f"lr must be a number > 0, got {value!r}")
    return rate


def numeric_path(value: Any) -> str:
    try:
        return str(NumericPath.parse(str(value)))
    except ValueError as error:
        raise UsageError(str(error)) from None


def name(value: Any) -> str:
    name = str(value)
    if not name or name.startswith(".") or not all(letter.isalnum() or letter in "._-" for letter in name):
        raise UsageError(f"name must consist of letters, digits, '.', '_' and '-', got {value!r}")
    return name


def path(value: Any) -> Path:
    return Path(str(value)).expanduser()


def all_for_none(value: Any) -> Any:
    return "all" if value is None else value
