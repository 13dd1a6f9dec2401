"""Studies are deleted and a ledger is cleaned: what another study uses stays."""

import time

import pytest

from epsearch import Interrupted, UsageError, run
from epsearch.cache import learner_cache
from epsearch.control.removing import clean, delete
from epsearch.preparation import history
from results.ledger.store import Store
from results.ledger.writers.holder import here
from tests.support.events import Recorded
from tests.support.ledgers import execute

OPTIONS = {"repeats": 1, "points": 3, "certify": 1, "runner": "local"}


def yes(removal):
    return True


@pytest.fixture
def two(small_study):
    """Two finished studies; the second has one seed of the first one's two, and another one."""
    first, second = (
        small_study(**OPTIONS, name="first", seeds="0,1"),
        small_study(**OPTIONS, name="second", seeds="1,2"),
    )
    return first, second, run(first), run(second)


def keys(study):
    with Store.read(study.storage) as store:
        return {record.key for record in store.all_runs()}


@pytest.mark.slow
def test_a_deleted_study_leaves_what_another_one_uses(two, epsearch):
    first, second, _, before = two
    all_of_both = keys(first)
    removal = delete("first", first.storage, first.out, yes)
    assert removal.runs and removal.shared and removal.unreadable == ()
    assert keys(first) == all_of_both - removal.runs
    again = run(second)
    assert again.effort.trained == 0 and again.results.chosen == before.results.chosen
    assert [row["name"] for row in epsearch("list", "--json").json] == ["second"]
    with Store.read(first.storage) as store:
        assert store.events.read("first") == [] and set(store.summaries()) == {"second"}
    assert run(first).effort.trained == len(removal.runs), "what was deleted is trained again"


@pytest.mark.slow
def test_a_study_that_begins_while_the_question_is_asked_keeps_its_members(small_study):
    first, second = (small_study(**OPTIONS, name=name, seeds="0,1") for name in ("first", "second"))
    run(first)
    before = keys(first)

    def meanwhile(removal):
        assert removal.runs == before
        assert run(second).effort.trained == 0
        return True

    removal = delete("first", first.storage, first.out, meanwhile)
    assert removal.runs == frozenset()
    assert removal.shared == len(before)
    assert keys(first) == before
    time.sleep(1.1)  # times of creation are whole seconds
    execute(first.out, "DELETE FROM epsearch_studies")

    def again(removal):
        assert removal.runs == before
        run(first)
        return True

    assert clean(first.storage, first.out, 1.0, again).runs == frozenset()
    assert keys(first) == before


@pytest.mark.slow
def test_a_study_is_stored_before_it_takes_members(small_study, monkeypatch):
    """Members that another command deletes while the study begins are trained again."""
    first, second = (small_study(**OPTIONS, name=name, seeds="0,1") for name in ("first", "second"))
    run(first)
    before, keep = keys(first), history.save

    def keep_late(store, study, *rest, write=True):
        if write and study.name == "second":
            delete("first", first.storage, first.out, yes)
        return keep(store, study, *rest, write=write)

    monkeypatch.setattr(history, "save", keep_late)
    assert run(second).effort.trained == len(before)
    assert keys(second) == before


@pytest.mark.slow
def test_members_that_are_claimed_stay(small_study):
    first = small_study(**OPTIONS, name="first")
    run(first)
    one, *_ = sorted(keys(first))
    with Store.open(first.storage) as store:
        lease = store.leases.acquire("other", here())
        claim = f"INSERT INTO epsearch_claims VALUES ('{one}', 'other', {lease.token})"
        execute(first.out, claim)
        assert one not in delete("first", first.storage, first.out, yes).runs
        assert keys(first) == {one}


@pytest.mark.slow
def test_members_of_a_search_with_an_evaluation_ahead_stay(small_study):
    """The baseline may be trained before the search ends; it is used from then on."""
    first = small_study(**OPTIONS, name="first")
    run(first)
    before = keys(first)
    second = small_study(**OPTIONS | {"points": 5}, name="second")
    with pytest.raises(Interrupted):
        run(second, Recorded(stop_after=1))
    begun = len(keys(second) - before)  # one, or what came in with it
    removal = delete("first", first.storage, first.out, yes)
    assert removal.shared >= 2, "the baseline on the evaluation stream, and points of the first round"
    assert run(second).effort.trained == len(keys(second)) - removal.shared - begun


@pytest.mark.slow
def test_nothing_is_deleted_unless_somebody_is_sure(two, epsearch):
    first, *_ = two
    before = keys(first)
    with pytest.raises(Interrupted):
        delete("first", first.storage, first.out, lambda removal: False)
    answer = epsearch("delete", "first")
    assert (
        answer.status == 2
        and answer.err.endswith("? without a terminal, --yes says so\n")
        and "\n" not in answer.err[:-1]
    )
    assert keys(first) == before and run(first).effort.trained == 0
    answer = epsearch("delete", "first", "--yes")
    assert answer.status == 0 and answer.out.startswith("deleted study first with ")
    assert epsearch("delete", "first", "--yes").err.startswith("epsearch: no study 'first'; known: second")
    assert epsearch("delete", "second", "--yes").status == 0 and keys(first) == set()
    assert epsearch("list").out == "no study yet; `epsearch run` makes one\n"


@pytest.mark.slow
def test_a_study_that_is_being_trained_is_not_deleted(two):
    first, *_ = two
    with Store.open(first.storage) as store:
        store.leases.acquire("first", here())
        with pytest.raises(UsageError, match="is being trained by"):
            delete("first", first.storage, first.out, yes)


@pytest.mark.slow
def test_beside_a_study_that_cannot_be_read_all_members_stay(two):
    first, *_ = two
    before = keys(first)
    execute(first.out, "UPDATE epsearch_studies SET config = '{}' WHERE name = 'second'")
    removal = delete("first", first.storage, first.out, yes)
    assert removal.unreadable == ("second",) and not removal.runs and keys(first) == before


@pytest.mark.slow
def test_members_that_no_study_has_are_cleaned_away(two, epsearch):
    first, second, *_ = two
    removed = delete("first", first.storage, first.out, yes).runs
    time.sleep(1.1)  # times of creation are whole seconds
    asked = []
    with pytest.raises(Interrupted):
        clean(first.storage, first.out, 1.0, asked.append)
    assert asked[0].events and not asked[0].runs, "old runs that a study has stay"
    execute(first.out, "DELETE FROM epsearch_studies WHERE name = 'second'")  # as a study that was lost
    assert epsearch("clean", "--older-than", "30d", "--yes").out == "there is nothing to remove\n"
    assert keys(second) and not keys(second) & removed
    kept = list(learner_cache().rglob("*"))
    removal = clean(first.storage, first.out, 1.0, yes)
    assert removal.runs and keys(second) == set() and removal.events
    assert kept and not [file for file in learner_cache().rglob("*") if file.is_file()]


@pytest.mark.slow
def test_bad_ages_are_one_line(epsearch):
    for age in ("30", "-1d", "0d", "d", ""):
        answer = epsearch("clean", "--older-than", age, "--yes")
        assert answer.status == 2 and answer.err.startswith("epsearch: older-than must be a time > 0 and <= 366d")
