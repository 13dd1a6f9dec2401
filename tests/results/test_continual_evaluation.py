"""Metrics of tests inside tasks on three tasks of two points each, computed by hand."""

import math

import numpy as np
import pytest

from results.continual_evaluation import (
    gap_depth,
    gap_length,
    lowest_accuracy,
    windowed_forgetting,
    worst_case_accuracy,
)

NAN = math.nan
POINTS = np.array(
    [
        [0, 1, 0.70, NAN, NAN],
        [0, 2, 0.50, NAN, NAN],
        [1, 1, 0.60, 0.20, NAN],
        [1, 2, 0.55, 0.80, NAN],
        [2, 1, 0.30, 0.60, 0.10],
        [2, 2, 0.58, 0.70, 0.90],
    ]
)
ONE = POINTS[:2, :3]


def test_a_task_counts_from_its_end_on():
    # 0.20 on the second task is from before it was learned.
    assert lowest_accuracy(POINTS) == pytest.approx((0.30 + 0.60) / 2)
    assert worst_case_accuracy(POINTS) == pytest.approx(0.90 / 3 + 2 / 3 * 0.45)


@pytest.mark.parametrize(
    ("window", "drops"), [(1, (0, 0, 0)), (2, (0.25, 0.20, 0)), (3, (0.30, 0.20, 0)), (10, (0.40, 0.20, 0))]
)
def test_the_largest_drop_within_a_window(window, drops):
    assert windowed_forgetting(POINTS, window) == pytest.approx(sum(drops) / 3)
    assert windowed_forgetting(POINTS, window, worst=True) == pytest.approx(max(drops))


def test_the_gap_after_each_switch():
    # After the first switch the first task only rises; after the second one both recover at the second step.
    assert gap_depth(POINTS) == pytest.approx((-0.05 + 0.25 + 0.20) / 3)
    assert gap_length(POINTS) == pytest.approx((0 + 2 + 2) / 3)


def test_without_a_second_task_or_a_point():
    assert worst_case_accuracy(ONE) == 0.50 and windowed_forgetting(ONE, 2) == pytest.approx(0.20)
    empty = np.empty((0, 5))
    nothing = [lowest_accuracy(ONE), gap_depth(ONE), gap_length(ONE)]
    nothing += [one(empty) for one in (lowest_accuracy, worst_case_accuracy, gap_depth, gap_length)]
    assert np.isnan([*nothing, windowed_forgetting(empty, 2), windowed_forgetting(empty, 2, worst=True)]).all()
