"""Searches and comparisons with tests inside tasks: objectives, metrics, killed runs and certificates."""

from dataclasses import replace

import numpy as np
import pytest

import trainers.checkpoints
from epsearch.failures.errors import UsageError
from epsearch.findings.listing import load
from epsearch.findings.search import search_results
from epsearch.loop.certificates import compare
from epsearch.loop.jobs import decode, encode, execute
from epsearch.plugins.registration import add_plugins
from results.continual_evaluation import INSIDE_METRICS, lowest_accuracy, worst_case_accuracy
from results.ledger.record import same_result
from results.ledger.store import Store
from results.metric_variants import short_name
from results.metrics import METRICS, undefined_metrics
from results.pages.search.methods_text import methods_paragraph
from results.pages.search.report import tables
from tests.support.drive import finish, make

MEASURED = {"measure_every": 3, "measure_images": 20}
SCORES = {"WC-ACC": worst_case_accuracy, "min-ACC": lowest_accuracy}


class Killed(Exception):
    pass


def opened(study):
    study.out.mkdir(exist_ok=True)
    return Store.open(str(study.storage))


@pytest.mark.slow
@pytest.mark.parametrize("objective", SCORES)
def test_a_search_maximises_what_it_measures_inside_tasks(objective, small_study):
    study = small_study(objective=objective, measure_images=20, choose="tried", certify=1)
    with opened(study) as store:
        loop = make(study, store)
        finish(loop)
    members = loop.search_records()
    every = {one.content["measure"]["every"] for one in members}
    assert len(every) == 1 and members[0].inside[0, 1] == min(*every, 6)
    means = {}
    for one in members:
        means.setdefault(one.epsilon, []).append(SCORES[objective](one.inside))
    best = max(means, key=lambda epsilon: np.mean(means[epsilon]))
    assert loop.best.value == pytest.approx(np.mean(means[best])) and loop.best.point == (best,)
    assert objective in loop.headline()
    assert [one.accuracy_difference for one in loop.certificates.values()] == [0.0]
    assert all(one.within(0.0) for one in loop.certificates.values())


@pytest.mark.slow
def test_reports_have_the_objective_and_the_metrics_by_name(small_options, small_study, epsearch):
    names = ",".join(map(short_name, INSIDE_METRICS))
    options = [*small_options, "--objective", "WC-ACC", "--measure-images", "20", "--name", "inside"]
    answer = epsearch("run", *options, "--add-metrics", names)
    assert answer.status == 0, answer.err
    assert "WC-ACC" in answer.out
    study = small_study()
    results = search_results(load("inside", study.storage, study.out), {})
    with add_plugins(results.config):
        assert {*INSIDE_METRICS} <= {*METRICS}
        assert "scored by its mean WC-ACC, measured every" in methods_paragraph(results)
        found = tables(results)["search"]
    assert np.isfinite(found[[f"{name}_mean" for name in INSIDE_METRICS]]).all(axis=None)
    assert found["WC-ACC_mean"].between(0, 100).all() and (found["min-ACC_mean"] <= found["A_T_mean"]).any()


@pytest.mark.slow
def test_without_them_metrics_say_why_they_are_missing(small_study):
    study = small_study(add_metrics=[short_name(name) for name in INSIDE_METRICS], certify=0)
    with opened(study) as store:
        loop = make(study, store)
        finish(loop)
    with add_plugins(study.to_dict()):
        lines = undefined_metrics(loop.search_records())
    assert [line for line in lines if "--measure-every" in line] == [
        f"{name} is not defined here: it needs {metric.needs}." for name, metric in INSIDE_METRICS.items()
    ]


@pytest.mark.slow
def test_results_are_those_without_them(small_study, tmp_path):
    plain, measured = small_study(certify=0, out=tmp_path / "a"), small_study(certify=0, out=tmp_path / "b", **MEASURED)
    found = []
    for study in (plain, measured):
        with opened(study) as store:
            loop = make(study, store)
            finish(loop)
        found.append(loop)
    before, after = (sorted(one.search_records(), key=lambda r: (r.epsilon, r.seed)) for one in found)
    assert found[0].best == found[1].best
    for one, other in zip(before, after, strict=True):
        assert one.key != other.key and not one.inside.size and other.inside.size
        assert other.content == {**one.content, "measure": {"every": 3, "images": 20}}
        assert same_result(one, replace(other, inside=None, key=one.key, content=one.content))


@pytest.mark.slow
def test_a_killed_job_goes_on_with_the_same_points(small_study, monkeypatch):
    monkeypatch.setattr("trainers.checkpoints.AT_MOST_EVERY", 0.0)
    study = small_study(certify=0, **MEASURED)
    save, kept = trainers.checkpoints.Checkpoints.save, []

    def save_and_die(self, trained, task, learners, result):
        save(self, trained, task, learners, result)
        kept.append(task)
        if task == 1:
            raise Killed

    with opened(study) as store:
        loop = make(study, store)
        job = next(job for job in loop.ask() if job.phase == "cv")
        whole = execute(replace(job, checkpoints=str(study.out / "whole")))
        with monkeypatch.context() as patch:
            patch.setattr(trainers.checkpoints.Checkpoints, "save", save_and_die)
            with pytest.raises(Killed):
                execute(job)
        again = execute(job)
        assert kept and job.measure == (3, 20)
        np.testing.assert_array_equal(whole.value.inside, again.value.inside)
        loop.tell([again])
        finish(loop)
        resumed = make(study, store)
        resumed.catch_up()
        assert resumed.done and resumed.trained == 0
        for key, one in resumed.records.items():
            assert same_result(one, loop.records[key]) and one.inside.size


def test_certificates_compare_points(small_study):
    study = small_study(certify=0, **MEASURED)
    with opened(study) as store:
        loop = make(study, store)
        job = next(job for job in loop.ask() if job.phase == "cv")
        alone = replace(job, cohort=replace(job.cohort, learners=job.cohort.learners[:1]))
        loop.tell([execute(alone)])
        (record,) = loop.records.values()
    result = execute(alone)
    assert compare(record, result).accuracy_difference == 0.0
    moved = record.inside.copy()
    moved[2, 2] = abs(moved[2, 2] - 0.25)
    expected = abs(moved[2, 2] - record.inside[2, 2])
    assert (
        compare(replace(record, inside=moved), result).accuracy_difference == pytest.approx(expected) and expected > 0
    )
    assert compare(replace(record, inside=moved[:-1]), result).accuracy_difference == np.inf
    assert compare(replace(record, inside=None), result).accuracy_difference == np.inf
    nothing = replace(result, value=decode(encode(replace(result.value, inside=result.value.inside[:, :0]))))
    assert compare(record, nothing).accuracy_difference == np.inf
    assert compare(replace(record, inside=None), nothing).accuracy_difference == 0.0


@pytest.mark.slow
def test_a_comparison_measures_all_methods_but_joint_training(epsearch, small_study):
    options = [
        "--methods",
        "agem,joint",
        "--seeds",
        "1",
        "--tasks",
        "4",
        "--cv-tasks",
        "2",
        "--examples-per-task",
        "60",
    ]
    options += ["--memory", "3", "--memory-batch", "8", "--numeric-path", "cpu-float32-mkl", "--name", "both"]
    answer = epsearch("compare", *options, "--measure-every", "3", "--add-metrics", "min-acc", "--json")
    assert answer.status == 0, answer.err
    study = small_study()
    found = {one.method: one.inside for one in load("both", study.storage, study.out).records.values()}
    assert {name: bool(points.size) for name, points in found.items()} == {"agem": True, "joint": False}
    assert epsearch("verify", "both").status == 0


def test_a_metric_that_is_the_objective_has_one_column(small_study):
    study = small_study(objective="min-ACC", add_metrics=["min-acc", "wc-acc"])
    with add_plugins(study.to_dict()):
        assert [name for name in METRICS if name.endswith("-ACC")] == ["min-ACC", "WC-ACC"]
    with pytest.raises(UsageError, match="no objective"):
        small_study(objective="min-acc-task-ends")
