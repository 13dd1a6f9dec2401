"""Tables of later methods in docs/comparison.md are those of the CSV files beside it."""

import csv
import re

import pytest

from tests.support.sizes import ROOT

DOCS = ROOT / "docs"
PAGE = (DOCS / "comparison.md").read_text(encoding="utf-8")


def rows(name):
    with (DOCS / "comparison" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def mean_and_spread(row, metric, digits, factor=1):
    if not row[f"{metric}_mean"]:
        return "–"
    return " ± ".join(f"{factor * float(row[f'{metric}_{part}']):.{digits}f}" for part in ("mean", "std"))


def line(row, cost, unit):
    """A line of the table; unit: that of FLOP, as 1e12."""
    digits = 1 if unit == "e12" else 0
    seeds = row["n"] if row["diverged"] == "0" else f"{row['n']}, {row['diverged']} diverged"
    cells = [row["row"], row["settings"], mean_and_spread(row, "A_T", 2), mean_and_spread(row, "F_T", 1, 100)]
    cells += [mean_and_spread(row, name, 2) for name in ("a_1", "a_t")]
    cells += [
        f"{float(cost['kept_bytes']) / 1000:,.0f}",
        f"{float(cost['flop']) / float(f'1{unit}'):,.{digits}f}{unit}",
    ]
    return f"| {' | '.join([*cells, seeds])} |"


@pytest.mark.parametrize(("name", "unit"), [("permuted_mnist_later", "e12"), ("split_mnist_class", "e9")])
def test_a_table_is_that_of_its_files(name, unit):
    section = next(part for part in re.split(r"^## ", PAGE, flags=re.M) if f"{name}.csv" in part)
    table = [text for text in section.splitlines() if text.startswith("| ")][2:]
    costs = {row["row"]: row for row in rows(f"{name}_costs.csv")}
    assert table == [line(row, costs[row["row"]], unit) for row in rows(f"{name}.csv")]
