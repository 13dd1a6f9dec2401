from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from results.ledger.record import RunRecord, same_result
from tests.support.synthetic import record

LAST_ROW = np.where(np.arange(3)[:, None] == 2, 0.9, np.full((3, 3), np.nan))
HOLE = np.where(np.arange(9).reshape(3, 3) == 7, np.nan, 1.0)  # in the last row


def test_same_result_ignores_only_time_and_company() -> None:
    first = record()
    assert same_result(first, dataclasses.replace(first, seconds=99.0, created="2030-01-01T00:00:00+00:00"))
    assert same_result(first, dataclasses.replace(first, cohort="another"))
    for change in (
        {"seed": 1},
        {"epsilon": 0.2},
        {"steps": 1},
        {"key": "0"},
        {"content": {"x": 1}},
        {"method": "agem"},
        {"fingerprint": "0"},
        {"fingerprint": ""},
    ):
        assert not same_result(first, dataclasses.replace(first, **change))


def test_same_result_sees_one_changed_digit_and_one_new_nan() -> None:
    first = record()
    for value in (np.nextafter(first.accuracies[1, 0], 1.0), np.nan):
        other = first.accuracies.copy()
        other[0, 1] = value
        assert not same_result(first, dataclasses.replace(first, accuracies=other))


def test_same_result_takes_tuples_for_lists() -> None:
    first = dataclasses.replace(record(), content={"hidden": (256, 256)})
    assert same_result(first, dataclasses.replace(first, content={"hidden": [256, 256]}))


@pytest.mark.parametrize("name", ["accuracies", "initial", "within", "violations", "inside"])
def test_nobody_can_change_the_arrays_of_a_record(name: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        getattr(replaced(), name)[:] = 0


def test_whoever_made_an_array_may_go_on_with_it() -> None:
    own = record().accuracies.copy()
    replaced(accuracies=own)
    own[0, 0] = 0.0


def replaced(**change: object) -> RunRecord:
    return dataclasses.replace(record(), **change)  # type: ignore[arg-type]


def test_joint_training_may_lack_whole_rows_but_the_last() -> None:
    kept = replaced(accuracies=LAST_ROW, method="joint")
    assert np.array_equal(kept.accuracies, LAST_ROW, equal_nan=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"phase": "test"}, "no phase 'test'; known: cv, eval"),
        ({"status": "fine"}, "no status 'fine'; known: ok, diverged"),
        ({"epsilon": float("nan")}, "epsilon must be finite, got nan"),
        ({"accuracies": np.zeros((3, 2))}, "accuracies must have shape"),
        ({"initial": np.zeros(2)}, r"initial must have shape \[3\], got \[2\]"),
        ({"within": np.zeros((3, 10))}, r"within must have shape \[3, 11\], got \[3, 10\]"),
        ({"violations": np.zeros(4)}, r"violations must have shape \[3\], got \[4\]"),
        ({"accuracies": np.full((3, 3), 91.3)}, r"fractions in \[0, 1\] or NaN, got 91.3"),
        ({"initial": np.array([0.1, np.inf, 0.1])}, "or NaN, got inf"),
        ({"accuracies": np.full((3, 3), np.nan)}, "must be measured for every j <= k"),
        ({"accuracies": LAST_ROW}, "must be measured for every j <= k"),
        ({"accuracies": LAST_ROW * HOLE, "method": "joint"}, "must be measured for every j <= k"),
        ({"accuracies": LAST_ROW[::-1], "method": "joint"}, "must be measured for every j <= k"),
    ],
)
def test_bad_fields_are_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replaced(**change)


def test_a_diverged_member_may_lack_everything() -> None:
    assert replaced(status="diverged", accuracies=np.full((3, 3), np.nan)).tasks == 3
