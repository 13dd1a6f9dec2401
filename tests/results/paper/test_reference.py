from __future__ import annotations

import math
from importlib import resources
from io import StringIO

import pandas as pd
import pytest

from results.paper.reference import (
    PRINTED_DATASETS,
    PRINTED_METHODS,
    footnotes,
    main_memory,
    printed_memory_row,
    printed_row,
)


def printed(dataset: str, method: str, metric: str) -> float:
    return printed_row(dataset, method)[metric].mean


def test_all_rows_are_there() -> None:
    file = resources.files("results.paper").joinpath("paper_tables.csv")
    tables = pd.read_csv(StringIO(file.read_text("utf-8")), dtype=str, keep_default_na=False)
    assert tables.shape == (372, 8)
    assert len(tables.drop_duplicates(["table", "dataset", "variant", "method", "memory", "metric"])) == 372
    assert set(PRINTED_METHODS.values()) == set(tables["method"])


@pytest.mark.parametrize(
    ("dataset", "method", "metric", "value"),
    [
        ("permuted_mnist", "soft_agem", "A_T", 91.3),
        ("permuted_mnist", "agem", "A_T", 89.8),  # the main table's, not the memory study's 89.6
        ("split_cifar", "soft_agem", "A_T", 63.9),
        ("split_cub", "a_agem", "A_T", 66.7),
        ("split_cub_je", "a_agem", "BWT", -2.80),
        ("split_awa_je", "rwalk", "a_t", 44.0),
        ("permuted_mnist", "van", "F_T", 0.21),
    ],
)
def test_printed_values(dataset: str, method: str, metric: str, value: float) -> None:
    assert printed(dataset, method, metric) == value


def test_every_printed_row_has_six_metrics() -> None:
    rows = [printed_row(d, m) for d in PRINTED_DATASETS for m in PRINTED_METHODS]
    assert sum(bool(row) for row in rows) == 9 + 9 + 4 * 8
    for row in rows:
        assert not row or list(row) == ["A_T", "F_T", "a_1", "a_t", "FWT", "BWT"]


def test_out_of_memory_is_no_number() -> None:
    cells = printed_row("split_cub", "prognn").values()
    assert all(math.isnan(cell.mean) and math.isnan(cell.std) for cell in cells)
    assert [cell.text for cell in cells] == ["OoM"] * 6


def test_the_variant_comes_from_the_name() -> None:
    assert (printed("split_cub", "agem", "A_T"), printed("split_cub_je", "agem", "A_T")) == (61.1, 71.1)


def test_what_the_paper_does_not_print() -> None:
    assert printed_row("permuted_digits", "soft_agem") == {}
    assert printed_row("permuted_mnist", "pi") == {}
    assert printed_row("permuted_mnist", "gem") == {}


def test_footnotes_concern_the_row() -> None:
    assert "0.51" in footnotes("permuted_mnist", "van")[0]
    assert footnotes("permuted_mnist", "soft_agem") == ()


def test_the_memory_study_of_the_paper() -> None:
    row = printed_memory_row("permuted_mnist", "agem", 25)
    assert {metric: cell.text for metric, cell in row.items()} == {
        "A_T": "89.6 ± 0.32",
        "a_1": "84.6 ± 0.43",
        "a_t": "96.0 ± 0.25",
        "F_T": "0.07 ± 0.003",
    }
    cifar = printed_memory_row("split_cifar", "soft_agem", 50)
    assert [cell.mean for cell in cifar.values()] == [69.3, 68.5, 73.4, 0.03]
    assert printed_memory_row("permuted_mnist", "agem", 26) == {}
    assert printed_memory_row("permuted_mnist", "er", 25) == {}
    assert printed_memory_row("split_cub", "agem", 5) == {}
    assert printed_memory_row("permuted_digits", "agem", 25) == {}


def test_the_memory_of_the_main_tables() -> None:
    assert (main_memory("permuted_mnist", "agem"), main_memory("split_cifar", "er")) == (25, 13)
    assert (main_memory("permuted_mnist", "van"), main_memory("permuted_digits", "agem")) == (None, None)
    assert main_memory("split_awa_je", "a_agem") == 20
