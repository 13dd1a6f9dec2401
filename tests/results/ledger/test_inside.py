"""Records with tests inside tasks: read back as they were; those without keep the rows that they had."""

import json

import numpy as np

from results.ledger.record import RunRecord, same_result
from results.ledger.schema import from_row, to_row

NAN = np.nan
POINTS = np.array([[0, 2, 0.9, NAN], [1, 1, 0.4, 0.5], [1, 2, 0.6, 0.8]])


def record(inside):
    known = {"key": "00", "phase": "eval", "method": "agem", "epsilon": 0.0, "seed": 0, "status": "ok", "steps": 4}
    known |= {"diverged_task": None, "diverged_step": None, "seconds": 1.0, "content": {"config": {}}}
    known |= {"created": "2026-01-01T00:00:00+00:00", "fingerprint": "ff", "cohort": "aa", "initial": np.zeros(2)}
    known |= {"accuracies": np.full((2, 2), 0.5), "within": np.full((2, 11), NAN), "violations": np.zeros(2)}
    return RunRecord(**known, inside=inside)


def test_points_are_read_back():
    filled = np.vstack([POINTS, np.full((2, 4), NAN)])
    one = record(filled)
    np.testing.assert_array_equal(one.inside, POINTS)
    again = from_row(to_row(one))
    assert same_result(one, again) and not same_result(one, record(None))


def test_without_points_the_column_is_the_learning_curve_alone():
    assert isinstance(json.loads(to_row(record(None))["within"]), list)
    assert from_row(to_row(record(None))).inside.shape == (0, 4)
