"""Options of scenarios: defaults by dataset, methods with a purpose, streams without a part for the search."""

import pytest

from epsearch.failures.errors import UsageError
from epsearch.preparation.build import build
from epsearch.study.kinds import Comparison, Search


def test_a_comparison_has_by_default_the_methods_with_a_purpose():
    methods = {
        one: build(Comparison, {"dataset": "split_digits", "scenario": one}).methods for one in ("task", "class")
    }
    assert "prognn" in methods["task"] and set(methods["task"]) - set(methods["class"]) == {"prognn"}


def test_the_usual_scenario_is_the_dataset_s_and_no_part_of_an_identity():
    usual, same, other = (
        build(Search, {"dataset": "split_cifar"} | options)
        for options in ({}, {"scenario": "task"}, {"scenario": "class"})
    )
    assert usual.scenario == "task" and usual.identity() == same.identity() and "scenario" not in usual.identity()
    assert other.identity() == usual.identity() | {"scenario": "class"}


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"dataset": "permuted_digits", "scenario": "class"}, "scenario of permuted_digits must be domain, got class"),
        ({"dataset": "split_awa", "scenario": "class"}, "scenario of split_awa must be task, got class"),
        (
            {"dataset": "split_digits"},
            "cv-tasks must be >= 1, or score-on eval, got 0 of the 5 tasks of split_digits",
        ),
    ],
)
def test_what_cannot_be_is_one_line(options, line):
    with pytest.raises(UsageError) as error:
        build(Search, options)
    assert str(error.value) == line


def test_a_short_stream_is_searched_on_all_tasks():
    study = build(Search, {"dataset": "split_digits", "scenario": "class", "score_on": "eval"})
    assert [*study.stream_tasks("eval")] == [0, 1, 2, 3, 4] and study.request("eval").open().scenario == "class"


def test_tuning_needs_a_part_for_the_search():
    with pytest.raises(UsageError, match="cv-tasks must be >= 1"):
        build(Comparison, {"dataset": "split_digits", "methods": "ewc", "tune": True})
