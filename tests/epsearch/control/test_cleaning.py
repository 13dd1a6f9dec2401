"""What is cleaned away, deleted and resumed in ledgers that nothing was trained in: the runs are made up."""

import os

import pytest

from epsearch import Interrupted
from epsearch.cache import learner_cache
from epsearch.control.removing import clean, delete
from epsearch.control.resuming import failed_studies
from results.ledger.store import Store
from results.ledger.url import LedgerUrl
from results.ledger.writers.holder import here
from results.ledger.writers.states import CANCELLED, FAILED
from tests.support.synthetic import record

AN_HOUR = 3600.0


@pytest.fixture
def storage(tmp_path):
    return LedgerUrl.of(f"sqlite:///{tmp_path / 'ledger.sqlite'}")


@pytest.fixture
def store(storage):
    """With an old run that no study has."""
    with Store.open(storage) as opened:
        opened.add([record()])
        yield opened


def yes(removal):
    return True


def test_beside_a_study_that_cannot_be_read_no_run_is_cleaned_away(store, storage, tmp_path):
    store.save_study("unknown", {})
    removal = clean(storage, tmp_path, AN_HOUR, yes)
    assert removal.unreadable == ("unknown",) and not removal.runs and len(store.all_runs()) == 1
    store.delete_study("unknown", tuple)
    assert clean(storage, tmp_path, AN_HOUR, yes).runs == {record().key} and store.all_runs() == []


def test_nothing_is_cleaned_away_unless_somebody_is_sure(store, storage, tmp_path):
    asked = []
    with pytest.raises(Interrupted):
        clean(storage, tmp_path, AN_HOUR, asked.append)
    assert asked[0].runs == {record().key} and len(store.all_runs()) == 1


def test_kept_tasks_go_when_they_are_old(storage, tmp_path):
    Store.open(storage).close()
    folder = learner_cache() / "below"
    folder.mkdir(parents=True)
    old, new = folder / "old", folder / "new"
    for file in (old, new):
        file.touch()
    os.utime(old, (0, 0))
    assert clean(storage, tmp_path, AN_HOUR, yes).files == (old,) and [*folder.iterdir()] == [new]
    assert clean(storage, tmp_path, AN_HOUR, lambda removal: pytest.fail("there is nothing to ask about")).files == ()


def test_a_task_that_a_study_removes_meanwhile_ends_nothing(storage, tmp_path):
    Store.open(storage).close()
    folder = learner_cache()
    folder.mkdir(parents=True)
    (folder / "gone").symlink_to(folder / "nowhere")  # is listed, and is no file that can be read
    assert clean(storage, tmp_path, AN_HOUR, lambda removal: pytest.fail("there is nothing to ask about")).files == ()


def test_a_study_that_was_cancelled_is_deleted(store, storage, tmp_path):
    store.save_study("mine", {})
    store.leases.acquire("mine", here())
    store.leases.enter(CANCELLED)
    store.leases.release()
    for _ in range(2):  # it is free again
        with pytest.raises(Interrupted):
            delete("mine", storage, tmp_path, lambda removal: False)
    assert delete("mine", storage, tmp_path, yes).studies == ("mine",) and store.studies() == []


def test_failed_studies_are_found_beside_others(store, storage):
    for name, state in (("bad", FAILED), ("cancelled", CANCELLED), ("worse", FAILED)):
        store.save_study(name, {})
        store.leases.acquire(name, here())
        store.leases.enter(state, "why")
        store.leases.release()
    store.lease = None
    store.save_study("new", {})
    assert failed_studies(storage) == ["bad", "worse"]
