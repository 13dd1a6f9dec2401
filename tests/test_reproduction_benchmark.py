"""benchmarks/reproduction.py trains the rows of its YAML, and its page sets them beside print."""

import json

import numpy as np
import pytest

from results import metrics
from tests.support.made_mnist import made_mnist
from tests.support.sizes import ROOT
from trainers import Architecture, Cohort, Learner
from trainers.methods import METHODS
from trainers.numeric_path import NumericPath
from trainers.population import Training, train_cohort
from trainers.streams import StreamRequest

PATH = "cpu-float32-mkl-lazy"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture
def data_dir(tmp_path):
    with made_mnist(tmp_path) as folder:
        yield folder


def test_every_row_is_one_that_can_be_trained():
    import reproduction

    rows = list(reproduction.rows())
    assert len({json.dumps(row.identity, sort_keys=True) for row in rows}) == len(rows)
    for row in rows:
        Learner.of(row.method, 0, **dict(row.values))
        assert row.scenario in METHODS[row.method].scenarios
    pieces = reproduction.left([])
    assert len(pieces) == len(rows) * len(reproduction.SEEDS)
    stored = [json.loads(json.dumps({"row": row.identity, "seed": seed})) for row, seed in pieces[:-1]]
    assert reproduction.left(stored) == pieces[-1:]


def test_a_member_is_that_of_the_row(data_dir):
    import reproduction

    row = next(one for one in reproduction.rows() if one.table == "P-MNIST" and one.method == "er")
    member = reproduction.trained((row, 1), str(data_dir), PATH, 60)
    stream = StreamRequest("permuted_mnist", data_dir, range(20), 60).open()
    learner = Learner.of("er", 1, batch_size=128, lr=0.2, memory=1, memory_batch=128)
    training = Training(stream, Architecture(hidden=(100, 100)), NumericPath.parse(PATH), transfer=False)
    accuracies = train_cohort(Cohort((learner,)), training).accuracies[0]
    assert member["A_T"] == pytest.approx(100 * float(metrics.average_accuracy(accuracies)), abs=1e-4)
    assert member["row"] == row.identity and member["seed"] == 1


def test_the_page_sets_ours_beside_print():
    import reproduction
    import reproduction_page

    row = next(one for one in reproduction.rows() if one.printed is not None)
    scores = [row.printed + 1, row.printed + 2, row.printed + 3]
    members = [{"row": row.identity, "seed": n, "A_T": score, "F_T": None} for n, score in enumerate(scores)]
    text, _ = reproduction_page.section(json.loads(json.dumps({"members": members})))
    error = 1 / np.sqrt(3)
    assert f"| {row.printed + 2:.2f} ± 1.00 | – | {row.printed:g} | +2.00 | +{2 / error:.1f} |" in text
    assert f"{len(reproduction.left(members))} runs" in text
