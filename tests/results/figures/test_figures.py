from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from results.figures import later_repeats, over_tasks, parameter_curve, seed_differences, shrinking
from results.figures.noise import indistinct_rounds
from results.figures.parameter_drawing import ParameterCurve
from results.figures.style import AXIS, DRAWN
from results.metrics import average_accuracy, average_accuracy_curve
from results.pages.search.report import figures, write_report
from results.search_tables import evaluated_rows
from results.verdict import wording
from results.verdict.answer import answer
from results.verdict.assessment import trust, trust_as_json
from tests.support.synthetic import study
from tests.support.synthetic_points import learning_rates


def test_epsilon_curve_numbers() -> None:
    results = study(repeats=3)
    curve = parameter_curve.numbers(results, "A_T")
    assert len(curve.points) == 33 and len(curve.members) == 165
    assert (curve.baseline, curve.chosen) == (0.0, results.chosen[0])
    values = [100 * float(average_accuracy(r.accuracies)) for r in results.search if r.epsilon == 0.5]
    point = curve.points[(curve.points["epsilon"] == 0.5) & (curve.points["repeat"] == 1)].iloc[0]
    assert (point["mean"], point["std"], point["n"]) == pytest.approx((np.mean(values), np.std(values, ddof=1), 5))
    zero = [100 * float(average_accuracy(r.accuracies)) for r in results.search if r.epsilon == 0]
    assert curve.at_baseline == pytest.approx(np.mean(zero))


def test_diverged_members_are_counted_not_averaged() -> None:
    curve = parameter_curve.numbers(study(repeats=1, diverged=(0.5,)), "A_T")
    point = curve.points.set_index("epsilon").loc[0.5]
    assert (point["n"], point["diverged"]) == (4, 1)


def test_shrinking_numbers() -> None:
    results = study(repeats=3)
    shrunk = shrinking.numbers(results)
    assert shrunk.intervals["width"].tolist() == pytest.approx(
        [r.span[1] - r.span[0] for r in results.rounds if r.span]
    )
    best = shrunk.points[(shrunk.points["repeat"] == 1) & (shrunk.points["best"] == 1)].iloc[0]
    first = results.rounds[0]
    assert best["epsilon"] == first.points[int(np.argmax(first.scores))][0]
    assert best["position"] == pytest.approx(best["epsilon"])
    assert shrunk.points.groupby("repeat")["position"].agg(["min", "max"]).to_numpy() == pytest.approx(
        np.tile([0.0, 1.0], (3, 1))
    )
    assert (shrunk.points["best"] > 0).sum() == 6


@pytest.mark.slow
def test_a_study_that_grew_by_another_search_has_two_chains() -> None:
    first, second = study(repeats=3), study(repeats=2, peak=0.8)
    later = tuple(replace(r, number=r.number + 3) for r in second.rounds)
    batch = replace(later[0], number=6, span=None, winners=None)
    grown = replace(first, rounds=(*first.rounds, *later, batch), search=(*first.search, *second.search))
    shrunk = shrinking.numbers(grown)
    text = shrinking.caption(shrunk)
    widths = shrunk.intervals["width"].tolist()
    assert f"From repeat 4 to the last repeat the interval became {widths[3] / widths[4]:.3g} times narrower." in text
    assert "a new search began" in text and "new search" not in shrinking.caption(shrinking.numbers(first))
    every = shrunk._replace(indistinct=())
    funnels = [t for t in json.loads(shrinking.draw(every).to_json())["data"] if t.get("fill") == "toself"]
    assert len(funnels) == 3
    assert wording.rounds(grown) == "5 repeats and 1 batch" and wording.round_nouns(grown) == "rounds"
    assert [wording.round_noun(r) for r in grown.rounds[3:]] == ["repeat", "repeat", "batch"]
    curve = parameter_curve.numbers(grown, "A_T")
    assert curve.intervals == (1, 2, 3, 4, 5) and "where there is room" in parameter_curve.caption(curve)
    names = [t.get("name") for t in json.loads(parameter_curve.draw(curve).to_json())["data"]]
    assert "repeat 5" in names and "batch 6" in names


@pytest.mark.slow
def test_rounds_without_a_member_do_no_harm(tmp_path: Path) -> None:
    for results in (study(repeats=2, points=4, seeds=2), learning_rates()):
        bare = replace(results, search=())
        assert trust(bare).peak is None and trust(bare).seeds == 0
        assert "The search chose" in answer(bare) and trust_as_json(trust(bare))["tests"] == []
        assert write_report(bare, tmp_path).exists()
    one_round = study(repeats=2, points=4, seeds=2)
    first = {point[0] for point in one_round.rounds[0].points}
    write_report(replace(one_round, search=tuple(r for r in one_round.search if r.epsilon in first)), tmp_path)


def test_winners_may_come_in_any_order() -> None:
    results = study(repeats=1)
    p, q = results.rounds[0].winners or (0, 0)
    swapped = replace(results, rounds=(replace(results.rounds[0], winners=(q, p)),))
    assert shrinking.numbers(swapped).points.equals(shrinking.numbers(results).points)


def test_accuracy_curve_numbers() -> None:
    results = study(repeats=1)
    _, (chosen, zero) = over_tasks.numbers(evaluated_rows(results))
    stack = np.stack([r.accuracies for r in results.evaluation if r.epsilon == 0])
    assert zero.mean == pytest.approx(100 * average_accuracy_curve(stack).mean(axis=0))
    assert zero.std == pytest.approx(100 * average_accuracy_curve(stack).std(axis=0, ddof=1))
    assert (chosen.epsilon, zero.epsilon, zero.n, len(zero.mean)) == (results.chosen[0], 0.0, 5, 17)


def test_accuracy_curve_without_spread_or_evaluation() -> None:
    _, found = over_tasks.numbers(evaluated_rows(study(repeats=1, seeds=1)))
    assert all(math.isnan(s) for s in found[0].std)
    assert over_tasks.numbers(evaluated_rows(study(repeats=1, evaluated=False)))[1] == ()


def test_all_figures_have_the_axes_of_the_style() -> None:
    """They stand in the template, which has no other kinds of traces."""
    drawings = [module.draw(numbers) for module, numbers in figures(study(seeds=2)).values()]
    assert len(drawings) > 3
    for drawing in drawings:
        template = drawing.layout.template.to_plotly_json()
        assert {trace.type for trace in drawing.data} <= {*DRAWN} == {*template["data"]}
        for axis in ("xaxis", "yaxis"):
            assert AXIS.items() <= template["layout"][axis].items()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 3, 1), (2, 4, 1), (6, 7, 2)])
def test_every_figure_draws_valid_json(shape: tuple[int, int, int]) -> None:
    repeats, points, seeds = shape
    results = study(repeats=repeats, points=points, seeds=seeds, tasks=2)
    pairs = [(parameter_curve, parameter_curve.numbers(results, m)) for m in ("A_T", "F_T")]
    pairs.append((shrinking, shrinking.numbers(results)))
    pairs += [(over_tasks, over_tasks.numbers(evaluated_rows(results), m)) for m in ("A_k", "F_k")]
    for module, numbers in pairs:
        drawn = json.loads(module.draw(numbers).to_json())
        assert drawn["data"] and module.caption(numbers) and module.tables(numbers)


@pytest.mark.slow
def test_forgetting_is_drawn_in_percent_and_written_as_a_fraction() -> None:
    results = study(repeats=1)
    curve = parameter_curve.numbers(results, "F_T")
    figure = parameter_curve.draw(curve)
    assert figure.layout.yaxis.title.text == "F<sub>T</sub> (%)"
    (dots,) = (trace for trace in figure.data if trace.name == "repeat 1" and trace.error_y.array is not None)
    ours = curve.points[curve.points["epsilon"] != 0]
    assert dots.y == pytest.approx(100 * ours["mean"])
    assert dots.error_y.array == pytest.approx(100 * ours["within_error"])
    fitted, (line,) = curve.peak, (trace for trace in figure.data if trace.name == "curve, 95 % band")
    assert fitted is not None and fitted.curve is not None
    assert max(line.y) <= 100 * fitted.curve["mean"].max() and min(line.y) >= 100 * fitted.curve["mean"].min()
    assert curve.at_baseline is not None and f"({100 * curve.at_baseline:.1f} %)" in parameter_curve.caption(curve)
    assert parameter_curve.tables(curve)["epsilon_F_T"]["mean"].equals(curve.points["mean"])
    metric, (chosen, _) = forgotten = over_tasks.numbers(evaluated_rows(results), "F_k")
    drawn = over_tasks.draw(forgotten)
    assert next(trace for trace in drawn.data if trace.name == chosen.label).y[1:] == pytest.approx(
        [100 * value for value in chosen.mean[1:]]
    )
    assert drawn.layout.yaxis.title.text == f"{metric[0]}<sub>k</sub> (%)"
    assert over_tasks.tables(forgotten)["forgetting_curve"]["F_k_mean"][0] == chosen.mean[1]


def later(repeats: int) -> ParameterCurve:
    """A curve whose later repeats all have a panel."""
    return parameter_curve.numbers(study(repeats=repeats), "A_T")._replace(indistinct=())


@pytest.mark.slow
def test_the_last_repeats_get_a_panel_each_on_one_scale() -> None:
    layout = json.loads(later_repeats.draw(later(6)).to_json())["layout"]
    assert [a for a in layout if a.startswith("xaxis")] == ["xaxis", "xaxis2", "xaxis3", "xaxis4"]
    assert layout["yaxis2"]["range"] == layout["yaxis4"]["range"]
    assert "Of 5 the last 4 are drawn" in later_repeats.caption(later(6))
    assert [a for a in json.loads(parameter_curve.draw(later(6)).to_json())["layout"] if "axis" in a] == [
        "xaxis",
        "yaxis",
    ]


@pytest.mark.slow
def test_bars_that_would_be_one_block_are_in_panels_of_their_own_alone() -> None:
    def bars(figure: Any) -> dict[str, bool]:
        dots = [one for one in json.loads(figure.to_json())["data"] if one["name"].startswith("repeat")]
        return {one["name"]: one["error_y"].get("visible", True) for one in dots if "error_y" in one}

    numbers = later(5)
    seen = bars(parameter_curve.draw(numbers))
    assert [seen[f"repeat {number}"] for number in (1, 2, 3, 4, 5)] == [True, True, False, False, False]
    assert bars(later_repeats.draw(numbers)) == dict.fromkeys((f"repeat {number}" for number in (2, 3, 4, 5)), True)
    assert numbers._replace(intervals=()).has_room(5)  # without a panel of its own


@pytest.mark.slow
def test_the_scale_of_the_last_repeats_shows_whole_error_bars() -> None:
    numbers = later(3)
    # A deviation that reaches beyond every seed, as that of two seeds far apart does.
    wide = numbers._replace(points=numbers.points.assign(within_error=5.0))
    low, high = json.loads(later_repeats.draw(wide).to_json())["layout"]["yaxis2"]["range"]
    means = wide.points[wide.points["repeat"].isin(wide.later)]["mean"]
    assert low < means.min() - 5 and high > means.max() + 5


@pytest.mark.slow
def test_repeats_that_differ_by_noise_alone_have_no_panel() -> None:
    results = study(repeats=5)
    left_out = indistinct_rounds(results)
    assert left_out and 1 not in left_out
    for one in results.rounds[1:]:
        # By hand, for a table without gaps: F = mean square of the values / mean square of the residuals.
        scores = np.array([[float(average_accuracy(r.accuracies)) for r in results.members_of(p)] for p in one.points])
        values, seeds = scores.shape
        effects = scores.mean(axis=1) - scores.mean()
        rest = scores - scores.mean(axis=1)[:, None] - scores.mean(axis=0) + scores.mean()
        ratio = seeds * (effects**2).sum() / (values - 1) / ((rest**2).sum() / ((values - 1) * (seeds - 1)))
        p = stats.f.sf(ratio, values - 1, (values - 1) * (seeds - 1))
        assert (one.number in left_out) == (p >= 0.05) or (0.0,) in one.points
    shrunk = shrinking.numbers(results)
    text = shrinking.caption(shrunk)
    assert f"Left out: {len(left_out)} repeat" in text and "(F test, seeds as blocks, p ≥ 0.05)" in text
    assert len(shrinking.tables(shrunk)["shrinking_intervals"]) == 5, "its files have all repeats"
    ticks = json.loads(shrinking.draw(shrunk).to_json())["layout"]["yaxis"]["ticktext"]
    assert ticks == [f"repeat {number}" for number in range(1, 6) if number not in left_out]
    assert "Left out" not in shrinking.caption(shrinking.numbers(study(repeats=1)))
    assert indistinct_rounds(study(repeats=3, seeds=1)) == (), "one seed allows no test"
    (curve, *_) = (n for m, n in figures(results).values() if m is parameter_curve)
    shown = later_repeats.panels(curve)
    assert not {*shown} & {*left_out} and {*later_repeats.tables(curve)["epsilon_A_T_repeats"]["repeat"]} == {*shown}


def test_differences_by_seed() -> None:
    results = study(repeats=1)
    found = seed_differences.numbers(results)
    by_hand = [
        100
        * float(
            average_accuracy(results.evaluation_of(results.chosen)[i].accuracies)
            - average_accuracy(results.evaluation_of((0.0,))[i].accuracies)
        )
        for i in range(5)
    ]
    assert found[1]["difference"].tolist() == pytest.approx(by_hand)
    mean = seed_differences.tables(found)["seed_differences_mean"].iloc[0]
    low, high = stats.t.interval(0.95, 4, np.mean(by_hand), stats.sem(by_hand))
    assert (mean["n"], mean["mean"]) == (5, pytest.approx(np.mean(by_hand)))
    assert (mean["standard_error"], mean["low"], mean["high"]) == pytest.approx((stats.sem(by_hand), low, high))
    text = seed_differences.caption(found)
    assert "95 % t interval" in text and f"Mean +{np.mean(by_hand):.2f} ±" in text
    drawn = json.loads(seed_differences.draw(found).to_json())
    assert drawn["data"][0]["x"] == ["0", "1", "2", "3", "4"]
    bars = {one["name"]: one["error_y"]["array"][0] for one in drawn["data"][1:]}
    assert bars["95 % t interval"] == pytest.approx((high - low) / 2)


@pytest.mark.slow
def test_differences_by_seed_without_two_pairs() -> None:
    one = seed_differences.numbers(study(repeats=1, seeds=1))
    assert "one seed has no standard error" in seed_differences.caption(one)
    assert "error_y" not in json.loads(seed_differences.draw(one).to_json())["data"][1]
    bare = study(repeats=1, evaluated=False)
    none = seed_differences.numbers(bare)
    assert none[1].empty and "no seed has both" in seed_differences.caption(none)
    assert "seed_differences" not in figures(bare) and seed_differences.draw(none).data


def test_the_star_of_another_metric_is_the_choice_by_the_first() -> None:
    results = study(repeats=1)
    assert "by A_T" not in parameter_curve.caption(parameter_curve.numbers(results, "A_T"))
    text = parameter_curve.caption(parameter_curve.numbers(results, "F_T"))
    assert "Star: the chosen ε = 0.1, by A_T." in text and "curve is highest" not in text
