"""The numbers printed in the paper, and their known errors.

`paper_tables.csv` contains tables 3–10 of the ε-SOFT-GEM paper: 372 rows, strings exactly as printed; F_T is a
fraction, all other metrics are in percent.
"""

import math
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import NamedTuple

import pandas as pd

# Tables 3 to 8 compare methods, 9 and 10 sizes of the memory. As text, like everything in the file.
MAIN_TABLES = ("3", "4", "5", "6", "7", "8")
MEMORY_TABLES = ("9", "10")
ONE_HOT, JOINT_EMBEDDING = "one-hot", "JE"

PRINTED_DATASETS = {
    "permuted_mnist": ("Permuted MNIST", ONE_HOT),
    "split_cifar": ("Split CIFAR", ONE_HOT),
    "split_cub": ("Split CUB", ONE_HOT),
    "split_cub_je": ("Split CUB", JOINT_EMBEDDING),
    "split_awa": ("Split AWA", ONE_HOT),
    "split_awa_je": ("Split AWA", JOINT_EMBEDDING),
}

PRINTED_METHODS = {
    "van": "VAN",
    "ewc": "EWC",
    "pi": "PI",
    "mas": "MAS",
    "rwalk": "RWALK",
    "er": "ER",
    "agem": "A-GEM",
    "a_agem": "A-A-GEM",
    "soft_agem": "eps-SOFT-GEM",
    "prognn": "PROGNN",
}

FOOTNOTES = {
    # Found by comparing the tables with each other, with the paper's text, and with the definitions of the metrics.
    ("permuted_mnist", "van"): (
        "F_T = 0.21 (21 %) is impossible with BWT = −50.68, because F_T >= −BWT; probably 0.51 (51 %).",
    ),
    ("permuted_mnist", "agem"): (
        "The memory table prints A_T 89.6 for this setting, and other spreads of a_1 (0.43) and a_t (0.25).",
    ),
    ("permuted_mnist", "a_agem"): (
        "In our runs the printed rule (unit gradients) gives A_T 90.8, and averaging raw gradients gives 91.0; the "
        "other metrics of the printed row are those of raw gradients.",
    ),
    ("permuted_mnist", "pi"): ("The paper prints no PI row here; in the A-GEM paper PI diverges on this stream (∞).",),
    ("split_cifar", "soft_agem"): ("The memory table prints 6.54 for the spread of a_t in this setting.",),
    ("split_cub", "ewc"): ("F_T is printed with misplaced parentheses; read as 0.11 ± 0.015 (11 ± 1.5 %).",),
    ("split_cub", "pi"): ("F_T is printed with misplaced parentheses; read as 0.09 ± 0.005 (9 ± 0.5 %).",),
    ("split_cub", "van"): ("FWT is printed with misplaced parentheses; read as 0.42 ± 0.93.",),
    ("split_cub", "soft_agem"): (
        "A_T 75.6 exceeds the single-pass multi-task bound 65.6 of the A-GEM paper: replay improves old tasks.",
    ),
    ("split_cub", "a_agem"): (
        "A_T 66.7 exceeds the single-pass multi-task bound 65.6 of the A-GEM paper: replay improves old tasks.",
    ),
    ("split_cub_je", "a_agem"): ("BWT is −2.80 and A_T is below A-GEM's 71.1, contrary to the paper's text.",),
    ("split_awa_je", "a_agem"): ("A_T 47.2 is below A-GEM's 48.4, contrary to the paper's text.",),
    ("split_awa_je", "rwalk"): ("a_t equals A_T (44.0), while the other rows have 49–52: possibly a copying error.",),
    ("split_awa_je", "agem"): (
        "a_t is in bold although VAN (51.7) and EWC (50.5) are higher; BWT is positive, contrary to the text.",
    ),
    ("split_awa_je", "ewc"): ("BWT is +0.19, contrary to the paper's text.",),
    ("split_awa_je", "pi"): ("BWT is +0.03, contrary to the paper's text.",),
}


class Printed(NamedTuple):
    """A printed cell, in the units of `summarize`."""

    mean: float = math.nan
    """NaN where the paper prints no number."""
    std: float = math.nan
    """Population standard deviation; NaN where the paper prints none."""
    text: str = ""
    """As printed, "91.3 ± 0.11" or "OoM" (out of memory); "" where the paper prints nothing."""

    @property
    def rounding(self) -> float:
        """Half a unit of the last printed digit of the mean.

        0 where the printed spread is 0, because such a value is exact: PROGNN cannot forget.

        >>> Printed(91.3, 0.11, "91.3 ± 0.11").rounding, Printed(0.0, 0.0, "0 ± 0").rounding
        (0.05, 0.0)
        """
        mean = self.text.partition(" ")[0]
        return 0.0 if self.std == 0 else 0.5 / 10.0 ** len(mean.partition(".")[2])


def in_percent(text: str) -> str:
    """Returns the text of a printed fraction in percent, with the digits that it has; other words as they are.

    >>> in_percent("0.05 ± 0.001"), in_percent("0.10 ± 0.020"), in_percent("0 ± 0"), in_percent("OoM")
    ('5 ± 0.1', '10 ± 2.0', '0 ± 0', 'OoM')
    """
    return " ".join(f"{Decimal(word).scaleb(2):f}" if _is_decimal(word) else word for word in text.split(" "))


def printed_row(dataset: str, method: str) -> dict[str, Printed]:
    """Returns metric -> cell of a row of the paper's main tables (3–8), for our names of dataset and method.

    The metrics are A_T, F_T, a_1, a_t, FWT and BWT; empty where the paper prints no such row.
    """
    return _cells(_rows(MAIN_TABLES, dataset, method))


def printed_memory_row(dataset: str, method: str, memory: int | None) -> dict[str, Printed]:
    """Returns metric -> cell of a row of the paper's memory study, at `memory` examples per class and task.

    Tables 9 and 10: Permuted MNIST and Split CIFAR; A_T, a_1, a_t and F_T. Empty where the paper prints no such row.
    """
    rows = _rows(MEMORY_TABLES, dataset, method)
    return _cells(rows[rows["memory"] == str(memory)])


def main_memory(dataset: str, method: str) -> int | None:
    """Returns the examples per class and task of a row of the main tables; None for methods without a memory."""
    sizes = _rows(MAIN_TABLES, dataset, method)["memory"].tolist()
    return int(sizes[0]) if any(sizes) else None


def footnotes(dataset: str, method: str) -> tuple[str, ...]:
    """Returns what is known to be wrong or odd about a printed row, or why there is none."""
    return FOOTNOTES.get((dataset, method), ())


def _is_decimal(word: str) -> bool:
    """Returns whether a word is a finite number in decimal digits."""
    return word.lstrip("-").replace(".", "", 1).isdecimal()


@cache  # read once: a page asks for every row of its table
def _tables() -> pd.DataFrame:
    """Returns every printed number as text: table, dataset, variant, method, memory, metric, mean, std."""
    with resources.files(__package__).joinpath("paper_tables.csv").open(encoding="utf-8") as file:
        # As text: a printed "0.10" must not become 0.1, whose last digit says how the mean was rounded.
        return pd.read_csv(file, dtype=str, keep_default_na=False)


def _rows(numbers: tuple[str, ...], dataset: str, method: str) -> pd.DataFrame:
    """Returns the printed cells of our dataset and method in the given tables; empty where there are none."""
    label, variant = PRINTED_DATASETS.get(dataset, ("", ONE_HOT))
    tables = _tables()
    place = tables["table"].isin(numbers) & (tables["dataset"] == label) & (tables["variant"] == variant)
    return tables[place & (tables["method"] == PRINTED_METHODS.get(method, ""))]


def _cells(rows: pd.DataFrame) -> dict[str, Printed]:
    """Returns metric -> cell of the rows of `_tables`; "OoM" and "" are no numbers."""
    texts = [f"{mean} ± {std}" if std else mean for mean, std in zip(rows["mean"], rows["std"], strict=True)]
    means, stds = (pd.to_numeric(rows[name], errors="coerce").astype(float).tolist() for name in ("mean", "std"))
    return dict(zip(rows["metric"], map(Printed, means, stds, texts), strict=True))
