"""Text or a YAML value on its way to a field's value.

Each converter takes what was given, and the name by which its messages call it; each raises UsageError, one line.
"""

import math
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from epsearch.failures.errors import UsageError, brief, refused, unknown
from epsearch.study import limits
from results.ledger.url import LedgerUrl
from trainers.hyperparameters import Hyperparameter, Value
from trainers.numeric_path import NumericPath

UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
SIZE = re.compile(rf"([0-9]{{1,9}}(?:[.][0-9]+)?) ?({'|'.join(SIZES)})")
DURATION = re.compile("".join(rf"(?:(?P<{unit}>[0-9]{{1,9}}){unit})?" for unit in UNITS))


def plain(value: Any) -> Any:
    """Python's own values in the place of NumPy's, and lists in the place of arrays, ranges and tuples.

    A range of more numbers than any option takes remains one.

    >>> plain({"sizes": range(2, 5), "flags": (True, None)})
    {'sizes': [2, 3, 4], 'flags': [True, None]}
    """
    if callable(getattr(value, "tolist", None)):
        value = value.tolist()
    if isinstance(value, range) and not value[limits.SEEDS :]:
        return list(value)
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return {name: plain(one) for name, one in value.items()} if isinstance(value, dict) else value


def whole(value: Any, name: str, low: int, high: int = limits.COUNT, hint: str = "") -> int:
    """A whole number from `low` to `high`, both allowed.

    hint: what else may stand there, in words behind the line about what is no number.
    """
    try:
        number = int(str(value))  # by way of text, as int(2.5) would be 2, and int(True) 1
    except ValueError:
        raise UsageError(f"{name} must be a whole number >= {low}, got {brief(value)}{hint}") from None
    if not low <= number <= high:
        bound = f">= {low}" if number < low else f"<= {high}"
        raise UsageError(f"{name} must be {bound}, got {brief(number)}")
    return number


def whole_or_all(value: Any, name: str, low: int, high: int = limits.COUNT) -> int | None:
    """A whole number, or `all`, which is None."""
    return None if str(value).lower() == "all" else whole(value, name, low, high, "; or all")


def one_of(value: Any, name: str, allowed: Collection[str]) -> str:
    """One of some words, as it is written; the line about any other names the nearest."""
    if value not in tuple(allowed):  # a register is a dict, which could not be asked for a YAML list
        raise UsageError(unknown(name, value, allowed))
    return str(value)


def some_of(value: Any, name: str, allowed: Collection[str]) -> tuple[str, ...]:
    """Some of these words, each once, with commas between.

    >>> some_of("pdf, svg", "figures", ("svg", "pdf"))
    ('pdf', 'svg')
    """
    return tuple(dict.fromkeys(one_of(str(part).strip(), name, allowed) for part in listed(value)))


def pretrained(value: Any, name: str) -> str | None:
    """Weights: imagenet, none (which is None), or a file's path (made absolute, as workers have other folders)."""
    known = {"none": None, "imagenet": "imagenet"}
    text = str(value)
    return known[text.lower()] if text.lower() in known else str(path(text, name).absolute())


def duration(value: Any, name: str) -> float:
    """Seconds of a time like 90s, 30m, 2h, 1d or 1h30m."""
    found = DURATION.fullmatch(str(value).strip())
    seconds = sum(int(found[unit] or 0) * size for unit, size in UNITS.items()) if found else 0
    if not 0 < seconds <= limits.SECONDS:
        longest = f"{limits.SECONDS // UNITS['d']}d"
        raise UsageError(f"{name} must be a time > 0 and <= {longest} like 90s, 30m or 2h, got {brief(value)}")
    return float(seconds)


def size(value: Any, name: str) -> int:
    """Bytes of a size like 500MiB or 4GiB."""
    found = SIZE.fullmatch(str(value).strip())
    count = int(float(found[1]) * 1024 ** SIZES.index(found[2])) if found else 0
    if not 2**20 <= count <= 2**60:
        raise UsageError(f"{name} must be a size >= 1MiB like 500MiB or 4GiB, got {brief(value)}")
    return count


def size_shown(count: int) -> str:
    """The inverse of `size`.

    >>> size_shown(size("4GiB", "memory-limit")), size_shown(size("1.5MiB", "memory-limit"))
    ('4GiB', '1536KiB')
    """
    power = max(power for power in range(len(SIZES)) if count % 1024**power == 0)
    return f"{count // 1024**power}{SIZES[power]}"


def duration_shown(seconds: float) -> str:
    """The inverse of `duration`.

    >>> duration_shown(5400), duration("1h30m", "time-budget")
    ('1h30m', 5400.0)
    """
    left, parts = int(seconds), []
    for unit, size in UNITS.items():
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return "".join(parts)


def listed(value: Any, separator: str | None = ",") -> list[Any]:
    """The parts of a text, of a YAML list, or of a single value; separator: None for any white space."""
    if isinstance(value, str):
        return value.split(separator)
    return list(value) if isinstance(value, (list, tuple)) else [value]


def sizes(value: Any, name: str) -> tuple[int, ...]:
    """Memory sizes, ascending: 25,50,100 or a list."""
    numbers = [whole(part, name, 1) for part in listed(value)]
    if not numbers or len(set(numbers)) < len(numbers):
        raise UsageError(f"{name} must be different numbers with commas between, like 25,50,100; got {brief(value)}")
    return tuple(sorted(numbers))


def hyperparameter(value: Any, name: str, one: Hyperparameter) -> Value:
    """A value of what a method declares: one of its words, a whole number, or a number that float32 has.

    None where it may be `all`, and is.
    """
    if one.choices:
        return word(value, name, one)
    if one.whole:
        return (whole_or_all if one.all_for_none else whole)(value, name, int(one.low), int(one.high))
    try:
        number = math.nan if isinstance(value, bool) else float(value) + 0.0  # −0 is 0
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not one.fits(number):
        # Where nothing but float32 bounds it, the bound is what the user has to be told.
        allowed = f"<= {limits.FLOAT:g}" if number > one.high == limits.FLOAT else one.allowed
        raise UsageError(f"{name} must be a number {allowed}, got {brief(value)}")
    return number


def word(value: Any, name: str, one: Hyperparameter) -> str:
    """One of its words, or module:attribute of a network where that may be. Raises UsageError."""
    return str(value) if one.fits(value) else one_of(value, name, one.choices)


def seeds(value: Any, name: str) -> tuple[int, ...]:
    """A count (5), a list (0,1,2 or a YAML list) or a range (0..4), in this order; no seed stands there twice."""
    wrong = UsageError(f"{name} must be a count >= 1, a list like 0,1,2 or a range like 0..4, got {brief(value)}")
    try:
        numbers = _seeds(value)
    except ValueError:
        raise wrong from None
    if numbers[limits.SEEDS :]:  # `len` of a range beyond 64 bits is an error
        raise UsageError(f"{name} must be <= {limits.SEEDS} in number, got {brief(value)}")
    if not numbers or min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise wrong
    if max(numbers) > limits.LARGEST_SEED:
        raise UsageError(f"{name} must be numbers <= {limits.LARGEST_SEED}, got {brief(value)}")
    return tuple(numbers)


def _seeds(value: Any) -> range | list[int]:
    """As written; a range is not made yet. Raises ValueError."""
    if isinstance(value, range):
        return value
    if isinstance(value, (list, tuple)):
        return [int(str(seed)) for seed in value]
    text = str(value)
    if ".." in text:
        first, last = text.split("..")
        return range(int(first), int(last) + 1)
    parts = text.split(",")
    # A comma at the end makes a list of a single seed.
    return [int(part) for part in parts[: -1 if not parts[-1].strip() else None]] if parts[1:] else range(int(text))


def interval(value: Any, name: str) -> tuple[float, float]:
    """Two numbers, 0 <= low < high <= 1: a text or a YAML list."""
    try:
        parts = value.replace(",", " ").split() if isinstance(value, str) else value
        low, high = (float(part) + 0.0 for part in map(str, parts))  # −0 is 0; as a text True is no number
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{name} must be two numbers LOW HIGH, got {brief(value)}") from None
    if not 0.0 <= low < high <= 1.0:
        raise UsageError(f"{name} must satisfy 0 <= low < high <= 1, got {low:g} {high:g}")
    return low, high


def yes_or_no(value: Any, name: str) -> bool:
    """True or false of a YAML file, or a flag of the command line; other spellings are refused."""
    if str(value).lower() not in ("true", "false"):
        raise UsageError(f"{name} must be true or false, got {value!r}")
    return str(value).lower() == "true"


def address(value: Any, name: str) -> str:
    """Where a Ray is: local, auto or HOST:PORT."""
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


@refused(ValueError)
def numeric_path(value: Any, name: str) -> str:
    """A numeric path's name, as the ledger writes it."""
    return str(NumericPath.parse(str(value)))


DEVICES = frozenset(
    {"con", "prn", "aux", "nul", *(kind + digit for kind in ("com", "lpt") for digit in "0123456789¹²³")}
)
"""Names that are a device to Windows, in any case and with any extension."""
OWN_FOLDERS = ("artifacts", "strategies")
"""Folders of epsearch in the out folder, beside those of studies."""


def study_name(value: Any, name: str) -> str:
    """A study's name, which must do as the name of a folder on every system: OUT/NAME is that of its report."""
    text = str(value)
    if not text or not all(letter.isalnum() or letter in "._-" for letter in text):
        raise UsageError(f"{name} must consist of letters, digits, '.', '_' and '-', got {brief(value)}")
    # A hidden folder, or the one above; an option of whatever command takes the name; Windows drops a dot at the end.
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
    """A file or folder; ~ and ~user are homes where there are any; a folder of such a name is ./~."""
    text = str(value)
    if "\0" in text:  # which no system call takes
        raise UsageError(f"{name} must be a path, got {text!r}")
    return Path(os.path.expanduser(text))


def place(value: Any, name: str) -> str:
    """A folder (made absolute, as workers have other ones) or a URL, which may hold no credentials."""
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


def path_shown(value: Path) -> str:
    """The inverse of `path`."""
    return f"./{value}" if str(value).startswith("~") else str(value)
