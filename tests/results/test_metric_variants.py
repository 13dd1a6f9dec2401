"""Metrics of other tools against their definitions in loops, worked examples and identities."""

from __future__ import annotations

import math
import re
import warnings
from itertools import pairwise
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from results import metric_variants
from results.continual_evaluation import BY_NAME, INSIDE_METRICS
from results.metric_variants import SHORT_NAMES, VARIANTS, short_name
from results.metrics import (
    METRICS,
    average_accuracy,
    backward_transfer,
    forgetting,
    forward_transfer,
    undefined_metrics,
)
from tests.support.sizes import ROOT
from tests.support.synthetic import record

FUNCTIONS = {
    "AIA": metric_variants.average_incremental_accuracy,
    "Accuracy (Continuum)": metric_variants.accuracy_continuum,
    "BWT (Continuum)": metric_variants.bwt_continuum,
    "BWT (LibContinual)": metric_variants.bwt_libcontinual,
    "FWT (Continuum)": metric_variants.fwt_continuum,
    "Forgetting (Avalanche)": metric_variants.forgetting_avalanche,
    "Forgetting (Continuum)": metric_variants.forgetting_continuum,
    "Forgetting (LibContinual)": metric_variants.forgetting_libcontinual,
    "Forgetting (Mammoth)": metric_variants.forgetting_mammoth,
    "Forgetting (PyCIL)": metric_variants.forgetting_pycil,
    "Relative forgetting (contilab)": metric_variants.relative_forgetting_contilab,
    "min-ACC (task ends)": metric_variants.min_accuracy,
    "WC-ACC (task ends)": metric_variants.worst_case_accuracy,
}
ONE_TASK = {"AIA": 0.5, "Accuracy (Continuum)": 0.5, "WC-ACC (task ends)": 0.5}
"""Values of [[0.5]]; the others are undefined."""
THREE_TASKS = ("BWT (LibContinual)", "Forgetting (LibContinual)")
SIGNED = ("BWT (Continuum)", "BWT (LibContinual)", *(name for name in FUNCTIONS if name.startswith("Forgetting")))
NEVER_NEGATIVE = ("Forgetting (Mammoth)", "Forgetting (PyCIL)")

# Rows: after task 1, 2, 3, 4. The entry right of the diagonal is the next task before its first step.
HAND = np.array(
    [
        [0.90, 0.20, np.nan, np.nan],
        [0.95, 0.80, 0.75, np.nan],
        [0.60, 0.50, 0.70, 0.10],
        [0.70, 0.60, 0.40, 0.80],
    ]
)
BY_HAND = {
    "AIA": (0.9 + 0.875 + 0.6 + 0.625) / 4,
    "Accuracy (Continuum)": (0.9 + 1.75 + 1.8 + 2.5) / 10,
    # Row 2: +0.05; row 3: −0.3, −0.3; row 4: −0.2, −0.2, −0.3.
    "BWT (Continuum)": -1.25 / 6,
    # (3, 1): −0.3; (4, 1), (4, 2): −0.2 each; divided by 4·3/2.
    "BWT (LibContinual)": -0.7 / 6,
    "FWT (Continuum)": (0.2 + 0.75 + 0.1) / 3,
    "Forgetting (Avalanche)": (0.2 + 0.2 + 0.3) / 3,
    "Forgetting (Continuum)": (0.25 + 0.2 + 0.3) / 3,
    "Forgetting (LibContinual)": (0.2 + 0.2) / 3,
    # Task 3 was at 0.75 before its training.
    "Forgetting (Mammoth)": (0.25 + 0.2 + 0.35) / 3,
    "Forgetting (PyCIL)": (0.25 + 0.2 + 0.3) / 3,
    "Relative forgetting (contilab)": (0.25 / 0.95 + 0.2 / 0.8 + 0.3 / 0.7) / 3,
    "min-ACC (task ends)": (0.6 + 0.5 + 0.4) / 3,
    "WC-ACC (task ends)": 0.8 / 4 + 3 / 4 * (0.6 + 0.5 + 0.4) / 3,
}


def of_lists(rows: list[list[float]], upcoming: list[float]) -> dict[str, float]:
    """Every metric in plain Python, in the order in which the tools compute: a test at a time.

    rows: after each task the accuracies so far, as tools print them; upcoming: of each next task before its training.
    """
    tasks, values = len(rows), dict.fromkeys(FUNCTIONS, math.nan)
    values["AIA"] = fmean(fmean(row) for row in rows)
    values["Accuracy (Continuum)"] = fmean(value for row in rows for value in row)
    first, last, lowest = [], rows[-1], {}
    for trained, row in enumerate(rows):  # one evaluation after another, with a memory of earlier ones
        first.append(row[trained])
        for task, value in enumerate(row):
            if task != trained:
                lowest[task] = min(lowest.get(task, math.inf), value)
    values["WC-ACC (task ends)"] = fmean([last[-1], *lowest.values()])
    if tasks > 1:
        pairs = [(i, j) for i in range(1, tasks + 1) for j in range(1, tasks + 1) if j < i]
        values["min-ACC (task ends)"] = fmean(lowest.values())
        values["BWT (Continuum)"] = fmean(rows[i - 1][j - 1] - first[j - 1] for i, j in pairs)
        values["FWT (Continuum)"] = fmean(upcoming)
        changes = {task: first[task] - last[task] for task in range(tasks) if task != tasks - 1}
        values["Forgetting (Avalanche)"] = fmean(changes.values())
        before = [max(row[j] for row in rows[:-1] if j < len(row)) for j in range(tasks - 1)]
        values["Forgetting (Continuum)"] = fmean(best - now for best, now in zip(before, last, strict=False))
        values["Relative forgetting (contilab)"] = fmean(
            (best - now) / best for best, now in zip(before, last, strict=False)
        )
        with_next = [[*row, value] for row, value in zip(rows, [*upcoming, 0.0], strict=True)]
        for name, padded in (("Forgetting (Mammoth)", with_next), ("Forgetting (PyCIL)", rows)):
            columns = list(zip(*([*row, *[0.0] * tasks][:tasks] for row in padded), strict=True))
            values[name] = fmean(max(column) - column[-1] for column in columns[:-1])
    if tasks > 2:
        total = sum(rows[i - 1][j - 1] - first[j - 1] for i in range(3, tasks + 1) for j in range(1, i - 1))
        values["BWT (LibContinual)"] = 2 * total / (tasks * (tasks - 1))
        values["Forgetting (LibContinual)"] = sum(first[j] - last[j] for j in range(tasks - 2)) / (tasks - 1)
    return values


def lists(a: np.ndarray) -> tuple[list[list[float]], list[float]]:
    """The arguments of `of_lists` from a matrix."""
    rows = [row[: k + 1].tolist() for k, row in enumerate(a)]
    return rows, [float(a[k, k + 1]) for k in range(len(a) - 1)]


def test_every_variant_has_its_function_and_a_name_for_command_lines() -> None:
    assert list(VARIANTS) == list(FUNCTIONS) and not VARIANTS.keys() & METRICS.keys()
    assert list(SHORT_NAMES.values()) == list(VARIANTS), "different names"
    assert all(re.fullmatch(r"[a-z][a-z0-9-]+", name) for name in SHORT_NAMES)
    assert [short_name(title) for title in VARIANTS] == list(SHORT_NAMES)
    functions = {one.__name__ for one in FUNCTIONS.values()}
    assert functions == {name for name in metric_variants.__all__ if name.islower()} - {"short_name"}
    member = record(tasks=5)
    for title, metric in VARIANTS.items():
        assert metric.of(member) == 100 * float(FUNCTIONS[title](member.accuracies)), title
        assert metric.unit == metric.display_unit == "%"


def test_docstrings_have_source_direction_and_range() -> None:
    for title, function in FUNCTIONS.items():
        text = function.__doc__ or ""
        assert f"{'lower' if VARIANTS[title].lower_is_better else 'higher'} is better" in text, title
        assert "Source: " in text and re.search(r"in [\[(]|At most 1", text), title
        assert ("NaN where T < 3" in text) == (title in THREE_TASKS), title
        assert ("NaN where T = 1" in text) == (title not in ONE_TASK | dict.fromkeys(THREE_TASKS)), title


@pytest.mark.parametrize("title", FUNCTIONS)
def test_by_hand(title: str) -> None:
    assert float(FUNCTIONS[title](HAND)) == pytest.approx(BY_HAND[title], abs=1e-12)
    assert of_lists(*lists(HAND))[title] == pytest.approx(BY_HAND[title], abs=1e-12)


@pytest.mark.parametrize("tasks", [1, 2, 3, 4, 17])
def test_against_loops(tasks: int) -> None:
    a = np.random.default_rng(tasks).random((2, 3, tasks, tasks))
    a[..., *np.triu_indices(tasks, k=2)] = np.nan
    for index in np.ndindex(2, 3):
        wanted = of_lists(*lists(a[index]))
        for title, function in FUNCTIONS.items():
            assert function(a).shape == (2, 3)
            assert function(a)[index] == pytest.approx(wanted[title], abs=1e-12, nan_ok=True), title


matrices = st.integers(2, 6).flatmap(
    lambda tasks: arrays(np.float64, (tasks, tasks), elements=st.integers(0, 100).map(lambda percent: percent / 100))
)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(matrices)
def test_identities_and_ranges(a: np.ndarray) -> None:
    tasks = len(a)
    a[np.triu_indices(tasks, k=2)] = np.nan
    value = {title: float(function(a)) for title, function in FUNCTIONS.items()}
    assert value["Forgetting (Avalanche)"] == -backward_transfer(a)
    assert value["FWT (Continuum)"] == pytest.approx(float(forward_transfer(a, np.zeros(tasks))))
    assert value["WC-ACC (task ends)"] == pytest.approx(
        a[-1, -1] / tasks + (1 - 1 / tasks) * value["min-ACC (task ends)"]
    )
    assert value["WC-ACC (task ends)"] <= average_accuracy(a) + 1e-12
    inner = [value[f"Forgetting ({name})"] for name in ("Avalanche", "Continuum", "PyCIL", "Mammoth")]
    assert all(one <= other + 1e-12 for one, other in pairwise(inner)), "each takes the maximum over more rows"
    assert value["Forgetting (Continuum)"] <= forgetting(a) + 1e-12 <= value["Forgetting (Mammoth)"] + 2e-12
    if tasks == 2:
        assert value["BWT (Continuum)"] == pytest.approx(float(backward_transfer(a)))
    if tasks > 2:
        newest = (a[-2, -2] - a[-1, -2]) / (tasks - 1)
        assert value["Forgetting (LibContinual)"] + newest == pytest.approx(value["Forgetting (Avalanche)"], abs=1e-12)
    for title, one in value.items():
        low = -1.0 if title in SIGNED and title not in NEVER_NEGATIVE else 0.0
        if title == "Relative forgetting (contilab)":
            assert math.isnan(one) == bool((np.tril(a)[:-1, :-1].max(axis=0) == 0).any())
            low = -math.inf
        assert math.isnan(one) or low - 1e-12 <= one <= 1.0 + 1e-12, title
        assert not math.isnan(one) or title in (*THREE_TASKS, "Relative forgetting (contilab)"), title


def test_too_few_tasks_and_missing_values_neither_crash_nor_warn() -> None:
    missing = np.full((3, 3), np.nan)
    missing[0, 0] = 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for title, function in FUNCTIONS.items():
            assert float(function(np.array([[0.5]]))) == pytest.approx(ONE_TASK.get(title, math.nan), nan_ok=True)
            assert math.isnan(function(HAND[:2, :2])) == (title in THREE_TASKS), title
            assert math.isnan(function(missing)), title
            assert math.isnan(VARIANTS[title].of(record(diverged=True))), title
    with METRICS.with_others(VARIANTS):
        lines = undefined_metrics([record(tasks=2)])
    assert lines == [f"{title} is not defined here: it needs a third task." for title in THREE_TASKS]
    with METRICS.with_others(VARIANTS):
        lines = undefined_metrics([record(tasks=1)])
    assert {line.partition(" is not")[0] for line in lines} == {"F_T", "BWT", "FWT", *VARIANTS.keys() - ONE_TASK.keys()}


@pytest.mark.parametrize("title", FUNCTIONS)
def test_wrong_shapes_are_refused(title: str) -> None:
    with pytest.raises(ValueError, match="accuracies must have shape"):
        FUNCTIONS[title](np.zeros((3, 2)))


def test_the_glossary_has_every_variant_and_every_metric_of_points() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert SHORT_NAMES.items() < BY_NAME.items() and len(BY_NAME) == len(VARIANTS) + len(INSIDE_METRICS)
    for name, title in BY_NAME.items():
        assert f"| {title} | `{name}` |" in page, title
