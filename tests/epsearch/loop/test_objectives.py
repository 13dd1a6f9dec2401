"""Searches that maximise something else than A_T: what they choose, store, say, and refuse."""

import numpy as np
import pytest

from epsearch.failures.errors import UsageError
from epsearch.findings.listing import load
from epsearch.findings.search import search_results
from epsearch.plugins.registration import add_plugins
from results.metrics import METRICS
from results.objectives import score
from results.pages.search.report import tables
from results.verdict.answer import answer

OWN = """
import numpy as np

def first(accuracies):
    return accuracies[-1, 0]

def none(accuracies):
    return np.nan

def fails(accuracies):
    return accuracies["x"]

def text(accuracies):
    return "0.5"

def changes(accuracies):
    accuracies[:] = 0
    return 0.5
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own_objectives.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_objectives_of_a_matrix():
    a = np.array([[0.8, np.nan, np.nan], [0.7, 0.9, np.nan], [0.5, 0.7, 0.9]])
    forgotten = ((0.8 - 0.5) + (0.9 - 0.7)) / 2
    assert score("A_T", a) == pytest.approx(0.7)
    assert score("A_T-0.25F_T", a) == pytest.approx(0.7 - 0.25 * forgotten)
    assert score("A_T-2F_T", a[:1, :1]) == pytest.approx(0.8)
    assert score("worst-task", a) == 0.5
    assert score("anytime", a) == pytest.approx((0.8 + 0.8 + 0.7) / 3)


def test_the_usual_one_is_no_part_of_a_study(small_study):
    assert small_study(objective="A_T") == small_study() and "objective" not in small_study().identity()
    assert small_study(objective="worst_task").identity()["objective"] == "worst-task"
    assert small_study(objective="anytime").digest() != small_study().digest()


@pytest.mark.slow
def test_what_is_maximised_chooses_and_members_are_the_same(small_study, epsearch, small_options):
    """Trained once; the second study chooses another way among the same members."""
    grid = [*small_options, "--strategy", "grid", "--repeats", "1", "--json", "--certify", "0"]
    usual = epsearch("run", *grid, "--name", "usual").json
    worst = epsearch("run", *grid, "--name", "worst", "--objective", "worst-task").json
    assert usual["objective"] == "A_T" and worst["objective"] == "worst task"
    assert worst["effort"]["reused"] >= 8
    assert [row["objective"] for row in epsearch("list", "--json").json] == ["A_T", "worst task"]
    assert "(worst task)" in epsearch("list").out
    shown = epsearch("show", "worst").out
    assert "worst task" in shown and "A_T" not in shown
    refused = epsearch("run", *grid, "--name", "usual", "--objective", "anytime")
    assert refused.status == 2 and "objective" in refused.err
    assert "must have the same objective" in epsearch("report", "usual", "worst").err
    report = epsearch("report", "worst", "--json")
    assert report.status == 0, report.err
    other = [*small_options, "--strategy", "random", "--repeats", "1", "--name", "other", "--objective", "worst-task"]
    epsearch("run", *other)
    both = epsearch("report", "worst", "other")
    assert both.status == 0 and "worst task" in both.out, both.err


@pytest.mark.slow
def test_results_speak_of_it(small_study, epsearch, small_options):
    """As a whole: the number that chose is that of the tables, and they are as before without it."""
    epsearch("run", *small_options, "--name", "mixed", "--objective", "A_T-0.5F_T", "--choose", "tried")
    study = small_study()
    results = search_results(load("mixed", study.storage, study.out), {})
    with add_plugins(results.config):
        assert results.objective == "A_T − 0.5 F_T" in METRICS
        assert "A_T − 0.5 F_T" in answer(results)
        found = tables(results)
        assert found["search"]["A_T − 0.5 F_T_mean"].max() == pytest.approx(100 * results.chosen_score)
        both = found["search"]["A_T_mean"] - 50 * found["search"]["F_T_mean"]
        assert found["search"]["A_T − 0.5 F_T_mean"].to_numpy() == pytest.approx(both.to_numpy())
    assert results.objective not in METRICS


@pytest.mark.slow
def test_a_function_of_ones_own(own, small_study, epsearch, small_options):
    options = [*small_options, "--repeats", "1", "--name", "mine", "--objective", "own_objectives:first"]
    answered = epsearch("run", *options, "--json")
    assert answered.status == 0 and answered.json["objective"] == "first", answered.err
    assert epsearch("run", *options, "--json").json["effort"]["trained"] == 0


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("wrost-task", "did you mean 'worst-task'?"),
        ("A_T-F_T", "no objective 'A_T-F_T'"),
        ("own_objectives:frist", "did you mean 'first'?"),
        ("own_objectives:np", "must be a function (accuracies) -> number, got a module"),
    ],
)
def test_bad_input_is_one_line(own, small_study, objective, message):
    with pytest.raises(UsageError) as error:
        small_study(objective=objective)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none", "must return a finite number"),
        ("fails", "IndexError"),
        ("text", "objective own_objectives:text must return a finite number, got '0.5'"),
        ("changes", "objective own_objectives:changes failed with ValueError: assignment destination is read-only"),
    ],
)
def test_a_function_that_fails_is_one_line(own, epsearch, small_options, name, message):
    answered = epsearch("run", *small_options, "--quiet", "--repeats", "1", "--objective", f"own_objectives:{name}")
    assert answered.status == 2 and message in answered.err and answered.err.strip().count("\n") == 0, answered.err
