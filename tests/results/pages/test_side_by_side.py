"""Several searches side by side."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from results.figures import races, tried
from results.html.page import prose
from results.metrics import average_accuracy
from results.pages.sheet import Sheet
from results.pages.side_by_side import strategies_sheet, write_strategies
from results.pages.side_by_side_numbers import row_labels, strategies_table
from results.search import EvaluatedChoice, SearchResults
from tests.support.synthetic import study
from tests.support.synthetic_points import learning_rates, mixed, search


def of_rates(strategy: str, rates: list[float], name: str, **more: object) -> SearchResults:
    found = search(("lr",), [(r,) for r in rates], (0.1,), strategy=strategy, log=("lr",), **more)  # type: ignore[arg-type]
    return replace(found, name=name)


@pytest.fixture(scope="module")
def three() -> list[SearchResults]:
    return [
        replace(learning_rates(), name="first"),
        of_rates("random", [0.004, 0.5, 0.07, 0.02], "second", batch=2),
        of_rates("tpe", [0.3, 0.01, 0.11], "third", batch=1, evaluated=False),
    ]


def test_one_row_a_study(three: list[SearchResults]) -> None:
    table = strategies_table(three)
    assert table["study"].tolist() == ["first", "second", "third"]
    assert table["settings"].tolist() == [7, 4, 3] and table["members"].tolist() == [21, 12, 9]
    assert table["chosen"][1] == "learning rate = 0.07"
    ours, firsts = (
        {r.seed: 100 * float(average_accuracy(r.accuracies)) for r in s.evaluation_of(s.chosen)}
        for s in (three[1], three[0])
    )
    assert table["difference"][1] == pytest.approx(np.mean([ours[s] - firsts[s] for s in range(3)]))
    assert table["pairs"].tolist() == [0, 3, 0] and table["difference"].isna().tolist() == [True, False, True]
    assert table["evaluation_n"].tolist() == [3, 3, 0]


def test_strategies_that_come_twice_are_told_apart(three: list[SearchResults]) -> None:
    again = replace(three[1], name="fourth")
    assert row_labels([*three[:2], again]) == ["grid search", "random search (second)", "random search (fourth)"]


def test_the_page_and_its_files(three: list[SearchResults], tmp_path: Path) -> None:
    html = write_strategies(three, tmp_path).read_text(encoding="utf-8")
    text = " ".join(re.sub(r"<[^>]+>", "", re.sub(r"<(script|style).*?</\1>", " ", html, flags=re.DOTALL)).split())
    names = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert names == {
        *("strategies.html", "strategies.csv", "strategies.md", "strategies.tex"),
        *("figures/tried.csv", "figures/best_so_far.csv"),
    }
    assert "Learning rate for EWC on Permuted MNIST: strategies compared" in text
    assert "One run of each strategy is one draw" in text and "docs/strategies.md" in text
    assert "Not evaluated yet: third." in text and "nan" not in text
    assert html.count("<figure ") == 2 and html.count('class="banner ') == 3
    assert "One run of each" in (tmp_path / "strategies.md").read_text(encoding="utf-8")
    assert len(pd.read_csv(tmp_path / "figures" / "tried.csv")) == 14


def test_figures_share_colours_and_axes(three: list[SearchResults]) -> None:
    labelled = list(zip(row_labels(three), three, strict=True))
    dots = json.loads(tried.draw(tried.numbers(labelled)).to_json())
    lines = json.loads(races.draw(races.numbers(labelled)).to_json())
    assert dots["layout"]["xaxis"]["type"] == "log"
    colours = {trace["name"]: trace["marker"]["color"] for trace in dots["data"]}
    assert {trace["name"]: trace["line"]["color"] for trace in lines["data"]} == colours and len(colours) == 3
    points = races.numbers(labelled).points
    assert points.groupby("row")["members"].max().to_dict() == {labelled[i][0]: n for i, n in enumerate((21, 12, 9))}


def test_only_shared_parameters_have_a_panel() -> None:
    labelled = [("a", mixed()), ("b", learning_rates())]
    found = tried.numbers(labelled)
    assert found.parameters == ("lr",) and len(found.points) == 32
    nothing = tried.numbers([("a", study(repeats=1)), ("b", learning_rates())])
    assert nothing.parameters == () and "no hyperparameter in common" in tried.caption(nothing)
    assert json.loads(tried.draw(nothing).to_json())["data"] == []


def test_what_cannot_be_compared(three: list[SearchResults], tmp_path: Path) -> None:
    first, second = three[:2]
    sizes = [configured(s, examples_per_task=n) for s, n in zip(three, (2000, None, 2000), strict=True)]
    fewer = replace(second, search=tuple(r for r in study(repeats=1, tasks=2).search))
    for studies, message in (
        ([first], "be two or more, got first"),
        ([first, first], "be different ones, got first, first"),
        (
            [first, replace(second, dataset="split_cub")],
            "have the same dataset, got permuted_mnist (first), split_cub (second)",
        ),
        ([first, replace(second, score_on="eval")], "have the same score-on, got cv (first), eval (second)"),
        ([first, fewer], "have the same tasks of the search, got 3 (first), 2 (second)"),
        (sizes, "have the same examples-per-task, got 2000 (first), null (second), 2000 (third)"),
        (
            [configured(first, optimizer="sgd"), configured(second, optimizer="adam")],
            "have the same optimizer, got sgd (first), adam (second)",
        ),
        ([of_images(first, "aa"), of_images(second, "bb")], "have the same images, got aa (first), bb (second)"),
    ):
        with pytest.raises(ValueError, match=f"searches to compare must {re.escape(message)}$"):
            write_strategies(studies, tmp_path)
    assert list(tmp_path.iterdir()) == []


def of_images(results: SearchResults, fingerprint: str) -> SearchResults:
    """As if its members had been trained on these images."""
    content = {"stream": {"images": fingerprint}}
    return replace(results, search=tuple(replace(r, content={**r.content, **content}) for r in results.search))


def configured(results: SearchResults, **values: object) -> SearchResults:
    return replace(results, config={**results.config, **values})


@pytest.mark.slow
def test_every_other_option_that_differs_is_told(three: list[SearchResults], tmp_path: Path) -> None:
    one = configured(three[0], lr=0.1, name="first", out="here", numeric_path="a", memory=list(range(30)), race=False)
    other = configured(three[1], lr=0.3, name="second", out="there", numeric_path="b", memory=[1], race=False)
    text = write_strategies([one, other], tmp_path).read_text(encoding="utf-8")
    assert "more than the strategy: lr (0.1, 0.3), numeric_path (a, b), memory." in text


@pytest.mark.slow
def test_looks_of_all_studies_are_told(three: list[SearchResults], tmp_path: Path) -> None:
    old, new = (
        EvaluatedChoice("lr = 0.1", "2025-11-20T08:00:00", True),
        EvaluatedChoice("lr = 0.2", "2025-11-21T08:00:00", True),
    )
    looked = [
        replace(three[0], evaluated_choices=(old,)),
        replace(three[1], evaluated_choices=(old._replace(mine=False), new)),
        three[2],
    ]
    text = write_strategies(looked, tmp_path).read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    assert (
        "There are 2 choices that were evaluated on this evaluation stream. They are: lr = 0.1 (2025-11-20); lr" in text
    )


def test_a_name_that_is_part_of_the_label_is_shown_too(three: list[SearchResults]) -> None:
    def sheet(studies: list[SearchResults]) -> Sheet:
        return strategies_sheet(studies, strategies_table(studies))

    first, second = (replace(s, name=name) for s, name in zip(three, ("grid", "second"), strict=False))
    assert [line.text for line in sheet([first, second]).rows[0][0]] == ["grid search", "grid"]
    twice = sheet([first, replace(first, name="again")]).rows[0][0]
    assert [line.text for line in twice] == ["grid search (grid)"]


def test_other_differences_are_told(three: list[SearchResults], tmp_path: Path) -> None:
    other = replace(three[1], method="mas", seeds=(7, 8))
    text = write_strategies([three[0], other], tmp_path).read_text(encoding="utf-8")
    assert "They differ in more than the strategy: method, seeds of the search." in text


def test_a_figure_in_a_sentence_is_not_broken() -> None:
    assert prose("p = 0.06, 84 ± 3 %: A_T") == "p\u00a0=\u00a00.06, 84\u00a0±\u00a03\u00a0%: A<sub>T</sub>"
