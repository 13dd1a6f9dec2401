from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from results.statistics.confidence_set import best_interval
from results.verdict.curve import Verdict, seeds_advice, verdict
from results.verdict.points import verdict_of_points
from tests.support.seed_tables import parabola, table

X = np.linspace(0, 1, 11)
NAN = math.nan


def percent(rng: np.random.Generator, curve: Callable[[np.ndarray], np.ndarray], seeds: int) -> np.ndarray:
    return 100 * table(rng, X, curve, seeds)


def told(top: float, bend: float, seeds: int = 5, seed: int = 1, natural: tuple[str, str] = ("", "")) -> Verdict:
    scores = percent(np.random.default_rng(seed), parabola(top, bend), seeds)
    return verdict(best_interval(X, scores, 0, 1), scores, natural=natural)


def test_a_clear_top_is_resolved() -> None:
    found = told(0.4, 0.25)
    assert found.kind == "resolved" and 0.3 <= found.low < 0.4 < found.high <= 0.5
    assert found.text.startswith("The best ε lies in [0.3, 0.5]") and "95 % confidence (5 seeds)" in found.text
    assert found.advice.startswith("Take ε = 0.4") or found.advice.startswith("Take ε = 0.3")


def test_a_top_at_an_end_says_what_lies_there() -> None:
    low, high = told(-0.3, 0.1, natural=("A-GEM", "")), told(1.4, 0.1, natural=("A-GEM", ""))
    assert (low.kind, low.low, high.kind, high.high) == ("edge", 0, "edge", 1)
    assert "at the low end or too close" in low.text and "take A-GEM" in low.advice and "seeds" not in low.advice
    assert "at the high end" in high.text and high.advice == "Better values may lie above 1: search a wider interval."


def test_an_end_that_is_worse_than_its_neighbourhood_is_not_recommended() -> None:
    scores = percent(np.random.default_rng(1), parabola(-0.3, 0.1), 5)
    scores[0] -= 5  # ε = 0 follows another formula
    found = verdict(best_interval(X, scores, 0, 1, apart=[0]), scores, natural=("A-GEM", ""))
    assert (found.kind, found.low) == ("edge", 0)
    assert found.advice == "A-GEM itself is significantly worse: try values closer to 0."


@pytest.mark.slow
def test_few_seeds_ask_for_more_only_where_they_may_help() -> None:
    weak, one = told(0.5, 0.004, seeds=4), told(0.5, 0.25, seeds=1)
    assert (weak.kind, weak.low, weak.high) == ("open", 0, 1) == (one.kind, one.low, one.high)
    assert "4 seeds cannot tell which ε is best" in weak.text
    assert "no estimate of the noise" in one.text and "3 seeds of every value; a paired test can" in one.advice
    hopeless = np.full((11, 3), 50.0)
    assert "seeds" not in verdict(best_interval(X, hopeless, 0, 1), hopeless).advice
    asking = [told(0.5, 0.01, seeds=4, seed=s) for s in range(10)]
    assert any("would take at least" in v.advice and "(--extend --seeds)" in v.advice for v in asking)


def climb(x: np.ndarray) -> np.ndarray:
    """Rises by two points, and is level from 0.4 on."""
    return 0.9 - 0.05 * np.maximum(0.0, 0.4 - x)


TRUTHS = {
    "resolved": (parabola(0.4, 0.25), 5, 1),
    "one-sided": (climb, 20, 1),
    "edge": (lambda x: 0.9 - 0.06 * (1 - x), 5, 1),
    "level": (parabola(0.4, 0.0), 40, 1),
    "open": (parabola(0.5, 0.02), 4, 6),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TRUTHS)
def test_each_truth_gets_its_verdict(kind: str) -> None:
    """In at least 9 of 12 studies, and never one that the truth contradicts."""
    curve, seeds, noise = TRUTHS[kind]
    found = []
    for seed in range(12):
        scores = noise * percent(np.random.default_rng([seed, seeds]), lambda x: 0 * x, seeds)
        scores += 100 * curve(X)[:, None]
        found.append(verdict(best_interval(X, scores, 0, 1), scores, natural=("A-GEM", "ε = 1")))
    kinds = [one.kind for one in found]
    assert kinds.count(kind) >= 9, kinds
    truth = 100 * curve(np.linspace(0, 1, 1001))
    for one in found:
        if one.kind == "level":
            assert np.ptp(truth) < 0.5 and "hardly matters" in one.text and "differ by less than 0.5" in one.text
        if one.kind == "one-sided":
            inside = truth[int(1000 * one.low) : int(1000 * one.high) + 1]
            assert np.ptp(inside) < 0.5 and "differ by less than 0.5 percentage points" in one.text
        assert "lat" not in one.text.split() and not ("anywhere" in one.text and "differ significantly" in one.text)


def test_lost_members_beyond_a_quarter_leave_no_answer() -> None:
    scores = percent(np.random.default_rng(2), parabola(0.4, 0.25), 4)
    lost = np.zeros((11, 4), dtype=bool)
    lost[8:, :] = True
    lost[8, 0] = False  # 11 of 44, exactly a quarter
    few = np.where(lost, NAN, scores)
    found = verdict(best_interval(X, few, 0, 1), few, lost)
    assert found.kind == "diverging" and found.text.startswith("11 of 44 members (25 %) diverged")
    assert "learning rate" in found.advice
    fewer = lost.copy()
    fewer[8, 1] = False
    holed = np.where(fewer, NAN, scores)
    assert verdict(best_interval(X, holed, 0, 1), holed, fewer).kind == "resolved"
    raced = few  # the same holes, but never trained
    assert verdict(best_interval(X, raced, 0, 1), raced).kind == "resolved"


def test_three_values_left_are_too_few_for_a_curve_that_lost_others() -> None:
    scores = np.full((4, 12), 50.0)
    scores[0] = 60  # all equal they would be inert
    scores[3] = NAN
    lost = np.isnan(scores)
    lost[3, 1:] = False  # one lost member of 37, but a whole value is gone
    found = verdict(best_interval(X[:4], scores, 0, 1), scores, lost, label="learning rate")
    assert found.kind == "diverging" and "again" not in found.advice
    assert found.text == "3 values of 4 have a score, as 1 of 37 members diverged: too few are left for a verdict."


def judged(curve: Callable[[np.ndarray], np.ndarray], zero: float = 0.0) -> Verdict:
    scores = percent(np.random.default_rng(1), curve, 5)
    scores[0] += zero  # ε = 0 follows another formula
    return verdict(best_interval(X, scores, 0, 1, apart=[0] if zero else []), scores, natural=("A-GEM", "ε = 1"))


@pytest.mark.slow
def test_a_valley_or_a_saw_do_not_make_any_value_as_good() -> None:
    valley = judged(parabola(0.5, -0.1))
    saw = judged(lambda x: 0.9 - 0.02 * (np.round(10 * x) % 2))
    assert (
        valley.kind == "open"
        and "near either end of [0, 1], while the values between are significantly worse" in valley.text
    )
    assert valley.advice.startswith("Take the better end, or search near each end separately.")
    assert "some values are worse than others (p = " in saw.text and "near both ends of [0, 1]" in saw.text
    level = judged(parabola(0.5, 0.0))
    assert (level.kind, level.advice) == ("level", "Take the best tried value.") and "(5 seeds)" in level.text
    noisy = 5 * percent(np.random.default_rng(1), parabola(0.5, 0.0), 5)
    same = verdict(best_interval(X, noisy, 0, 1), noisy)
    assert re.search(r"a test of all tried values at once finds no difference \(p = 0\.\d+\)\.$", same.text)
    assert same.advice == "Take the best tried value." == saw.advice[:26]


def test_the_verdict_is_on_a_stream() -> None:
    scores = percent(np.random.default_rng(1), parabola(0.4, 0.25), 5)
    found = verdict(best_interval(X, scores, 0, 1), scores, where=" on the stream of 3 tasks")
    assert found.text.startswith("The best ε on the stream of 3 tasks lies in [0.3") and found.advice[:7] == "Take ε "
    level = verdict(best_interval(X, scores[:, :1], 0, 1), scores[:, :1], where=" on the stream of 3 tasks")
    assert level.text.endswith("the best ε on the stream of 3 tasks is unknown.")


def test_two_seeds_that_differ_by_much_are_not_called_equal() -> None:
    scores = np.array([[70.2, 71.4], [72.0, 80.1], [73.1, 83.7], [71.9, 84.0], [72.6, 81.7]])
    found = verdict(best_interval([0, 0.25, 0.5, 0.75, 1], scores, 0, 1), scores)
    assert found.kind == "open" and found.advice.startswith("Take the best tried value.")


def test_three_values_of_a_race_say_what_the_race_knew() -> None:
    scores = np.array([[79.8, 79.1, *3 * [NAN]], [84.8, 84.2, 85.3, 84.4, 85.1], [78.8, 78.3, *3 * [NAN]]])
    found = verdict(best_interval([0, 0.5, 1], scores, 0, 1), scores)
    assert (found.kind, found.advice) == ("resolved", "Take ε = 0.5.") and "lies in (0, 1)" in found.text
    points = verdict_of_points(scores)
    assert (
        points.kind == "resolved"
        and points.text == "The best point is significantly better than all 2 others (5 seeds)."
    )
    noisy = scores + np.array([[0, 9], [0, 0], [0, 9]]) @ np.eye(2, 5)
    assert verdict(best_interval([0, 0.5, 1], noisy, 0, 1), noisy).kind == "open" == verdict_of_points(noisy).kind


def test_without_a_gem_any_other_value_may_do() -> None:
    scores = 5 * percent(np.random.default_rng(1), parabola(0.5, 0.0), 5)
    scores[0] -= 50
    found = verdict(best_interval(X, scores, 0, 1, apart=[0]), scores)
    assert found.kind == "open" and "anywhere in (0, 1]; a test of all" in found.text
    assert found.advice == "Take the best tried value."


@pytest.mark.slow
def test_an_open_verdict_asks_for_more_seeds_than_there_are() -> None:
    for seed in range(20):
        scores = percent(np.random.default_rng(seed), parabola(0.5, 0.01), 8)
        scores[5:, 2:] = NAN  # a race: six seeds know five values
        found = best_interval(X, scores, 0, 1)
        assert not (found.at_low or found.at_high) or found.seeds_needed >= 9


def settings(gap: float, seed: int = 1, **more: Sequence[str]) -> Verdict:
    """Six settings with six seeds, of which 1 and 4 are better than the others by `gap`."""
    rng = np.random.default_rng(seed)
    means = 0.9 - gap * ~np.isin(np.arange(6), [1, 4])
    return verdict_of_points(means[:, None] + rng.normal(0, 0.003, (6, 6)) + rng.normal(0, 0.02, 6), **more)


def test_settings_without_a_curve() -> None:
    clear = settings(0.05)
    assert clear.kind == "resolved" and clear.best in (1, 4) and {clear.best, *clear.rivals} == {1, 4}
    assert clear.text == "1 of the 5 other points cannot be told apart from the best (6 seeds)."
    edge = settings(0.05, bounds=[*4 * [""], "λ = 100", ""])
    assert edge.kind == "edge" and "at a bound (λ = 100): widen that range" in edge.advice
    assert settings(0.05, bounds=["λ = 0.1", *5 * [""]]).kind == "resolved"
    level = settings(0.0)
    assert level.kind == "open" and len(level.rivals) == 5
    assert settings(0.05, lost=np.ones((6, 6), dtype=bool)).kind == "diverging"
    assert level.text == "None of the 5 other points can be told apart from the best (6 seeds)."
    needed = [re.findall(r"at least (\d+)", settings(0.004, seed).advice) for seed in range(60)]
    assert min(int(number) for found in needed for number in found) > 6, "never fewer than there are"
    assert not any("seeds to decide" in settings(0.0, seed).advice for seed in range(20)), "no difference was shown"
    nothing = verdict_of_points(np.full((3, 2), NAN))
    assert (nothing.kind, nothing.best, nothing.rivals) == ("open", None, ())


def test_settings_of_one_seed_or_without_another() -> None:
    one = verdict_of_points(np.array([[0.5], [0.6], [0.7]]))
    assert one.kind == "open" and "3 seeds of every point; a paired" in one.advice and "no estimate" in one.text
    alone = verdict_of_points(np.array([[0.5, 0.6]]), label="value")
    assert (alone.kind, alone.text) == ("open", "Only one value has a score: there is nothing to compare it with.")
    two = verdict_of_points(np.array([[0.5, 0.6, 0.7], [0.51, 0.59, 0.7]]))
    assert two.text == "The two points cannot be told apart (3 seeds)."
    clear = verdict_of_points(np.array([[0.5, 0.6, 0.7], [0.301, 0.4, 0.499], [0.3, 0.399, 0.5]]))
    assert clear.text == "The best point is significantly better than all 2 others (3 seeds)."
    assert clear.advice.endswith("point.")


@pytest.mark.slow
def test_equal_settings_are_seldom_told_apart() -> None:
    # Random seeds 0…299, 12 settings, 5 seeds; promised: at most 5 %, margin 3 standard errors. Measured: 4.7 %.
    draws = (np.random.default_rng(seed).normal(size=(12, 5)) for seed in range(300))
    assert np.mean([verdict_of_points(scores).kind != "open" for scores in draws]) <= 0.087


@pytest.mark.parametrize("seeds", [1, 2])
def test_few_seeds_say_nothing_too_sure(seeds: int) -> None:
    assert told(0.5, 0.01, seeds=seeds).kind in ("open", "one-sided", "level"), "the largest difference is 0.25 points"
    assert settings(0.0).kind == "open"


def test_a_slow_start_is_no_valley() -> None:
    """Only a middle that is worse as a whole says that the best lies at one of the two ends."""
    x = np.linspace(0, 1, 12)
    scores = 100 * table(np.random.default_rng(3), x, lambda v: np.minimum(v, 0.3) * 0.08, 5)
    scores[1] -= 5  # one value among many
    found = verdict(best_interval(x, scores, 0, 1)._replace(at_low=True, at_high=True), scores)
    assert found.kind == "open" and "near either end" not in found.text
    valley = 100 * table(np.random.default_rng(3), x, lambda v: 0.2 * (v - 0.5) ** 2, 5)
    found = verdict(best_interval(x, valley, 0, 1), valley)
    assert found.kind == "open" and "near either end" in found.text


def test_few_needed_seeds_are_told_beside_those_of_a_test() -> None:
    assert seeds_advice(3, "Take it.") == (
        "Take it. It would take at least 3 seeds to decide, if the differences measured here are the true ones "
        "(--extend --seeds); a paired test can reach p < 0.05 with 6."
    )
    assert "paired test" not in seeds_advice(6, "Take it.") and seeds_advice(0, "Take it.") == "Take it."


def test_an_end_far_below_is_left_out_of_the_interval_without_a_curve() -> None:
    scores = np.array([[40.0, 41.0, 40.5], [63.0, 64.0, 63.6], [63.1, 63.9, 63.7]])
    found = verdict(best_interval([0, 0.5, 1], scores, 0, 1), scores, natural=("A-GEM", "ε = 1"))
    assert found.kind == "edge" and "lies in (0, 1] with" in found.text
