"""Parsers of option values, from text or YAML.

Each takes a value and a name for messages, and raises UsageError, one line.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from epsearch.failures.errors import UsageError, as_usage_error, brief
from epsearch.study import limits
from results.claims import Claim
from results.ledger.url import LedgerUrl
from trainers.hyperparameters import Hyperparameter, Value
from trainers.numeric_path import NumericPath
from trainers.spelling import unknown

AUTO = "auto"
"""Word for a number that is computed, as of steps between tests inside tasks."""
LARGEST_SHARE = 0.5  # of a task's examples that may be held out
UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
BYTES = {name: 1024**power for power, name in enumerate(SIZES)} | {"kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}
SIZE = re.compile(rf"([0-9]{{1,15}}(?:[.][0-9]+)?) ?({'|'.join(BYTES)})")
SLURM = "slurm"
"""The time that Slurm leaves a job."""
DURATION = re.compile("".join(rf"(?:(?P<{unit}>[0-9]{{1,9}}){unit})?" for unit in UNITS))


def plain(value: Any) -> Any:
    """Returns a value with Python's types for NumPy's, and lists for arrays, ranges and tuples.

    A range longer than any option allows remains a range.

    >>> plain({"sizes": range(2, 5), "flags": (True, None)})
    {'sizes': [2, 3, 4], 'flags': [True, None]}
    """
    if callable(getattr(value, "tolist", None)):
        value = value.tolist()
    if isinstance(value, range) and not value[limits.SEEDS :]:
        return list(value)
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return {name: plain(part) for name, part in value.items()} if isinstance(value, dict) else value


def digits(value: Any) -> str:
    """Returns the text of a number: int(2.5) would be 2, int(True) 1. Raises ValueError for Python's 1_000.

    >>> digits(2.5), digits("1e-3")
    ('2.5', '1e-3')
    """
    text = str(value)
    if "_" in text:
        raise ValueError(text)
    return text


def whole(value: Any, name: str, low: int, high: int = limits.COUNT, hint: str = "") -> int:
    """Returns a whole number from `low` to `high`, both allowed.

    hint: other allowed values, for the message.
    """
    try:
        number = int(digits(value))
    except ValueError:
        raise UsageError(f"{name} must be a whole number >= {low}, got {brief(value)}{hint}") from None
    if not low <= number <= high:
        bound = f">= {low}" if number < low else f"<= {high}"
        raise UsageError(f"{name} must be {bound}, got {brief(number)}")
    return number


def whole_or_all(value: Any, name: str, low: int, high: int = limits.COUNT, none: str = "all") -> int | None:
    """Returns a whole number, or None for `all`, or another word for it."""
    return None if str(value).lower() == none else whole(value, name, low, high, f"; or {none}")


def distance(value: Any, name: str) -> int | str | None:
    """Returns a number of steps, AUTO, or None for none.

    >>> distance("25", "measure-every"), distance("auto", "measure-every"), distance("none", "measure-every")
    (25, 'auto', None)
    """
    if str(value).lower() == AUTO:
        return AUTO
    return None if str(value).lower() == "none" else whole(value, name, 1, hint=f"; or {AUTO}, none")


def one_of(value: Any, name: str, allowed: Collection[str]) -> str:
    """Returns one of some words; the message for any other names the nearest."""
    if value not in tuple(allowed):  # a register is a dict, which could not be asked for a YAML list
        raise UsageError(unknown(name, value, allowed))
    return str(value)


def some_of(value: Any, name: str, allowed: Collection[str]) -> tuple[str, ...]:
    """Returns some of these words, each once, separated by commas.

    >>> some_of("pdf, svg", "figures", ("svg", "pdf"))
    ('pdf', 'svg')
    """
    return tuple(dict.fromkeys(one_of(str(part), name, allowed) for part in split_list(value)))


def words(text: str) -> tuple[str, ...]:
    """Returns the words of a text with commas between, each once.

    >>> words("F_T, A_T,F_T,")
    ('F_T', 'A_T')
    """
    return tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


def parse_weights(value: Any, name: str) -> str | None:
    """Returns weights: imagenet, None for none, or a path, made absolute."""
    weights = {"none": None, "imagenet": "imagenet"}
    text = str(value)
    return weights[text.lower()] if text.lower() in weights else str(path(text, name).absolute())


def duration(value: Any, name: str) -> float:
    """Returns seconds of a time like 90s, 30m, 2h, 1d or 1h30m."""
    match = DURATION.fullmatch(str(value).strip())
    seconds = sum(int(match[unit] or 0) * size for unit, size in UNITS.items()) if match else 0
    if not 0 < seconds <= limits.SECONDS:
        longest = f"{limits.SECONDS // UNITS['d']}d"
        raise UsageError(f"{name} must be a time > 0 and <= {longest} like 90s, 30m or 2h, got {brief(value)}")
    return float(seconds)


def time_left(value: Any, name: str) -> str:
    """Returns a time like 2h, `slurm`, or `slurm-2m`, as it is written, to be read when the training begins.

    Raises UsageError.

    >>> time_left("slurm-2m", "time-left")
    'slurm-2m'
    """
    text = str(value).strip()
    if text != SLURM:
        try:
            duration(text.removeprefix(f"{SLURM}-"), name)
        except UsageError:
            raise UsageError(f"{name} must be a time like 2h, slurm, or slurm-2m, got {brief(value)}") from None
    return text


def size(value: Any, name: str, least: str = "1MiB", example: str = "500MiB or 4GiB") -> int:
    """Returns bytes of a size like 500MiB or 2MB; least: the smallest one.

    >>> size("2kB", "memory-bytes", "1KB"), size("2 KB", "memory-bytes", "1KB"), size("2KiB", "memory-bytes", "1KB")
    (2000, 2000, 2048)
    """
    match, smallest = (SIZE.fullmatch(str(text).strip()) for text in (value, least))
    assert smallest
    count, low = (int(float(parts[1]) * BYTES[parts[2]]) if parts else 0 for parts in (match, smallest))
    if not low <= count <= 2**60:
        raise UsageError(f"{name} must be a size >= {least} like {example}, got {brief(value)}")
    return count


def claim(value: Any, name: str) -> str:
    """Returns a claim like soft_agem > agem + 1, with single spaces."""
    with as_usage_error(ValueError):
        return str(Claim.of(str(value)))


def format_size(count: int) -> str:
    """Returns a size as `size` reads it.

    >>> format_size(size("4GiB", "memory-limit")), format_size(size("1.5MiB", "memory-limit"))
    ('4GiB', '1536KiB')
    """
    power = max(power for power in range(len(SIZES)) if count % 1024**power == 0)
    return f"{count // 1024**power}{SIZES[power]}"


def format_duration(seconds: float) -> str:
    """Returns a time as `duration` reads it.

    >>> format_duration(5400), duration("1h30m", "time-budget")
    ('1h30m', 5400.0)
    """
    left, parts = int(seconds), []
    for unit, size in UNITS.items():
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return "".join(parts)


def split_list(value: Any, separator: str | None = ",") -> list[Any]:
    """Returns the parts of a text, a YAML list or a single value; separator: None for white space.

    Texts among those that a comma separates have no blanks around them; other parts may be values, and stay as given.

    >>> split_list("first-2, default"), split_list([1, " er"]), split_list(7)
    (['first-2', 'default'], [1, 'er'], [7])
    """
    if isinstance(value, str):
        return [part.strip() for part in value.split(separator)]
    parts = list(value) if isinstance(value, (list, tuple)) else [value]
    return [part.strip() if separator and isinstance(part, str) else part for part in parts]


def sizes(value: Any, name: str) -> tuple[int, ...]:
    """Returns memory sizes, ascending, from 25,50,100 or a list."""
    numbers = [whole(part, name, 1) for part in split_list(value)]
    if not numbers or len(set(numbers)) < len(numbers):
        raise UsageError(f"{name} must be different numbers with commas between, like 25,50,100; got {brief(value)}")
    return tuple(sorted(numbers))


def widths(value: Any, name: str) -> tuple[int, ...]:
    """Returns the units of each hidden layer, from 256,256 or a list.

    >>> widths("400, 300", "hidden")
    (400, 300)
    """
    numbers = tuple(whole(part, name, 1, limits.WIDTH) for part in split_list(value))
    if not 1 <= len(numbers) <= limits.LAYERS:
        raise UsageError(f"{name} must be 1 to {limits.LAYERS} numbers with commas between, got {brief(value)}")
    return numbers


def hyperparameter(value: Any, name: str, declared: Hyperparameter) -> Value:
    """Returns a value of a declared hyperparameter: a word, a whole number, a float32, or None for `all` or `none`."""
    if declared.choices:
        return word(value, name, declared)
    if declared.whole:
        low, high = int(declared.low), int(declared.high)
        return (
            whole_or_all(value, name, low, high, declared.none)
            if declared.all_for_none
            else whole(value, name, low, high)
        )
    try:
        number = float(digits(value)) + 0.0  # −0 is 0
    except ValueError:
        number = math.nan
    if not declared.fits(number):
        # The message names the bound of float32 only where it is the violated one.
        allowed = f"<= {limits.FLOAT:g}" if number > declared.high == limits.FLOAT else declared.allowed
        raise UsageError(f"{name} must be a number {allowed}, got {brief(value)}")
    return number


def word(value: Any, name: str, declared: Hyperparameter) -> str:
    """Returns one of its words, or module:attribute of a network. Raises UsageError."""
    return str(value) if declared.fits(value) else one_of(value, name, declared.choices)


def seeds(value: Any, name: str) -> tuple[int, ...]:
    """Returns different seeds from a count (5), a list (0,1,2 or YAML) or a range (0..4)."""
    wrong = UsageError(f"{name} must be a count >= 1, a list like 0,1,2 or a range like 0..4, got {brief(value)}")
    try:
        numbers = _seeds(value)
    except ValueError:
        raise wrong from None
    if numbers[limits.SEEDS :]:  # `len` of a range beyond 64 bits is an error
        raise UsageError(f"{name} must be <= {limits.SEEDS} in number, got {brief(value)}")
    if not numbers or min(numbers) < 0:
        raise wrong
    if repeated := [seed for seed, times in Counter(numbers).items() if times > 1]:
        raise UsageError(f"{name} must differ from each other, got {repeated[0]} more than once")
    if max(numbers) > limits.LARGEST_SEED:
        raise UsageError(f"{name} must be numbers <= {limits.LARGEST_SEED}, got {brief(value)}")
    return tuple(numbers)


def task_order(value: Any, name: str) -> tuple[int, ...] | None:
    """Returns the numbers of tasks in an order, each once, from 3,0,1,2 or a list; None for none."""
    if value is None or (isinstance(value, str) and value.strip() == "none"):
        return None
    wrong = UsageError(f"{name} must list every task once, like 3,0,1,2, got {brief(value)}")
    if not isinstance(value, (str, list, tuple)):
        raise wrong
    try:
        tasks = tuple(int(digits(number)) for number in (value.split(",") if isinstance(value, str) else value))
    except ValueError:
        raise wrong from None
    if sorted(tasks) != list(range(len(tasks))):
        raise wrong
    return tasks


def _seeds(value: Any) -> range | list[int]:
    """Returns the seeds as written, ranges unexpanded. Raises ValueError."""
    if isinstance(value, range):
        return value
    if isinstance(value, (list, tuple)):
        return [int(digits(seed)) for seed in value]
    text = digits(value)
    if ".." in text:
        first, last = text.split("..")
        return range(int(first), int(last) + 1)
    parts = text.split(",")
    # A comma at the end makes a list of a single seed.
    return [int(part) for part in parts[: -1 if not parts[-1].strip() else None]] if parts[1:] else range(int(text))


def interval(value: Any, name: str) -> tuple[float, float]:
    """Returns two numbers, 0 <= low < high <= 1, from a text or a YAML list."""
    try:
        parts = value.replace(",", " ").split() if isinstance(value, str) else value
        low, high = (float(part) + 0.0 for part in map(digits, parts))  # −0 is 0
    except (TypeError, ValueError):
        text = " ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
        raise UsageError(f"{name} must be two numbers LOW HIGH, got {brief(text)}") from None
    if not 0.0 <= low < high <= 1.0:
        raise UsageError(f"{name} must satisfy 0 <= low < high <= 1, got {low:g} {high:g}")
    return low, high


def share(value: Any, name: str) -> float:
    """Returns a share of examples, in 0…LARGEST_SHARE.

    >>> share("0.1", "validation"), share(0, "validation")
    (0.1, 0.0)
    """
    try:
        number = float(digits(value)) + 0.0  # −0 is 0
    except ValueError:
        number = math.nan
    if not 0 <= number <= LARGEST_SHARE:
        raise UsageError(f"{name} must be a share in 0…{LARGEST_SHARE:g}, got {brief(value)}")
    return number


def yes_or_no(value: Any, name: str) -> bool:
    """Returns true or false of a YAML file, or a flag of the command line."""
    if str(value).lower() not in ("true", "false"):
        raise UsageError(f"{name} must be true or false, got {value!r}")
    return str(value).lower() == "true"


def address(value: Any, name: str) -> str:
    """Returns the address of a Ray: local, auto or HOST:PORT."""
    text = str(value)
    if text.startswith("ray://"):
        raise UsageError(
            f"{name} cannot be {brief(text)}: through Ray Client the search itself would run in a worker there; "
            "`ray job submit --address http://HOST:8265 -- epsearch run --address auto …` submits it"
        )
    host, _, port = text.rpartition(":")
    if text not in ("local", "auto") and not (host and port.isdecimal() and 0 < int(port[:6]) < 2**16):
        raise UsageError(f"{name} must be local, auto or HOST:PORT, got {brief(text)}")
    return text


@as_usage_error(ValueError)
def numeric_path(value: Any, name: str) -> str:
    """Returns the name of a numeric path, as in the ledger."""
    return str(NumericPath.parse(str(value)))


DEVICES = frozenset(
    {"con", "prn", "aux", "nul", *(kind + digit for kind in ("com", "lpt") for digit in "0123456789¹²³")}
)
"""Names of devices in Windows, in any case and with any extension."""
OWN_FOLDERS = ("artifacts", "strategies")
"""Folders of epsearch in the out folder, beside those of studies."""


def study_name(value: Any, name: str) -> str:
    """Returns a study's name, which must be a valid folder name on every system."""
    text = str(value)
    if not text or not all(letter.isalnum() or letter in "._-" for letter in text):
        raise UsageError(f"{name} must consist of letters, digits, '.', '_' and '-', got {brief(value)}")
    # Hidden folders and .., options of commands, and Windows, which drops a dot at the end.
    if text[0] in ".-" or text[-1] == ".":
        raise UsageError(f"{name} must not begin with '.' or '-', nor end with '.', got {brief(text)}")
    if len(text) > limits.NAME:
        raise UsageError(f"{name} must have at most {limits.NAME} characters, got {len(text)}: {brief(text)}")
    if (count := len(text.encode())) > limits.NAME_BYTES:
        raise UsageError(f"{name} must have at most {limits.NAME_BYTES} bytes in UTF-8, got {count}: {brief(text)}")
    if text.partition(".")[0].casefold() in DEVICES:
        raise UsageError(f"{name} {brief(text)} is a device of Windows; choose another name")
    if text.casefold() in OWN_FOLDERS:
        raise UsageError(f"{name} {brief(text)} is a folder of epsearch itself; choose another name")
    return text


def path(value: Any, name: str) -> Path:
    """Returns a path, with ~ and ~user expanded; ./~ names a folder ~."""
    text = str(value)
    if "\0" in text:  # invalid in system calls
        raise UsageError(f"{name} must be a path, got {text!r}")
    return Path(os.path.expanduser(text))


def place(value: Any, name: str) -> str:
    """Returns a folder, made absolute, or a URL without credentials."""
    text = str(value)
    if "://" not in text:
        return str(path(text, name).absolute())
    url = LedgerUrl(text)
    if url.secrets or url.masked:
        raise UsageError(
            f"{name} must be a URL without a password, which would be written down, got {url}; "
            "credentials are for the environment, as AWS_SECRET_ACCESS_KEY"
        )
    return text


def format_path(value: Path) -> str:
    """Returns a path as `path` reads it."""
    return f"./{value}" if str(value).startswith("~") else str(value)
