from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from results_synthetic import study

from results.figures import curves, epsilon_curve, shrinking
from results.metrics import average_accuracy, average_accuracy_curve, forgetting
from results.tables import evaluated_rows


def test_epsilon_curve_numbers() -> None:
    results = study(repeats=3)
    curve = epsilon_curve.numbers(results, "A_T")
    assert len(curve.points) == 33 and len(curve.members) == 165
    assert (curve.low, curve.high, curve.chosen) == (0.0, 1.0, results.chosen_epsilon)
    values = [100 * float(average_accuracy(r.accuracies)) for r in results.search if r.epsilon == 0.5]
    point = curve.points[(curve.points["epsilon"] == 0.5) & (curve.points["repeat"] == 1)].iloc[0]
    assert (point["mean"], point["std"], point["n"]) == pytest.approx((np.mean(values), np.std(values), 5))
    zero = [100 * float(average_accuracy(r.accuracies)) for r in results.search if r.epsilon == 0]
    assert curve.at_zero == pytest.approx(np.mean(zero))


def test_the_parabola_leaves_zero_out_and_counts_shared_points_once() -> None:
    results = study(repeats=3)
    curve = epsilon_curve.numbers(results, "A_T")
    assert curve.parabola is not None and curve.vertex is not None
    assert curve.parabola.n == len(results.epsilons) - 1
    assert curve.parabola.low == min(e for e in results.epsilons if e > 0)
    assert curve.vertex == pytest.approx(0.12, abs=0.02)
    assert "ε = 0 is left out because another formula holds there" in epsilon_curve.caption(curve)


def test_forgetting_has_its_best_where_it_is_lowest() -> None:
    results = study(repeats=1, tasks=8)
    curve = epsilon_curve.numbers(results, "F_T")
    values = [float(forgetting(r.accuracies)) for r in results.search if r.epsilon == 0.9]
    assert curve.points.set_index("epsilon").loc[0.9, "mean"] == pytest.approx(np.mean(values))
    fit = curve.parabola
    assert fit is not None and fit.curvature > 0
    upside_down = replace_fit(curve, -fit.curvature)
    assert upside_down.vertex is None


def replace_fit(curve: epsilon_curve.EpsilonCurve, curvature: float) -> epsilon_curve.EpsilonCurve:
    assert curve.parabola is not None
    return curve._replace(parabola=curve.parabola._replace(curvature=curvature, vertex=0.5))


def test_diverged_members_are_counted_not_averaged() -> None:
    curve = epsilon_curve.numbers(study(repeats=1, diverged=(0.5,)), "A_T")
    point = curve.points.set_index("epsilon").loc[0.5]
    assert (point["n"], point["diverged"]) == (4, 1)


def test_shrinking_numbers() -> None:
    results = study(repeats=3)
    shrunk = shrinking.numbers(results)
    assert shrunk.intervals["width"].tolist() == pytest.approx([r.high - r.low for r in results.rounds])
    best = shrunk.points[(shrunk.points["repeat"] == 1) & (shrunk.points["best"] == 1)].iloc[0]
    first = results.rounds[0]
    assert best["epsilon"] == first.epsilons[int(np.argmax(first.scores))]
    assert best["position"] == pytest.approx(best["epsilon"])
    assert shrunk.points.groupby("repeat")["position"].agg(["min", "max"]).to_numpy() == pytest.approx(
        np.tile([0.0, 1.0], (3, 1))
    )
    assert (shrunk.points["best"] > 0).sum() == 6


def test_winners_may_come_in_any_order() -> None:
    results = study(repeats=1)
    p, q = results.rounds[0].winners or (0, 0)
    swapped = replace(results, rounds=(replace(results.rounds[0], winners=(q, p)),))
    assert shrinking.numbers(swapped).points.equals(shrinking.numbers(results).points)


def test_accuracy_curve_numbers() -> None:
    results = study(repeats=1)
    chosen, zero = curves.numbers(evaluated_rows(results)).curves
    stack = np.stack([r.accuracies for r in results.evaluation if r.epsilon == 0])
    assert zero.mean == pytest.approx(100 * average_accuracy_curve(stack).mean(axis=0))
    assert zero.std == pytest.approx(100 * average_accuracy_curve(stack).std(axis=0))
    assert (chosen.epsilon, zero.epsilon, zero.n, len(zero.mean)) == (results.chosen_epsilon, 0.0, 5, 17)


def test_accuracy_curve_without_spread_or_evaluation() -> None:
    found = curves.numbers(evaluated_rows(study(repeats=1, seeds=1))).curves
    assert all(math.isnan(s) for s in found[0].std)
    assert curves.numbers(evaluated_rows(study(repeats=1, evaluated=False))).curves == ()


@pytest.mark.parametrize("shape", [(1, 3, 1), (2, 4, 1), (6, 7, 2)])
def test_every_figure_draws_valid_json(shape: tuple[int, int, int]) -> None:
    repeats, points, seeds = shape
    results = study(repeats=repeats, points=points, seeds=seeds, tasks=2)
    pairs = [(epsilon_curve, epsilon_curve.numbers(results, m)) for m in ("A_T", "F_T")]
    pairs.append((shrinking, shrinking.numbers(results)))
    pairs += [(curves, curves.numbers(evaluated_rows(results), m)) for m in ("A_k", "F_k")]
    for module, numbers in pairs:
        drawn = json.loads(module.draw(numbers).to_json())
        assert drawn["data"] and module.caption(numbers) and module.tables(numbers)


def test_the_last_repeats_get_a_panel_each_on_one_scale() -> None:
    layout = json.loads(epsilon_curve.draw(epsilon_curve.numbers(study(repeats=5), "A_T")).to_json())["layout"]
    assert [a for a in layout if a.startswith("xaxis")] == ["xaxis", "xaxis2", "xaxis3", "xaxis4", "xaxis5"]
    assert layout["yaxis2"]["range"] == layout["yaxis5"]["range"]
