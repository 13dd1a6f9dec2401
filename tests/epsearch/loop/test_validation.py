"""Searches with `--validation`: held-out examples choose, test sets measure what was chosen."""

import numpy as np
import pytest

from epsearch.failures.errors import UsageError
from epsearch.findings.search import search_results
from epsearch.loop.content import content
from epsearch.loop.jobs import Run
from epsearch.preparation.build import build
from epsearch.study.kinds import Comparison, MemoryStudy, Search
from results.ledger.record import same_result
from results.ledger.store import Store
from results.pages.search.methods_text import methods_paragraph
from tests.support.drive import finish, make
from trainers.streams import PermutedStream, SplitPixelsStream

SMALL = {
    "seeds": "2",
    "points": 3,
    "repeats": 1,
    "memory": 2,
    "certify": 1,
    "lr": 0.01,
    "validation": 0.2,
    "numeric_path": "cpu-float32-mkl",
}
PERMUTED = {"cv_tasks": 2, "tasks": 4, "examples_per_task": 100}
SPLIT = {"dataset": "split_digits", "scenario": "domain", "examples_per_task": 60}
STUDIES = {
    "cv": PERMUTED,
    "permuted, on the evaluation": PERMUTED | {"score_on": "eval"},
    "split, on the evaluation": SPLIT | {"score_on": "eval"},
}


def searched(options, folder):
    study = build(Search, SMALL | options | {"out": folder})
    with Store.open(f"sqlite:///{folder / 'epsearch.sqlite'}") as store:
        loop = make(study, store)
        finish(loop)
    return loop


@pytest.mark.slow
@pytest.mark.parametrize("options", STUDIES.values(), ids=STUDIES)
def test_wrong_labels_of_test_sets_change_no_choice(options, tmp_path, monkeypatch):
    (tmp_path / "wrong").mkdir()
    plain = searched(options, tmp_path)
    for kind in (PermutedStream, SplitPixelsStream):
        right = kind.test
        monkeypatch.setattr(
            kind, "test", lambda *given, right=right: (e := right(*given))._replace(labels=np.roll(e.labels, 1))
        )
    wrong = searched(options, tmp_path / "wrong")
    assert plain.best == wrong.best and plain.driver.choice == wrong.driver.choice
    ours, theirs = ({one.key: one for one in loop.search_records()} for loop in (plain, wrong))
    assert ours.keys() == theirs.keys() and all(same_result(ours[key], theirs[key]) for key in ours)
    assert {one.phase for one in ours.values()} == {"cv" if options is PERMUTED else "validation"}
    measured, wrongly = (
        [one.accuracies for one in sorted(loop.evaluation_records(), key=lambda one: one.key)]
        for loop in (plain, wrong)
    )
    assert any(not np.array_equal(*pair) for pair in zip(measured, wrongly, strict=True))
    assert {one.phase for one in plain.evaluation_records()} == {"eval"}
    text = methods_paragraph(search_results(plain, {}))
    assert "on 20 % of each task's training examples, held out of training and memory" in text
    assert "biased upwards" not in text


def test_the_default_has_no_name_and_another_share_is_part_of_keys():
    plain, zero, other = (build(Search, {} if one is None else {"validation": one}) for one in (None, 0, 0.1))
    assert plain.name == zero.name != other.name and "validation" not in plain.identity()
    assert other.identity() == plain.identity() | {"validation": 0.1}
    run = {phase: Run(phase, plain.learner(plain.example, 0)) for phase in ("cv", "eval", "validation")}
    described = {study: study.request("eval").open().describe() for study in (plain, other)}
    usual, held = (content(study, described[study], run["eval"])["stream"] for study in (plain, other))
    assert held == usual | {"validation": 0.1}
    assert content(other, described[other], run["validation"])["stream"] == held | {"tests": "validation"}


@pytest.mark.parametrize("value", ["-0.1", "0.51", "nan", "some", "True"])
def test_wrong_shares_are_one_line(value):
    with pytest.raises(UsageError) as error:
        build(Search, {"validation": value})
    assert str(error.value).startswith("validation must be a share in 0…0.5, got ")


@pytest.mark.parametrize("kind", [Comparison, MemoryStudy])
def test_studies_that_choose_nothing_refuse_it(kind):
    with pytest.raises(UsageError, match="validation is for studies that choose: a search, or compare with --tune"):
        build(kind, {"validation": 0.1})
    assert build(Comparison, {"validation": 0.1, "tune": True}).request("cv").validates
