"""Names and numbers as they are printed for people."""

import math
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any, TypeAlias

Title: TypeAlias = Callable[[str], str | None]

# Filled from outside: methods, datasets and strategies are declared in packages that this one may not import.
_TITLES: dict[str, Title] = {}

NETWORK_LABELS = {"mlp": "multilayer perceptron", "reduced_resnet18": "reduced ResNet-18", "resnet18": "ResNet-18"}

STREAM_LABELS = {
    "cv": "cross-validation stream",
    "eval": "evaluation stream",
    "validation": "validation examples of the evaluation stream",
    "memory": "held-out memory of the evaluation stream",
}


def stream_label(config: Mapping[str, Any], stream: str) -> str:
    """Returns the name of a stream with its scenario, where the options of a study name one.

    >>> stream_label({"scenario": "class"}, "evaluation stream"), stream_label({}, "evaluation stream")
    ('class-incremental evaluation stream', 'evaluation stream')
    """
    scenario = config.get("scenario")
    return f"{scenario}-incremental {stream}" if scenario else stream


MISSING = "–"
"""Printed where a number is missing."""

METRIC_NAME = r"\b(A|F|a|LCA)_(T|k|t|10|1)\b"
"""A metric's name inside a text, as a regular expression: letter and index."""


def entitle(kind: str, title: Title) -> None:
    """Registers how names of a kind are printed: of a "method", "dataset", "strategy" or "hyperparameter".

    The module that declares the names calls this once; title(name) is None for a name that it does not know.
    """
    _TITLES[kind] = title


def label(kind: str, name: str) -> str:
    """Returns a name of a kind as people write it; the name itself where no title is registered.

    >>> label("method", "nobodys")
    'nobodys'
    """
    return (_TITLES[kind](name) if kind in _TITLES else None) or name


def method_label(method: str) -> str:
    """Returns the method's name as the papers print it."""
    return label("method", method)


def strategy_label(strategy: str) -> str:
    """Returns the strategy's name in words."""
    return label("strategy", strategy)


def dataset_label(dataset: str) -> str:
    """Returns the dataset's name as people write it; for a user's own dataset that of its folder or module.

    >>> dataset_label("folder:/data/birds.zip"), dataset_label("mine:factory")
    ('birds.zip', 'mine:factory')
    """
    if dataset.startswith("folder:"):
        return dataset.rstrip("/").rpartition("/")[2]
    return label("dataset", dataset)


def network_label(config: Mapping[str, Any]) -> str:
    """Returns the network of a study's configuration, and the weights it starts from.

    >>> network_label({"network": "resnet18", "pretrained": "imagenet"}), network_label({})
    ('ResNet-18, from ImageNet weights', 'multilayer perceptron')
    """
    network, weights = config.get("network", "mlp"), config.get("pretrained") or "none"
    if network != "resnet18":
        return NETWORK_LABELS.get(network, str(network))
    start = {"none": "random weights", "imagenet": "ImageNet weights"}.get(weights, f"the weights in {weights}")
    return f"{NETWORK_LABELS[network]}, from {start}"


def on_one_line(path: Path) -> str:
    r"""Returns the path for a message: with quotes and escapes if a character cannot be printed on one line.

    >>> on_one_line(Path("runs")), on_one_line(Path("a\nb"))
    ('runs', "'a\\nb'")
    """
    return str(path) if str(path).isprintable() else repr(str(path))


def subscripts(text: str) -> str:
    """Returns a text with metric names and powers of two in HTML tags, which plotly understands, too.

    The text must be escaped before.

    >>> subscripts("A_T, LCA_10 and 2/2^5")
    'A<sub>T</sub>, LCA<sub>10</sub> and 2/2<sup>5</sup>'
    """
    lowered = re.sub(METRIC_NAME, r"\1<sub>\2</sub>", text)
    return re.sub(r"\^(\d+)", r"<sup>\1</sup>", lowered)


def epsilon_text(epsilon: float) -> str:
    """Returns ε whole if ten significant digits are enough, as for the points of most grids; else with six.

    >>> epsilon_text(0.1 + 0.2), epsilon_text(0.07185), epsilon_text(-0.0)
    ('0.3', '0.07185', '0')
    >>> epsilon_text(0.34561234), epsilon_text(1 / 3)
    ('0.34561234', '0.333333')
    """
    value = epsilon + 0.0  # −0.0 + 0.0 is 0.0
    whole = f"{value:.10g}"
    return whole if _same(float(whole), value) else f"{value:.6g}"


def _same(one: float, other: float) -> bool:
    """Returns whether two numbers differ by rounding at most."""
    return math.isclose(one, other, rel_tol=1e-14)


def interval_text(ends: tuple[float, float]) -> str:
    """Returns a closed interval whose ends are known, such as that of a round.

    >>> interval_text((0.0, 0.1 + 0.2))
    '[0, 0.3]'
    """
    return f"[{epsilon_text(ends[0])}, {epsilon_text(ends[1])}]"


def outwards(low: float, high: float) -> tuple[str, str]:
    """Returns the ends of an estimated interval, rounded outwards to two digits of its width.

    So what is told always contains what was estimated. An end keeps two digits of its own, and one that six digits give
    whole, such as an end of the search, stays as it is.

    >>> outwards(0.11710923, 0.13021234), outwards(0.345610012, 0.346390012), outwards(0.0, 0.1 + 0.2)
    (('0.117', '0.131'), ('0.34561', '0.3464'), ('0', '0.3'))
    >>> outwards(0.00012345678, 0.35678912)
    ('0.00012', '0.36')
    """
    width = high - low
    return _to_digits_of(low, width, ROUND_FLOOR), _to_digits_of(high, width, ROUND_CEILING)


def about_text(ends: tuple[float, float], left_out: tuple[bool, bool] = (False, False)) -> str:
    """Returns an estimated interval, its ends as `outwards` rounds them; left_out: whether an end is itself no part.

    >>> about_text((0.11710923, 0.13021234)), about_text((0.0, 1.0), (True, False))
    ('[0.117, 0.131]', '(0, 1]')
    """
    return f"{'(' if left_out[0] else '['}{', '.join(outwards(*ends))}{')' if left_out[1] else ']'}"


def estimate_text(value: float, ends: tuple[float, float]) -> str:
    """Returns an estimate with as many digits as the ends of its interval have in `outwards`.

    >>> estimate_text(0.12345678, (0.11710923, 0.13021234))
    '0.123'
    """
    return _to_digits_of(value, ends[1] - ends[0], ROUND_HALF_EVEN)


def _to_digits_of(value: float, width: float, rounding: str) -> str:
    """Returns a value rounded to two digits of a width, or of its own where those are finer."""
    if not math.isfinite(value) or _same(float(f"{value:.6g}"), value):
        return f"{value + 0.0:.6g}"
    sizes = [size for size in (width, abs(value)) if size > 0]
    step = Decimal(10) ** (math.floor(math.log10(min(sizes))) - 1)
    rounded = (Decimal(f"{value:.12g}") / step).to_integral_value(rounding) * step
    return f"{float(rounded):.12g}"


def settings_text(settings: Mapping[str, Any]) -> str:
    """Returns hyperparameters with their values, in their order.

    >>> settings_text({"lr": 0.03, "λ": 10, "scale": "raw"})
    'lr = 0.03, λ = 10, scale = raw'
    """
    return ", ".join(
        f"{name} = {epsilon_text(value) if isinstance(value, float) else value}" for name, value in settings.items()
    )


def number_text(value: float, digits: int) -> str:
    """Returns a number with a true minus sign, or a dash for NaN and infinity.

    >>> number_text(-4.4912, 2), number_text(float("nan"), 2), number_text(-0.001, 2)
    ('−4.49', '–', '0.00')
    """
    if not math.isfinite(value):
        return MISSING
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")  # "-0.00" is printed as "0.00"


def count_text(number: int, noun: str) -> str:
    """Returns a number with its noun in the singular or plural.

    >>> count_text(1, "seed"), count_text(5, "seed"), count_text(2, "batch")
    ('1 seed', '5 seeds', '2 batches')
    """
    ending = "es" if noun.endswith("ch") else "s"  # batch is the only noun that needs it
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{ending}"


def signed_text(value: float, digits: int) -> str:
    """Returns a number with its sign, + included: +0.84, −0.84. A number that rounds to 0 has none."""
    text = number_text(value, digits)
    return f"+{text}" if math.isfinite(value) and value > 0 and float(f"{value:.{digits}f}") != 0 else text


def difference_text(value: float) -> str:
    """Returns a difference >= 0 with three significant digits; only an exact 0 is printed as 0.

    >>> difference_text(0.0), difference_text(1.19e-07), difference_text(math.inf)
    ('0', '1.19e-07', 'infinite')
    """
    return "infinite" if math.isinf(value) else f"{value:.3g}"


def points_text(fraction: float) -> str:
    """Returns a difference of accuracies, a fraction, in percentage points.

    >>> points_text(0.0), points_text(0.002), points_text(math.inf)
    ('0', '0.2 percentage points', 'infinite')
    """
    text = difference_text(100 * fraction)
    return f"{text} percentage points" if 0 < fraction < math.inf else text


def mean_std_text(mean: float, std: float, digits: int) -> str:
    """Returns mean ± std; "± –" where one run has no spread; a dash where nothing was measured."""
    if not math.isfinite(mean):
        return MISSING
    return f"{number_text(mean, digits)} ± {number_text(std, digits)}"


def duration_text(seconds: float) -> str:
    """Returns seconds as a clock shows them.

    >>> duration_text(0.4), duration_text(65), duration_text(3723)
    ('0:00', '1:05', '1:02:03')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def flop_text(flop: float) -> str:
    """Returns FLOP with a prefix.

    >>> flop_text(2.5e13)
    '25 TFLOP'
    """
    size, prefix = next((unit for unit in ((1e15, "P"), (1e12, "T"), (1e9, "G")) if flop >= unit[0]), (1e6, "M"))
    return f"{flop / size:.3g} {prefix}FLOP"


def bytes_text(count: float) -> str:
    """Returns bytes with a binary prefix and three significant digits.

    >>> bytes_text(0), bytes_text(1536), bytes_text(3 * 2**30)
    ('0 bytes', '1.5 KiB', '3 GiB')
    """
    size, prefix = next((unit for unit in ((2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")) if count >= unit[0]), (1, ""))
    return f"{count / size:.3g} {prefix}B" if prefix else f"{count:.0f} bytes"


A_T, WORST, ANYTIME = "A_T", "worst-task", "anytime"
MIN_ACC = "min-ACC"
OF_POINTS = ("WC-ACC", MIN_ACC)
"""Objectives that need tests inside tasks."""
MIXED = re.compile(r"A_T-([0-9]{1,6}(?:[.][0-9]{1,6})?)F_T")
OBJECTIVES = (A_T, "A_T-0.5F_T", WORST, ANYTIME, *OF_POINTS)
"""What a search may maximise, one of each form; or module:attribute. `results.objectives` computes it."""


def is_objective(name: str) -> bool:
    """Returns whether a search can maximise it by a built-in name."""
    return name in OBJECTIVES or MIXED.fullmatch(name) is not None


def objective_label(name: str) -> str:
    """Returns what an objective is called in texts and tables.

    >>> [objective_label(one) for one in (*OBJECTIVES, "mine:late")]
    ['A_T', 'A_T − 0.5 F_T', 'worst task', 'anytime accuracy', 'WC-ACC', 'min-ACC', 'late']
    """
    if (mixed := MIXED.fullmatch(name)) is not None:
        return f"A_T − {mixed[1]} F_T"
    named = {WORST: "worst task", ANYTIME: "anytime accuracy"}
    return name if name in (A_T, *OF_POINTS) else named.get(name, name.partition(":")[2])
