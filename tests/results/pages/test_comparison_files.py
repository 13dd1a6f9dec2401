"""The files of a comparison and of a memory study: complete, offline, and well-formed in every format."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from results.figures import memory_panels, over_tasks, transfer
from results.figures.style import line_style
from results.metrics import summarize
from results.pages.comparison import write_comparison
from results.pages.memory import memory_notes, memory_table, write_memory_study
from results.pages.sheet import Line, Sheet, as_html, as_latex, as_markdown
from results.table import TableRow
from tests.support.synthetic_methods import compared_row, comparison, member, memory_study

BAD = "<script>alert(1)</script> | 50% & a_b {x} #1 $2 \\x ~^ [*]"


class Page(HTMLParser):
    """What a browser would load, the text it shows, and whether every element is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [str(v) for k, v in attrs if k in ("src", "href", "data", "poster", "action")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" not in self.open and "style" not in self.open:
            self.text += data


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_comparison(comparison(), tmp_path_factory.mktemp("comparison"))


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_memory_study(memory_study(), tmp_path_factory.mktemp("memory"))


def names(page: Path) -> set[str]:
    return {p.relative_to(page.parent).as_posix() for p in page.parent.rglob("*") if p.is_file()}


RUNS = {"runs.csv", "runs.parquet", "accuracies.csv", "accuracies.parquet"}


@pytest.mark.slow
def test_every_file_of_a_comparison(compared: Path) -> None:
    figures = {f"figures/{name}.csv" for name in ("accuracy_curve", "forgetting_curve", "transfer")}
    tables = {"comparison.html", "comparison.csv", "comparison.md", "comparison.tex", "ranking.csv"}
    assert names(compared) == figures | tables | RUNS
    assert len(pd.read_csv(compared.parent / "comparison.csv")) == 13
    assert len(pd.read_csv(compared.parent / "runs.csv")) == 39
    assert pd.read_csv(compared.parent / "figures/forgetting_curve.csv")["k"].min() == 2


@pytest.mark.slow
def test_every_file_of_a_memory_study(studied: Path) -> None:
    tables = {"memory.html", "memory.csv", "memory.md", "memory.tex", "figures/memory_panels.csv"}
    assert names(studied) == tables | RUNS
    table = pd.read_csv(studied.parent / "memory.csv")
    assert table["memory"].tolist() == [25, 50, 100] * 3
    assert table["A_T_printed_mean"].tolist() == [89.6, 89.5, 89.8, 90.7, 92.0, 92.7, 91.3, 92.3, 92.9]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["compared", "studied"])
def test_pages_open_offline(which: str, request: pytest.FixtureRequest) -> None:
    html = request.getfixturevalue(which).read_text(encoding="utf-8")
    page = Page(html)
    assert page.loads == [] and html.count('id="plotly"') == 1
    assert html.count("<figure ") == html.count("<figcaption>") == (3 if which == "compared" else 1)
    assert "nan" not in page.text.replace("covenant", "")
    assert "orientation only" not in page.text
    order = [page.text.index(name) for name in ("Results beside the printed table", "Configuration", "Machine and")]
    assert order == sorted(order)


@pytest.mark.slow
def test_printed_rows_of_other_sizes_are_for_orientation(tmp_path: Path) -> None:
    pages = [
        write_comparison(replace(comparison(compared_row(), comparable=False), with_printed=True), tmp_path / "c"),
        write_memory_study(replace(memory_study(comparable=False), with_printed=True), tmp_path / "m"),
    ]
    for page in pages:
        text = Page(page.read_text(encoding="utf-8")).text
        assert text.count("for orientation only") == 2 and "s.e." not in text


@pytest.mark.slow
def test_pages_say_once_that_printed_rows_are_left_out(tmp_path: Path) -> None:
    pages = [
        write_comparison(comparison(compared_row("VAN", "van"), comparable=False), tmp_path / "c"),
        write_memory_study(memory_study(comparable=False), tmp_path / "m"),
    ]
    for page in pages:
        text = Page(page.read_text(encoding="utf-8")).text
        assert text.count("its printed rows are left out; epsearch report demo --with-printed shows them.") == 1
        assert "population" not in text and "orientation only" not in text and "0.51" not in text
    assert pd.read_csv(tmp_path / "m" / "memory.csv")["A_T_printed_mean"].isna().all()


@pytest.mark.parametrize("which", ["compared", "studied"])
def test_latex_is_well_formed(which: str, request: pytest.FixtureRequest) -> None:
    page = request.getfixturevalue(which)
    check_latex(page.with_suffix(".tex").read_text(encoding="utf-8"))


def check_latex(text: str) -> None:
    """Balanced braces, dollars and environments, one number of columns, nothing that plain pdfLaTeX cannot set."""
    bare = re.sub(r"\\[\\{}$&%#_]", "", text)
    assert bare.count("{") == bare.count("}") and bare.count("$") % 2 == 0
    assert re.findall(r"\\begin\{(\w+)\}", text) == ["table", "tabular", "minipage"]
    assert sorted(re.findall(r"\\end\{(\w+)\}", text)) == sorted(["table", "tabular", "minipage"])
    columns = re.search(r"\\begin\{tabular\}\{@\{\}(l?r*)@\{\}\}", text)
    assert columns is not None
    inside = text.split("\\toprule")[1].split("\\bottomrule")[0]
    rows = [line for line in inside.splitlines() if line.endswith("\\\\")]
    assert rows and {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(columns.group(1))}
    assert [sign for sign in text if ord(sign) > 255] == []


def test_latex_sets_symbols_and_escapes_the_rest() -> None:
    header = (("A_T and ε", "%"), ("LCA_10", ""))
    rows = (((Line(BAD), Line("λ = 0.1, τ")), (Line("−1.0 ± 0.5", "apart", ("1", "*")),)),)
    text = as_latex(Sheet("a_b of F_T", header, rows, ("x < y",), ("∞ – √2",)))
    check_latex(text)
    for part in (
        r"$A_T$ and $\varepsilon$ (\%) & $\mathrm{LCA}_{10}$ \\",
        r"$\lambda$ = 0.1, $\tau$ &  \\",
        r"\emph{$-$1.0 $\pm$ 0.5$^{1,*}$}",
        r"a\_b \{x\} \#1 \$2 \textbackslash{}x \textasciitilde{}\textasciicircum{} {[}{*}{]}",
        r"\caption{a\_b of $F_T$}",
        r"$^{1}$ x $<$ y",
        r"$\infty$ -- $\surd$2",
    ):
        assert part in text


def test_markdown_and_html_escape_everything() -> None:
    sheet = Sheet(BAD, ((BAD, BAD), ("A_T", "%")), (((Line(BAD, marks=("*",)),), (Line("1"),)),), (BAD,), (BAD,))
    html, markdown = as_html(sheet), as_markdown(sheet)
    assert "<script>" not in html + markdown
    assert "A<sub>T</sub>" in html and "A<sub>T</sub> (%)" in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [3, 3, 3]
    assert Page(html).text.count(BAD) == 6  # with the caption for screen readers


def test_a_sheet_has_a_cell_for_every_column() -> None:
    with pytest.raises(ValueError, match="must have 2 cells, got 1"):
        Sheet("", (("a", ""), ("b", "")), (((Line("1"),),),))


@pytest.mark.slow
def test_everything_from_outside_is_escaped(tmp_path: Path) -> None:
    row = replace(compared_row(BAD), remark=BAD, settings={BAD: BAD})
    compared = replace(comparison(row), name=BAD, notes=(BAD,), facts={BAD: BAD}, config={"x": BAD})
    html = write_comparison(compared, tmp_path).read_text(encoding="utf-8")
    assert "<script>alert" not in html.replace("\\u003c", "")
    assert Page(html).text.count(BAD) >= 7
    latex = (tmp_path / "comparison.tex").read_text(encoding="utf-8")
    check_latex(latex)
    # Row, remark, note; the setting's name and value.
    assert latex.count("alert(1)") == 5


def test_tasks_that_were_not_tested_make_no_closer_panel() -> None:
    """Joint training may have its last task alone: its curve begins with NaN, which is no range."""
    level = [
        over_tasks.Curve(str(place), math.nan, (80.0 - 9 * place,) * 3, (1.0,) * 3, 3, place) for place in range(5)
    ]
    joint = over_tasks.Curve("Joint", math.nan, (math.nan, math.nan, 95.0), (math.nan, math.nan, 1.0), 3, 5)
    assert over_tasks.zoom(("A_k", (*level, joint))) == over_tasks.zoom(
        ("A_k", (*level, joint._replace(mean=(95.0,) * 3)))
    )
    assert over_tasks.zoom(("A_k", (*level[1:], joint))) is None


def test_curves_of_many_rows_have_a_closer_panel() -> None:
    rows = [(row.label, row.records) for row in comparison().rows]
    for metric in ("A_k", "F_k"):
        found = over_tasks.numbers(rows, metric)
        assert [curve.place for curve in found[1]] == [0, 1, *range(3, 13)]
        assert over_tasks.zoom(found) is not None and "again, on its own scale" in over_tasks.caption(found)
        drawn = json.loads(over_tasks.draw(found).to_json())
        assert len(drawn["data"]) == 24 and sum(trace["showlegend"] for trace in drawn["data"]) == 12
    with pytest.raises(ValueError, match="no curve of 'B_k'"):
        over_tasks.numbers(rows, "B_k")


def test_single_tasks_and_seeds_draw() -> None:
    rows = [(f"{i}", [member("agem", 0, tasks=1, learned=0.9 + 0.01 * i)]) for i in range(5)]
    for metric in ("A_k", "F_k"):
        found = over_tasks.numbers(rows, metric)
        assert math.isnan(found[1][0].std[0])
        assert json.loads(over_tasks.draw(found).to_json())["data"]


def test_lines_look_different() -> None:
    assert len({line_style(i) for i in range(28)}) == 28
    assert len({line_style(i)[1:] for i in range(28)}) == 28


def test_transfer_leaves_out_what_was_not_measured() -> None:
    rows = [(row.label, row.records) for row in comparison().rows]
    bars = transfer.numbers(rows)
    assert bars["BWT_std"][0] == pytest.approx(summarize(rows[0][1])["BWT"].std())  # of the sample
    assert len(bars) == 12 and "PI" not in bars["row"].tolist()
    assert len(json.loads(transfer.draw(bars).to_json())["data"]) == 3


@pytest.mark.slow
def test_memory_panels_show_printed_values_where_there_are_some() -> None:
    panels = memory_panels.numbers(memory_table(memory_study()))
    assert panels.groupby("line")["memory"].apply(list).tolist() == [[25, 50, 100]] * 3
    assert "Open markers: the paper's printed means." in memory_panels.caption(panels)
    assert len(json.loads(memory_panels.draw(panels).to_json())["data"]) == 4 * 3 * 2 + 1
    assert "± one population standard deviation, as the paper prints it." in memory_panels.caption(panels)
    drawn = memory_panels.draw(panels)
    assert drawn.layout.yaxis4.title.text == "F<sub>T</sub> (%)"
    printed = next(trace for trace in drawn.data if trace.name == "A-GEM, printed" and trace.yaxis == "y4")
    assert printed.y == pytest.approx(100 * panels[panels["line"] == 0]["F_T_printed_mean"])
    plain = memory_panels.numbers(memory_table(memory_study(dataset="permuted_digits", seeds=1)))
    assert "± one standard deviation." in memory_panels.caption(plain)
    assert "printed" not in memory_panels.caption(plain)
    assert len(json.loads(memory_panels.draw(plain).to_json())["data"]) == 4 * 3 * 2


@pytest.mark.slow
def test_the_legend_of_many_methods_stands_beside_the_panels() -> None:
    study = memory_study()
    many = tuple(replace(row, label=f"{row.label} {i}") for row in study.rows[::3] for i in range(2))
    layout = json.loads(memory_panels.draw(memory_panels.numbers(memory_table(replace(study, rows=many)))).to_json())
    assert layout["layout"]["legend"]["orientation"] == "v"


def test_footnotes_of_the_main_table_stand_at_its_memory() -> None:
    assert [len(notes) for notes in memory_notes(memory_study())] == [1, 0, 0, 1, 0, 0, 0, 0, 0]


def test_memory_rows_must_be_consistent(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="memory must be >= 1"):
        TableRow("A", "agem", {}, (), 0)
    study = memory_study()
    with pytest.raises(ValueError, match="must be distinct"):
        replace(study, rows=study.rows + study.rows[:1])
    empty = replace(study, dataset="permuted_digits", rows=tuple(replace(r, records=()) for r in study.rows))
    assert "No member has been measured yet." in write_memory_study(empty, tmp_path).read_text(encoding="utf-8")
