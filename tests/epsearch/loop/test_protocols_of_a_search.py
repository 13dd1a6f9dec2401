"""Searches by protocols: what scores points, which members that takes, and what the hashes say."""

import numpy as np
import pytest

from epsearch.findings.search import search_results
from epsearch.loop.content import run_of
from epsearch.loop.jobs import Run, execute
from epsearch.plugins.loading import load_plugin
from epsearch.preparation.build import build
from epsearch.protocols.protocol import Protocol, View
from epsearch.protocols.registry import PLUGGED, PROTOCOLS, chooses_by_scores
from epsearch.session.session import make_loop
from epsearch.study.kinds import ProtocolStudy, Search
from results.ledger.store import Store
from results.pages.search.methods_text import methods_paragraph
from results.pages.search.sections import what_was_run
from results.verdict.summary import summary
from tests.support.drive import finish, make

ER = {"method": "er", "strategy": "grid", "search": {"lr": "0.01,0.03,0.1"}}
ONE = {
    "repeats": 1,
    "points": 3,
    "seeds": 2,
    "cv_tasks": 3,
    "tasks": 6,
    "examples_per_task": 60,
    "certify": 1,
    "lr": 0.03,
}
# Name -> (phase, the part of its tasks that is trained).
ONCE = {
    "cv-tasks": ("cv", None),
    "extrapolated": ("cv", None),
    "first-task": ("validation", (1, None)),
    "first-k": ("validation", (2, None)),
    "first-3": ("validation", (3, None)),
    "k-percent": ("validation", (1, 2)),
    "50-percent": ("validation", (2, None)),
    "end-of-training": ("validation", None),
    "end-of-training-on-test": ("eval", None),
}


@pytest.fixture
def store(tmp_path):
    (tmp_path / "runs").mkdir()
    with Store.open(f"sqlite:///{tmp_path / 'runs' / 'epsearch.sqlite'}") as opened:
        yield opened


def searched(small_study, store, name, **options):
    loop = make(small_study(**ONE | {"tasks": 7} | ER | {"protocol": name} | options), store)
    finish(loop)
    return loop


def test_every_protocol_that_chooses_by_scores_is_tried_here():
    assert {name for name in PROTOCOLS if chooses_by_scores(name)} == {*ONCE} - {"first-3", "50-percent"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ONCE)
def test_points_are_scored_on_what_the_protocol_sees(name, small_study, store):
    options = {"search": {"lr": "log:0.01..0.1"}, "strategy": "narrowing"} if name == "extrapolated" else {}
    loop = searched(small_study, store, name, **options)
    study, (phase, prefix) = loop.study, ONCE[name]
    runs = [run_of(record) for record in loop.search_records()]
    assert {run.phase for run in runs} == {phase} and loop.done and loop.best is not None
    if prefix is not None and prefix[1] is not None:
        assert {run.prefix[0] for run in runs} == {prefix[0]} and all(run.prefix[1] for run in runs)
    elif name != "extrapolated":
        assert {run.prefix for run in runs} == {prefix}
    judged = [run_of(record) for record in loop.evaluation_records()]
    assert {(run.phase, run.prefix) for run in judged} == {("eval", None)}
    assert study.validation == (0.1 if phase == "validation" else 0)
    results = search_results(loop, {})
    if phase != "cv":
        assert results.evidence.peeks == (phase == "eval") and results.evidence.judged == 2 * 4 * 355
    for text in (methods_paragraph(results), what_was_run(results), summary(results).sees):
        assert results.sees[1:].rstrip(".") in text and (phase == "cv" or " peek" in text)
    misleading = [note for note in results.notes if note.startswith("Misleading")]
    assert misleading == []  # a learning rate acts on the first task by itself


@pytest.mark.slow
def test_first_tasks_are_those_of_whole_runs_bit_for_bit(small_study, store):
    part, whole = (searched(small_study, store, name) for name in ("first-k", "end-of-training"))
    members = {(one.unit, str(one.content["config"])): one for one in whole.search_records()}
    assert len(members) == len(part.search_records()) == 6
    for one in part.search_records():
        same = members[one.unit, str(one.content["config"])].accuracies
        assert np.array_equal(one.accuracies, same[:2, :2], equal_nan=True) and one.accuracies.shape == (2, 2)
        assert (one.steps, members[one.unit, str(one.content["config"])].steps) == (12, 24)


@pytest.mark.slow
def test_the_older_option_has_the_same_members_and_keys(small_study, store):
    for validation, name in ((0, "end-of-training-on-test"), (0.1, "end-of-training")):
        old, new = (
            small_study(**ONE, **given)
            for given in ({"score_on": "eval", "validation": validation}, {"protocol": name})
        )
        assert old == new and old.name == new.name and "protocol" not in new.identity()
        assert Search.options_of(old.identity())["protocol"] == name
    loop = make(small_study(**ONE, score_on="eval"), store)
    finish(loop)
    again = make(small_study(**ONE, protocol="end-of-training", on="test", name="other"), store)
    assert again.reused == len(loop.records) and not again.missing()


@pytest.mark.slow
def test_what_acts_by_replaying_the_same_task_is_a_caution(small_study, store):
    space = {"search": {"memory": "1,2,3"}, "examples_per_task": 400}
    for name, misleads in (("first-task", True), ("10-percent", True), ("first-k", False)):
        loop = make(small_study(**ONE | ER | space | {"protocol": name}), store)
        finish(loop)
        notes = [note for note in search_results(loop, {}).notes if note.startswith("Misleading")]
        assert notes == ["Misleading: on one task memory acts only by replaying the same task."] * misleads


def test_a_plugin_that_only_says_what_is_seen_makes_a_search(small_study, store, monkeypatch):
    monkeypatch.setitem(PLUGGED, "mine:early", Protocol("early", "", View(tests="test", tasks=2)))
    monkeypatch.setattr("epsearch.study.names.load_plugin", lambda kind, name: None)
    monkeypatch.setattr("epsearch.preparation.data.load_plugin", load_plugin_of_nothing(load_plugin))
    study = small_study(**ONE | ER | {"protocol": "mine:early"})
    assert study.plugins() == {"mine:early": "protocol"} and not study.scores_judge and study.validation == 0
    loop = make_loop(study, study.request("eval").open().describe(), store)
    assert loop.ask()[0].prefix == (2, None) and loop.ask()[0].phase == "eval"
    point = study.example
    assert loop._evaluation_run(point, study.units[0]) == Run("eval", study.learner(point, 0))


def load_plugin_of_nothing(load):
    return lambda kind, name: load(kind, name) if not name.startswith("mine:") else None


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROTOCOLS if not chooses_by_scores(name)])
def test_other_protocols_run_as_a_study_of_their_own(name, tmp_path, store):
    given = {name: value for name, value in ONE.items() if name not in ("repeats", "certify")}
    given |= {
        "out": tmp_path / "runs",
        "numeric_path": "cpu-float32-mkl",
        "device": "cpu",
        "memory": 3,
        "memory_batch": 8,
    }
    if name == "published":  # of this dataset there is none
        return
    study = build(Search, given | {"protocol": name})
    alone = build(ProtocolStudy, given | {"protocols": name, "validation": study.validation})
    assert study == alone and study.kind == "protocols"
    assert study.validation == (0 if name in ("default", "hindsight") else 0.1)
    loop = make(study, store)
    loop.row = "a row"  # so that every result is summed up, as in a ledger
    for _ in range(100):
        jobs = loop.ask()
        if loop.done:
            break
        assert jobs
        loop.tell([execute(job) for job in jobs])
    assert loop.done and loop.finals(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first-3", "k-percent"])
def test_nothing_is_kept_of_first_parts(name, small_study, store, tmp_path):
    """Nobody goes on with them."""
    kept = tmp_path / "kept"
    loop = searched(small_study, store, name, checkpoints=str(kept))
    assert loop.stored and not [path for path in kept.rglob("*") if path.is_file()]
