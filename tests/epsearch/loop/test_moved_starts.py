"""Members of a search once more from a perturbed start: stopped, resumed, moved to another ledger, deleted."""

import json

import pytest

from epsearch import run
from epsearch.control.removing import delete
from epsearch.loop.jobs import execute
from epsearch.preparation.build import build, restore
from epsearch.session.session import make_folder
from epsearch.study.kinds import Search
from results.ledger.record import perturbed_key
from results.ledger.store import Store
from tests.support.drive import make
from tests.support.ledgers import results

OPTIONS = {"repeats": 1, "points": 3, "certify": 1, "moved_starts": 2, "runner": "local", "name": "mine"}


@pytest.fixture
def study(small_study):
    return small_study(**OPTIONS)


def moved(url):
    """(certificates of perturbed starts, all certificates), by key."""
    with Store.read(url) as store:
        records = {record.key for record in store.all_runs()}
        found = store.certificates([*records, *map(perturbed_key, records)])
    return {key: one for key, one in found.items() if key not in records}, found


@pytest.mark.slow
def test_a_search_that_was_stopped_between_them_trains_what_is_missing_and_gets_the_same(study, small_study, tmp_path):
    whole = small_study(**OPTIONS, out=tmp_path / "whole")
    run(whole)
    make_folder(study.out)
    orders = []
    with Store.open(study.storage) as store:
        loop = make(study, store, workers=1)
        while not loop.done:
            jobs = loop.ask()
            orders += [job.certify.perturbed for job in jobs if job.certify]
            for job in jobs:
                loop.tell([execute(job)])
                if job.certify and job.certify.perturbed:
                    break  # killed: what was asked for beside it is told to nobody
            else:
                continue
            loop = make(study, store, workers=1)
    assert sum(orders) > 2, "one was asked for again"
    assert {key: one.accuracy_difference for key, one in moved(study.storage)[0].items()} == {
        key: one.accuracy_difference for key, one in moved(whole.storage)[0].items()
    }
    assert len(moved(study.storage)[0]) == 2 and results(study.out) == results(whole.out)


@pytest.mark.slow
def test_it_changes_no_result_of_a_cohort_and_first_tasks_stay_those_of_the_plain_start(study, small_study, tmp_path):
    run(small_study(**OPTIONS | {"moved_starts": 0}, out=tmp_path / "plain"))
    run(study)  # from first tasks that are kept by now
    run(small_study(**OPTIONS | {"moved_starts": 0}, out=tmp_path / "after"))
    assert results(study.out) == results(tmp_path / "plain") == results(tmp_path / "after")


@pytest.mark.slow
def test_they_move_with_their_study_and_are_deleted_with_it(study, epsearch, tmp_path):
    run(study)
    before = moved(study.storage)
    assert len(before[0]) == 2 and len(before[1]) == 3
    assert epsearch("export", "mine", "mine.zip").status == 0
    taken = epsearch("import", "mine.zip", "--out", "other")
    assert taken.status == 0, taken.err
    assert moved(f"sqlite:///{tmp_path}/other/epsearch.sqlite") == before
    delete("mine", study.storage, study.out, lambda removal: True)
    with Store.read(study.storage) as store:
        assert store.certificates(before[1]) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"dataset": "permuted_digits"}, 0),
        ({"dataset": "split_cifar"}, 2),
        ({"dataset": "split_cub"}, 2),
        ({"dataset": "folder:mine"}, 2),
        ({"dataset": "split_cifar", "moved_starts": 0}, 0),
        ({"dataset": "folder:mine", "trainer": "tests.support.own_trainers:Declared", "search": "pull=0..1"}, 0),
    ],
    ids=lambda one: " ".join(map(str, one.values())) if isinstance(one, dict) else "",
)
def test_residual_networks_are_asked_for_them_unless_somebody_says_otherwise(options, count):
    study = build(Search, options)
    assert study.moved_starts == count
    older = {"study": json.loads(json.dumps(study.identity())), "numeric_path": None}
    assert restore(older, study.name, study.out, study.storage).moved_starts == 0, "a study from before is finished"
