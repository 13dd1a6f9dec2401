"""Options of the optimizer in studies: names and keys as before at the default, and named everywhere else."""

import numpy as np
import pytest
import yaml

from epsearch.failures.errors import UsageError
from epsearch.findings.facts import full_size
from epsearch.loop.content import content, run_of
from epsearch.loop.jobs import Run, member_name
from epsearch.preparation.build import build, restore
from epsearch.study.kinds import KINDS, Comparison, Search
from results.ledger.store import Store
from results.points import LEFT_OUT, group
from tests.support.drive import fake, finish, make
from trainers.methods import hyperparameters

USUAL = {"optimizer": "sgd", "momentum": 0.0, "weight_decay": 0.0, "lr_factor": 1.0}
OTHERS = (
    {"optimizer": "adam"},
    {"momentum": 0.9},
    {"weight_decay": 0.01},
    {"lr_factor": 0.5},
    {"optimizer": "adam", "weight_decay": 0.01, "lr_factor": 0.5},
)
with_each = pytest.mark.parametrize("values", OTHERS, ids=str)
of_each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def methods(kind):
    """PROGNN has no weight decay with Adam."""
    return {"methods": "van,agem,ewc"} if kind is Comparison else {}


def learner(study):
    return study.learner(study.example, 0)


def test_points_know_every_default_that_keys_leave_out():
    later = [one for one in hyperparameters().values() if one.later and one.default is not None]
    assert {one.key: one.default for one in later} == LEFT_OUT


@of_each_kind
def test_the_default_has_no_name(kind):
    study = build(kind, methods(kind) | USUAL)
    assert study.name == build(kind, methods(kind)).name and not USUAL.keys() & study.identity().keys()


@with_each
@of_each_kind
def test_another_value_is_part_of_the_identity(kind, values, tmp_path):
    study, usual = build(kind, methods(kind) | values | {"out": tmp_path}), build(kind, methods(kind))
    assert study.identity().items() >= values.items() and study.name != usual.name
    assert study.to_dict().items() >= values.items() and yaml.safe_load(study.to_yaml()).items() >= values.items()
    stored = {"kind": study.kind, "study": study.identity(), "numeric_path": None}
    again = restore(stored, study.name, study.out, study.storage)
    assert all(again.value(name) == value for name, value in values.items()) and again.identity() == study.identity()
    assert full_size(usual) and not full_size(study)


@with_each
def test_keys_name_another_value_alone(values):
    plain, study = build(Search, {}), build(Search, values)
    usual = content(plain, {}, Run("cv", learner(plain)))
    assert not USUAL.keys() & usual["config"].keys()
    run = Run("cv", learner(study))
    assert content(study, {}, run) == usual | {"config": usual["config"] | values}
    assert all(f"{name}={value}" in member_name(run) for name, value in values.items())
    assert not any(name in member_name(run) for name in USUAL.keys() - values.keys())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "adm"}, "no optimizer 'adm'; known: sgd, adam; did you mean 'adam'?"),
        ({"momentum": 1}, "momentum must be a number in [0, 0.9999], got 1"),
        ({"momentum": -0.1}, "momentum must be a number in [0, 0.9999], got -0.1"),
        ({"weight_decay": -1}, "weight-decay must be a number >= 0, got -1"),
        ({"lr_factor": 0}, "lr-factor must be a number > 0, got 0"),
        (
            {"optimizer": "adam", "momentum": 0.9},
            "momentum is for optimizer sgd, as adam has its own; got momentum 0.9 with adam",
        ),
        (
            {"search": "optimizer=sgd,adam momentum=0,0.9", "strategy": "grid"},
            "momentum is for optimizer sgd, as adam has its own; got momentum 0.9 with adam",
        ),
        (
            {"method": "prognn", "search": "weight_decay=0,0.1", "strategy": "grid", "optimizer": "adam"},
            "PROGNN has no weight-decay with optimizer adam, got 0.1",
        ),
        (
            {"search": "lr_factor=0.5,1", "strategy": "grid", "cv_tasks": 1},
            "cv-tasks must be >= 2 to search lr_factor, got 1: without an earlier task lr_factor changes nothing in "
            "soft_agem",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(options, message):
    with pytest.raises(UsageError) as refused:
        build(Search, options)
    assert str(refused.value) == message


def test_methods_of_a_comparison_share_them():
    for name in USUAL:
        with pytest.raises(UsageError, match=f"method 'ewc': no hyperparameter '{name}'"):
            build(Comparison, {"methods": "ewc", "settings": f"ewc.{name}=1"})
    with pytest.raises(UsageError, match="PROGNN has no weight-decay with optimizer adam, got"):
        build(Comparison, {"methods": "van,prognn", "optimizer": "adam", "weight_decay": 0.1})


def test_a_search_names_all_that_it_tries(small_study, tmp_path):
    """Members of plain SGD, whose records name no momentum, belong to no other point."""
    study = small_study(search="momentum=0,0.5,0.9", strategy="grid", points=3, repeats=1, seeds=2, certify=0)
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as store:
        loop = make(study, store)
        finish(loop, fake(lambda one: 0.5 + 0.1 * one.momentum + 0.001 * one.seed))
        groups = group(loop.search_records(), ("momentum",), [(0.0,), (0.5,), (0.9,)])
        assert [len(members) for members in groups.values()] == [2, 2, 2] and loop.best.point == (0.9,)
        assert {run_of(record).learner.hyperparameters.momentum for record in groups[0.0,]} == {0.0}
        assert np.allclose([record.accuracies[0][0] for record in groups[0.5,]], [0.55, 0.551])
