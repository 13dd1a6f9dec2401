"""How many members a study certifies: no figure depends on it, but whether the study is finished does."""

from dataclasses import replace

import pytest

from epsearch.events import ignore
from epsearch.findings import listing
from epsearch.findings.facts import unfinished_notes
from epsearch.findings.search import search_results
from epsearch.preparation import history
from epsearch.preparation.build import build, extend_search
from epsearch.preparation.data import prepare
from epsearch.session.session import make_folder, sum_up
from epsearch.status import UNKNOWN
from epsearch.study.kinds import Search
from epsearch.terminal import lists
from results.ledger.store import Store
from results.verdict.answer import answer
from results.verdict.certificates import rounding, rounding_warning
from tests.support.drive import fake, finish, make
from tests.support.synthetic import study as synthetic

train = fake(lambda member: 0.9 - 0.1 * member.epsilon)
train_moved = fake(lambda member: 0.88 - 0.1 * member.epsilon)


@pytest.fixture
def one(small_study):
    """A function that describes the one study of these tests."""
    return lambda **options: small_study(name="mine", repeats=1, points=3, seeds=2, **options)


@pytest.fixture
def run():
    """A function that trains what `epsearch run` would, with accuracies that are made up; returns the loop."""

    def train_it(study, extend=False):
        prepared = prepare(study, ignore)
        make_folder(study.out)
        with Store.open(study.storage) as store:
            described = (study, prepared.images, prepared.disjointness, extend)
            loop = make(study, store, earlier=history.save(store, *described))
            sum_up(loop, store.study(study.name))
            finish(loop, train)
        return loop

    return train_it


def states(study, summed_up=True):
    """What show and report say of the one study, and list, where it is summed up."""
    (listed,) = listing.list_studies(study.storage, study.out)
    loop = listing.load("mine", study.storage, study.out)
    assert listed.status == (loop.state() if summed_up else UNKNOWN)
    assert loop.study.certify == lists.study_as_json(loop)["config"]["certify"]
    return loop.state(), loop.done, unfinished_notes(loop)


def rewritten(study, change):
    """The ledger's row of the study becomes change(row's configuration)."""
    with Store.open(study.storage) as store:
        row = store.study("mine")
        store.change_study(row, change(dict(row.config)))


FINISHED = ("finished", True, [])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_study_is_finished_with_as_many_as_it_asked_for(one, run, count):
    study = one(certify=count)
    assert len(run(study).certificates) == count
    assert states(study) == FINISHED
    assert listing.load("mine", study.storage, study.out).study.certify == count


def test_a_run_that_asks_for_more_or_fewer_is_the_same_study(one, run):
    loops = [run(one(certify=count)) for count in (0, 3, 1)]
    assert [len(loop.certificates) for loop in loops] == [0, 3, 1]
    assert loops[0].trained > 0 and [loop.trained for loop in loops[1:]] == [0, 0]
    assert states(one()) == FINISHED
    assert listing.load("mine", one().storage, one().out).study.certify == 1


def test_what_is_still_to_be_certified_is_said(one, run):
    study = one(certify=0)
    run(study)
    rewritten(study, lambda config: config | {"certify": 3})  # as a run that was stopped has left it
    status, done, (note,) = states(study, summed_up=False)
    assert status == "evaluation: 2 of 2 members trained, 3 to be trained once more, alone" and not done
    assert status in note


@pytest.mark.slow
def test_a_study_that_grows_keeps_it(one, run):
    run(one(certify=0))
    before = listing.load("mine", one().storage, one().out).study
    run(extend_search(before, {"points": 5}), extend=True)
    assert states(before) == FINISHED
    assert listing.load("mine", before.storage, before.out).study.certify == 0
    run(extend_search(before, {"points": 5, "repeats": 2, "certify": 1}), extend=True)
    assert states(before) == FINISHED
    assert listing.load("mine", before.storage, before.out).study.certify == 1


def test_it_identifies_no_study():
    study = build(Search, {})
    assert replace(study, certify=0).digest() == study.digest()
    assert build(Search, {"certify": 0}).name == study.name


@pytest.mark.slow
def test_a_search_is_finished_with_as_many_moved_starts_as_it_asked_for(one, run):
    """Afterwards, too: nothing is trained but what is new; the members, their keys and certificates stay."""
    loops = [run(one(certify=1, moved_starts=count)) for count in (0, 2, 1)]
    assert [len(loop.certificates) for loop in loops] == [1, 3, 2]
    assert loops[0].trained > 0 and [loop.trained for loop in loops[1:]] == [0, 0]
    assert loops[0].certificates.items() <= loops[1].certificates.items()
    assert states(one()) == FINISHED
    assert build(Search, {"moved_starts": 2}).name == build(Search, {}).name


def test_how_far_members_moved_is_reported(one, run):
    study = one(certify=1, moved_starts=2)
    prepared = prepare(study, ignore)
    make_folder(study.out)
    with Store.open(study.storage) as store:
        loop = make(study, store, earlier=history.save(store, study, prepared.images, prepared.disjointness, False))
        sum_up(loop, store.study(study.name))
        while not loop.done:
            loop.tell([(train_moved if job.certify and job.certify.perturbed else train)(job) for job in loop.ask()])
    found = search_results(listing.load("mine", study.storage, study.out), {})
    assert found.perturbed == pytest.approx((0.02, 0.02)) and len(found.certificates) == 1
    assert "Rounding noise: ± 1.4" in rounding(found)
    assert not rounding_warning(found)  # the baseline itself is the best here: no pair


def test_the_answer_says_when_rounding_is_larger_than_what_was_found():
    found = replace(synthetic(repeats=1, points=5, seeds=2), perturbed=(0.5,))
    assert rounding_warning(found) in answer(found) and "is more than that difference" in rounding_warning(found)
    assert not rounding_warning(replace(found, perturbed=(1e-9,))) and not rounding_warning(
        replace(found, perturbed=())
    )
