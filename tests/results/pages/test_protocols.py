from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from results.pages.protocols import figures, overview, protocol_sheet, tables, write_protocols
from results.pages.sheet import Sheet
from results.protocol_tables import protocol_table
from results.protocols import ProtocolResults
from results.verdict.protocols import answer
from tests.support.synthetic_protocols import BEST, always, protocol, protocols


def sheet(results: ProtocolResults) -> Sheet:
    return protocol_sheet(results, protocol_table(results))


def column(results: ProtocolResults, name: str) -> dict[str, list[str]]:
    """Title of a protocol -> the lines of its cell in a column."""
    found = sheet(results)
    place = [title for title, _ in found.header].index(name)
    return {cells[0][0].text: [line.text for line in cells[place]] for cells in found.rows}


@pytest.mark.slow
def test_files_agree_with_the_page(tmp_path: Path) -> None:
    results = protocols()
    path = write_protocols(results, tmp_path)
    assert path.name == "protocols.html"
    assert {one.name for one in tmp_path.iterdir()} == {
        *(f"{name}.csv" for name in ("protocols", "choices", "orders", "constants", "runs", "accuracies")),
        *("protocols.html", "protocols.md", "runs.parquet", "accuracies.parquet", "figures"),
    }
    names = {"protocol_costs.csv", "protocol_choices.csv", "protocol_schedules.csv", "accuracy_curve.csv"}
    assert {one.name for one in (tmp_path / "figures").iterdir()} == names
    stored = pd.read_csv(tmp_path / "protocols.csv")
    assert stored["regret"].tolist() == pytest.approx(protocol_table(results)["regret"].tolist())
    assert len(pd.read_csv(tmp_path / "runs.csv")) == len(results.records) == len({one.key for one in results.records})


@pytest.mark.slow
def test_the_first_lines_are_the_answer(tmp_path: Path) -> None:
    results = protocols()
    html = write_protocols(results, tmp_path).read_text(encoding="utf-8")
    main = html.partition("<main>")[2].partition('class="plot"')[0]
    for sentence in answer(results):
        words = sentence.partition(",")[0].partition(" points")[0].replace("A_T", "A<sub>T</sub>")
        assert words in main.replace("\N{NO-BREAK SPACE}", " "), words
    assert "<main>" in html and main.lstrip().startswith('<div class="banner')


@pytest.mark.slow
def test_each_protocol_says_what_it_may_see(tmp_path: Path) -> None:
    html = write_protocols(protocols(), tmp_path).read_text(encoding="utf-8")
    part = html.partition("What may see what")[2].partition("</section>")[0]
    assert part.count("<dt>") == 6
    assert "First task sees what its name says; it does not peek: none of its 400 tests is among the 1,000" in part
    assert "End of training on test sees what its name says; it peeks: 1,000 of the 1,000 tests" in part


def test_bounds_stand_apart_in_the_table() -> None:
    rows = sheet(protocols()).rows
    assert [cells[0][0].text for cells in rows][-1] == "hindsight"
    assert all(line.look == "soft" for cell in rows[-1] for line in cell)
    assert all(cell[0].look == "" for cells in rows[:-1] for cell in cells)
    assert rows[-1][0][1].text == "bound"


def test_marks_have_their_footnotes() -> None:
    found = sheet(protocols())
    marks = {cells[0][0].text: [found.footnotes[int(mark) - 1] for mark in cells[0][0].marks] for cells in found.rows}
    assert marks["library default"] == [] and marks["cv tasks"] == []
    assert marks["first task"][0].startswith("Misleads: A memory replays")
    assert marks["end of training on test"][0].startswith("Peeks: ")
    assert [note.partition(":")[0] for note in marks["hindsight"]] == ["A bound that nobody can reach"]


def test_a_protocol_without_a_choice_says_why() -> None:
    results = protocols(
        protocol("a", [], remark="No split is held out.", trained=False), protocol("b", always(*[BEST] * 5))
    )
    assert sheet(results).footnotes == ("No split is held out.",)
    assert column(results, "ε")["a"] == ["–"] and column(results, "cost")["a"] == ["–"]


def test_cells_of_the_table() -> None:
    results = protocols()
    assert column(results, "ε") == {
        "library default": ["0.5"],
        "first task": ["0.5", "0.5 to 1"],
        "cv tasks": ["0.1", "0.05 to 0.1"],
        "end of training on test": ["0.1"],
        "current task validation": ["3 values, from task 3", "0.05 to 0.2, median 0.1"],
        "hindsight": ["2 values, from task 2", "0.05 to 0.1, median 0.05"],
    }
    assert column(results, "cost")["first task"] == ["11.0 ×", "19,800", "19.8 TFLOP"]
    assert column(results, "cost")["library default"] == ["none"]
    assert column(results, "kept")["first task"] == ["1 MiB"] and column(results, "kept")["library default"] == ["none"]
    assert column(results, "peeks")["hindsight"] == ["yes", "1,000 of 1,000"]
    assert column(results, "regret")["end of training on test"] == ["0.00"], "without a spread no interval"


@pytest.mark.slow
def test_columns_are_there_where_they_are_measured() -> None:
    names = [name for name, _ in sheet(protocols()).header]
    assert "to others’ best" in names and "WC-ACC" not in names
    few = [name for name, _ in sheet(protocols(orders=2)).header]
    assert "to others’ best" not in few
    inside = protocols(protocol("a", always(*[0.2] * 5), inside=True))
    assert "WC-ACC" in [name for name, _ in sheet(inside).header] and "accuracy_over_steps" in figures(inside)


def test_diverged_members_are_noted() -> None:
    results = protocols(protocol("a", always(*[0.2] * 5), diverged=2))
    assert column(results, "A_T")["a"][1] == "2 of 15 diverged"
    assert "2 members diverged: a (2 of 15)." in overview(results).replace("\N{NO-BREAK SPACE}", " ")


def test_the_caller_s_notes_are_at_the_top() -> None:
    assert "Half of the members." in overview(replace(protocols(), notes=("Half of the members.",)))


def test_before_anything_is_trained(tmp_path: Path) -> None:
    results = replace(protocols(protocol("a", [], trained=False)), constants={})
    html = write_protocols(results, tmp_path).read_text(encoding="utf-8")
    assert "No protocol can be compared yet" in html and "No protocol has chosen yet." in html
    assert 'class="plot"' not in html
    assert set(tables(results)) == {"protocols", "choices", "orders", "constants"}
    assert "No protocol can be compared yet" in overview(results)


@pytest.mark.slow
def test_no_protocol_shown_is_lost_where_titles_are_odd(tmp_path: Path) -> None:
    row = replace(protocol("a", always(*[0.2] * 5)), title="<b>&", sees="It sees <i>all</i>.")
    html = write_protocols(protocols(row), tmp_path).read_text(encoding="utf-8")
    assert "<b>&" not in html.partition("<script")[0] and "&lt;b&gt;&amp;" in html
    assert "It sees &lt;i&gt;all&lt;/i&gt;" in html
