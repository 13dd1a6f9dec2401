"""Looks are counted by task and class of data: neither another cut of the stream nor another ledger forgets them."""

import json

import pytest

from epsearch.failures.crash_report import SERVER, TOKEN, TOKENS
from epsearch.findings import evaluations, listing
from epsearch.findings.search import search_results
from epsearch.ledger.evaluation_log import NOT_A_CHOICE, VARIABLE
from epsearch.loop.strategy_driver import choice_cache
from epsearch.service.settings import Settings
from epsearch.service.work.processes import environment
from epsearch.session.session import stored_loop, train
from results.ledger.store import Store
from results.pages.search.confidence import evaluation_notes
from results.search import Choice, EvaluatedChoice
from tests.support.drive import fake, finish, make
from tests.support.events import Recorded

PEAK = fake(lambda one: 0.9 - (one.epsilon - 0.3) ** 2)


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/ledger.sqlite") as store:
        yield store


@pytest.fixture
def file(monkeypatch, tmp_path):
    """The log of evaluations of this test."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home" / "looks.jsonl"))
    return tmp_path / "home" / "looks.jsonl"


@pytest.fixture
def tiny(small_study):
    """A function that builds the smallest study there is."""
    least = {
        "points": 3,
        "repeats": 1,
        "seeds": 2,
        "tasks": 3,
        "examples_per_task": 20,
        "certify": 0,
        "interval": "0.5 1",
    }
    return lambda **options: small_study(**least | options)


def told(study, store):
    """What is not as in the study of the choices besides its own, once it is trained."""
    loop = make(study, store)
    finish(loop, PEAK)
    found = evaluations.evaluations(loop, store)
    assert [look.mine for look in found].count(True) == 1
    return [look.point.partition(", ")[2] for look in found if not look.mine]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"seeds": 3}, ["lr = 0.2"]),
        ({"tasks": 5}, []),
        ({"tasks": 7}, []),
        ({"cv_tasks": 4}, []),
        ({"cv_tasks": 2}, []),
        ({"examples_per_task": 59}, []),
    ],
    ids=str,
)
def test_only_the_same_tasks_and_sizes_count(small_study, store, changed, expected):
    cut = {"cv_tasks": 3, "tasks": 6}
    finish(make(small_study(**cut, lr=0.2), store), PEAK)
    assert told(small_study(**cut | changed), store) == expected


@pytest.mark.slow
def test_other_images_begin_it_anew(small_study, store, monkeypatch):
    finish(make(small_study(tasks=4), store), PEAK)
    monkeypatch.setattr("trainers.streams.base.Images.fingerprint", lambda images: "others")
    assert told(small_study(lr=0.2), store) == []


def content(first, end, **stream):
    known = {"kind": "split classes", "images": "some", "classes_per_task": 5, "at_most": 100} | stream
    return {"method": "soft_agem", "config": {}, "stream": known | {"tasks": [first, end]}}


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (content(3, 20), True),
        (content(3, 20, network="resnet18"), True),
        (content(3, 19), False),
        (content(3, 20, at_most=99), False),
        (content(3, 20, classes_per_task=10), False),
        (content(3, 20, images="others"), False),
    ],
    ids=str,
)
def test_another_network_is_another_choice_on_the_same_data(other, same):
    assert (evaluations._data(content(3, 20)) == evaluations._data(other)) is same


class TestAnotherLedger:
    @pytest.mark.slow
    def test_it_does_not_forget(self, tiny, file, tmp_path):
        train(tiny(name="first"))
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        # The choice and A-GEM, once each, whatever the seeds.
        assert sorted(line["run"]["method"] for line in lines) == ["agem", "soft_agem"]
        assert not {*NOT_A_CHOICE}.intersection(*(line["run"] for line in lines))
        second = tiny(name="second", out=tmp_path / "elsewhere", memory=4)
        loop, _ = train(second)
        looks = found(loop).evaluated_choices
        assert [(look.mine, look.elsewhere) for look in looks] == [(False, True), (True, False)]
        assert not list(evaluation_notes(looks, 2)), "what other ledgers have is no warning"
        assert found(listing.load("second", second.storage, second.out)).evaluated_choices == looks
        assert len(file.read_text().splitlines()) == 4
        # What was stored before there was a file, or just before a crash, is in it as soon as the study goes on.
        file.unlink()
        train(second)
        assert len(file.read_text().splitlines()) == 2

    @pytest.mark.slow
    def test_a_service_counts_by_its_ledger_alone(self, tiny, file, tmp_path):
        study = tiny(name="one")
        train(study)
        with pytest.MonkeyPatch.context() as patch:
            for name in (SERVER, TOKEN, TOKENS):
                patch.setenv(name, "of the user who started it")
            of_a_study = environment(Settings(study.storage, study.out, tmp_path))
        assert of_a_study[VARIABLE] == "none" and not {SERVER, TOKEN, TOKENS} & of_a_study.keys()
        with Store.open(study.storage) as store:
            service = stored_loop(store.study("one"), store, study.storage, study.out)
        assert file.exists() and service.evaluation_log.read() == []

    @pytest.mark.slow
    def test_a_file_that_cannot_be_used_costs_one_line_and_a_note(self, tiny, monkeypatch, tmp_path):
        monkeypatch.setenv(VARIABLE, str(tmp_path))
        events = Recorded()
        loop, effort = train(tiny(), events)
        (line,) = events.warnings
        assert effort.trained > 0 and str(tmp_path) in line and "counted in this ledger alone" in line
        (note,) = [note for note in found(loop).notes if "other ledgers" in note]
        assert "not counted" in note and str(tmp_path) in note


def found(loop):
    return search_results(loop, {})


def test_of_many_looks_the_last_are_told_and_the_others_counted():
    looks = [EvaluatedChoice(f"ε = {number}", "2026-01-01", mine=number == 7) for number in range(200)]
    (note,) = evaluation_notes(looks, 8)
    assert "number 8 of the 200" in note and "194 earlier ones; ε = 195 (2026-01-01); ε = 196" in note
    assert note.count("ε = ") == 5 and "ε = 199" in note
    (note,) = evaluation_notes(looks[:6], 1)
    assert note.count("ε = ") == 5 and "earlier" not in note


@pytest.mark.slow
def test_a_study_that_an_earlier_rule_finished_says_so(tiny, file, monkeypatch):
    """Its curve names another value today, whose members are not there."""
    study = tiny(points=5, name="old")
    train(study)
    assert not found(listing.load("old", study.storage, study.out)).notes
    monkeypatch.setattr(choice_cache, "choose", lambda *of: Choice((0.777,), (0.5,), ""))
    (note,) = found(listing.load("old", study.storage, study.out)).notes
    assert note.startswith("An earlier version finished this study; today's rules for its values need more: ")
