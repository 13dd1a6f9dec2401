"""How far to trust a search: the numbers, the words, the section, the JSON."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from results.figures import parameter_curve
from results.metrics import average_accuracy
from results.pages.search.confidence import how_far
from results.pages.search.report import write_report
from results.pages.search.sections import warnings
from results.search import EvaluatedChoice, Race, SearchResults
from results.statistics.spread import spread
from results.verdict.answer import answer
from results.verdict.assessment import trust, trust_as_json, trust_rows
from results.verdict.peak import complete, peak, table
from tests.support.synthetic import study
from tests.support.synthetic_points import learning_rates, mixed, search

LOOKS = (
    EvaluatedChoice("ε = 0.3", "2025-11-20T08:00:00+00:00", False),
    EvaluatedChoice("ε = 0.135", "2025-11-21T09:00:00+00:00", True),
)


def plain(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_the_table_is_a_t_by_setting_and_seed() -> None:
    results = study(repeats=1, seeds=3, diverged=(0.5,))
    scores = table(results)
    assert scores.shape == (11, 3)
    member = next(r for r in results.members_of((0.2,)) if r.seed == 1)
    assert scores[2, 1] == pytest.approx(100 * float(average_accuracy(member.accuracies)))
    lost = results.points.index((0.5,))
    assert np.isnan(scores[lost]).tolist() == [True, False, False]
    assert np.isnan(complete(results)[lost]).all() and np.isnan(complete(results)).sum() == 3


def test_the_peak_lies_where_it_was_put() -> None:
    found = peak(study(repeats=1))
    assert found is not None and found.curve is not None
    assert found.low < 0.12 < found.high and found.best == pytest.approx(0.12, abs=0.02)
    assert found.text == "(0, 0.2]", "ε = 0 is surely worse; between it and 0.1 nothing was tried"
    curve = found.curve.set_index("value")
    assert curve["mean"][0.5] < curve["mean"][0.12] and (curve["low"] < curve["high"]).all()
    assert curve["mean"][0.2] == pytest.approx(table(study(repeats=1))[2].mean(), abs=0.5)


def test_the_peak_of_a_logarithmic_parameter_is_in_its_values() -> None:
    found = peak(learning_rates(seeds=5))
    assert found is not None and found.log
    assert 0.03 < found.low < 0.1 < found.high < 0.35 and found.best == pytest.approx(0.1, rel=0.1)
    assert found.curve is not None and found.curve["value"].iloc[[0, -1]].tolist() == [0.001, 1.0]


def test_forgetting_has_its_best_where_it_is_lowest() -> None:
    found = peak(study(repeats=1, tasks=8), "F_T")
    assert found is not None and found.sign == -1
    assert found.best == pytest.approx(0.12, abs=0.05)
    assert found.curve is not None
    curve = found.curve.set_index("value")["mean"]
    assert curve[0.9] > curve[0.12] > 0


def test_values_beyond_the_interval_of_today_widen_it() -> None:
    found = peak(replace(study(repeats=1, peak=0.9), domain=((0.2, 0.6),)))
    assert found is not None and 0.6 < found.low <= found.high <= 1


def test_no_peak_without_an_interval() -> None:
    assert peak(mixed()) is None
    assert peak(replace(study(repeats=1), domain=(None,))) is None


def test_trust_holds_what_its_parts_say() -> None:
    results = study(repeats=1)
    found = trust(results)
    assert trust(results) is found
    assert [one.point for one in found.points] == list(results.points)
    zero, one = found.points[0], found.points[3]
    assert zero.against is None and one.against is not None
    assert one.spread == spread(table(results)[3].tolist())
    assert one.against.mean == pytest.approx(one.spread.mean - zero.spread.mean)
    assert all(math.isnan(s.probability) for s in found.points), "five seeds are too few to be resampled"
    assert found.comparisons == 10
    assert (found.smallest_p, found.smallest_p_holm) == (0.0625, 0.625)
    assert one.adjusted == pytest.approx(one.spread.mean)


def test_a_race_ranks_as_if_every_setting_had_all_seeds() -> None:
    results = study(repeats=1, seeds=4)
    short = replace(results, search=tuple(r for r in results.search if r.seed < 2 or r.epsilon < 0.4))
    behind = tuple(point for point in results.points if point[0] >= 0.4)
    raced = replace(short, race=Race(len(short.search), len(results.search), 0.05, dropped=behind))
    found = trust(raced)
    slow = found.points[-1]
    assert slow.spread.n == 2
    assert slow.adjusted != pytest.approx(slow.spread.mean)
    text = plain(how_far(raced))
    assert f"{len(short.search)} member runs, {100 - 100 * len(short.search) / 44:.0f} % fewer than the 44" in text
    assert "probability of at most 5 % in each round" in text and "adjusted" in text
    assert [row["biased"] for row in trust_rows(found)] == [point in behind for point in results.points]
    assert text.count("2 (dropped)") == len(behind) > 0 and "biased downwards" in text
    more = plain(how_far(replace(short, race=Race(55, 44, 0.05))))
    assert "55 member runs, 25 % more than the 44" in more
    assert "biased" not in more


def test_without_a_baseline_there_is_no_test() -> None:
    found = trust(mixed())
    assert found.comparisons == 0 and math.isnan(found.smallest_p)
    assert "Holm" not in plain(how_far(mixed()))


def kind(results: SearchResults) -> str:
    return trust(results).verdict.kind


@pytest.mark.slow
def test_verdicts_on_one_number() -> None:
    found = trust(study(repeats=1)).verdict
    assert found.kind == "resolved" and found.low < 0.12 < found.high <= 0.2
    edge = trust(study(repeats=1, peak=1.0)).verdict
    assert edge.kind == "edge" and edge.high == 1
    assert edge.advice.startswith("ε cannot go beyond 1, so the end itself is a valid answer: take ε = 1.")
    slow = search(("lr",), [(r,) for r in (0.001, 0.003, 0.01, 0.03)], seeds=5, log=("lr",))
    assert kind(slow) == "edge" and "Better values may lie above 0.03: search a wider" in trust(slow).verdict.advice
    rates = trust(learning_rates(seeds=5)).verdict
    assert rates.kind == "resolved" and "lies in [0.031, 0.32] with 95 %" in rates.text
    assert rates.advice == "The chosen learning rate lies within it: take it."
    again = trust(study(repeats=5))
    assert again.verdict.low <= again.chosen[0] <= again.verdict.high, "the best tried value is always within it"
    assert kind(study(repeats=1, seeds=1)) == "open"
    assert kind(study(repeats=1, diverged=tuple(i / 10 for i in range(1, 9)))) == "diverging"


def test_a_choice_outside_of_a_resolved_interval_is_not_advised() -> None:
    results = study(repeats=1)
    beside = trust(replace(results, chosen=(0.9,)))
    assert beside.verdict.kind == "resolved" and beside.verdict.high < 0.9
    assert re.fullmatch(r"Take ε = 0\.[12], the best tried value within it\.", beside.verdict.advice)


def test_a_chosen_value_and_the_natural_end_are_both_answers() -> None:
    results = study(repeats=1, peak=1.0)
    assert trust(results).verdict.low < 0.995 < results.chosen[0] == 1.0
    near = replace(results, chosen=(0.995,))
    beyond = "The chosen ε lies within it: take it, or ε = 1, beyond which ε cannot go."
    assert trust(near).verdict.advice == beyond


def test_a_gem_that_is_surely_worse_is_not_contradicted() -> None:
    results = study(repeats=1, peak=-0.05)  # with its best near 0, and A-GEM itself far below
    found = trust(results).verdict
    assert found.kind == "edge" and found.low == 0 and results.chosen[0] > 0
    assert found.advice == "A-GEM itself is significantly worse: try values closer to 0."


def test_a_few_diverged_members_are_not_a_quarter() -> None:
    few = trust(study(repeats=1, diverged=(0.8, 0.9, 1.0))).verdict  # 3 of 55 members, 15 in the values they belong to
    assert few.kind != "diverging"


def test_values_near_an_end_count_as_at_the_bound() -> None:
    names, domain = ("memory", "lr"), ((1.0, 1000.0), (0.001, 1.0))
    places = [(m, r) for m in (25, 400) for r in (0.0012, 0.03, 0.1)]
    results = replace(search(names, places, seeds=5, log=("lr",)), domain=domain)
    assert results.chosen == (25, 0.1) and kind(results) == "edge", "25 is within 5 % of 1, as far as 1000"
    assert kind(replace(results, log=("lr", "memory"))) == "resolved"
    assert kind(replace(results, limits={"memory": (1, 1e9)})) == "resolved", "no memory is smaller than 1"


def test_verdicts_on_several_parameters() -> None:
    names = ("epsilon", "memory")
    grid = [(e, m) for e in (0.0, 0.12, 0.5, 1.0) for m in (5, 25, 125)]
    results = search(names, grid, seeds=4)
    assert results.chosen == (0.12, 25) and kind(results) == "resolved"
    assert trust(results).rivals == ((0.0, 25),), "which is next to the best"
    assert math.isnan(trust(results).verdict.low)
    assert kind(search(names, [s for s in grid if s[1] <= 25], seeds=4)) == "edge"
    assert kind(search(names, grid, diverged=grid[:3] + grid[5:11], seeds=3)) == "diverging"
    same = [(0.12, 25), (0.1201, 25), (0.1199, 25), (0.12005, 25)]
    wide = replace(search(names, same, seeds=5), domain=((0.0, 1.0), (1.0, 99.0)))
    assert kind(wide) == "open" and len(trust(wide).rivals) == 3
    assert trust_as_json(trust(wide))["rivals"][0] in [list(s) for s in same]


@pytest.mark.slow
def test_numbers_as_choices_lie_on_no_curve(tmp_path: Path) -> None:
    results = replace(search(("memory",), [(5,), (25,), (100,)], (25,), seeds=4), domain=(None,))
    assert results.is_curve and trust(results).peak is None
    assert "The best value is significantly better than all 2 others (4 seeds)." in answer(results)
    text = plain(write_report(results, tmp_path).read_text(encoding="utf-8").split("</header>")[1])
    assert "Gaussian process" not in text and "best may lie here" not in text


@pytest.mark.slow
def test_the_answer_begins_with_choice_and_verdict() -> None:
    for results in (study(repeats=2), learning_rates(), mixed()):
        first = answer(results).split("\n\n")[0]
        found = trust(results).verdict
        assert first.startswith("The search chose ") and found.text in first and found.advice in first
    where = "on the cross-validation stream of 3 tasks lies in"
    assert where in answer(study(repeats=1)) and "(5 seeds)" in answer(study(repeats=1))


@pytest.mark.slow
def test_from_ten_seeds_on_resamples_are_told_beside_those_of_luck() -> None:
    few, many = study(repeats=1, seeds=9), study(repeats=1, seeds=10)
    assert "resamples" not in answer(few) + plain(how_far(few)) and "bootstrap" not in plain(how_far(few)).lower()
    found = trust(many)
    assert sum(s.probability for s in found.points) == pytest.approx(1)
    assert found.probability == max(s.probability for s in found.points)
    share = f"{100 * found.probability:.0f} % of the bootstrap resamples of the 10 seeds; the best of 11 equal ones"
    assert f"{share} would be in about 41 %." in answer(many)
    text = plain(how_far(many))
    assert "(about 41 % for the best of equal ones)" in text
    assert text.count("% of resamples") == 2 and np.isfinite(found.points[1].spread.bootstrap_low)


def test_a_member_that_lies_far_off_is_named() -> None:
    results = study(repeats=1)
    assert trust(results).far_off == () and "far off" not in answer(results)
    low = {(0.3, 2), (0.7, 4), (0.0, 1)}  # the last one is A-GEM's, another method
    failed = tuple(
        replace(r, accuracies=r.accuracies * (1 - 0.1 * r.seed)) if (r.epsilon, r.seed) in low else r
        for r in results.search
    )
    bad = replace(results, search=failed)
    assert [(point, seed) for point, seed, _ in trust(bad).far_off] == [((0.3,), 2), ((0.7,), 4)]
    assert trust_as_json(trust(bad))["far_off"][1] == {
        "point": [0.7],
        "seed": 4,
        "by": pytest.approx(-34, abs=2),
    }
    first = r"\(ε = 0\.7, seed 4: −\d+\.\d+ percentage points; ε = 0\.3, seed 2: "
    assert re.search("2 members lie far off what their ε and seed suggest " + first, answer(bad))


def test_a_choice_outside_the_open_interval_is_told() -> None:
    results = study(repeats=1)
    low, high = peak(results).low, peak(results).high  # type: ignore[union-attr]
    assert ("lies outside" in answer(results)) is not (low <= float(results.chosen[0]) <= high)
    moved = answer(replace(results, chosen=(0.9,)))
    assert "The chosen ε lies outside the interval" in moved and re.search(r"the curve itself names 0\.1\d", moved)


def test_looks_are_told_when_there_are_several() -> None:
    results = study(repeats=1)
    assert not [w for w in warnings(replace(results, evaluated_choices=LOOKS[1:])) if "choice" in w]
    (told,) = (w for w in warnings(replace(results, evaluated_choices=LOOKS)) if "choice" in w)
    assert told.startswith(
        "This choice is number 2 of the 2 that were evaluated on this evaluation stream. The others: ε = 0.3 (2025-11-2"
    )
    text = plain(
        how_far(replace(results, evaluated_choices=LOOKS, disjointness="Tasks 0 to 2 are not among tasks 3 to 19."))
    )
    assert "ε = 0.135 (2025-11-21, this study)" in text and "Tasks 0 to 2 are not among" in text


@pytest.mark.slow
def test_the_section_and_the_files(tmp_path: Path) -> None:
    results = study(repeats=1, diverged=(0.5,))
    html = write_report(replace(results, earlier=("3 seeds until 2025-11-20",)), tmp_path).read_text(encoding="utf-8")
    section = html.split("<h2>How far to trust it</h2>")[1].split("</section>")[0]
    text = plain(section)
    found = trust(results)
    assert f'class="banner {found.verdict.kind}"' in section
    assert "0.0625 in one comparison, 0.625 after Holm" in text
    assert "4 (1 diverged)" in text and "nan" not in text
    assert section.count('<tr class="chosen">') == 1 and section.count("<tr") == 12
    assert "3 seeds until 2025-11-20" in html
    rows = pd.read_csv(tmp_path / "trust.csv")
    assert rows["epsilon"].tolist() == [s[0] for s in results.points]
    assert rows["p_holm"].isna().sum() == 1 and rows["probability_best"].isna().all()
    assert list(rows.columns[:3]) == ["epsilon", "n", "diverged"]


def test_a_long_table_is_folded() -> None:
    assert "<details open>" in how_far(study(repeats=1)) and "<details>" in how_far(study(repeats=2))


@pytest.mark.parametrize("make", [lambda: study(repeats=1, seeds=1), mixed, learning_rates])
def test_json_has_no_nan(make: object) -> None:
    found = trust_as_json(trust(make()))  # type: ignore[operator]
    again = json.loads(json.dumps(found, allow_nan=False))
    assert again["kind"] in ("resolved", "one-sided", "edge", "level", "open", "diverging") and again["text"]
    assert len(again["tests"]) == len(trust_rows(trust(make())))  # type: ignore[operator]


def test_json_of_one_seed_is_null_where_nothing_is_known() -> None:
    found = trust_as_json(trust(study(repeats=1, seeds=1)))
    assert found["tests"][0]["std"] is None and found["tests"][0]["p"] is None
    assert found["curve"]["parabola_p"] is None and found["curve"]["loss_at_most"] is None
    full = trust_as_json(trust(study(repeats=1)))
    low, high = full["curve"]["interval"]
    assert low < full["curve"]["best"] < high and full["tests"][1]["epsilon"] == 0.1
    assert (
        0 < full["curve"]["loss_at_most"] < full["curve"]["difference_at_most"] and 0 < full["curve"]["parabola_p"] <= 1
    )


def test_the_band_is_drawn_and_told() -> None:
    results = study(repeats=3)
    curve = parameter_curve.numbers(results, "A_T")
    assert curve.peak is not None
    drawn = json.loads(parameter_curve.draw(curve).to_json())
    bands = [s for s in drawn["layout"]["shapes"] if s["type"] == "rect"]
    assert (bands[0]["x0"], bands[0]["x1"]) == (curve.peak.low, curve.peak.high)
    assert (bands[0]["y0"], bands[0]["yref"]) == (0, "y domain"), "a bar along the axis"
    assert {"curve, 95 % band", "chosen", "best may lie here (95 %)"} <= {one.get("name") for one in drawn["data"]}
    stars = [one for one in drawn["data"] if one.get("marker", {}).get("symbol") == "star"]
    assert [one["x"] for one in stars] == [[results.chosen[0]]], "the choice, and no second star"
    text = parameter_curve.caption(curve)
    assert "Star: the chosen ε = 0.1" in text and "the best tried value." in text and "(95 %, 5 seeds)" in text
    assert "ε = 0, with another formula, is no part of it" in text
    table_of_the_curve = parameter_curve.tables(curve)["epsilon_A_T_curve"]
    assert list(table_of_the_curve) == ["epsilon", "mean", "low", "high", "best_share"]
    assert table_of_the_curve["best_share"].sum() == pytest.approx(1)
    one = parameter_curve.numbers(study(repeats=1, seeds=1), "A_T")
    assert "one seed gives no measure of noise" in parameter_curve.caption(one)


def test_a_baseline_that_was_not_tried_is_said_not_to_be() -> None:
    rates = search(("lr",), [(r,) for r in (0.01, 0.03, 0.1, 0.3)], baseline=(0.02,), seeds=5, log=("lr",))
    said = "The baseline learning rate = 0.02 was not tried in the search, which therefore cannot"
    assert said in answer(rates)
    tried = search(("lr",), [(r,) for r in (0.01, 0.03)], baseline=(0.01,), diverged=[(0.01,)], seeds=1, log=("lr",))
    assert "shares no measured seed with the chosen learning rate" in answer(tried)


@pytest.mark.slow
def test_a_higher_point_of_fewer_seeds_is_said_to_have_them() -> None:
    """As after a search of another strategy was extended by seeds, which trains no earlier point again."""
    results = study(repeats=1, seeds=3)
    higher = replace(results, chosen=(0.5,), chosen_score=0.1)
    assert "(the highest mean of a round is that of ε = 0.1)" in answer(higher)
    fewer = tuple(r for r in higher.search if (r.epsilon, r.seed) != (0.1, 2))
    text = answer(replace(higher, search=fewer))
    assert "(the highest mean of a round is that of ε = 0.1, with 2 of the 3 seeds)" in text
