"""Widths and initial weights of an mlp in studies: named nowhere at the default, and everywhere else."""

import pytest

from epsearch.failures.errors import UsageError
from epsearch.findings.facts import full_size
from epsearch.loop.content import content
from epsearch.loop.jobs import Run
from epsearch.preparation.build import build, restore
from epsearch.preparation.data import prepare
from epsearch.study.kinds import KINDS, Comparison, Search
from trainers import Architecture

USUAL = {"hidden": [256, 256], "start": "agem"}
OTHERS = ({"hidden": [100, 100]}, {"start": "xavier"}, {"hidden": [400], "start": "torch"})
with_each = pytest.mark.parametrize("values", OTHERS, ids=str)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_default_has_no_name(kind):
    study = build(kind, USUAL)
    assert study.name == build(kind, {}).name and not USUAL.keys() & study.identity().keys()
    assert study.architecture == Architecture()


@with_each
def test_another_value_is_part_of_identity_and_key(values, tmp_path):
    study, usual = build(Search, values | {"out": tmp_path}), build(Search, {})
    assert study.identity().items() >= values.items() and study.name != usual.name
    again = restore({"study": study.identity(), "numeric_path": None}, study.name, study.out, study.storage)
    assert again.architecture == study.architecture != usual.architecture
    runs = [Run("cv", each.learner(each.example, 0)) for each in (study, usual)]
    keyed, plain = (content(each, {}, run)["config"] for each, run in zip((study, usual), runs, strict=True))
    listed = [one | {"hidden": list(one["hidden"])} for one in (plain, keyed)]
    assert "start" not in plain and listed[0] | values == listed[1]
    assert not full_size(study)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": "100,0"}, "hidden must be >= 1, got 0"),
        ({"hidden": [1] * 33}, "hidden must be 1 to 32 numbers with commas between"),
        ({"start": "xavir"}, "no start 'xavir'; known: agem, xavier, torch; did you mean 'xavier'?"),
        (
            {"dataset": "split_cifar", "start": "torch"},
            "hidden and start are for network mlp, got network reduced_resnet18; leave them out",
        ),
    ],
)
def test_wrong_values_are_one_line(options, message):
    with pytest.raises(UsageError) as error:
        build(Search, options)
    assert message in str(error.value)


def test_columns_have_no_other_start(tmp_path):
    options = {"methods": "prognn", "start": "xavier", "out": tmp_path, "examples_per_task": 20}
    with pytest.raises(UsageError, match="PROGNN draws the weights of its columns by start agem, got xavier"):
        prepare(build(Comparison, options), print)
