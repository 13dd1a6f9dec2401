from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from results.metrics import METRICS
from results.protocol_tables import (
    choice_table,
    constant_table,
    hindsight,
    order_table,
    protocol_table,
    regrets,
)
from results.protocols import Cost
from tests.support.synthetic_protocols import BEST, CANDIDATES, STEPS, always, protocol, protocols


def test_regret_is_paired_by_order_and_seed() -> None:
    results = protocols()
    row = next(one for one in results.rows if one.name == "cv-tasks")
    best = {one.unit: METRICS["A_T"].of(one) for one in results.constants[BEST]}
    lost = {one.unit: best[one.unit] - METRICS["A_T"].of(one) for one in row.records}
    by_order = [np.mean([lost[unit] for unit in lost if unit.order == order]) for order in range(5)]
    result = protocol_table(results).set_index("protocol").loc["cv-tasks"]
    assert result["regret"] == pytest.approx(np.mean(by_order)) and result["regret_units"] == 5
    assert result["regret_deviation"] == pytest.approx(np.std(by_order, ddof=1))
    orders = order_table(results).query("protocol == 'cv-tasks'")
    assert orders["regret"].tolist() == pytest.approx(by_order)
    assert hindsight(results) == BEST


def test_shuffled_records_change_nothing() -> None:
    results = protocols()
    turned = replace(
        results,
        rows=tuple(replace(row, records=row.records[::-1]) for row in results.rows),
        constants={value: members[::-1] for value, members in reversed(results.constants.items())},
    )
    one, other = (
        protocol_table(each)[["regret", "regret_low", "regret_others", "A_T_mean"]] for each in (results, turned)
    )
    assert np.allclose(one, other)


def test_bounds_stand_at_the_end() -> None:
    table = protocol_table(protocols())
    assert table["bound"].tolist() == [False] * 5 + [True]
    assert table["protocol"].tolist()[:2] == ["library-default", "first-task"]


def test_the_choice_over_orders_is_median_and_range() -> None:
    table = protocol_table(protocols(protocol("a", always(0.1, 0.5, 0.2, 1.0, 0.2)))).iloc[0]
    assert (table["choice_low"], table["choice_median"], table["choice_high"]) == (0.1, 0.2, 1.0)
    even = protocol_table(protocols(protocol("a", always(0.1, 0.5)), orders=2)).iloc[0]
    assert even["choice_median"] == 0.1, "a value between two was never chosen"


def test_costs_beside_the_training_that_is_judged() -> None:
    row = protocol("a", always(0.1, 0.1), steps=4.0)
    row = replace(row, cost={0: Cost(1000.0, 10.0, 7), 1: Cost(3000.0, 30.0, 9)})
    result = protocol_table(protocols(row, orders=2)).iloc[0]
    assert (result["steps"], result["flop"], result["kept"]) == (2000, 20, 8)
    assert result["judged_steps"] == 3 * STEPS and result["relative_steps"] == pytest.approx(4000 / (6 * STEPS))


def test_a_member_that_diverged_does_not_make_a_choice_look_dear() -> None:
    """It has taken half of the steps."""
    result = protocol_table(protocols(protocol("a", always(0.2, 0.2), steps=4.0, diverged=2), orders=2)).iloc[0]
    assert result["relative_steps"] == 4 and (result["n"], result["diverged"]) == (4, 2)


def test_diverged_members_are_left_out_of_regret_and_counted() -> None:
    table = order_table(protocols(protocol("a", always(0.2, 0.2), diverged=4), orders=2))
    assert table["diverged"].tolist() == [3, 1] and table["regret"].isna().tolist() == [True, False]


def test_a_candidate_that_diverged_is_not_the_best() -> None:
    results = protocols(diverged=(BEST,))
    assert hindsight(results) == 0.05
    table = constant_table(results).set_index("value")
    assert table.loc[BEST, "diverged"] == 1 and table.index[table["best"]].tolist() == [0.05]
    assert table.index.tolist() == list(CANDIDATES)


def test_what_is_not_trained_yet_is_missing() -> None:
    none = protocol("a", [], trained=False)
    results = replace(protocols(none), constants={})
    assert hindsight(results) is None
    first, others = regrets(results, none)
    assert math.isnan(first.mean) and math.isnan(others.mean)
    result = protocol_table(results).iloc[0]
    assert result[["regret", "A_T_mean", "steps", "choice_median", "relative_steps"]].isna().all()
    assert order_table(results).empty and choice_table(results).empty
    assert constant_table(results)["n"].tolist() == [0] * len(CANDIDATES)


def test_no_other_orders_choose_below_three() -> None:
    assert protocol_table(protocols(orders=2))["regret_others"].isna().all()
    assert protocol_table(protocols(orders=3))["regret_others"].notna().all()


def test_values_by_task_count_from_one() -> None:
    table = choice_table(protocols(protocol("a", [((0, 0.1), (2, 0.5))])))
    assert table[["order", "task", "value"]].to_numpy().tolist() == [[0, 1, 0.1], [0, 3, 0.5]]


def test_worst_case_accuracy_only_where_it_was_measured() -> None:
    assert "WC-ACC_mean" not in protocol_table(protocols())
    measured = protocol_table(protocols(protocol("a", always(0.1, 0.1), inside=True), protocol("b", always(0.2, 0.2))))
    assert measured["WC-ACC_mean"].isna().tolist() == [False, True] and 80 < measured["WC-ACC_mean"][0] < 90
