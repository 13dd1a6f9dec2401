"""Printed rows beside results of other sizes: left out, unless --with-printed asks for them."""

from dataclasses import replace

import pytest

from epsearch.findings.facts import full_size
from epsearch.findings.search import comparable
from epsearch.preparation import history
from epsearch.preparation.build import build
from epsearch.preparation.data import open_evaluation
from epsearch.study.description import Disjointness
from epsearch.study.kinds import Comparison, Search
from results.ledger.store import Store
from results.paper import reference
from tests.epsearch.conftest import TINY
from tests.support.drive import fake, finish, make

SCORED = fake(lambda one: 0.8 - 0.1 * getattr(one, "epsilon", 0.0) + 0.01 * one.seed)
LEFT_OUT = "its printed rows are left out; epsearch report {} --with-printed shows them."


@pytest.fixture(autouse=True)
def printed(monkeypatch):
    """The paper's table of Permuted MNIST as one of the digits, which are at hand."""
    monkeypatch.setitem(reference.PRINTED_DATASETS, "permuted_digits", ("Permuted MNIST", reference.ONE_HOT))


def flat(text):
    return " ".join(text.split())


@pytest.mark.slow
def test_a_comparison_of_another_size(epsearch, tmp_path):
    options = [part for name, value in TINY.items() for part in ("--" + name.replace("_", "-"), str(value))]
    command = ["compare", "--methods", "van,agem", *options, "--name", "table"]
    page = tmp_path / "runs" / "table" / "comparison.html"
    first = epsearch(*command)
    assert first.status == 0 and "48.6" not in first.out
    assert "next    epsearch report table --with-printed\n" in first.out
    assert "± standard deviation\n" in first.out and "population" not in first.out
    why = flat(epsearch("show", "table", "--why").out)
    assert LEFT_OUT.format("table") in why and "mean ± standard deviation over" in why.lower()
    assert flat(page.read_text(encoding="utf-8")).count(LEFT_OUT.format("table")) == 1
    for again in ([*command, "--with-printed"], ["report", "table", "--with-printed"]):
        answer = epsearch(*again)
        assert answer.status == 0 and "left out" not in answer.out
        lines = answer.out.splitlines()
        (van,) = (line for line in lines if line.split()[:1] == ["VAN"])
        assert van.split()[4:6] == ["48.6", "±"]
        assert "population standard deviation, as the paper prints it" in flat(answer.out)
        assert "for orientation only" in page.read_text(encoding="utf-8")
    rows = epsearch("report", "table", "--json").json["rows"]
    assert [row["A_T_printed"] for row in rows] == ["", ""], "the next report leaves them out again"


@pytest.mark.slow
def test_a_search_of_another_size(epsearch, small_study, tmp_path):
    (tmp_path / "runs").mkdir()
    study = small_study(name="small", repeats=1, points=3, certify=0)
    with Store.open(f"sqlite:///{tmp_path / 'runs' / 'epsearch.sqlite'}") as store:
        history.save(store, study, open_evaluation(study)[0].describe(), Disjointness(), extend=False)
        finish(make(study, store), SCORED)
    answer = epsearch("report", "small")
    assert LEFT_OUT.format("small") in flat(epsearch("show", "small", "--why").out) and "printed  " not in answer.out
    answer = epsearch("report", "small", "--with-printed")
    assert "A-GEM, printed" in answer.out and "left out" not in answer.out
    why = epsearch("show", "small", "--why").out
    assert "mean ± standard deviation" in why and "left out" in why
    assert "F_T % " in why and "LCA_10 " in why


def test_several_searches_have_no_printed_rows(epsearch):
    answer = epsearch("report", "one", "two", "--with-printed")
    assert answer.status == 2 and "--with-printed is for the report of one study, got 2" in answer.err


@pytest.mark.slow
def test_a_service_leaves_them_out(epsearch):
    for command in (["report", "one"], ["run"], ["compare"]):
        answer = epsearch(*command, "--with-printed", "--server", "http://127.0.0.1:9")
        assert answer.status == 2 and "--with-printed cannot be combined with --server" in answer.err


def test_sizes_are_the_papers_or_not(tmp_path):
    whole = build(Comparison, {"out": tmp_path, "device": "cpu"})
    assert full_size(whole) and full_size(whole, whole.hyperparameters.memory)
    assert not full_size(whole, whole.hyperparameters.memory + 1)
    for other in ({"examples_per_task": 60}, {"memory_bytes": "2MB"}):
        assert not full_size(build(Comparison, {"out": tmp_path, "device": "cpu"} | other))
    search = build(Search, {"out": tmp_path, "device": "cpu", "search": "memory=5,10,25", "strategy": "grid"})
    own = search.hyperparameters.memory
    assert comparable(search, (own,)) and not comparable(search, (own + 1,))
    assert not comparable(replace(search, examples_per_task=60), (own,))
