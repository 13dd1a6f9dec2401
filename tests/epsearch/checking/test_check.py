"""`epsearch check`: what a trainer can be trusted with, kept for `run` and for its report."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from epsearch.checking import check_cache
from epsearch.checking.check import check
from epsearch.checking.settings import of_space, usual
from epsearch.events import ignore
from epsearch.failures.errors import Interrupted, UsageError
from epsearch.preparation.arithmetic import numeric_path
from epsearch.preparation.build import build
from epsearch.preparation.data import prepare
from epsearch.session.session import plan, train
from epsearch.study.hyperparameters import space
from epsearch.study.kinds import Search
from epsearch.study.names import register_trainer
from tests.epsearch.test_cli import one_line
from tests.support import own_trainers
from tests.support.events import Recorded
from trainers.persistence import checked_files

pytestmark = pytest.mark.slow  # each trains several times, in processes of its own


SIZES = {"tasks": 4, "cv_tasks": 2, "examples_per_task": 60, "device": "cpu"}
OPTIONS = [part for name, value in SIZES.items() for part in (f"--{name.replace('_', '-')}", str(value))]
RUN = {"seeds": 2, "strategy": "grid", "repeats": 1, "points": 2, "certify": 0, "runner": "local", "workers": 2}
BOTH = {"search": "lr=log:0.01..1 memory=5,50"}


@pytest.fixture(autouse=True)
def modules(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    beside = Path(own_trainers.__file__)
    for name, file in (("mine", beside), ("odd", beside.with_name("odd_trainers.py"))):
        (tmp_path / f"{name}.py").write_text(file.read_text("utf-8"), encoding="utf-8")


def checked(trainer, **options):
    return check(SIZES | {"trainer": trainer} | options)


def found(result):
    """subject -> (trusted, text)."""
    return {one.subject: (one.trusted, one.text) for one in result.findings}


def test_one_that_can_be_trusted(epsearch):
    told = epsearch("check", "mine:softmax", "--search", "lr=log:0.01..1", "--set", "memory=5", *OPTIONS, "--json")
    assert told.status == 0 and told.json["trusted"] and told.json["inert"] == {}
    assert told.json["values"] == {"lr": 0.1, "memory": 5}
    assert {one["subject"]: one["trusted"] for one in told.json["findings"]} == dict.fromkeys(
        ("repeats", "seed", "later tasks", "matrix", "accuracies", "lr", "time", "start", "peak memory"), True
    )
    assert told.json["seconds_a_task"] > 0 and told.json["peak_bytes"] > 10 * 2**20


@pytest.fixture
def study(tmp_path):
    return lambda **options: build(Search, SIZES | RUN | {"out": tmp_path / "runs"} | options)


@pytest.fixture
def known_as_inert(cache):
    """Keeps that a setting of a study's space does nothing, as if it had been found; returns the file."""

    def keep(study, name="memory"):
        prepared = prepare(study, ignore)
        placed = replace(study, numeric_path=numeric_path(study, prepared.stream))
        tried = of_space(study.space)
        (values,) = (one.values for one in tried if one.name == name)
        found = check_cache.CheckReport(
            study.trainer, "2026-01-02", usual(tried, dict(study.set)), (), {name: values}, None, 0
        )
        check_cache.write(placed, prepared.images, found, tried)
        (path,) = (cache / "checked").iterdir()
        return path

    return keep


def test_what_is_inert_is_refused_as_a_search_and_stands_in_the_report(epsearch, study):
    result = checked("odd:idle", **BOTH)
    assert not result.trusted and result.inert == {"memory": (50, 5)}
    assert found(result)["memory"] == (False, "inert: 50, 5 gave the same results bit for bit")
    assert found(result)["lr"][0] is True

    both = study(trainer="odd:idle", points=4, **BOTH)
    for act in (plan, train):
        with pytest.raises(UsageError, match=r"memory does nothing in odd:idle on these tasks: 50, 5 gave the same"):
            act(both)
    assert epsearch("list").out.count("odd") == 0, "nothing of it is stored"
    # Other values may act, and so may the same on other tasks or with other values of all else.
    assert plan(study(trainer="odd:idle", points=4, search="lr=log:0.01..1 memory=5,40")).counts.now == 4 * 2
    assert plan(study(trainer="odd:idle", points=4, search="lr=log:0.02..1 memory=5,50")).counts.now == 4 * 2
    assert plan(study(trainer="odd:idle", points=4, cv_tasks=3, **BOTH)).counts.now == 4 * 2

    report = epsearch(
        *("run", "--trainer", "odd:idle", "--search", "lr=log:0.01..1", "--set", "memory=5", *OPTIONS, "--quiet"),
        *(part for name, value in RUN.items() for part in (f"--{name}", str(value))),
        *("--name", "one", "--points", "3"),
    )
    assert report.status == 0
    page = Path("runs/one/report.html").read_text("utf-8")
    assert "repeats exactly; seed matters; reads no later task; matrix complete; lr acts; memory inert (50, 5)" in page


def test_a_study_that_is_done_is_shown_whatever_was_found_since(study, known_as_inert):
    done = study(trainer="odd:idle", points=4, name="done", **BOTH)
    train(done)
    known_as_inert(done)
    assert train(done)[1].trained == 0
    with pytest.raises(UsageError, match="memory does nothing"):
        train(study(trainer="odd:idle", points=4, name="other", seeds=3, **BOTH))


def test_what_was_found_of_another_source_is_not_known(study, tmp_path, known_as_inert):
    known_as_inert(study(trainer="odd:idle", points=4, **BOTH))
    text = (tmp_path / "odd.py").read_text("utf-8")
    (tmp_path / "odd.py").write_text(text + "# edited\n", encoding="utf-8")
    plan(study(trainer="odd:idle", points=4, **BOTH))


def test_one_that_does_not_repeat_itself(epsearch):
    told = epsearch("check", "mine:Liar", "--search", "lr=0..0.01", *OPTIONS)
    lines = " ".join(told.out.split())
    assert told.status == 1 and "no repeats not exactly: trained twice with seed 0" in lines
    assert "? accuracies self-reported" in lines and "not all of it can be trusted" in lines
    assert "? lr cannot be told: accuracies differ by up to" in lines or "yes lr acts" in lines


def test_one_that_declares_its_noise_is_no_surprise_and_its_parameters_are_varied():
    result = checked("mine:Declared", set="pull=0.1")
    facts = found(result)
    assert facts["repeats"][0] is True and facts["repeats"][1].startswith("not exactly, as it declares")
    assert {"pull", "kind", "count"} <= set(facts)
    assert result.values == {"pull": 0.1, "kind": "a", "count": 3}
    assert "at 1" in facts["pull"][1] and "at 0.01" in facts["pull"][1]


def test_one_that_is_copied_and_one_that_cannot_be(tmp_path):
    """The repetition is no copy: whatever an import draws elsewhere is not hidden by it."""
    trusted, text = found(checked("mine:softmax", search="lr=log:0.01..1", set="memory=5"))["start"]
    assert trusted is True and text.startswith("imported once, in ") and "a member is a copy of that process" in text
    own = Path(own_trainers.__file__).read_text("utf-8")
    threads = f"{own}\nimport threading\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    (tmp_path / "threads.py").write_text(threads, encoding="utf-8")
    events = Recorded()
    report = check(SIZES | {"trainer": "threads:softmax", "search": "lr=log:0.01..1", "set": "memory=5"}, events)
    trusted, text = found(report)["start"]
    assert trusted is None and text.startswith("each member imports it anew, in ") and report.trusted
    assert text.partition(": ")[2].startswith("its import starts a thread (")
    assert "each member imports it anew" in report.sentence()
    entropy = f"{own}\nDRAWN = os.urandom(8)\n\ndef drawn(values, stream, seed, report):\n"
    more = "    softmax(values, stream, int.from_bytes(DRAWN, 'big'), report)\n"
    (tmp_path / "entropy.py").write_text(entropy + more, encoding="utf-8")
    repeats = found(checked("entropy:drawn", search="lr=log:0.01..1", set="memory=5"))["repeats"]
    assert repeats[0] is False and repeats[1].startswith("not exactly")


def test_one_that_ignores_the_seed():
    result = checked("odd:seedless")
    assert found(result)["seed"] == (
        False,
        "does nothing: with seed 1 in place of 0 on the same data, every prediction was the same: "
        "seeds differ in their data alone",
    )
    assert found(result)["repeats"][0] is True and not result.trusted


def test_one_that_reads_ahead_is_refused_and_told():
    trusted, text = found(checked("odd:ahead"))["later tasks"]
    assert trusted is False
    assert text.startswith("asked for 6 times, and refused: task 1 cannot be read before task 0 has been reported")


FAILS = {
    "mine:short": ({}, "returned after it had reported 1 of 2 tasks"),
    "odd:hungry": ({"memory_limit": "200MiB"}, "took more than 0.2 GiB of memory, in task 0"),
    "mine:slow": ({"time_limit": "2s"}, "took longer than 2 s"),
}


@pytest.mark.parametrize("trainer", FAILS)
def test_one_that_does_not_come_through(trainer):
    options, line = FAILS[trainer]
    result = checked(trainer, **options)
    trusted, text = found(result)["trains"]
    assert trusted is False and line in text and not result.trusted
    assert "repeats" not in found(result)


def test_a_value_that_fails_is_a_fault_where_somebody_has_named_it():
    named, unnamed = found(checked("odd:frail", search="lr=log:0.01..1")), found(checked("odd:Frail"))
    assert named["lr"][0] is False and "fails at 1: trainer 'odd:frail' failed in task 0" in named["lr"][1]
    assert unnamed["lr"][0] is None and "the trainer can declare bounds" in unnamed["lr"][1]


def test_it_stops_where_the_listener_wants_it_to():
    class Stopping(Recorded):
        def stop_wanted(self):
            return True

    with pytest.raises(Interrupted):
        check(SIZES | {"trainer": "mine:slow"}, Stopping())


def test_damage_of_what_is_kept_is_told_and_not_believed(study, known_as_inert):
    both, events = study(trainer="odd:idle", points=4, **BOTH), Recorded()
    path = known_as_inert(both)
    with pytest.raises(UsageError, match="memory does nothing"):
        plan(both)
    path.write_bytes(path.read_bytes().replace(b"memory", b"mem0ry"))
    plan(both, events)
    assert any("it is damaged: epsearch check finds it again" in line for line in events.warnings)


WRONG = {
    ("mine:sotfmax",): "did you mean 'softmax'?",
    ("nowhere:train",): "nowhere",
    ("mine:Declared", "--search", "pul=0..1"): "did you mean 'pull'?",
    ("mine:softmax", "--cv-tasks", "4"): "cv-tasks must be < tasks",
    ("mine:softmax", "--memory-limit", "4"): "memory-limit must be a size",
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_what_cannot_be_is_one_line(arguments, epsearch, cache):
    one_line(epsearch("check", *OPTIONS, *arguments), WRONG[arguments])
    assert not (cache / "checked").exists()


def test_far_values_of_a_search():
    register_trainer("odd:idle")
    searched = space("lr=log:0.01..1 pull=0..1 kind=a,b,c,d memory=5,50,7 one=3", "search", "odd:idle")
    tried = {one.name: one for one in of_space(searched)}
    assert tried["lr"].values == (0.1, 0.01, 1.0) and tried["pull"].values == (0.5, 0.0, 1.0)
    assert tried["memory"].values == (7, 5, 50) and tried["one"].values == (3,)
    assert (tried["kind"].usual, tried["kind"].far, tried["kind"].between) == ("a", ("d",), ("b", "c"))


def test_what_lies_between_is_tried_where_the_far_values_are_the_same():
    result = checked("odd:idle", search="memory=1,2,3,4,5,6,7", set="lr=0.1")
    assert result.inert == {"memory": (4, 1, 7, 2, 3)}


def test_keeping_again_replaces_what_was_found_with_the_same_values_alone(study, known_as_inert):
    def stored(path):
        return json.loads(path.read_bytes()[checked_files.HEADER :])["inert"]

    both = study(trainer="odd:idle", points=4, **BOTH)
    assert len(stored(known_as_inert(both))) == len(stored(known_as_inert(both))) == 1
    assert len(stored(known_as_inert(study(trainer="odd:idle", points=4, search="memory=5,50", set="lr=0.2")))) == 2
    known_as_inert(both, "lr")  # so it is not the memory
    with pytest.raises(UsageError, match="lr does nothing"):
        plan(both)


def test_an_evaluation_that_scores_is_another_stream(study, known_as_inert):
    both = study(trainer="odd:idle", points=4, score_on="eval", **BOTH)
    known_as_inert(both)
    plan(both)
