"""`report A B`: what can be compared is, and what cannot is one line."""

import pytest

from epsearch.preparation import history
from epsearch.preparation.build import build
from epsearch.preparation.data import open_evaluation
from epsearch.study.description import Disjointness
from epsearch.study.kinds import Comparison
from results.ledger.store import Store
from tests.epsearch.conftest import TINY
from tests.support.drive import fake, finish, make

SCORED = fake(
    lambda one: (
        0.8 - 0.1 * getattr(one, "epsilon", 0.0) - 0.1 * one.lr + 0.01 * one.seed + getattr(one, "memory", 0) / 1e3
    )
)


@pytest.fixture
def store(tmp_path):
    """The ledger that commands take by default."""
    (tmp_path / "runs").mkdir()
    with Store.open(f"sqlite:///{tmp_path / 'runs' / 'epsearch.sqlite'}") as opened:
        yield opened


@pytest.fixture
def run(small_study, store):
    """Puts a small search into the ledger, as if it had been trained: run(name, **options)."""

    def one(name, **options):
        study = small_study(name=name, **{"repeats": 1, "points": 3, "seeds": 1, "certify": 0} | options)
        history.save(store, study, open_evaluation(study)[0].describe(), Disjointness(), extend=False)
        finish(make(study, store), SCORED)

    return one


def refused(answer, *words):
    assert answer.status == 2 and answer.out == "" and answer.err.count("\n") == 1, answer.err
    for word in words:
        assert word in answer.err


@pytest.mark.slow
def test_searches_on_other_streams_are_refused_in_one_line(run, epsearch, tmp_path):
    run("two")
    run("three", cv_tasks=3)
    run("longer", examples_per_task=70)
    run("batches", batch_size=12)
    run("scored", score_on="eval")
    same = "searches to compare must have the same "
    refused(epsearch("report", "two", "three"), f"{same}cv-tasks, got 2 (two), 3 (three)")
    refused(epsearch("report", "two", "longer", "--json"), f"{same}examples-per-task, got 60 (two), 70 (longer)")
    refused(epsearch("report", "two", "batches"), f"{same}batch-size, got 10 (two), 12 (batches)")
    refused(epsearch("report", "two", "scored"), f"{same}score-on, got cv (two), eval (scored)")
    assert not (tmp_path / "runs" / "strategies").exists()


@pytest.mark.slow
def test_searches_for_other_things_are_compared(run, epsearch):
    run("epsilon")
    run("rates", search="lr=0.01..0.1")
    run("both", strategy="grid", search="scale=raw,unit memory=2,4", points=4)
    run("penalty", method="pi", search="strength=log:0.1..100", seeds="5,6")
    answer = epsearch("report", "epsilon", "rates", "both", "penalty", "--json")
    assert answer.status == 0, answer.err
    found = answer.json["studies"]
    assert [list(one["chosen"]) for one in found] == [["epsilon"], ["lr"], ["scale", "memory"], ["strength"]]
    shown = epsearch("report", "epsilon", "penalty")
    assert shown.status == 0 and "interval narrowing (penalty)" in shown.out


@pytest.mark.slow
def test_what_is_no_finished_search_is_refused_in_one_line(run, epsearch, store, small_study, tmp_path):
    run("whole")
    given = TINY | {"methods": "van", "out": tmp_path / "runs", "name": "methods"}
    for study in (build(Comparison, given), small_study(name="begun")):
        history.save(store, study, {"examples_per_task": 60}, Disjointness(), extend=False)
    refused(epsearch("report", "whole", "methods"), "'methods' is a study of `epsearch compare`")
    refused(epsearch("report", "whole", "begun"), "study 'begun' has no finished round yet; run it again to go on")
    refused(epsearch("report", "whole", "whole"), "must be different ones, got whole, whole")
    refused(epsearch("report", "whole", "whale"), "no study 'whale'", "did you mean 'whole'?")


@pytest.mark.slow
def test_figures_that_cannot_be_drawn_leave_the_report(run, epsearch, tmp_path, monkeypatch):
    run("one")
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "none"))
    answer = epsearch("report", "one", "--figures", "pdf,svg")
    assert answer.status == 1 and answer.err.count("\n") == 1
    assert "there is none at BROWSER_PATH; the report is runs/one/report.html" in answer.err
    assert (tmp_path / "runs" / "one" / "report.html").exists()
    refused(epsearch("report", "one", "--figures", "png"), "no figures 'png'; known: svg, pdf")
