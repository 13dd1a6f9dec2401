"""Metrics against loops written from the definitions, hand-computed examples, and properties."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from results.metrics import (
    METRICS,
    Metric,
    average_accuracy,
    average_accuracy_curve,
    backward_transfer,
    first_task_accuracy,
    forgetting,
    forgetting_curve,
    forward_transfer,
    last_task_accuracy,
    learning_curve_area,
    mean_std,
    summarize,
    undefined_metrics,
)
from tests.support.synthetic import record, study

# Rows: after task 1, 2, 3. The entry right of the diagonal is the zero-shot accuracy on the next task.
HAND = np.array([[0.9, 0.2, np.nan], [0.95, 0.8, 0.3], [0.6, 0.5, 0.7]])


def test_by_hand() -> None:
    assert average_accuracy_curve(HAND) == pytest.approx([0.9, 0.875, 0.6])
    assert average_accuracy(HAND) == pytest.approx(0.6)
    # F_2: task 1 has only row 1 before: 0.9 - 0.95. F_3: rows 1 and 2: (0.95 - 0.6 + 0.8 - 0.5) / 2.
    assert forgetting_curve(HAND)[1:] == pytest.approx([-0.05, 0.325])
    assert math.isnan(forgetting_curve(HAND)[0])
    assert first_task_accuracy(HAND) == 0.6
    assert last_task_accuracy(HAND) == 0.7
    assert backward_transfer(HAND) == pytest.approx(((0.6 - 0.9) + (0.5 - 0.8)) / 2)
    assert forward_transfer(HAND, np.array([0.5, 0.1, 0.1])) == pytest.approx((0.1 + 0.2) / 2)


def test_forgetting_takes_rows_before_the_task_was_learned() -> None:
    """max over l from 1, not from j: the zero-shot 0.99 on task 2 counts."""
    a = np.array([[0.9, 0.99, np.nan], [0.9, 0.8, 0.1], [0.9, 0.5, 0.7]])
    assert forgetting(a) == pytest.approx((0.0 + 0.99 - 0.5) / 2)


def loop_forgetting(a: np.ndarray, k: int) -> float:
    total = 0.0
    for j in range(1, k):
        best = max(a[row - 1, j - 1] for row in range(1, k) if not math.isnan(a[row - 1, j - 1]))
        total += best - a[k - 1, j - 1]
    return total / (k - 1)


@pytest.mark.parametrize("tasks", [2, 5, 17])
def test_against_loops(tasks: int) -> None:
    rng = np.random.default_rng(tasks)
    a = rng.random((2, 3, tasks, tasks))
    a[..., *np.triu_indices(tasks, k=2)] = np.nan
    initial, within = rng.random((2, 3, tasks)), rng.random((2, 3, tasks, 11))
    for index in np.ndindex(2, 3):
        one, fresh, curve = a[index], initial[index], within[index]
        for k in range(1, tasks + 1):
            wanted = sum(one[k - 1, j] for j in range(k)) / k
            assert average_accuracy_curve(a)[index][k - 1] == pytest.approx(wanted)
            if k > 1:
                assert forgetting_curve(a)[index][k - 1] == pytest.approx(loop_forgetting(one, k))
        assert first_task_accuracy(a)[index] == one[tasks - 1, 0]
        assert last_task_accuracy(a)[index] == one[tasks - 1, tasks - 1]
        bwt = sum(one[tasks - 1, i] - one[i, i] for i in range(tasks - 1)) / (tasks - 1)
        assert backward_transfer(a)[index] == pytest.approx(bwt)
        fwt = sum(one[i - 1, i] - fresh[i] for i in range(1, tasks)) / (tasks - 1)
        assert forward_transfer(a, initial)[index] == pytest.approx(fwt)
        for beta in (0, 3, 10):
            z = [sum(curve[k, b] for k in range(tasks)) / tasks for b in range(beta + 1)]
            assert learning_curve_area(within[..., : beta + 1])[index] == pytest.approx(sum(z) / (beta + 1))


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 6).flatmap(lambda t: arrays(np.float64, (t, t), elements=st.floats(0, 1))))
def test_forgetting_is_at_least_minus_backward_transfer(a: np.ndarray) -> None:
    assert forgetting(a) >= -backward_transfer(a) - 1e-12


def test_one_task_and_missing_values_neither_crash_nor_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        single = np.array([[0.5]])
        assert average_accuracy(single) == 0.5
        undefined = (forgetting(single), backward_transfer(single), forward_transfer(single, np.array([0.1])))
        assert all(math.isnan(value) for value in undefined)
        missing = np.full((3, 3), np.nan)
        missing[0, 0] = 0.9
        assert average_accuracy_curve(missing)[0] == 0.9
        undefined = (average_accuracy(missing), forgetting(missing), backward_transfer(missing))
        assert all(math.isnan(value) for value in undefined)
        frame = summarize([record(tasks=1), record(diverged=True)])
    assert frame["F_T"].isna().all()
    assert frame["A_T"].notna().tolist() == [True, False]
    assert frame.loc[1, list(METRICS)].isna().all()


def test_a_diverged_member_has_no_metric_even_where_all_was_measured() -> None:
    import dataclasses

    assert summarize([dataclasses.replace(record(), status="diverged")])[list(METRICS)].isna().all(axis=None)


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="accuracies must have shape"):
        forgetting(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="initial must have shape"):
        forward_transfer(np.zeros((3, 3)), np.zeros(2))
    with pytest.raises(ValueError, match="within must have shape"):
        learning_curve_area(np.zeros((3, 0)))


def test_summarize_uses_the_papers_units() -> None:
    member = record(epsilon=0.3, seed=4, tasks=5)
    row = summarize([member]).iloc[0]
    assert list(row.index) == ["method", "epsilon", "seed", "phase", "status", *METRICS]
    assert row["A_T"] == pytest.approx(100 * float(average_accuracy(member.accuracies)))
    assert row["BWT"] == pytest.approx(100 * float(backward_transfer(member.accuracies)))
    assert row["FWT"] == pytest.approx(100 * float(forward_transfer(member.accuracies, member.initial)))
    assert (row["a_1"], row["a_t"]) == (100 * member.accuracies[4, 0], 100 * member.accuracies[4, 4])
    assert row["F_T"] == pytest.approx(float(forgetting(member.accuracies)))
    assert row["LCA_10"] == pytest.approx(0.35)
    assert (row["epsilon"], row["seed"], row["phase"], row["status"]) == (0.3, 4, "cv", "ok")


def test_people_see_forgetting_in_percent_and_files_a_fraction() -> None:
    seen = {name: metric.display_unit for name, metric in METRICS.items()}
    assert [name for name, unit in seen.items() if unit != "%"] == ["LCA_10"]
    member = record(seed=0)
    value = float(forgetting(member.accuracies))
    assert METRICS["F_T"].of(member) == summarize([member])["F_T"][0] == value
    assert METRICS["F_T"].number_text(value) == f"{100 * value:.1f}".replace("-", "−")
    assert METRICS["F_T"].mean_std_text(0.5162, 0.0135) == "51.6 ± 1.4"
    assert METRICS["A_T"].mean_std_text(47.59, math.nan) == "47.59 ± –"


def test_mean_std_is_the_spread_of_the_survivors() -> None:
    members = [record(seed=s) for s in range(3)]
    values = summarize(members)["A_T"].to_numpy()
    found = mean_std([*members, record(seed=3, diverged=True)], ["A_T"])
    assert list(found) == ["n", "diverged", "A_T_mean", "A_T_std"] and (found["n"], found["diverged"]) == (3, 1)
    assert found["A_T_mean"] == pytest.approx(values.mean(), rel=1e-15)
    squares = ((values - values.mean()) ** 2).sum()
    assert found["A_T_std"] == pytest.approx(math.sqrt(squares / 2), rel=1e-12)
    assert mean_std(members, ["A_T"], population=True)["A_T_std"] == pytest.approx(math.sqrt(squares / 3), rel=1e-12)
    assert list(mean_std(members))[2::2] == [f"{metric}_mean" for metric in METRICS]
    assert math.isnan(mean_std(members[:1], ["A_T"], population=True)["A_T_std"])
    alone, none = mean_std(members[:1], ["A_T"]), mean_std([], ["A_T"])
    assert (alone["n"], alone["A_T_mean"]) == (1, values[0]) and math.isnan(alone["A_T_std"])
    assert (none["n"], none["diverged"]) == (0, 0) and math.isnan(none["A_T_mean"]) and math.isnan(none["A_T_std"])


@pytest.mark.parametrize(("values", "mean"), [((1e200, 3e200), 2e200), ((1e308, 1.5e308), math.inf)])
def test_what_is_too_large_for_its_squares_has_an_infinite_spread(values, mean) -> None:
    with METRICS.with_others({"mine": Metric(lambda one: np.asarray(values[one.seed]), 2)}):
        found = mean_std([record(seed=seed) for seed in range(2)], ["mine"])
    assert found["mine_mean"] == mean and found["mine_std"] == math.inf


def test_a_mean_is_rounded_once_whatever_the_order_and_infinities_stay() -> None:
    values = {seed: 10.0 ** (seed - 9) for seed in range(18)}
    mine = Metric(lambda one: np.asarray(values.get(one.seed, -np.inf)), 2)
    with METRICS.with_others({"mine": mine}):
        members = [record(seed=seed) for seed in values]
        exact = float(sum(map(Fraction, values.values())) / len(values))
        for order in (members, members[::-1]):
            assert mean_std(order, ["mine"])["mine_mean"] == exact
        assert mean_std([*members, record(seed=99)], ["mine"])["mine_mean"] == -math.inf


def test_a_metric_that_no_run_has_says_what_it_needs() -> None:
    runs = study(repeats=1).evaluation
    assert undefined_metrics(runs) == [] and undefined_metrics(()) == []
    short = [replace(run, within=np.full_like(run.within, np.nan)) for run in runs]
    assert undefined_metrics(short) == ["LCA_10 is not defined here: it needs ten mini-batches in every task."]
    assert undefined_metrics([*short, runs[0]]) == [], "one run has it"
    assert undefined_metrics([replace(run, status="diverged") for run in short]) == []
    alone = [record(0.1, seed, tasks=1, phase="eval") for seed in range(2)]
    assert [line.split()[0] for line in undefined_metrics(alone)] == ["F_T", "BWT", "FWT"]
