"""The figure of accuracy over steps, on points by hand."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from results.figures import inside_tasks
from results.pages.search import report
from tests.support.synthetic import study

NAN = np.nan
HAND = np.array([[0, 2, 0.5, NAN], [0, 4, 0.9, NAN], [1, 2, 0.4, 0.2], [1, 3, 0.6, 0.8]])


def one(points=HAND, status="ok"):
    return SimpleNamespace(inside=points, status=status)


def test_numbers_of_points_by_hand():
    other = HAND.copy()
    other[:, 2] -= 0.2
    rows = [("none", [one(None)]), ("lost", [one(HAND, "diverged")]), ("mine", [one(), one(other), one(HAND[:0])])]
    found = inside_tasks.numbers(rows)
    assert set(found["row"]) == {"mine"} and set(found["place"]) == {2} and set(found["n"]) == {2}
    assert found[["task", "step", "total"]].to_numpy().tolist() == [[1, 2, 2], [1, 4, 4], [2, 2, 6], [2, 3, 7]]
    assert found["first_mean"].tolist() == pytest.approx([40, 80, 30, 50])
    assert found["first_std"].tolist() == pytest.approx([100 * np.std([0.0, 0.2], ddof=1)] * 4)
    assert found["seen_mean"].tolist() == pytest.approx([40, 80, 25, 65])
    assert inside_tasks.numbers([("mine", [one()])])["seen_std"].isna().all()
    assert not len(inside_tasks.numbers(rows[:2]))


def test_it_draws_both_panels_and_the_switch():
    points = inside_tasks.numbers([("a", [one()]), ("b", [one()])])
    drawn = json.loads(inside_tasks.draw(points).to_json())
    assert [(line["name"], line.get("xaxis", "x")) for line in drawn["data"]] == [
        *(("a", "x"), ("a", "x2")),
        *(("b", "x"), ("b", "x2")),
    ]
    assert {shape["x0"] for shape in drawn["layout"]["shapes"]} == {4}
    (table,) = inside_tasks.tables(points).values()
    assert list(table["row"]) == ["a"] * 4 + ["b"] * 4 and "task 1" in inside_tasks.caption(points)


@pytest.mark.slow
def test_reports_have_it_only_where_it_was_measured(tmp_path):
    results = study(repeats=1)
    tasks = results.evaluation[0].tasks
    steps = np.full((2 * tasks, 2 + tasks), np.nan)
    for row, point in enumerate(steps):
        point[:2], point[2 : 3 + row // 2] = (row // 2, 1 + row % 2), 0.5
    measured = replace(results, evaluation=tuple(replace(each, inside=steps) for each in results.evaluation))
    assert "accuracy_over_steps" not in report.figures(results)
    assert "accuracy_over_steps" in report.figures(measured)
    page = report.write_report(measured, tmp_path).read_text(encoding="utf-8")
    assert "stability gap" in page and (tmp_path / "figures" / "accuracy_over_steps.csv").exists()
