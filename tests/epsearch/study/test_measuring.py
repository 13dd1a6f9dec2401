"""`--measure-every` in studies: names and keys as before without it, distances that are computed, and refusals."""

import pytest
import yaml

from epsearch.failures.errors import UsageError
from epsearch.loop.content import DISTANCES, content, measure_of, run_key
from epsearch.loop.jobs import Run
from epsearch.preparation.build import build, restore
from epsearch.preparation.distances import costs_of_inner_tests, distances
from epsearch.study.kinds import KINDS, Comparison, Search
from epsearch.study.parsers import AUTO
from tests.epsearch.test_cli import one_line
from trainers.cost.flops import MEASURING, measured_every
from trainers.methods import METHODS

OPTIONS = ("measure_every", "measure_images")
SMALL = {"cv_tasks": 2, "tasks": 5, "examples_per_task": 200, "memory": 2}


def learner(study):
    return study.learner(study.example, 0)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_default_has_no_name(kind):
    for values in ({}, {"measure_every": "none"}, {"measure_images": 250}):
        study = build(kind, values)
        assert study.measure is None and distances(study) == {}
        assert study.name == build(kind, {}).name and not {*OPTIONS} & set(study.identity())


@pytest.mark.parametrize("values", [{"measure_every": 7}, {"measure_every": AUTO, "measure_images": 9}], ids=str)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_another_value_is_part_of_the_identity(kind, values, tmp_path):
    study = build(kind, values | {"out": tmp_path})
    assert study.identity().items() >= values.items() and study.name != build(kind, {}).name
    assert yaml.safe_load(study.to_yaml()).items() >= values.items()
    stored = {"kind": study.kind, "study": study.identity(), "numeric_path": None}
    again = restore(stored, study.name, study.out, study.storage)
    assert again.measure == study.measure and again.identity() == study.identity()


def test_keys_name_tests_inside_tasks_alone():
    plain, measuring = build(Search, SMALL), build(Search, SMALL | {"measure_every": 7, "measure_images": 9})
    usual, run = content(plain, {}, Run("cv", learner(plain))), Run("cv", learner(measuring))
    assert content(measuring, {}, run) == usual | {"measure": {"every": 7, "images": 9}}


def test_equal_distances_share_a_key_however_they_were_chosen():
    computed = build(Search, SMALL | {"measure_every": AUTO})
    described = distances(computed)
    every = described[DISTANCES]["agem"]
    chosen = build(Search, SMALL | {"measure_every": every})
    for phase, point in (("cv", (0.3,)), ("eval", (0.0,))):
        run = Run(phase, computed.learner(point, 0))
        assert run_key(computed, described, run) == run_key(chosen, {}, run)
    assert measure_of(computed, described, run) == (every, 250)


def test_objectives_of_points_imply_the_computed_distance():
    for objective in ("WC-ACC", "min-ACC"):
        study = build(Search, SMALL | {"objective": objective})
        assert study.measure == (AUTO, 250) and distances(study) and "measure_every" not in study.identity()
        assert build(Search, SMALL | {"objective": objective, "measure_every": 7}).measure == (7, 250)


def test_the_distance_is_that_of_the_stream_that_needs_the_larger_one():
    study = build(Search, SMALL | {"measure_every": AUTO, "measure_images": 40})
    found = [
        measured_every(learner(study), study.request(phase).open(), study.architecture, phase == "eval", 40)
        for phase in ("cv", "eval")
    ]
    described = distances(study)
    assert described == {DISTANCES: {"agem": max(every for every, _ in found)}}
    ((method, every, share),) = costs_of_inner_tests(study, described)
    assert (method, every) == (METHODS["soft_agem"].title, described[DISTANCES]["agem"])
    assert 0.5 * MEASURING < share <= MEASURING


def test_methods_of_a_comparison_have_their_own_and_joint_training_none():
    study = build(Comparison, SMALL | {"methods": "agem,ewc,joint", "measure_every": AUTO, "measure_images": 40})
    described = distances(study)
    rows = costs_of_inner_tests(study, described)
    assert {method: every for method, every, _ in rows} == {
        METHODS[name].title: described[DISTANCES][name] for name in ("agem", "ewc")
    }
    assert all(0 < share <= MEASURING for _, _, share in rows)
    together = next(one for one in study_learners(study) if one.method == "joint")
    assert measure_of(study, described, Run("eval", together)) is None
    plain = build(Comparison, SMALL | {"methods": "agem,ewc,joint"})
    assert run_key(study, described, Run("eval", together)) == run_key(plain, {}, Run("eval", together))


def study_learners(study):
    from epsearch.preparation.checks import CHECKS

    return CHECKS[study.kind].trained(study)


@pytest.mark.slow
def test_the_plan_prints_them(small_study, epsearch, small_options):
    answer = epsearch("plan", *small_options, "--measure-every", "9", "--verbose")
    assert "inside tasks" in answer.out and "every 9 steps" in answer.out, answer.out + answer.err
    found = epsearch("plan", *small_options, "--measure-every", AUTO, "--json").json
    plain = epsearch("plan", *small_options, "--json").json
    (row,) = found["measuring"]
    assert row["every"] >= 1 and row["share"] > 0 and plain["measuring"] == []
    assert plain["flop"] < found["flop"] <= plain["flop"] / (1 - row["share"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure_every": 0}, "measure-every must be >= 1, got 0"),
        ({"measure_every": "often"}, "measure-every must be a whole number >= 1, got 'often'; or auto, none"),
        ({"measure_every": 2.5}, "measure-every must be a whole number >= 1, got 2.5; or auto, none"),
        ({"measure_every": 7, "measure_images": 0}, "measure-images must be >= 1, got 0"),
        ({"measure_images": 9}, "measure-images is for --measure-every; give it, or leave it out, got 9"),
        ({"objective": "min-ACC", "cv_tasks": 1}, "objective min-ACC needs two tasks in the search, got cv-tasks 1"),
        (
            {"method": "joint", "search": "lr=log:0.01..0.1", "measure_every": 7},
            "tests inside tasks are for tasks one after another; joint shows them together",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(options, message):
    with pytest.raises(UsageError) as refused:
        build(Search, options)
    assert str(refused.value) == message


@pytest.mark.slow
@pytest.mark.parametrize(("option", "value"), [("--measure-every", "9"), ("--objective", "WC-ACC")])
def test_a_trainer_has_none(option, value, epsearch, tmp_path):
    (tmp_path / "mine.py").write_text("def train(values, stream, seed, report): ...\n", encoding="utf-8")
    answer = epsearch("run", "--trainer", "mine:train", "--search", "lr=0..1", option, value)
    one_line(answer, option.removeprefix("--"))
