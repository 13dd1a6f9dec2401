"""A hyperparameter that cannot act on what the search sees is refused before training; where it has been searched all
the same, all scores are equal bit for bit.
"""

import pytest

from epsearch.failures.errors import UsageError
from epsearch.loop.jobs import execute
from epsearch.preparation import effects
from epsearch.preparation.build import build, extend_search
from epsearch.preparation.checks import CHECKS
from epsearch.preparation.data import open_evaluation
from epsearch.session.plan import make_plan
from epsearch.session.plan_text import in_words
from epsearch.study.kinds import Comparison, MemoryStudy
from results.ledger.store import Store
from results.points import point_of
from tests.epsearch.conftest import TINY
from tests.support.drive import finish, make

GRID = {"strategy": "grid", "points": 3, "repeats": 1, "seeds": 1}
ONE_TASK = "without an earlier task"

# What cannot differ, and the words that say why.
REFUSED = {
    "ε on one task": ({"cv_tasks": 1}, "cv-tasks must be >= 2 to search epsilon, got 1: " + ONE_TASK),
    "ε on one task of the evaluation": (
        {"score_on": "eval", "cv_tasks": 3},
        "tasks must be >= cv-tasks + 2 to search epsilon, got 4 and 3: " + ONE_TASK,
    ),
    "memory on one task": ({"cv_tasks": 1, "search": "memory=2,4"}, "to search memory, got 1"),
    "reference batch on one task": ({"cv_tasks": 1, "search": "memory_batch=2,4"}, "to search memory_batch, got 1"),
    "one of two": (
        {"cv_tasks": 1, "search": "lr=0.1,0.2 scale=raw,unit", "points": 4},
        "cv-tasks must be >= 2 to search scale, got 1: without an earlier task scale changes nothing in soft_agem",
    ),
    "readings of A-A-GEM": (
        {"cv_tasks": 1, "method": "a_agem", "search": "a_agem_scale=raw,unit satisfied=raw,unit", "points": 4},
        "to search a_agem_scale, got 1",
    ),
    "λ on one task": ({"cv_tasks": 1, "method": "pi", "search": "strength=1,10"}, "to search strength, got 1"),
    "GEM's margin on one task": ({"cv_tasks": 1, "method": "gem", "search": "margin=0,1"}, "to search margin, got 1"),
    "MAS's form on two tasks": (
        {"method": "mas", "search": "penalty_form=code,paper"},
        "cv-tasks must be >= 3 to search penalty_form, got 2: without 2 earlier tasks penalty_form changes nothing",
    ),
    "readings of A-GEM": (
        {"epsilon": 0, "search": "trigger=zero,epsilon"},
        "epsilon must be > 0 to search trigger, got 0: that is A-GEM, which has no trigger",
    ),
    "readings of A-GEM, ε searched": (
        {"search": "epsilon=0 satisfied=raw,unit"},
        "epsilon must be > 0 to search satisfied, got 0",
    ),
    "form of a penalty without weight": (
        {"method": "mas", "cv_tasks": 3, "strength": 0, "search": "penalty_form=code,paper"},
        "strength must be > 0 to search penalty_form, got 0: a penalty of weight 0 changes nothing",
    ),
    "threshold on one task": (
        {"cv_tasks": 1, "method": "gpm", "search": "input_threshold=0.9,1"},
        "to search input_threshold, got 1",
    ),
    "growth of a threshold on two tasks": (
        {"method": "gpm", "search": "threshold_growth=0,0.003"},
        "cv-tasks must be >= 3 to search threshold_growth, got 2: without 2 earlier tasks",
    ),
    "weight of a teacher on one task": (
        {"cv_tasks": 1, "method": "lwf", "search": "distillation=1,10"},
        "to search distillation, got 1",
    ),
    "temperature of a teacher that is not asked": (
        {"method": "lwf", "distillation": 0, "search": "temperature=1,2"},
        "distillation must be > 0 to search temperature, got 0: no teacher is asked",
    ),
    "memories for all examples": (
        {"search": "memory=40,60"},
        "more keep every example, as no task shows more than",
    ),
    "reference batches for the whole memory": (
        {"search": "memory_batch=28,50"},
        "search must try a memory_batch <= 27, got at least 28: more draw the whole memory, which holds at most 28",
    ),
    "reservoirs for all examples": (
        {"method": "er", "cv_tasks": 1, "search": "memory=6,9"},
        "search must try a memory <= 5, got at least 6: more keep all 60 examples of the stream",
    ),
    "batches for a whole reservoir": (
        {"method": "er", "cv_tasks": 1, "search": "memory_batch=30,60"},
        "search must try a memory_batch <= 29, got at least 30: more draw the whole memory",
    ),
    "estimates that are never made": (
        {"method": "rwalk", "search": "fisher_every=7,9"},
        "search must try a fisher_every <= 6, got at least 7: a task has at most 6 steps",
    ),
    "estimates that no second pass makes": (
        {"method": "rwalk", "epochs": 2, "search": "fisher_every=13,14"},
        "search must try a fisher_every <= 12, got at least 13: a task has at most 12 steps",
    ),
    "reservoirs for all that few steps show": (
        {"method": "er", "steps": 3, "cv_tasks": 1, "search": "memory=3,4"},
        "search must try a memory <= 2, got at least 3: more keep all 30 examples of the stream",
    ),
    "λ of an estimate that is never made": (
        {"method": "ewc", "fisher_every": 7, "search": "strength=1,10"},
        "fisher-every must be <= 6 to search strength, got 7: a task has at most 6 steps, so that ewc would estimate",
    ),
}

# Beside each: what does act, however little there is.
ALLOWED = {
    "learning rates on one task": {"cv_tasks": 1, "search": "lr=0.03,0.1"},
    "batch sizes on one task": {"cv_tasks": 1, "method": "van", "search": "batch_size=5,10"},
    "learning rates on one task of the evaluation": {"cv_tasks": 3, "score_on": "eval", "search": "lr=0.03,0.1"},
    "a reservoir on one task": {"method": "er", "cv_tasks": 1, "search": "memory=1,5"},
    "stored logits on one task": {"method": "der", "cv_tasks": 1, "search": "alpha=0,1"},
    "threshold of a layer": {"method": "gpm", "search": "hidden_threshold=0.9,1"},
    "temperature of a teacher": {"method": "lwf", "search": "temperature=1,4"},
    "RWALK's form on two tasks": {"method": "rwalk", "fisher_every": 2, "search": "penalty_form=code,paper"},
    "MAS's form on three tasks": {"method": "mas", "cv_tasks": 3, "search": "penalty_form=code,paper"},
    "a memory that keeps less than all": {"search": "memory=2,60"},
    "a reference batch that draws less than all": {"search": "memory_batch=27,50"},
    "an estimate that a second pass makes": {
        "method": "ewc",
        "fisher_every": 12,
        "epochs": 2,
        "search": "strength=1,9",
    },
    "an estimate that is made": {"method": "ewc", "fisher_every": 6, "search": "strength=1,1000"},
}


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


@pytest.fixture
def anything_goes(monkeypatch):
    """As in a version that did not look: every study is taken."""
    monkeypatch.setattr(effects, "check_search", lambda study: None)
    monkeypatch.setitem(CHECKS, "run", CHECKS["run"]._replace(check_on=lambda study, stream: None))


def fingerprints(loop):
    """(value of what was searched -> final parameters), of the one seed."""
    names = loop.study.space.names
    return {point_of(record, names): record.fingerprint for record in loop.search_records()}


def finish_round(loop):
    for job in loop.ask():
        if job.phase == loop.study.score_on:  # not what is done ahead
            loop.tell([execute(job)])


@pytest.mark.parametrize(("options", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_differ_is_refused_in_one_line(small_study, options, words):
    with pytest.raises(UsageError) as error:
        open_evaluation(small_study(**GRID | options))
    assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("options", [options for options, _ in REFUSED.values()], ids=REFUSED)
def test_what_is_refused_is_equal_bit_for_bit(small_study, store, anything_goes, options):
    loop = make(small_study(**GRID | options), store)
    assert not loop.inert
    while not loop.evaluating:
        finish_round(loop)
    if loop.study.space.names[0] == "lr":  # the other one cannot act
        assert len(set(fingerprints(loop).values())) == 2 < len(fingerprints(loop)) == 4
        return
    assert len(set(fingerprints(loop).values())) == 1
    assert loop.inert and loop.headline().startswith("no best: all values have A_T ")


@pytest.mark.parametrize("options", ALLOWED.values(), ids=ALLOWED)
def test_what_acts_is_searched(small_study, store, options):
    loop = make(small_study(**GRID | options), store)
    while not loop.evaluating:
        finish_round(loop)
    assert len(set(fingerprints(loop).values())) == 2


def test_nothing_that_cannot_differ_is_tuned_or_compared(tmp_path):
    tuned = {**TINY, "methods": "van,ewc", "tune": True, "out": tmp_path}
    with pytest.raises(UsageError, match="cv-tasks must be >= 2 to tune the λ of ewc, got 1: without an earlier task"):
        build(Comparison, tuned | {"cv_tasks": 1})
    assert build(Comparison, tuned | {"cv_tasks": 1, "methods": "van,agem"}).tune  # learning rates
    sizes = {name: value for name, value in TINY.items() if name != "memory"} | {"sizes": "2,4", "out": tmp_path}
    words = "tasks must be >= cv-tasks [+] 2 to compare sizes of the memory, got 4 and 3: without an earlier task"
    with pytest.raises(UsageError, match=words):
        build(MemoryStudy, sizes | {"cv_tasks": 3})
    assert build(MemoryStudy, sizes | {"cv_tasks": 3, "sizes": "2"}).sizes == (2,)
    with pytest.raises(
        UsageError, match=r"^sizes must have at most one >= (\d+), got 30, 90: each keeps every .* \1 of"
    ):
        open_evaluation(build(MemoryStudy, sizes | {"sizes": "2,30,90"}))
    assert open_evaluation(build(MemoryStudy, sizes | {"sizes": "2,4,90"}))


def test_a_study_cannot_grow_into_what_cannot_differ(small_study):
    rates = small_study(search="lr=0.03..0.1", cv_tasks=1)
    with pytest.raises(UsageError, match=r"^extend goes on searching lr, got epsilon; choose another --name$"):
        extend_search(rates, {"search": "epsilon=0..1"})
    with pytest.raises(UsageError, match=r"^extend can change .*; cv_tasks is 2 there, 1 here$"):
        extend_search(small_study(), {"cv_tasks": 1})


@pytest.mark.parametrize("command", ["run", "plan"])
def test_nothing_is_trained_or_stored(epsearch, small_options, tmp_path, command):
    for more in (["--cv-tasks", "1"], ["--search", "memory_batch=30..50"]):
        answer = epsearch(command, *small_options, *more)
        assert answer.status == 2 and answer.out == "" and answer.err.count("\n") == 1
        assert "to search epsilon, got 1" in answer.err or "holds at most" in answer.err
    assert not (tmp_path / "runs" / "epsearch.sqlite").exists() or not epsearch("list", "--json").json


@pytest.fixture
def of_old(epsearch, small_options, anything_goes):
    """A search on one task, as older versions made it: run(name, *options) -> its JSON."""

    def run(name, *options):
        answer = epsearch("run", *small_options, "--cv-tasks", "1", "--name", name, "--json", *options)
        assert answer.status == 0, answer.err
        return answer.json

    return run


@pytest.mark.slow
def test_a_search_of_old_is_inert_wherever_it_is_told(of_old, epsearch, tmp_path):
    found = of_old("old")
    assert (found["trust"]["kind"], found["trust"]["interval"], found["trust"]["curve"]) == ("inert", None, None)
    assert "The search kept ε = 0" in found["answer"] and "soft constraint brings no benefit" not in found["answer"]
    assert all(row["p"] is None and row["probability_best"] is None for row in found["trust"]["tests"])
    assert epsearch("report", "old", "--json").json["trust"] == found["trust"]
    assert epsearch("show", "old", "--json").json["inert"] is True and epsearch("list", "--json").json[0]["inert"]
    assert (
        "no best: all values have A_T" in epsearch("show", "old").out and "none, all are equal" in epsearch("list").out
    )
    page = (tmp_path / "runs" / "old" / "report.html").read_text(encoding="utf-8")
    assert 'class="banner inert"' in page and "brings no benefit" not in page


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize(
    "options",
    [
        ("--race", "--seeds", "4"),
        ("--strategy", "interval-ci"),
        ("--strategy", "tpe", "--search", "epsilon=0.1..1 memory=2,4 scale=raw,unit"),
        ("--strategy", "grid", "--search", "trigger=zero,epsilon"),
    ],
    ids=["raced", "interval-ci", "three at once", "words"],
)
def test_other_searches_are_inert_too(of_old, epsearch, options):
    found = of_old("other", *options)
    assert found["trust"]["kind"] == "inert" and found["trust"]["rivals"]
    assert found["answer"].count("bit for bit") >= 1


@pytest.mark.slow
def test_grown_ones_too_and_side_by_side(of_old, epsearch, tmp_path):
    before = of_old("one")
    of_old("two", "--strategy", "random", "--strategy-seed", "3")
    answer = epsearch("run", "--name", "one", "--extend", "--seeds", "3", "--race", "--runner", "local", "--json")
    assert answer.status == 0, answer.err
    assert answer.json["trust"]["kind"] == before["trust"]["kind"] == "inert"
    both = epsearch("report", "one", "two", "--json").json
    assert [one["trust"]["kind"] for one in both["studies"]] == ["inert", "inert"]
    page = (tmp_path / "runs" / "strategies" / "strategies.html").read_text(encoding="utf-8")
    assert page.count('class="banner inert"') == 2
    table = (tmp_path / "runs" / "strategies" / "strategies.csv").read_text(encoding="utf-8")
    assert table.count(",inert,") == 2


@pytest.mark.slow
def test_a_plan_says_that_nothing_has_differed(small_study, store, anything_goes):
    study = small_study(cv_tasks=1, seeds=2, eval_seeds="0..2", repeats=1)
    assert "95 % interval of chance" in in_words(make_plan(make(study, store)))["statistics"]
    loop = make(study, store)
    finish(loop)
    plan = make_plan(make(study, store))
    assert [one["inert"] for one in plan.as_json()["resolution"]] == [True, True]
    assert in_words(plan)["statistics"].count("score the same bit for bit") == 1
    assert "95 % interval of chance" not in in_words(plan)["statistics"]
