"""The options of a study, one row each: name, default, what it takes, help. CLI, YAML and service read this table."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsearch.cache import cache_folder
from epsearch.errors import UsageError, unknown
from search_spaces.definition import UnknownDataset, load_definition
from trainers.cohort import SCALES, TRIGGERS
from trainers.numeric_path import PRECISIONS, NumericPath
from trainers.streams import STREAMS

SEARCHABLE_METHODS = ("soft_agem",)
OTHER_METHODS = ("van", "agem", "a_agem")


@dataclass(frozen=True)
class Option:
    """`parse` turns text or a YAML value into the field's value or raises UsageError; `show` is its inverse.

    Options that identify a study can change its figures; the others say how and where it runs.
    """

    name: str
    default: Any
    parse: Callable[[Any], Any]
    help: str
    identifies: bool = True
    show: Callable[[Any], Any] = lambda value: value
    aliases: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


def _whole(name: str, low: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        try:
            number = int(str(value))
        except ValueError:
            raise UsageError(f"{name} must be a whole number >= {low}, got {value!r}") from None
        if number < low:
            raise UsageError(f"{name} must be >= {low}, got {number}")
        return number

    return parse


def _or_all(parse: Callable[[Any], int]) -> Callable[[Any], int | None]:
    def parse_or_all(value: Any) -> int | None:
        if str(value).lower() == "all":
            return None
        try:
            return parse(value)
        except UsageError as error:
            raise UsageError(f"{error}; or all" if "whole" in str(error) else str(error)) from None

    return parse_or_all


def _one_of(name: str, *allowed: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in allowed:
            raise UsageError(unknown(name, value, allowed))
        return str(value)

    return parse


def _dataset(value: Any) -> str:
    try:
        name = load_definition(str(value)).name
    except UnknownDataset as error:
        raise UsageError(str(error)) from None
    if name not in STREAMS:
        raise UsageError(f"dataset {name} is defined, but its stream is not built yet; ready: {', '.join(STREAMS)}")
    return name


def _method(value: Any) -> str:
    name = str(value).replace("-", "_")
    if name in OTHER_METHODS:
        raise UsageError(f"method {name!r} has no ε to search; allowed: {', '.join(SEARCHABLE_METHODS)}")
    if name not in SEARCHABLE_METHODS:
        raise UsageError(unknown("method", value, SEARCHABLE_METHODS + OTHER_METHODS))
    return name


def _seeds(value: Any) -> tuple[int, ...]:
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


def _interval(value: Any) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in (value.replace(",", " ").split() if isinstance(value, str) else value))
    except (TypeError, ValueError):
        raise UsageError(f"interval must be two numbers LOW HIGH, got {value!r}") from None
    if not 0.0 <= low < high <= 1.0:
        raise UsageError(f"interval must satisfy 0 <= low < high <= 1, got {low:g} {high:g}")
    return low, high


def _rate(value: Any) -> float:
    try:
        rate = float(value)
    except (TypeError, ValueError):
        rate = float("nan")
    if not 0 < rate < float("inf"):
        raise UsageError(f"lr must be a number > 0, got {value!r}")
    return rate


def _numeric_path(value: Any) -> str:
    try:
        return str(NumericPath.parse(str(value)))
    except ValueError as error:
        raise UsageError(str(error)) from None


def _name(value: Any) -> str:
    name = str(value)
    if not name or name.startswith(".") or not all(letter.isalnum() or letter in "._-" for letter in name):
        raise UsageError(f"name must consist of letters, digits, '.', '_' and '-', got {value!r}")
    return name


def _path(value: Any) -> Path:
    return Path(str(value)).expanduser()


def _all_for_none(value: Any) -> Any:
    return "all" if value is None else value


OPTIONS: tuple[Option, ...] = (
    Option("dataset", "permuted_digits", _dataset, "Stream of tasks to search on; see `epsearch datasets`."),
    Option("method", "soft_agem", _method, "Method whose ε is searched."),
    Option("repeats", 5, _whole("repeats", 1), "Rounds of interval narrowing."),
    Option("points", None, _whole("points", 3), "Values of ε in each round. [default: the dataset's]"),
    Option("seeds", None, _seeds, "A count, a list 0,1,2 or a range 0..4. [default: 5]", show=list),
    Option("cv_tasks", None, _whole("cv-tasks", 1), "Tasks of the search, the first of the stream. [default: 3]"),
    Option("tasks", None, _whole("tasks", 2), "Tasks of the whole stream; the rest is for evaluation. [default: 20]"),
    Option(
        "memory", None, _whole("memory", 0), "Examples kept per class and task. [default: 25]", aliases=("--mem-size",)
    ),
    Option(
        "memory_batch",
        None,
        _or_all(_whole("memory-batch", 1)),
        "Examples drawn from the memory at every step, or all. [default: the dataset's]",
        show=_all_for_none,
        aliases=("--eps-mem-batch",),
    ),
    Option("batch_size", None, _whole("batch-size", 1), "Examples of one SGD step. [default: 10]"),
    Option("lr", None, _rate, "Learning rate. [default: the dataset's, 0.1]"),
    Option(
        "examples_per_task",
        None,
        _or_all(_whole("examples-per-task", 1)),
        "Training examples of each task, or all. [default: all]",
        show=_all_for_none,
    ),
    Option("interval", None, _interval, "Where ε is searched, LOW HIGH. [default: 0 1]", show=list),
    Option(
        "score_on",
        "cv",
        _one_of("score-on", "cv", "eval"),
        "Stream that scores ε: cv is the protocol; eval reproduces the printed figures and flatters the result.",
    ),
    Option(
        "trigger", "zero", _one_of("trigger", *TRIGGERS), "Project when the cosine is below zero, or below epsilon."
    ),
    Option("scale", "unit", _one_of("scale", *SCALES), "Project unit gradients, or raw ones."),
    Option("satisfied", "raw", _one_of("satisfied", *SCALES), "Step taken when the constraint holds."),
    Option("device", "auto", _one_of("device", "auto", "cpu", "cuda"), "Where members are trained."),
    Option("precision", "float32", _one_of("precision", *PRECISIONS), "Matrix products of a GPU: float32 or tf32."),
    Option(
        "numeric_path",
        None,
        _numeric_path,
        "Arithmetic, like cpu-float32-mkl. [default: the fastest here, measured; a study keeps its own]",
        identifies=False,
    ),
    Option(
        "certify",
        2,
        _whole("certify", 0),
        "Members of the search that are trained once more, alone, to prove that cohorts change nothing.",
        identifies=False,
    ),
    Option(
        "runner",
        "tune",
        _one_of("runner", "tune", "local"),
        "Ray Tune (one machine or a cluster), or threads of this process; the results are the same.",
        identifies=False,
    ),
    Option("workers", None, _whole("workers", 1), "Cohorts trained at a time. [default: every core]", identifies=False),
    Option("address", "local", str, "Ray cluster to join; local starts a private Ray.", identifies=False),
    Option(
        "name", None, _name, "Name of the study. [default: the dataset and a hash of the options]", identifies=False
    ),
    Option("out", Path("runs"), _path, "Folder for the ledger and the reports.", identifies=False, show=str),
    Option("storage", None, str, "SQLAlchemy URL of the ledger. [default: SQLite in --out]", identifies=False),
    Option(
        "data_dir",
        cache_folder(),
        _path,
        "Folder of datasets; what is missing is downloaded there.",
        identifies=False,
        show=str,
    ),
)


def default(name: str) -> Any:
    """The default of an option that has one for every dataset."""
    return next(option.default for option in OPTIONS if option.name == name)
