"""`--epochs` and `--steps` in studies: names and keys as before at the default, and named everywhere else."""

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
from results.points import group
from tests.epsearch.test_cli import one_line
from tests.support.drive import fake, finish, make

OTHERS = ({"epochs": 2}, {"steps": 9})


def learner(study):
    return study.learner(study.example, 0)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_default_has_no_name(kind):
    for values in ({}, {"epochs": 1}, {"steps": "none"}):
        study = build(kind, values)
        assert study.name == build(kind, {}).name and not {"epochs", "steps"} & set(study.identity())


@pytest.mark.parametrize("values", OTHERS, ids=str)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_another_value_is_part_of_the_identity(kind, values, tmp_path):
    study = build(kind, values | {"out": tmp_path})
    assert study.identity().items() >= values.items() and study.name != build(kind, {}).name
    assert study.to_dict().items() >= values.items() and yaml.safe_load(study.to_yaml()).items() >= values.items()
    stored = {"kind": study.kind, "study": study.identity(), "numeric_path": None}
    again = restore(stored, study.name, study.out, study.storage)
    assert all(again.value(name) == value for name, value in values.items()) and again.identity() == study.identity()
    assert full_size(build(kind, {})) and not full_size(study)


def test_keys_name_another_value_alone():
    plain, *others = (build(Search, values) for values in ({}, *OTHERS))
    usual = content(plain, {}, Run("cv", learner(plain)))
    assert not {"epochs", "steps"} & set(usual["config"])
    for study, values in zip(others, OTHERS, strict=True):
        run = Run("cv", learner(study))
        named = content(study, {}, run)
        assert named == usual | {"config": usual["config"] | values}
        assert all(f"{name}={value}" in member_name(run) for name, value in values.items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 2, "steps": 9}, "epochs and steps exclude each other, got 2 and 9; leave one out"),
        ({"epochs": 0}, "epochs must be >= 1, got 0"),
        ({"epochs": 1.5}, "epochs must be a whole number >= 1, got 1.5"),
        ({"steps": "all"}, "steps must be a whole number >= 1, got 'all'; or none"),
        ({"search": "steps=5,9"}, "steps cannot be searched; search epochs instead, or give --steps one value"),
        ({"steps": 9, "search": "epochs=1,2"}, "steps must be none where epochs are searched, got 9"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(options, message):
    with pytest.raises(UsageError) as refused:
        build(Search, options)
    assert str(refused.value) == message


def test_methods_of_a_comparison_share_them():
    with pytest.raises(UsageError, match="method 'ewc': no hyperparameter 'epochs'"):
        build(Comparison, {"methods": "ewc", "settings": "ewc.epochs=2"})


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--epochs", "--steps"])
def test_a_trainer_has_none(option, epsearch, tmp_path):
    (tmp_path / "mine.py").write_text("def train(values, stream, seed, report): ...\n", encoding="utf-8")
    answer = epsearch("run", "--trainer", "mine:train", "--search", "lr=0..1", option, 7)
    one_line(answer)
    name = option.removeprefix("--")
    assert f"{name} is an option of epsearch's own methods; of a trainer, --set {name}=7" in answer.err


def test_epochs_are_searched(small_study, tmp_path):
    """Members of one pass, whose records do not name it, belong to no other point."""
    study = small_study(search="epochs=1,2,4", strategy="grid", points=3, repeats=1, seeds=2, certify=0)
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as store:
        loop = make(study, store)
        finish(loop, fake(lambda one: 0.5 + 0.1 * one.epochs + 0.001 * one.seed))
        records = loop.search_records()
        groups = group(records, ("epochs",), [(1,), (2,), (4,)])
        assert [len(members) for members in groups.values()] == [2, 2, 2] and loop.best.point == (4,)
        assert {run_of(record).learner.hyperparameters.epochs for record in groups[1,]} == {1}
        assert np.allclose([record.accuracies[0][0] for record in groups[2,]], [0.7, 0.701])


@pytest.mark.slow
def test_a_command_says_so_everywhere(epsearch, small_options):
    command = ["run", *small_options, "--epochs", 2, "--name", "twice", "--json"]
    plan = epsearch("plan", *small_options, "--epochs", 2, "--json").json
    once = epsearch("plan", *small_options, "--json").json
    assert plan["steps"] == 2 * once["steps"] and plan["flop"] > once["flop"]
    found = epsearch(*command).json
    assert found["config"]["epochs"] == 2
