from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
import yaml

from results.metrics import summarize
from results.pages.search.report import write_report
from results.search import SearchResults, SearchRound
from results.search_tables import difference_table, evaluation_table, search_table
from results.verdict.answer import answer
from tests.support.synthetic import record, study


class Page(HTMLParser):
    """Collects what a browser would load, the text outside scripts, and whether every element is closed."""

    VOID = ("meta", "link", "img", "br", "hr", "input")

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.text = ""
        self.scripts = 0
        self.open: list[str] = []
        self.attributes: dict[str, dict[str, str | None]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.attributes.setdefault(tag, found)
        self.loads += [str(v) for k, v in attrs if k in ("src", "href", "data", "poster", "action")]
        self.scripts += tag == "script"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" not in self.open and "style" not in self.open:
            self.text += data


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    assert page.open == []
    return page


def plain(text: str) -> str:
    """As the page shows it once subscripts and line ends are gone."""
    return "".join(text.replace("_", "").replace("^", "").split())


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> tuple[SearchResults, Path]:
    results = study()
    return results, write_report(results, tmp_path_factory.mktemp("report"))


@pytest.mark.slow
def test_the_page_opens_offline(full: tuple[SearchResults, Path]) -> None:
    results, path = full
    html, page = path.read_text(encoding="utf-8"), read(path)
    assert page.loads == []
    assert html.count('id="plotly"') == 1
    assert "@import" not in html.split("<style>")[1].split("</style>")[0]
    assert page.attributes["html"]["lang"] == "en"
    assert page.attributes["meta"] and "width=device-width" in html
    assert plain(answer(results)) in plain(page.text)
    assert html.count("<figure ") == html.count("<figcaption>") == 9
    assert "figures on this page are therefore biased" not in page.text


@pytest.mark.slow
def test_the_configuration_can_be_copied_back(full: tuple[SearchResults, Path]) -> None:
    results, path = full
    html = path.read_text(encoding="utf-8")
    text = html.split('<pre id="configuration"')[1].split(">", 1)[1].split("</pre>")[0]
    assert yaml.safe_load(text) == {**results.config, "seeds": [0, 1, 2, 3, 4]}


def test_every_number_lies_beside_the_page(full: tuple[SearchResults, Path]) -> None:
    results, path = full
    names = {str(p.relative_to(path.parent)) for p in path.parent.rglob("*") if p.is_file()}
    figures = {
        "epsilon_A_T",
        "epsilon_A_T_seeds",
        "epsilon_A_T_curve",
        "accuracy_curve",
        "forecast",
        "shrinking_points",
    }
    assert {f"figures/{name}.csv" for name in figures} <= names
    assert {
        "search.csv",
        "evaluation.csv",
        "runs.csv",
        "runs.parquet",
        "accuracies.csv",
        "accuracies.parquet",
    } <= names
    assert not [name for name in names if name.endswith(".part")]
    assert len(pd.read_csv(path.parent / "runs.csv")) == len(results.search) + len(results.evaluation)
    assert len(pd.read_csv(path.parent / "search.csv")) == 55


def test_evaluation_table(full: tuple[SearchResults, Path]) -> None:
    table = evaluation_table(full[0])
    assert table["source"].tolist() == ["this study", "this study", "paper", "paper"]
    assert table["epsilon"].tolist() == [full[0].chosen[0], 0.0, 0.07185, 0.0]
    assert table["A_T_mean"].tolist()[2:] == [91.3, 89.8]
    assert table["n"].tolist()[:2] == [5, 5]
    assert table["LCA_10_mean"].isna().tolist() == [False, False, True, True]


@pytest.mark.slow
def test_printed_rows_of_another_size_are_left_out_unless_they_are_wanted(tmp_path: Path) -> None:
    results = replace(study(repeats=1), comparable=False)
    table, wanted = evaluation_table(results), evaluation_table(replace(results, with_printed=True))
    assert table["source"].tolist() == ["this study"] * 2
    assert wanted.equals(evaluation_table(replace(results, comparable=True)))
    values = summarize(results.evaluation_of(results.chosen))["A_T"]
    assert table["A_T_std"][0] == pytest.approx(values.std(ddof=1))
    assert wanted["A_T_std"][0] == pytest.approx(values.std(ddof=0))
    text = read(write_report(results, tmp_path / "out")).text
    assert text.count("its printed rows are left out; epsearch report demo --with-printed shows them.") == 1
    assert "population" not in text and "On the printed" not in text and "paper's main tables" not in text
    beside = read(write_report(replace(results, with_printed=True), tmp_path / "with")).text
    assert beside.count("population standard deviation, as the paper prints it") == beside.count("population") == 1
    assert "left out" not in beside.replace("Rows without a measured seed are left out", "")


@pytest.mark.slow
def test_the_answer_and_the_table_have_accuracy_and_forgetting_in_percent(tmp_path: Path) -> None:
    results = study(repeats=1)
    found = summarize(results.evaluation_of(results.chosen))["F_T"]
    forgotten = f"{100 * found.mean():.1f} ± {100 * found.std():.1f}".replace("-", "−")
    assert f"and F_T {forgotten} %" in answer(results)
    page = read(write_report(results, tmp_path)).text
    assert "LCA10 is a fraction, the other metrics are in percent." in page
    assert evaluation_table(results)["F_T_mean"][0] == pytest.approx(found.mean())


def test_differences_are_paired_by_seed() -> None:
    results = study(repeats=1)
    row = difference_table(results).set_index("metric").loc["A_T"]
    frame = evaluation_table(results)
    assert row["mean"] == pytest.approx(frame["A_T_mean"][0] - frame["A_T_mean"][1])
    # The seeds' common level cancels: the error of the difference is far below the spread of either row.
    assert row["standard_error"] < frame["A_T_std"][0] / 2
    assert (row["n"], row["seeds_higher"]) == (5, 5)


def test_search_table_keeps_points_without_members() -> None:
    results = study(repeats=1)
    partial = replace(results, search=tuple(r for r in results.search if r.epsilon != 1.0))
    table = search_table(partial).set_index("epsilon")
    assert (table.loc[1.0, "n"], table.loc[0.5, "n"]) == (0, 5)


def test_the_answer_is_honest_about_five_seeds() -> None:
    text = answer(study())
    assert "5 seeds cannot reach p < 0.05, because the smallest possible p is 2/2^5 = 0.0625" in text
    assert "the selection itself biases this difference upwards" in text
    assert "cannot reach" not in answer(study(repeats=1, seeds=6))


@pytest.mark.slow
def test_best_at_the_end_of_the_interval() -> None:
    results = study(repeats=1, peak=1.0)
    assert results.chosen == (1.0,)
    assert "at the high end or too close to be distinguished from it. ε cannot go beyond 1" in answer(results)
    later = replace(results.rounds[0], number=2, span=(0.5, 1.0))
    text = "The chosen ε is an end of the interval of repeat 2 [0.5, 1]: the search cannot go beyond that end again."
    assert text not in answer(replace(results, rounds=(*results.rounds, later))), "nothing lies beyond 1"
    assert text in answer(replace(results, rounds=(*results.rounds, later), chosen=(0.5,)))


@pytest.mark.slow
def test_a_choice_that_has_not_the_highest_mean() -> None:
    results = study(repeats=1)
    top = results.chosen[0]
    lower = replace(results, chosen=(0.2,), chosen_score=results.rounds[0].scores[2] or 0.0, strategy="interval-ci")
    text = answer(lower)
    assert f"one of 11 values tried in 1 repeat (the highest mean of a round is that of ε = {top})" in text
    assert "the best of 11" not in text and "maximum of noisy means" not in text and "highest of noisy" not in text
    assert "the best of 11 values" in answer(results)
    zero = replace(lower, chosen=(0.0,), chosen_score=results.rounds[0].scores[0] or 0.0)
    assert "No ε > 0 that the search left open scored higher than A-GEM" in answer(zero)


def test_zero_chosen() -> None:
    results = study(repeats=1)
    results = replace(results, chosen=(0.0,), evaluation=tuple(r for r in results.evaluation if r.epsilon == 0))
    text = answer(results)
    assert "which is plain A-GEM" in text and "No tried ε > 0 scored higher" in text
    assert len(evaluation_table(results)) == 3
    assert difference_table(results).empty


@pytest.mark.slow
def test_selection_on_the_evaluation_stream_is_said_aloud(tmp_path: Path) -> None:
    results = study(repeats=2, score_on="eval", tasks=5)
    text = read(write_report(results, tmp_path)).text
    assert "selected on the evaluation stream itself" in text and "therefore biased upwards" in text
    assert "sign-flip test: p" not in text
    assert "cannot be compared with it" in text


@pytest.mark.slow
def test_unfinished_small_and_diverged(tmp_path: Path) -> None:
    results = study(repeats=1, points=7, seeds=1, tasks=2, evaluated=False, diverged=(0.5,))
    results = replace(results, dataset="permuted_digits")
    text = read(write_report(results, tmp_path)).text.replace("\N{NO-BREAK SPACE}", " ")
    assert "The evaluation has not run yet" in text
    assert "± –" in text and "1 of 7 members diverged (ε = 0.5)" in text
    assert not re.search(r"\bnan\b", text.lower())


@pytest.mark.slow
def test_everything_from_outside_is_escaped(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script>"
    results = replace(
        study(repeats=1, points=3, seeds=1),
        name=bad,
        notes=(bad,),
        facts={bad: bad},
        config={"x": bad},
        dataset=bad,
        method=bad,
    )
    path = write_report(results, tmp_path)
    assert "<script>alert" not in path.read_text(encoding="utf-8").replace("\\u003c", "")
    assert read(path).text.count(bad) >= 6


def test_no_round_no_report(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no finished round"):
        write_report(replace(study(repeats=1), rounds=()), tmp_path)


def test_a_round_must_be_consistent() -> None:
    with pytest.raises(ValueError, match="scores must match points"):
        SearchRound(1, ((0.0,), (1.0,)), (None,), (0.0, 1.0), None, "")
    with pytest.raises(ValueError, match="winners must be positions"):
        SearchRound(1, ((0.0,), (1.0,)), (None, 0.5), None, (0, 2), "")


@pytest.mark.slow
def test_results_import_nothing_heavy_and_nothing_forbidden() -> None:
    code = "import sys, results, results.ledger.record, results.metrics; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pandas", "plotly", "sqlalchemy", "pyarrow", "torch"} & set(loaded)
    code = "import sys, results.pages.search, results.ledger.store, results.pages.search.sections; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "ray", "optuna", "trainers", "epsearch", "search_spaces", "plotly"} & set(loaded)


def test_evaluation_of_the_chosen_only() -> None:
    results = study(repeats=1)
    chosen = tuple(r for r in results.evaluation if r.epsilon != 0)
    assert "ε = 0 was not evaluated" in answer(replace(results, evaluation=chosen))
    only_zero = (record(0.0, phase="eval", tasks=17),)
    assert "only A-GEM was evaluated" in answer(replace(results, evaluation=only_zero))
