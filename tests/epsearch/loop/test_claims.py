"""Two studies of one ledger with members in common: each member is trained by one of them, and both have it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from epsearch.failures.errors import TrainingFailed
from epsearch.loop import claims
from epsearch.loop.claims import Claims
from epsearch.loop.jobs import JobResult
from results.ledger.store import Store
from results.ledger.writers.holder import here
from tests.support.drive import fake, make

TRAIN = fake(lambda one: one.epsilon)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """What others train is looked for at every question."""
    monkeypatch.setattr(claims, "LOOK_SECONDS", 0.0)


@pytest.fixture
def two(small_study, tmp_path):
    """A loop of each of two studies, in stores of their own; the second has half of the first one's seeds."""
    url = f"sqlite:///{tmp_path / 'shared.sqlite'}"
    with Store.open(url) as one, Store.open(url) as other:
        one.leases.acquire("one", here())
        other.leases.acquire("other", here())
        yield (
            make(small_study(name="one", seeds="0,1", certify=0), one).catch_up(),
            make(small_study(name="other", seeds="1,2", certify=0), other).catch_up(),
        )


def trained(jobs):
    return [run for job in jobs for run in job.runs if job.certify is None]


def alternate(loops, train):
    """Asks and tells the loops in turn until both are done; returns all runs that were trained, by loop."""
    all_runs = [[] for _ in loops]
    for _ in range(1000):
        if all(loop.done for loop in loops):
            return all_runs
        for runs, loop in zip(all_runs, loops, strict=True):
            jobs = loop.ask()
            runs += trained(jobs)
            loop.tell([train(job) for job in jobs])
    raise AssertionError("they wait for each other for ever")


@pytest.mark.slow
def test_no_member_is_trained_by_both(two):
    runs = alternate(two, TRAIN)
    keys = [[loop._key(run) for run in own] for loop, own in zip(two, runs, strict=True)]
    assert not set(keys[0]) & set(keys[1]), "trained twice"
    assert len(set(keys[0])) == len(keys[0]) and len(set(keys[1])) == len(keys[1])
    assert set(two[0].records) & set(two[1].records), "they have members in common"
    assert all(keys), "both took part"


def test_what_another_study_trains_is_waited_for_and_taken(two):
    one, other = two
    one.workers = other.workers = 100
    first = one.ask()
    rest = other.ask()
    assert {run.learner.seed for run in trained(first)} == {0, 1} and {run.learner.seed for run in trained(rest)} == {2}
    other.tell([TRAIN(job) for job in rest])
    assert other.ask() == [] and not other.done, "seed 1 is on its way elsewhere"
    common = [run for run in trained(first) if run.learner.seed == 1 and run.phase == "cv"]
    assert other.claims.held_by_others() == {"one": len(common)}
    before = other.reused
    one.tell([TRAIN(job) for job in first])
    assert other.ask(), "it goes on with the next stage"
    assert other.reused > before


def test_of_a_cohort_the_members_that_another_study_trains_are_left_out(two):
    one, other = two
    one.workers = 1
    (job, *_) = one.upcoming(1)
    first, *rest = job.runs
    assert rest and other._store.claims.claim([one._key(first)])
    assert one.ask()[0].runs == rest and one.claims.held_by_others() == {"other": 1}


def test_what_others_train_is_looked_for_now_and_then(two, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(claims, "LOOK_SECONDS", 1.0)
    monkeypatch.setattr(claims, "time", SimpleNamespace(monotonic=lambda: now[0]))
    one, other = two
    (job, *_), own = one.ask(), Claims(other._store, other._key)
    assert not own.due(), "nothing is trained elsewhere"
    for seconds, due in [(0.0, True), (0.9, False), (0.1, True)]:
        assert own.of(({job.number: job},), 1) == []
        now[0] += seconds
        assert own.due() is due


def test_what_a_dead_study_had_claimed_is_trained(two):
    one, other = two
    one.workers = other.workers = 100
    one.ask()
    other.tell([TRAIN(job) for job in other.ask()])
    assert other.ask() == []
    one._store.leases.release()
    assert {run.learner.seed for run in trained(other.ask())} == {1}


def test_a_job_is_claimed_when_a_worker_is_there_for_it(two):
    one, _ = two
    one.workers = 1
    (job,) = one.ask()
    assert one.ask() == [job], "the same one until it is told"
    claimed = set(one._store.claims.claimants(map(one._key, one.missing())))
    assert claimed == {one._key(run) for run in job.runs}
    one.claims.begins = lambda job: False
    one.tell([TRAIN(job)])
    assert one.ask() == [] and not one.done


def test_without_a_lease_every_job_is_ours(small_study, tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'own.sqlite'}") as store:
        loop = make(small_study(), store, workers=1).catch_up()
        assert len(loop.ask()) > 1


def test_after_a_lease_was_taken_again_what_is_on_its_way_is_claimed_anew(two):
    one, other = two
    one.workers = other.workers = 100
    jobs = one.ask()
    lease = one._store.lease
    one._store.leases.release()
    one._store.leases.acquire("one", here())
    assert one._store.lease.token == lease.token + 1
    assert one.ask() == jobs
    assert {run.learner.seed for run in trained(other.ask())} == {2}


def test_a_job_that_is_given_up_frees_its_place_and_is_not_claimed_again(two):
    one, _ = two
    one.workers = 1
    seen = []
    while len(seen) < 3:
        (job,) = one.ask()
        seen.append(job.number)
        one.tell([JobResult(job.number, None, error="no")])
    one._store.leases.release()
    one._store.leases.acquire("one", here())
    (job,) = one.ask()
    assert job.number not in seen and len(set(seen)) == 3
    missing = [one._key(run) for run in one.missing()]
    assert set(one._store.claims.claimants(missing)) == {one._key(run) for run in job.runs} & {*missing}
    one.claims.begins = lambda job: False
    one.tell([TRAIN(job)])
    assert one.ask() == [], "those for which there is no time now may be trained later"
    one.claims.begins = lambda job: True
    with pytest.raises(TrainingFailed, match=r"^3 cohorts could not be trained: no$"):
        while jobs := one.ask():
            one.tell([TRAIN(job) for job in jobs])


def test_a_certificate_needs_no_claim(two):
    """Its member has been trained; that it is trained once more is its point."""
    one, _ = two
    job = one.ask()[0]
    one.tell([TRAIN(job)])
    again = replace(job, number=job.number + 100, certify=object())
    other = Claims(one._store, one._key)
    assert other.of(({again.number: again},), 1) == [again]
