from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from results.metrics import METRICS, average_accuracy
from results.pages.comparison import comparison_sheet, write_comparison
from results.pages.comparison_numbers import comparison_table, ranking, row_notes
from results.pages.sheet import as_latex, as_markdown
from results.paper.differences import difference_in_errors, with_printed_rows
from results.paper.reference import Printed
from results.table import TableRow
from tests.support.synthetic_methods import compared_row, comparison, member


def cells(table: pd.DataFrame, label: str) -> pd.Series:
    return table.set_index("row").loc[label]


def test_the_difference_in_standard_errors_by_hand() -> None:
    # Sample variances: 0.3²·3/2 = 0.135 of 3 seeds, 0.4²·5/4 = 0.2 of 5 runs; error √(0.045 + 0.04).
    assert difference_in_errors(91.0, 0.3, 3, Printed(90.0, 0.4)) == pytest.approx(1 / math.sqrt(0.085))
    assert difference_in_errors(90.0, 0.3, 3, Printed(91.0, 0.4)) == pytest.approx(-1 / math.sqrt(0.085))


@pytest.mark.parametrize(
    ("mean", "std", "n", "printed"),
    [
        (91.0, math.nan, 1, Printed(90.0, 0.4)),
        (math.nan, math.nan, 0, Printed(90.0, 0.4)),
        (91.0, 0.3, 3, Printed()),
        (0.0, 0.0, 3, Printed(0.0, 0.0)),
        (0.1, 0.0, 3, Printed(0.0, 0.0)),
        (91.0, 0.3, 3, Printed(text="OoM")),
    ],
)
def test_no_difference_without_seeds_print_or_spread(mean: float, std: float, n: int, printed: Printed) -> None:
    assert math.isnan(difference_in_errors(mean, std, n, printed))


def test_the_table_agrees_with_numpy_and_with_the_printed_row() -> None:
    row = compared_row("A-GEM", "agem", seeds=4)
    table = comparison_table(comparison(row))
    found = cells(table, "A-GEM")
    values = [100 * float(average_accuracy(r.accuracies)) for r in row.records]
    assert (found["A_T_mean"], found["A_T_std"]) == pytest.approx((np.mean(values), np.std(values)))
    assert (found["A_T_printed"], found["A_T_printed_mean"], found["A_T_printed_std"]) == ("89.8 ± 0.32", 89.8, 0.32)
    error = math.sqrt(np.var(values, ddof=1) / 4 + 0.32**2 * 5 / 4 / 5)
    assert found["A_T_difference_se"] == pytest.approx((np.mean(values) - 89.8) / error)
    assert (found["method"], found["settings"], found["n"], found["diverged"]) == ("agem", "lr = 0.1", 4, 0)
    assert {f"{m}_mean" for m in METRICS} <= set(table.columns)
    assert "LCA_10_printed_mean" not in table.columns


def test_missing_diverged_and_single_seed_rows() -> None:
    rows = (
        TableRow("EWC", "ewc", {}, ()),
        compared_row("PI", "pi", diverged=3),
        compared_row("MAS", "mas", seeds=1),
        compared_row("A-GEM", "agem", diverged=1),
        compared_row("GEM", "gem"),
    )
    table = comparison_table(comparison(*rows))
    assert table["n"].tolist() == [0, 0, 1, 2, 3]
    assert table["diverged"].tolist() == [0, 3, 0, 1, 0]
    assert table["A_T_mean"].isna().tolist() == [True, True, False, False, False]
    assert table["A_T_std"].isna().tolist() == [True, True, True, False, False]
    assert table["A_T_difference_se"].isna().tolist() == [True, True, True, False, True]
    assert table["A_T_printed"].tolist() == ["67.6 ± 1.83", "", "70.7 ± 1.29", "89.8 ± 0.32", ""]
    assert not table[["A_T_apart", "F_T_apart"]].iloc[:3].to_numpy().any()


def test_rounding_alone_does_not_set_a_row_apart() -> None:
    # F_T is printed as 0.05 ± 0.001: whatever rounds to 0.05 may lie several of these spreads away.
    printed = Printed(0.05, 0.001, "0.05 ± 0.001")
    members = [member("agem", s, lost=0.05) for s in range(3)]
    rounded = with_printed_rows([members], [{"F_T": printed}], ["F_T"], ["F_T"]).iloc[0]
    assert rounded["F_T_difference_se"] > 3 and rounded["F_T_mean"] - 0.05 < 0.005
    assert not rounded["F_T_apart"]
    precise = printed._replace(text="0.050 ± 0.001")
    assert with_printed_rows([members], [{"F_T": precise}], ["F_T"], ["F_T"])["F_T_apart"].tolist() == [True]


def test_ranking_over_rows_that_have_both_values() -> None:
    learned = {"van": 0.6, "ewc": 0.7, "agem": 0.9, "gem": 0.99}
    rows = [compared_row(method, method, learned=value) for method, value in learned.items()]
    rows += [compared_row("ER, 256", "er", learned=0.8), compared_row("ER, 10", "er", learned=0.95)]
    ranked, tau = ranking(comparison(*rows, compared_row("PI", "pi", diverged=3)))
    assert ranked["row"].tolist() == ["ER, 10", "agem", "ER, 256", "ewc", "van"]
    assert ranked["rank"].tolist() == [1, 2, 3, 4, 5]
    assert ranked["printed_rank"].tolist() == [1, 2, 1, 3, 4]
    # By first rows: agem > er > ewc > van here, er > agem > ewc > van in print: 5 of 6 pairs agree.
    assert tau == pytest.approx((5 - 1) / 6)


def test_ranking_of_too_few() -> None:
    one, tau = ranking(comparison(compared_row()))
    assert math.isnan(tau) and len(one) == 1
    none, _ = ranking(comparison(compared_row("GEM", "gem")))
    assert none.empty and none.columns[0] == "row"


def test_footnotes_are_numbered_and_marked() -> None:
    van = replace(compared_row("VAN", "van"), remark="Half of the images.")
    compared = comparison(compared_row("EWC", "ewc"), van, compared_row("A-GEM", "agem"))
    assert [len(notes) for notes in row_notes(compared)] == [0, 2, 1]
    sheet = comparison_sheet(compared, comparison_table(compared))
    assert "0.51" in sheet.footnotes[0] and sheet.footnotes[1] == "Half of the images."
    marks = [tuple(mark for mark in cells[0][0].marks if mark != "*") for cells in sheet.rows]
    assert marks == [(), ("1", "2"), ("3",)]


def test_rows_far_from_print_are_marked_where_sizes_are_comparable() -> None:
    rows = (compared_row("VAN", "van", learned=0.95), compared_row("GEM", "gem"))
    for comparable in (True, False):
        compared = replace(comparison(*rows, comparable=comparable), with_printed=True)
        sheet = comparison_sheet(compared, comparison_table(compared))
        marked = ["*" in cells[0][0].marks for cells in sheet.rows]
        assert marked == [comparable, False]
        assert [len(cells[2]) for cells in sheet.rows] == [3 if comparable else 2, 1]
        assert any("for orientation only" in text for text in sheet.remarks) is not comparable


def test_printed_values_have_their_label_and_settings_a_column() -> None:
    compared = comparison(compared_row("VAN", "van"), compared_row("GEM", "gem"))
    sheet = comparison_sheet(compared, comparison_table(compared))
    assert sheet.header[:4] == (("method", ""), ("settings", ""), ("A_T", "%"), ("F_T", "%"))
    assert [[line.text for line in cells[0]] for cells in sheet.rows] == [["VAN", "printed"], ["GEM"]]
    assert [[line.text for line in cells[1]] for cells in sheet.rows] == [["lr = 0.1"], ["lr = 0.1"]]
    # The label is the second line, as the printed value is, in terminals and in LaTeX.
    printed = as_latex(sheet).partition("\\midrule\n")[2].splitlines()[1]
    assert printed.startswith(r"printed &  & 48.6 $\pm$ 1.28 & 21 $\pm$ 1.3 & ")


def test_printed_rows_of_other_sizes_are_left_out_unless_they_are_wanted() -> None:
    row = compared_row("VAN", "van")
    other = comparison(row, comparable=False)
    table = comparison_table(other)
    assert table["A_T_printed"].tolist() == [""] and ranking(other)[0].empty and row_notes(other) == [()]
    sheet = comparison_sheet(other, table)
    assert [len(cells) for cells in sheet.rows[0]] == [1] * len(sheet.header)
    told = [text for text in sheet.remarks if "printed" in text]
    assert told == [
        "The sizes of these runs are not those of the paper, so its printed rows are left out; epsearch report demo "
        "--with-printed shows them."
    ]
    assert comparison_table(replace(other, with_printed=True))["A_T_printed"].tolist() == ["48.6 ± 1.28"]
    nothing = comparison(row, dataset="permuted_digits", comparable=False)
    assert "The paper prints no row" in comparison_sheet(nothing, comparison_table(nothing)).remarks[1]


def test_the_spread_is_the_populations_only_beside_printed_rows() -> None:
    row = compared_row("A-GEM", "agem", seeds=4)
    values = [100 * float(average_accuracy(r.accuracies)) for r in row.records]
    for comparable, ddof, name in ((True, 0, ": mean ± population standard"), (False, 1, "Mean ± standard")):
        compared = comparison(row, comparable=comparable)
        table = comparison_table(compared)
        assert table["A_T_std"][0] == pytest.approx(np.std(values, ddof=ddof))
        remarks = comparison_sheet(compared, table).remarks
        assert name in remarks[0] and sum("population" in text for text in remarks) == comparable


def test_cells_of_rows_without_a_result() -> None:
    rows = (TableRow("EWC", "ewc", {}, ()), compared_row("PI", "pi", diverged=3))
    compared = comparison(*rows, compared_row("MAS", "mas", diverged=1))
    text = as_markdown(comparison_sheet(compared, comparison_table(compared)))
    ewc, pi, mas = (next(line for line in text.splitlines() if line.startswith(f"| {n}")) for n in ("EWC", "PI", "MAS"))
    assert "| EWC<br>printed |  | –<br>67.6 ± 1.83 | –<br>30 ± 1.9 |" in ewc and ewc.endswith("| – |")
    assert "| diverged (3 of 3) | – |" in pi and pi.endswith("| 0 |")
    assert mas.endswith("| 2<br>1 diverged |")
    assert "nan" not in text


def test_rows_must_be_consistent() -> None:
    with pytest.raises(ValueError, match="one number of tasks"):
        TableRow("A", "agem", {}, (member("agem", 0), member("agem", 1, tasks=3)))
    with pytest.raises(ValueError, match="seeds of row 'A' must be distinct, got 0 twice"):
        TableRow("A", "agem", {}, (member("agem", 0), member("agem", 0, learned=0.9)))
    with pytest.raises(ValueError, match="labels of rows must be distinct"):
        comparison(compared_row(), compared_row())


def test_nothing_trained_yet(tmp_path: Path) -> None:
    compared = comparison(TableRow("EWC", "ewc", {}, ()), dataset="permuted_digits")
    text = write_comparison(compared, tmp_path).read_text(encoding="utf-8")
    assert "No member has been measured yet." in text
    assert "The paper prints no row" in text and "No row has both" in text
    assert pd.read_csv(tmp_path / "runs.csv").empty
