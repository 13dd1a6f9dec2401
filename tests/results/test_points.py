"""Searches of other hyperparameters than ε, and of several at once."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from results.figures import best_so_far, parameter_curve, shrinking, slices
from results.metrics import average_accuracy
from results.pages.search.report import write_report
from results.points import group, point_of, value
from results.search import SearchResults
from results.search_tables import difference_table, evaluation_table, search_table
from results.verdict.answer import answer
from tests.support.synthetic import record, study
from tests.support.synthetic_points import learning_rates, member, mixed, search

NAMES = ("epsilon", "lr", "memory", "scale")


def text_of(results: SearchResults, folder: Path) -> str:
    html = write_report(results, folder).read_text(encoding="utf-8")
    # The data of figures have the columns of their CSV files, of which "repeat" is one for every strategy.
    body = re.sub(r"<(script|style)\b.*?</\1>|<details class=\"data\".*?</details>", " ", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", "", body).split())


def test_a_record_tells_its_setting() -> None:
    one = member(("epsilon", "lr", "memory", "strength"), (0.3, 0.03, 10, 5.0), seed=0)
    assert point_of(one, ("epsilon", "lr", "memory", "strength")) == (0.3, 0.03, 10, 5.0)
    assert value(one, "strength") == 5.0 and value(one, "trigger") is None


def test_agem_belongs_to_every_setting_it_does_not_know() -> None:
    names = ("epsilon", "scale")
    zero, soft = member(names, (0.0, "raw"), 0), member(names, (0.3, "raw"), 0)
    wanted = [(0.0, "raw"), (0.0, "unit"), (0.3, "raw"), (0.3, "unit")]
    found = group([zero, soft], names, wanted)
    assert found == {wanted[0]: (zero,), wanted[1]: (zero,), wanted[2]: (soft,), wanted[3]: ()}
    results = search(names, wanted, baseline=(0.0, "raw"))
    assert len(results.search) == 9 and len(results.points) == 4
    spent = best_so_far.numbers(results).points
    assert spent["members"].tolist() == [3, 3, 6, 9]
    assert spent["best"].is_monotonic_increasing


def test_values_must_match_the_parameters() -> None:
    with pytest.raises(ValueError, match="baseline must have 1 values, got 2"):
        replace(study(repeats=1), baseline=(0.0, 1.0))


def test_settings_are_those_with_members() -> None:
    results = learning_rates()
    assert results.is_curve and not results.of_epsilon and not results.has_spans
    assert results.points == tuple(sorted(results.points)) and len(results.points) == 7
    fewer = replace(results, search=tuple(r for r in results.search if value(r, "lr") != 1.0))
    assert fewer.points == results.points[:-1]
    assert not mixed().is_curve


def test_tables_name_the_parameters() -> None:
    results = mixed(baseline=(0.0, 0.1, 25, "raw"))
    table = search_table(results)
    assert list(table.columns[:10]) == ["repeat", "low", "high", *NAMES, "best", "n", "diverged"]
    assert len(table) == 25 and table["low"].isna().all() and (table["n"] == 3).all()
    row = table.iloc[7]
    members = results.members_of(tuple(row[name] for name in NAMES))
    assert row["A_T_mean"] == pytest.approx(100 * np.mean([average_accuracy(r.accuracies) for r in members]))
    evaluated = evaluation_table(results)
    assert list(evaluated.columns[:7]) == ["row", "source", *NAMES, "n"]
    assert evaluated["source"].tolist() == ["this study", "this study", "paper"]
    assert evaluated["row"][1] == "A-GEM (ε = 0), learning rate = 0.1, memory = 25, scale = raw"
    assert difference_table(results)["n"].tolist() == [3] * 7


@pytest.mark.slow
def test_a_curve_over_a_logarithmic_axis() -> None:
    results = learning_rates(seeds=5)
    curve = parameter_curve.numbers(results, "A_T")
    assert curve.log and curve.baseline == 0.1
    drawn = json.loads(parameter_curve.draw(curve).to_json())
    assert drawn["layout"]["xaxis"]["type"] == "log"
    assert drawn["layout"]["xaxis"]["title"]["text"] == "learning rate"
    assert set(parameter_curve.tables(curve)) >= {"lr_A_T", "lr_A_T_seeds"}
    assert "A-GEM" not in parameter_curve.caption(curve) and "ε" not in parameter_curve.caption(curve)
    moved = replace(results, chosen=(0.01,))
    layout = json.loads(parameter_curve.draw(parameter_curve.numbers(moved, "A_T")).to_json())["layout"]
    assert layout["annotations"][-1]["x"] == pytest.approx(-2) and 0.01 in [shape["x0"] for shape in layout["shapes"]]


def test_intervals_shrink_on_the_logarithmic_axis() -> None:
    results = learning_rates()
    first = replace(results.rounds[0], span=(0.001, 1.0), winners=(3, 4))
    later = replace(first, number=2, points=((0.01,), (0.1,)), scores=(0.5, 0.9), span=(0.01, 0.1), winners=(0, 1))
    shrunk = shrinking.numbers(replace(results, strategy="narrowing", rounds=(first, later)))
    assert shrunk.intervals["width"].tolist() == pytest.approx([3, 1])
    assert shrunk.points["position"].tolist() == pytest.approx([0, 1 / 6, 2 / 6, 0.5, 4 / 6, 5 / 6, 1, 0, 1])
    assert "3 times narrower on the logarithmic axis" in shrinking.caption(shrunk)
    funnel = json.loads(shrinking.draw(shrunk).to_json())["data"][0]
    assert funnel["x"][:2] == pytest.approx([1 / 3, 2 / 3])


def test_slices() -> None:
    results = mixed(baseline=(0.0, 0.1, 25, "raw"), diverged=())
    found = slices.numbers(results)
    assert found.points["kind"].value_counts().to_dict() == {"tried": 23, "chosen": 1, "baseline": 1}
    chosen = found.points[found.points["kind"] == "chosen"].iloc[0]
    assert tuple(chosen[name] for name in NAMES) == results.chosen
    layout = json.loads(slices.draw(found).to_json())["layout"]
    assert [layout[f"xaxis{i}"]["type"] for i in ("", 2, 3, 4)] == ["linear", "log", "linear", "category"]
    assert set(layout["xaxis4"]["categoryarray"]) == {"raw", "unit"}


def test_best_so_far_skips_what_has_no_score() -> None:
    results = learning_rates(diverged=[(0.001,)])
    points = best_so_far.numbers(results).points
    assert np.isnan(points["score"][0]) and np.isnan(points["best"][0])
    assert points["best"].iloc[-1] == pytest.approx(100 * results.chosen_score)
    assert points["members"].tolist() == [3, 6, 9, 12, 15, 18, 21]
    narrowing = best_so_far.numbers(study(repeats=3, seeds=2)).points
    assert narrowing["members"].iloc[-1] == len(study(repeats=3, seeds=2).search)


@pytest.mark.slow
@pytest.mark.parametrize("score_on", ["cv", "eval"])
def test_words_of_a_search_of_the_learning_rate(tmp_path: Path, score_on: str) -> None:
    results = replace(learning_rates(), score_on=score_on)
    text = text_of(results, tmp_path)
    assert "Learning rate for EWC on Permuted MNIST" in text
    assert "1 batch of grid search, scored by AT on the" in text
    assert "Searched interval of learning rate[0.001, 1], logarithmic" in text
    assert "The search chose learning rate = 0.1, which is the baseline" in text
    for wrong in ("ε", "A-GEM", "narrow", "epeat", "shrank", " nan"):
        assert wrong not in text, wrong
    columns = pd.read_csv(tmp_path / "search.csv").columns
    assert "lr" in columns and "epsilon" not in columns


@pytest.mark.slow
def test_words_of_a_search_of_several(tmp_path: Path) -> None:
    results = mixed(baseline=(0.0, 0.1, 25, "raw"))
    text = text_of(results, tmp_path)
    assert "ε, learning rate, memory and scale for ε-SOFT-GEM on Permuted MNIST" in text
    assert "the best of 25 points tried in 5 batches" in text
    assert "Choices of scale" in text and "Batch 5" in text
    for wrong in ("narrow", "epeat", "shrank", "(A-GEM)", " nan"):
        assert wrong not in text, wrong
    names = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.csv")}
    assert {"figures/slices.csv", "figures/best_so_far.csv"} <= names
    assert "figures/shrinking_points.csv" not in names


@pytest.mark.slow
def test_without_a_baseline_nothing_is_compared(tmp_path: Path) -> None:
    results = mixed()
    assert results.baseline is None and difference_table(results).empty
    text = text_of(results, tmp_path)
    assert "baseline" not in text and "minus" not in text
    assert "Against" not in answer(results)


@pytest.mark.slow
def test_a_search_of_one_choice_has_no_curve(tmp_path: Path) -> None:
    results = search(("scale",), [("raw",), ("unit",)], baseline=("unit",))
    assert not results.is_curve
    text = text_of(results, tmp_path)
    assert "The search chose scale = raw, the best of 2 values tried in 1 batch" in text
    assert "Against the baseline scale = unit" in text


def test_the_epsilon_of_other_methods_is_not_asked() -> None:
    assert value(record(0.3), "epsilon") == 0.3


def test_dots_far_below_the_line_are_told_and_left_out() -> None:
    found = best_so_far.numbers(study(repeats=3, seeds=2))
    low, high = best_so_far.visible_range(found.points) or (0.0, 0.0)
    assert low < found.points["best"].min() and high > found.points["best"].max()
    hidden = int((found.points["score"] < low).sum())
    assert hidden and f" {hidden} dots below " in best_so_far.caption(found)
