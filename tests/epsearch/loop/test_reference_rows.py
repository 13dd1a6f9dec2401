"""A search with reference rows: joint and i.i.d. training beside its curve, which they leave as it is."""

from contextlib import contextmanager

import numpy as np
import pytest

from epsearch.failures.errors import UsageError
from epsearch.findings.reports import REPORTS
from epsearch.findings.search import search_results
from epsearch.loop.certificates import members_of_certificates
from epsearch.loop.jobs import execute
from epsearch.preparation.build import build
from epsearch.preparation.checks import CHECKS
from epsearch.publishing.points import publication, trial_of
from epsearch.session.plan import make_plan
from epsearch.study.kinds import Search
from results.figures import parameter_curve
from results.ledger.record import RunRecord, same_result
from results.ledger.store import Store
from results.metrics import average_accuracy
from tests.support.drive import fake, finish, make
from trainers.cohort import Cohort
from trainers.numeric_path import NumericPath
from trainers.population import Training, train_cohort

ROWS = {"reference_rows": "joint,iid"}
STREAMS = {
    "cv": {},
    "eval": {"score_on": "eval"},
    "validation": {"score_on": "eval", "validation": 0.2},
    "class": {"dataset": "split_digits", "scenario": "class", "tasks": 5, "cv_tasks": 2, "lr": 0.05},
}


@pytest.fixture
def store(tmp_path):
    with ledger(tmp_path / "runs") as opened:
        yield opened


@contextmanager
def ledger(folder):
    folder.mkdir()
    with Store.open(f"sqlite:///{folder / 'epsearch.sqlite'}") as opened:
        yield opened


def is_reference(record: RunRecord) -> bool:
    return record.method in ("joint", "iid")


@pytest.mark.slow
@pytest.mark.parametrize("options", STREAMS.values(), ids=STREAMS)
def test_rows_stand_on_the_stream_and_the_seeds_of_the_curve(small_study, store, tmp_path, options):
    study = small_study(**ROWS, **options)
    loop = make(study, store)
    finish(loop)
    rows = loop.references()
    assert list(rows) == ["joint", "iid"]
    for row, members in rows.items():
        assert [(one.method, one.phase, one.seed) for one in members] == [(row, study.scored_on, s) for s in (0, 1)]
    # Trained by hand, on the same stream and values.
    path = NumericPath.parse(str(study.numeric_path))
    for row, seed in (("joint", 0), ("iid", 1)):
        training = Training(study.request(study.scored_on).open(), study.architecture, path)
        alone = train_cohort(Cohort((study.reference(row, seed),)), training)
        assert alone.fingerprints[0] == rows[row][seed].fingerprint
    with ledger(tmp_path / "without") as empty:
        plain = make(small_study(**options, out=tmp_path / "without"), empty)
        finish(plain)
        assert_same_answer(loop, plain)
        assert len(store.all_runs()) == len(empty.all_runs()) + 4


def assert_same_answer(loop, plain):
    """Nothing but the rows is new: points, choice, evaluation, certificates, groups, trials, curve."""
    assert loop.best == plain.best and loop.driver.choice == plain.driver.choice and loop.rounds() == plain.rounds()
    for ours, theirs in (
        (loop.search_records(), plain.search_records()),
        (loop.evaluation_records(), plain.evaluation_records()),
    ):
        assert len(ours) == len(theirs) and all(map(same_result, ours, theirs))
    assert loop.certificates.keys() == plain.certificates.keys() and loop.certificates
    ours, theirs = (search_results(each, {}) for each in (loop, plain))
    assert not any(map(is_reference, (*ours.search, *ours.evaluation))) and len(ours.beside) == 4 and not theirs.beside
    curve, other = (parameter_curve.numbers(each, "A_T") for each in (ours, theirs))
    assert curve.points.equals(other.points) and curve.members.equals(other.members)
    assert curve.peak.curve is None or curve.peak.curve.equals(other.peak.curve)
    means = [100 * np.mean([average_accuracy(one.accuracies) for one in each]) for each in loop.references().values()]
    assert curve.references["mean"].tolist() == pytest.approx(means) and other.references.empty
    groups, without = (REPORTS[Search.kind].groups(each) for each in (loop, plain))
    assert {name: len(groups[name]) for name in groups.keys() - without.keys()} == {
        (loop.study.scored_on, "Joint"): 2,
        (loop.study.scored_on, "i.i.d."): 2,
    }
    assert {name: len(each) for name, each in without.items()} == {name: len(groups[name]) for name in without}
    trials, before = (publication(each).trials for each in (loop, plain))
    assert [(one.label, len(one.records)) for one in trials] == [(one.label, len(one.records)) for one in before]
    assert all(trial_of(loop.study, record) is None for record in ours.beside)


@pytest.mark.slow
def test_members_and_work_of_the_plan_are_those_that_are_trained(small_study, store):
    options = {"strategy": "grid", "repeats": 1, "certify": 1, "choose": "tried"}
    plain, study = small_study(**options), small_study(**options, **ROWS)
    loop = make(study, store)
    without = make(plain, store)
    assert loop.counts().final == without.counts().final + 4
    # A member of each row costs what its own formula says, and neither that of a point.
    more = make_plan(loop).flop - make_plan(without).flop
    rows = sum(loop._work(run) for run in loop._references)
    assert more == pytest.approx(loop.work_of(loop.counts())[2] - without.work_of(without.counts())[2], rel=0.05)
    assert loop.work_of(loop.counts())[2] - without.work_of(without.counts())[2] == pytest.approx(rows)
    left = [loop.counts().largest]
    while not loop.done:
        assert sum(count for count, _ in loop.remaining()) == left[-1]
        loop.tell([execute(loop.ask()[0])])
        left.append(loop.counts().largest)
    assert left == sorted(left, reverse=True) and left[-1] == 0 == loop.work_of(loop.counts())[2]
    assert make_plan(make(study, store)).steps == 0 and loop.trained == len(store.all_runs())


@pytest.mark.slow
def test_they_are_trained_in_the_evaluation_and_once(small_study, store):
    study = small_study(**ROWS)
    seen = []
    while not (loop := make(study, store)).done:  # killed after every job
        job = loop.ask()[0]
        seen += [(loop.stage, one.method, one.seed) for one in job.cohort.learners if not job.certify]
        loop.tell([execute(job)])
    rows = [one for one in seen if one[1] in ("joint", "iid")]
    assert sorted(rows) == sorted(("evaluation", row, seed) for row in ("joint", "iid") for seed in (0, 1))
    keys = {one.key for members in loop.references().values() for one in members}
    assert not keys & set(members_of_certificates(study.but(certify=99), loop.search_records()).values())
    again = make(study, store)
    assert again.done and again.trained == 0 and [*again.references()] == ["joint", "iid"]
    assert make(study.but(reference_rows=()), store).references() == {}


def test_they_have_the_values_of_the_study(small_study):
    study = small_study(**ROWS, lr=0.03, epochs=2, momentum=0.5, search="lr=log:0.01..0.3")
    learner = study.reference("joint", 1)
    shown = {name: getattr(learner.hyperparameters, name) for name in ("lr", "epochs", "momentum", "batch_size")}
    assert shown == {"lr": 0.03, "epochs": 2, "momentum": 0.5, "batch_size": study.hyperparameters.batch_size}
    assert [one.method for one in CHECKS[Search.kind].trained(study)] == ["soft_agem", "joint", "iid"]


def test_rows_of_a_search_without_an_answer_are_not_trained(small_study, store):
    loop = make(small_study(**ROWS), store)
    jobs = finish(loop, fake(lambda one: np.nan))
    assert (
        loop.done
        and loop.references() == {}
        and not any(one.method == "joint" for j in jobs for one in j.cohort.learners)
    )
    assert make_plan(loop).counts.largest == 0


@pytest.mark.slow
def test_a_row_that_diverges_is_no_value_that_diverged(small_study, store):
    loop = make(small_study(**ROWS), store)
    finish(loop, made_up)
    results = search_results(loop, {})
    assert not any("diverged" in note for note in results.notes)
    table = parameter_curve.numbers(results, "A_T").references
    assert table["n"].tolist() == [2, 1] and table["mean"].tolist() == pytest.approx([80, 70])


def made_up(job):
    """Scores by the method of a job, where one seed of i.i.d. training diverges."""
    level = {"joint": lambda one: 0.8, "iid": lambda one: np.nan if one.seed else 0.7}
    return fake(level.get(job.cohort.learners[0].method, lambda one: 0.5 + getattr(one, "epsilon", 0) / 10))(job)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"reference_rows": "jiont"}, "no reference-rows 'jiont'; known: joint, iid; did you mean 'joint'?"),
        ({"reference_rows": "joint,van"}, "no reference-rows 'van'; known: joint, iid"),
        (
            {"method": "joint", "search": "lr=log:0.01..0.1", "reference_rows": "iid,joint"},
            "reference-rows must be others than the searched method, got joint; leave it out",
        ),
    ],
)
def test_other_names_are_refused(options, line):
    with pytest.raises(UsageError) as refusal:
        build(Search, options)
    assert str(refusal.value) == line


def test_they_are_no_part_of_what_identifies_a_study(small_study):
    plain, study = small_study(), small_study(**ROWS)
    assert study.identity() == plain.identity() and study.name == plain.name
    assert small_study(reference_rows="none").reference_rows == () == plain.reference_rows
    assert build(Search, {"reference_rows": ["iid"]}).reference_rows == ("iid",)
