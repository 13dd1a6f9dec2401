"""Certificates: their bounds, the ledger's side, the report's side."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from results.ledger.record import Certificate
from results.ledger.store import Store
from results.pages.search.report import write_report
from results.pages.search.sections import warnings
from results.search import SearchResults
from results.verdict.certificates import summary, warning
from tests.support.synthetic import DAY, record, study

SAME = Certificate("a" * 64, 0.0, 0.0, DAY)


def certified(*differences: tuple[float, float], tolerance: float = 0.0) -> SearchResults:
    known = tuple(Certificate(f"{i:064x}", *pair, created=DAY) for i, pair in enumerate(differences))
    return replace(study(repeats=1, points=5, seeds=2), certificates=known, tolerance=tolerance)


def test_a_difference_is_never_nan_and_never_negative() -> None:
    for name in ("accuracy_difference", "parameter_difference"):
        assert getattr(replace(SAME, **{name: math.nan}), name) == math.inf
        assert getattr(replace(SAME, **{name: math.inf}), name) == math.inf
        for bad in (-1e-9, -math.inf):
            with pytest.raises(ValueError, match=f"{name} must be >= 0, got {bad}"):
                replace(SAME, **{name: bad})


@pytest.mark.parametrize(
    ("accuracy", "parameter", "tolerance", "fine"),
    [
        (0.0, 0.0, 0.0, True),
        (5e-324, 0.0, 0.0, False),
        (0.0, 5e-324, 0.0, False),
        (0.002, 0.3, 0.002, True),
        (0.0021, 0.0, 0.002, False),
        (math.inf, 0.0, 1.0, False),
        (0.0, 0.0, math.nan, False),
    ],
)
def test_what_a_tolerance_allows(accuracy: float, parameter: float, tolerance: float, fine: bool) -> None:
    assert Certificate("k", accuracy, parameter, DAY).within(tolerance) is fine


def test_the_ledger_keeps_the_first_of_a_key_exactly(store: Store) -> None:
    infinite = Certificate("b" * 64, math.inf, math.nan, DAY)
    awkward = Certificate("c" * 64, np.float32(0.1), np.nextafter(0.1, 1), DAY)  # type: ignore[arg-type]
    assert store.certify([SAME, infinite, awkward]) == 3
    assert store.certify([replace(SAME, accuracy_difference=0.5), SAME]) == 0
    assert store.certify(iter([])) == 0
    found = store.certificates([SAME.key, infinite.key, awkward.key, "unknown"])
    assert found == {c.key: c for c in (SAME, infinite, awkward)}
    assert found[infinite.key].accuracy_difference == found[infinite.key].parameter_difference == math.inf
    assert store.certificates([SAME.key]) == {SAME.key: SAME}
    assert store.certificates([]) == {}
    assert len(store.all_runs()) == 0


def test_certificates_outlive_the_program(url: str) -> None:
    with Store.open(url) as store:
        store.certify([SAME])
    with Store.open(url) as store:
        assert store.certificates(f"{i:064x}" for i in range(2000)) == {}
        assert store.certificates([SAME.key]) == {SAME.key: SAME}


def test_records_keep_fingerprint_and_cohort(store: Store) -> None:
    member = record()
    store.add([member])
    found = store.get([member.key])[member.key]
    assert (found.fingerprint, found.cohort) == (member.fingerprint, member.cohort) != ("", "")


def test_the_sentence() -> None:
    assert summary(certified()) == ""
    assert summary(certified((0.0, 0.0), (0.0, 0.0))) == (
        "2 members were trained a second time, alone, and compared with their results in a cohort: "
        "the largest difference of any accuracy is 0, of any parameter 0."
    )
    assert summary(certified((0.001, 0.0), (0.0005, 1.5e-6), tolerance=0.002)) == (
        "2 members were trained a second time, alone, and compared with their results in a cohort: "
        "the largest difference of any accuracy is 0.1 percentage points, of any parameter 1.5e-06. "
        "Accuracies may differ by up to 0.2 percentage points."
    )
    assert summary(certified((math.inf, 0.0))).startswith(
        "1 member was trained a second time, alone, and compared with its result in a cohort: "
        "the largest difference of any accuracy is infinite,"
    )


@pytest.mark.slow
def test_a_difference_beyond_the_tolerance_is_a_warning() -> None:
    assert warning(certified()) == warning(certified((0.0, 0.0))) == ""
    fine = certified((0.001, 0.5), (0.002, 0.0), tolerance=0.002)
    assert warning(fine) == "" and warnings(fine) == []
    beyond = certified((0.001, 0.5), (0.003, 0.25), (0.0, 0.0), tolerance=0.002)
    assert warnings(beyond) == [
        "Trained a second time, alone, 1 of 3 members had another result than in a cohort: the largest difference of "
        "any accuracy is 0.3 percentage points, of any parameter 0.25. "
        "Accuracies may differ by up to 0.2 percentage points."
    ]
    strict = warnings(replace(certified((0.0, 1e-9)), notes=("last",)))
    assert strict[0].endswith("any accuracy is 0, of any parameter 1e-09. No difference is allowed.") and strict[
        1:
    ] == ["last"]


@pytest.mark.slow
def test_the_report(tmp_path: Path) -> None:
    results = certified((0.0, 0.0), (math.inf, 1e-9))
    html = write_report(results, tmp_path / "some").read_text(encoding="utf-8")
    assert html.index("<h2>Configuration</h2>") < html.index("<h2>Equivalence</h2>")
    assert html.index("<h2>Equivalence</h2>") < html.index("<h2>Machine and versions</h2>")
    assert summary(results) in html.split("<h2>Equivalence</h2>")[1]
    assert warning(results) in html.split('<ul class="notes">')[1].split("</ul>")[0]
    table = pd.read_csv(tmp_path / "some" / "certificates.csv")
    assert list(table.columns) == ["key", "accuracy_difference", "parameter_difference", "created"]
    assert table["accuracy_difference"].tolist() == [0.0, math.inf]
    assert table["parameter_difference"].tolist() == [0.0, 1e-9]
    assert table["created"].tolist() == [DAY, DAY]


@pytest.mark.slow
def test_no_certificates_no_section(tmp_path: Path) -> None:
    html = write_report(certified(), tmp_path).read_text(encoding="utf-8")
    assert "Equivalence" not in html and '<ul class="notes">' not in html
    assert (tmp_path / "certificates.csv").read_text().startswith("key,accuracy_difference,")
