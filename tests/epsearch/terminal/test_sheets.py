"""Tables of results are transposed where a terminal has no room for all columns; nothing is left out."""

import io
from dataclasses import replace

import pytest

from epsearch.terminal.consoles import PlainConsole
from epsearch.terminal.sheets import sheet_table
from results.pages.comparison import comparison_sheet
from results.pages.comparison_numbers import comparison_table
from results.pages.memory import memory_sheet, memory_table
from results.pages.sheet import Line, Sheet
from results.pages.side_by_side import strategies_sheet
from results.pages.side_by_side_numbers import strategies_table
from tests.support.synthetic_methods import comparison, memory_study
from tests.support.synthetic_points import learning_rates, search

RATES = [(0.004,), (0.5,), (0.07,), (0.02,)]


def shown(sheet, width):
    """The lines that a terminal of this width has."""
    console = PlainConsole(file=io.StringIO(), width=width)
    console.print(sheet_table(sheet), crop=False)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width + (2 if lines[0].startswith("strategy  ") else 0)
    return lines


def words(text):
    return "".join(text.split())


def texts(sheet):
    """Every line of every cell, without spaces, behind the names of the rows."""
    return [words(line.text) for row in sheet.rows for cell in row[1:] for line in cell]


def of_studies(number):
    found = [replace(learning_rates(), name="first")]
    for i in range(1, number):
        strategy, name = ("random", "tpe")[i % 2], f"a-rather-long-name-of-a-study-{i}"
        found.append(replace(search(("lr",), RATES, (0.1,), strategy=strategy, log=("lr",), batch=2), name=name))
    return strategies_sheet(found, strategies_table(found))


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("number", [2, 5])
def test_studies_side_by_side_are_transposed(number, width):
    sheet = of_studies(number)
    lines = shown(sheet, width)
    blocks = sum(line.startswith("verdict") for line in lines)
    assert blocks == sum(line.startswith("difference to") for line in lines) == lines.count("") + 1
    assert blocks == {(2, 80): 1, (5, 80): 3, (2, 60): 2, (5, 60): 5}[number, width]
    text = words(" ".join(lines))
    assert "noroom" not in text
    for cell in texts(sheet):
        assert text.count(cell) >= texts(sheet).count(cell), cell
    if blocks == number:  # a name that folds is in one piece where no other column stands beside it
        assert all(words(line.text) in text.replace("strategy", "") for name, *_ in sheet.rows for line in name)


@pytest.mark.slow
def test_a_table_that_fits_has_a_row_for_each_study():
    lines = shown(of_studies(2), 200)
    assert lines[0].startswith("strategy") and lines[0].rstrip().endswith("verdict")
    assert lines[1].startswith("grid search") and lines[3].startswith("tree-structured Parzen estimator (TPE)")
    # A terminal of just that width has all of it.
    assert shown(of_studies(2), len(lines[0].rstrip()))[0].rstrip() == lines[0].rstrip()


def test_a_name_folds_before_the_table_is_transposed():
    label = "tree-structured Parzen estimator (a-long-name-of-a-study)"
    row = ((Line(label),), (Line("84.28"),), (Line("0.1"),))
    lines = shown(Sheet("", (("row", ""), ("A_T", ""), ("F_T", "")), (row,)), 60)
    assert lines[0].split() == ["row", "A_T", "F_T"] and "84.28" in lines[1] and "0.1" in lines[1]
    assert words("".join(line[:20] for line in lines[1:])) == words(label)


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("kind", ["compare", "memory"])
def test_tables_of_methods_are_transposed(kind, width):
    """Printed values keep their label, in the first column."""
    results = comparison() if kind == "compare" else memory_study()
    table = comparison_table(results) if kind == "compare" else memory_table(results)
    sheet = comparison_sheet(results, table) if kind == "compare" else memory_sheet(results, table)
    lines = shown(sheet, width)
    text = words(" ".join(lines))
    assert "noroom" not in text
    for cell in texts(sheet):
        assert text.count(cell) >= texts(sheet).count(cell), cell
    assert [line.split()[0] for line in lines if line.startswith("A_T %") or line.startswith("printed")][:2] == [
        "A_T",
        "printed",
    ]
    assert not any(line.startswith("printed") for i, line in enumerate(lines) if lines[i - 1].startswith("n seeds"))


@pytest.mark.parametrize("width", [1, 7, 20])
def test_a_table_is_printed_at_any_width(width):
    console = PlainConsole(file=io.StringIO(), width=width)
    console.print(sheet_table(of_studies(2)))
    assert console.file.getvalue()


def test_a_table_without_rows_has_its_titles():
    assert shown(Sheet("", (("row", ""), ("A_T", "%")), ()), 60)[0].split() == ["row", "A_T", "%"]
