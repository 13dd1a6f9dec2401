"""What a search on few tasks says about as many as the evaluation has, in a report."""

from dataclasses import replace

import numpy as np
import pytest

from results.figures import forecast as figure
from results.pages.search.sections import warnings
from results.search import SearchResults
from results.verdict import forecast
from results.verdict.answer import answer
from tests.support.synthetic import study


def losing(results: SearchResults, rates: tuple[float, float], learned: tuple[float, float]) -> SearchResults:
    """The study with other accuracies, whose rate of loss and learned accuracy go from one end to another over ε."""

    def moved(record):
        tasks, draws = record.tasks, np.random.default_rng([record.seed, round(1e6 * record.epsilon), record.tasks])
        first, rate = (a + (b - a) * record.epsilon for a, b in (learned, rates))
        k, j = np.indices((tasks, tasks))
        noise = 0.001 * np.random.default_rng(record.seed).standard_normal() + 0.0003 * draws.standard_normal(
            (tasks, tasks)
        )
        accuracies = np.where(j <= k, np.clip(first - rate * (k - j) + noise, 0, 1), np.nan)
        return replace(record, accuracies=accuracies)

    search, evaluation = (tuple(map(moved, part)) for part in (results.search, results.evaluation))
    best = max(
        results.points,
        key=lambda p: np.mean([r.accuracies[-1].mean() for r in search if r.epsilon == p[0]]),
    )
    return replace(results, search=search, evaluation=evaluation, chosen=best)


@pytest.fixture(scope="module")
def crossing() -> SearchResults:
    """A_3 is highest at ε = 0, which loses a point a task; A_17 at ε = 1, which learns less and keeps it."""
    return losing(study(repeats=1), rates=(0.01, 0.001), learned=(0.96, 0.945))


@pytest.fixture(scope="module")
def steady() -> SearchResults:
    return losing(study(repeats=1), rates=(0.01, 0.001), learned=(0.95, 0.95))


def test_a_choice_that_loses_on_more_tasks_is_seen_in_three(crossing: SearchResults) -> None:
    found = forecast.forecast(crossing)
    assert found is not None and (found.seen, found.tasks) == (3, 17)
    assert crossing.chosen == (0.0,) and found.values[found.model.choice] == 1.0 and not found.holds
    truth = {0.0: 0.96 - 0.01 * 8, 1.0: 0.945 - 0.001 * 8}
    for value, expected in truth.items():
        place = found.values.index(value)
        assert found.model.mean[place] == pytest.approx(expected, abs=0.03)
        assert found.model.low[place] < expected < found.model.high[place]


def test_the_report_says_so_in_the_place_of_a_general_caution(crossing: SearchResults) -> None:
    text = forecast.caution(crossing)
    assert text.startswith("The choice may not hold for 17 tasks: predicted from 3, A_T is highest at ε = 1, ")
    assert "points above ε = 0 (95 % interval " in text and text.endswith(
        "(docs/along.md). More --cv-tasks would tell."
    )
    assert text in warnings(crossing)
    words = "The choice may not hold for 17 tasks. A_T predicted for 17 tasks from 3 is highest at ε = 1: 9"
    assert words in answer(crossing)


def test_a_difference_that_does_not_matter_raises_no_doubt() -> None:
    """At ε = 1 a tenth of a point less is lost in all: it is predicted to be best, and the choice may stand."""
    near = losing(study(repeats=1), rates=(0.0010, 0.0009), learned=(0.95, 0.9495))
    found = forecast.forecast(near)
    assert found is not None and not found.doubtful and forecast.caution(near) == ""
    assert "may not hold" not in forecast.in_words(near)


def test_prediction_stands_beside_what_was_measured(steady: SearchResults) -> None:
    words = forecast.in_words(steady)
    baseline = np.mean([record.accuracies[-1].mean() for record in steady.evaluation_of((0.0,))])
    assert "ε = 0: predicted " in words and f"measured {100 * baseline:.1f} %" in words
    assert "measured" not in forecast.in_words(replace(steady, evaluation=(), config={"tasks": 20, "cv_tasks": 3}))


def test_a_choice_that_is_predicted_to_hold_has_no_caution(steady: SearchResults) -> None:
    found = forecast.forecast(steady)
    assert found is not None and found.holds and steady.chosen == (1.0,)
    assert forecast.caution(steady) == "" and "may not hold" not in forecast.in_words(steady)


def test_numbers_for_other_tools(crossing: SearchResults) -> None:
    found = forecast.as_json(crossing)
    assert found is not None and (found["seen"], found["tasks"], found["best"]) == (3, 17, 1.0)
    assert [row["value"] for row in found["values"]] == [point[0] for point in crossing.points]
    assert all(0 < row["low"] < row["mean"] < row["high"] for row in found["values"])
    shown = figure.numbers(crossing)
    assert shown is not None
    table = figure.tables(shown)["forecast"]
    assert table["mean"].tolist() == [100 * row["mean"] for row in found["values"]]
    assert table["measured"].notna().sum() == len({p for p in crossing.evaluated if crossing.evaluation_of(p)})
    assert len(figure.draw(shown).data) == 4 and "Predicted highest: ε = 1." in figure.caption(shown)


def test_a_value_of_which_a_member_diverged_has_no_prediction(crossing: SearchResults) -> None:
    lost = crossing.points[3]
    records = tuple(
        replace(r, accuracies=np.full_like(r.accuracies, np.nan), status="diverged", diverged_task=0, diverged_step=0)
        if r.epsilon == lost[0] and r.seed == 0
        else r
        for r in crossing.search
    )
    found = forecast.as_json(replace(crossing, search=records))
    assert found is not None
    assert [row["mean"] is None for row in found["values"]] == [point == lost for point in crossing.points]


@pytest.mark.parametrize(
    "change",
    [
        {"score_on": "eval"},
        {"objective": "A_T − 0.5 F_T"},
        {"search": ()},
    ],
)
def test_nothing_is_predicted_where_nothing_can_be(change: dict[str, object], crossing: SearchResults) -> None:
    assert forecast.forecast(crossing) is not None
    changed = replace(crossing, **change)  # type: ignore[arg-type]
    assert forecast.forecast(changed) is None and forecast.in_words(changed) == "" and forecast.caution(changed) == ""
    assert forecast.as_json(changed) is None and figure.numbers(changed) is None


def test_one_seed_and_equal_values_predict_nothing(crossing: SearchResults) -> None:
    one = replace(crossing, search=tuple(r for r in crossing.search if r.seed == 0))
    assert forecast.forecast(one) is None
    same = {r.seed: r.accuracies for r in crossing.search}
    equal = replace(crossing, search=tuple(replace(r, accuracies=same[r.seed]) for r in crossing.search))
    assert forecast.forecast(equal) is None
