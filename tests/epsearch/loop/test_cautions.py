"""What misleads a search of ε is said where it applies, in plans and reports, and nowhere else."""

import json
from pathlib import Path

import numpy as np
import pytest

from epsearch.findings.search import search_results
from epsearch.loop import cautions as said
from epsearch.loop.cautions import cautions
from epsearch.loop.estimates import Plan
from epsearch.preparation.build import build
from epsearch.session.plan import make_plan
from epsearch.session.plan_text import in_brief, in_words
from epsearch.study.kinds import Comparison, Search
from results.ledger.store import Store
from tests.support.drive import fake, finish, make

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"
FEWER, FEW, ZERO = "instead of all 60,000", "on so few tasks (3)", "ε = 0 was chosen on few tasks (3)"


def advised(sentence):
    """The study of the command with which a sentence ends."""
    words = sentence.partition(": epsearch run ")[2].split()
    options = zip(words[::2], words[1::2], strict=True)
    return build(Search, {name.removeprefix("--").replace("-", "_"): value for name, value in options})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [FEW]),
        (
            {"examples_per_task": 2000},
            ["larger with fewer images a task (2,000 of 60,000 here) and smaller on fewer tasks"],
        ),
        ({"examples_per_task": 60_000, "cv_tasks": 10}, []),
        ({"examples_per_task": 500, "cv_tasks": 6}, [FEWER]),
        ({"cv_tasks": 5}, ["on so few tasks (5)"]),
        ({"score_on": "eval"}, []),
        ({"cv_tasks": 3, "tasks": 6}, []),
        ({"search": "epsilon=0..1 lr=log:0.01..0.1", "strategy": "kg"}, [FEW]),
        ({"search": "lr=log:0.01..0.1", "examples_per_task": 500}, []),
        ({"method": "a_agem", "search": "lr=log:0.01..0.1", "examples_per_task": 500}, []),
        ({"dataset": "permuted_digits", "examples_per_task": 100}, []),
    ],
)
def test_only_what_applies_is_said(options, expected):
    found = cautions(build(Search, {"dataset": "permuted_mnist"} | options))
    assert len(found) == len(expected)
    for sentence, part in zip(found, expected, strict=True):
        assert part in sentence and "(docs/parabola.md)." in sentence
        assert cautions(advised(sentence)) == (), "what it advises has no caution of its own"
    assert (Path(__file__).parents[3] / "docs" / "parabola.md").exists()


def test_of_epsilon_zero_once_it_is_chosen():
    study = build(Search, {"dataset": "permuted_mnist"})
    assert FEW in cautions(study, {"epsilon": 0.1})[0]
    (zero,) = cautions(study, {"epsilon": 0.0})
    assert ZERO in zero and cautions(advised(zero)) == ()
    assert cautions(build(Search, {"dataset": "permuted_mnist", "cv_tasks": 6}), {"epsilon": 0.0}) == ()


def test_the_digits_advise_a_larger_stream():
    study = build(Search, {})
    (sentence,) = cautions(study, {"epsilon": 1.0})
    assert cautions(study, {"epsilon": 0.5}) == ()
    larger = advised(sentence)
    assert (larger.dataset, larger.examples_per_task, len(larger.seeds)) == ("permuted_mnist", 2000, 6)


def test_figures_are_those_of_the_page():
    import parabola_page

    found = json.loads((RESULTS / "parabola.json").read_text(encoding="utf-8"))
    exact = [one for one in parabola_page.parts_of(found) if one.formula == parabola_page.EXACT and one.seeds]
    full, best = said.FULL_TASKS["permuted_mnist"], lambda one: one.epsilons[one.best]
    assert found["sizes"]["full"] == full and {len(one.epsilons) for one in exact} == {11}

    sizes = sorted((one for one in exact if (one.phase, one.tasks) == ("cv", 3)), key=lambda one: one.images)
    told = ", ".join(f"{best(one):g} with {one.images:,}" for one in sizes)
    assert f"by images: {told} (docs" in said.FEWER_IMAGES and sizes[-1].images == full
    assert sorted(map(best, sizes), reverse=True) == list(map(best, sizes))

    *searches, evaluation = sorted((one for one in exact if one.images == full), key=lambda one: one.tasks)
    told = ", ".join(f"{best(one):g} on {one.tasks}" for one in searches)
    assert f"full tasks: {told}, {best(evaluation):g} on the evaluation's {evaluation.tasks} " in said.FEW_SEARCH_TASKS
    lost = {one.tasks: evaluation.means[evaluation.best] - evaluation.means[one.best] for one in searches}
    assert (
        max(tasks for tasks in lost if lost[tasks] > 1)
        == said.FEW_TASKS
        < min(tasks for tasks in lost if lost[tasks] <= 1)
    )
    assert all(best(one) == 0 for one in searches if one.tasks <= said.FEW_TASKS)
    pairs = evaluation.scores["A_T"][evaluation.best] - evaluation.scores["A_T"][0]
    told = f"{parabola_page.with_error(pairs, 2)} points on {evaluation.tasks} full tasks ({len(pairs)} seeds), against"
    assert f"{told} ε = {best(evaluation):g} (docs".lstrip("+") in said.ZERO


def test_of_three_tasks_that_predict():
    along = {"protocol": "extrapolated", "dataset": "split_cifar", "data_dir": "."}
    assert cautions(build(Search, along)) == (said.THREE_TASKS,)
    assert cautions(build(Search, along | {"cv_tasks": 4})) == ()
    (goes_on, stays) = (
        build(Search, {"protocol": "extrapolated", "most_cv_tasks": most, "examples_per_task": 60}) for most in (4, 3)
    )
    assert cautions(goes_on) == () and cautions(stays) == (said.THREE_TASKS,)

    streams = json.loads((RESULTS / "forecasts.json").read_text(encoding="utf-8"))["streams"]
    three, four = (
        np.mean(
            [
                one["rules"]["the model"]["regret"]
                for stream in streams
                for one in stream["searches"]
                if one["tasks seen"] == k
            ]
        )
        for k in (3, 4)
    )
    assert f"lost {three:.2f} points on {len(streams)} streams, by that of 4 tasks {four:.2f} (" in said.THREE_TASKS


def test_a_comparison_searches_no_epsilon():
    assert cautions(build(Comparison, {"dataset": "permuted_mnist", "examples_per_task": 500})) == ()


def test_plans_say_it(small_study, monkeypatch):
    study = small_study(tasks=5)
    study.out.mkdir()
    with Store.open(study.storage) as store:
        assert "caution" not in in_words(make_plan(make(study, store)))
        monkeypatch.setattr(said, "SMALL", "")
        monkeypatch.setattr(said, "FULL_TASKS", {"permuted_digits": 1_437})
        plan = make_plan(make(study, store))
    command = "epsearch run --dataset permuted_digits --cv-tasks 10 --seeds 6"
    assert in_brief(plan)["advice"] == f"{command} (--verbose says why)"
    words = in_words(plan)["caution"]
    assert "fewer images a task (60 of 1,437 here) and smaller on fewer tasks (2 here, 3 in the evaluation)" in words
    assert Plan.from_json(study, plan.as_json()).cautions == plan.cautions


@pytest.mark.parametrize(
    ("top", "images", "part"),
    [
        (0.0, None, "ε = 0 was chosen on few tasks (2)"),
        (1.0, None, "on so few tasks (2)"),
        (1.0, 60, "(60 of 1,437 here) and smaller on fewer tasks (2 here"),
    ],
)
def test_reports_say_it(small_study, monkeypatch, top, images, part):
    study = small_study(tasks=5, seeds=3, examples_per_task=images)
    study.out.mkdir()
    with Store.open(study.storage) as store:
        loop = make(study, store)
        finish(loop, fake(lambda one: 0.9 - 0.3 * abs(one.epsilon - top) + 0.001 * one.seed))
    assert loop.choice() == {"epsilon": top}
    assert search_results(loop, {}).notes == ((said.SMALL_STREAM,) if top == 1 else ())
    monkeypatch.setattr(said, "SMALL", "")
    monkeypatch.setattr(said, "FULL_TASKS", {"permuted_digits": 1_437})
    (caution,) = search_results(loop, {}).notes
    assert part in caution
