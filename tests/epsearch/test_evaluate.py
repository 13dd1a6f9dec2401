"""The loop of a study: what it asks for, what it takes from the ledger, what it stores."""

import numpy as np
import pytest

from epsearch.errors import TrainingFailed
from epsearch.evaluate import StudyLoop
from epsearch.jobs import JobResult, decode, encode, execute
from epsearch.studies import _describe_images
from results.metrics import average_accuracy
from results.record import same_result
from results.store import Store
from trainers.cohort import CohortResult


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


def make(study, store, workers=2):
    return StudyLoop(study, _describe_images(study), store, workers)


def finish(loop, train=execute):
    """Trains whatever the loop asks for; returns the jobs."""
    jobs = []
    while not loop.done:
        asked = loop.ask()
        jobs += asked
        loop.tell([train(job) for job in asked])
    return jobs


def fake(score):
    """A trainer that makes up accuracies: score(ε, seed), the same on every task; NaN diverges."""

    def train(job):
        tasks = len(job.tasks)
        members = job.cohort.members
        values = np.array([score(member.epsilon, member.seed) for member in members])
        lost = np.isnan(values)
        accuracies = np.where(np.tri(tasks, dtype=bool), values[:, None, None], np.nan)
        where = np.where(lost, 0, -1)
        result = CohortResult(
            accuracies, np.full((len(members), tasks), 0.1), np.full((len(members), tasks, 11), np.nan),
            np.full((len(members), tasks), np.nan), where, where, steps=7,
        )  # fmt: skip
        return JobResult(job.number, result, seconds=1.0)

    return train


def test_a_study_runs_to_its_end(small_study, store):
    loop = make(small_study(), store)
    jobs = finish(loop)
    assert loop.strategy.done and len(loop.strategy.rounds) == 2
    assert {job.phase for job in jobs} == {"cv", "eval"}
    members = [(job.phase, member) for job in jobs for member in job.cohort.members]
    assert len(members) == len(set(members)) == store.count() == loop.trained
    best = loop.strategy.best
    scores = [
        float(average_accuracy(record.accuracies)) for record in loop.search_records() if record.epsilon == best.epsilon
    ]
    assert best.value == pytest.approx(sum(scores) / 2) and len(scores) == 2
    assert {record.epsilon for record in loop.evaluation_records()} == {best.epsilon, 0.0}
    assert all(record.accuracies.shape == (2, 2) for record in loop.evaluation_records())


def test_what_the_ledger_holds_is_never_trained_again(small_study, store):
    first = make(small_study(), store)
    finish(first)
    again = make(small_study(), store)
    assert again.done and again.ask() == [] and again.trained == 0 and again.reused == first.trained
    other = make(small_study(seeds=3), store)  # another study: two of its three seeds are known
    assert {member.seed for job in other.ask() for member in job.cohort.members} == {2}


def test_agem_is_known_by_one_key_in_every_reading(small_study, store):
    finish(make(small_study(), store))
    other = make(small_study(trigger="epsilon"), store)
    asked = {member.epsilon for job in other.ask() for member in job.cohort.members}
    assert 0.0 not in asked and 1.0 in asked


@pytest.mark.parametrize(
    "change",
    [{"lr": 0.2}, {"memory": 4}, {"memory_batch": 9}, {"batch_size": 5}, {"cv_tasks": 3}, {"examples_per_task": 70}],
)
def test_whatever_changes_a_result_changes_every_key(small_study, store, change):
    finish(make(small_study(), store))
    other = make(small_study(**change), store)
    assert other.reused == 0


def test_the_search_stream_does_not_know_how_many_tasks_follow(small_study, store):
    finish(make(small_study(), store))
    assert make(small_study(tasks=5), store).reused > 0


def test_scoring_on_the_evaluation_stream_reuses_its_members(small_study, store):
    loop = make(small_study(score_on="eval"), store)
    jobs = finish(loop)
    assert {job.phase for job in jobs} == {"eval"}
    assert {record.epsilon for record in loop.evaluation_records()} == {loop.strategy.best.epsilon, 0.0}


def test_a_diverged_seed_costs_its_epsilon_the_score(small_study, store):
    loop = make(small_study(), store)
    finish(loop, fake(lambda epsilon, seed: np.nan if epsilon > 0.6 and seed == 1 else 0.5 + epsilon / 10))
    first = loop.strategy.rounds[0]
    assert [score is None for score in first.scores] == [False, False, True, True]
    assert loop.strategy.best.epsilon <= 0.6
    lost = [record for record in store.all_runs() if record.status == "diverged"]
    assert lost and all(record.seed == 1 and record.diverged_task == 0 for record in lost)


def test_a_search_that_loses_everything_ends_without_an_answer(small_study, store):
    loop = make(small_study(), store)
    finish(loop, fake(lambda epsilon, seed: np.nan))
    assert loop.done and loop.strategy.best is None and loop.evaluation_records() == ()


def test_the_best_of_the_scores_is_evaluated(small_study, store):
    loop = make(small_study(points=11, repeats=3), store)
    finish(loop, fake(lambda epsilon, seed: 0.9 - (epsilon - 0.33) ** 2))
    assert loop.strategy.best.epsilon == 0.326  # of [0.29, 0.38] in steps of 0.009
    assert len(loop.strategy.rounds) == 3


def test_cohorts_fill_the_workers_and_keep_seeds_together(small_study, store):
    loop = make(small_study(points=11, seeds=5), store, workers=2)
    sizes = [len(job.cohort.members) for job in loop.ask() if job.phase == "cv"]
    assert len(sizes) == 8 and sum(sizes) == 55 and max(sizes) - min(sizes) <= 1
    assert all(len({member.seed for member in job.cohort.members}) <= 2 for job in loop.ask())
    few = make(small_study(points=3, seeds=1), store, workers=8)
    assert [len(job.cohort.members) for job in few.ask() if job.phase == "cv"] == [1, 1, 1]


def test_a_waiting_worker_evaluates_agem_ahead(small_study, store):
    """What the evaluation needs in any case comes after the stage's own jobs, each member once, over all stages."""
    loop = make(small_study(), store)
    phases = [job.phase for job in loop.ask()]
    assert phases == sorted(phases) and phases.count("eval") == 2
    ahead = [job for job in loop.ask() if job.phase == "eval"]
    assert all(member.epsilon == 0 for job in ahead for member in job.cohort.members)
    loop.tell([execute(ahead[0])])
    assert not loop.evaluating and loop.stage == "repeat 1 of 2"
    while not loop.evaluating:
        loop.tell([execute(loop.ask()[0])])
    evaluated = [member for job in loop.ask() for member in job.cohort.members]
    assert len(evaluated) == 3 and sum(member.epsilon == 0 for member in evaluated) == 1  # the other is known
    while not loop.done:
        loop.tell([execute(loop.ask()[-1])])
    assert loop.ask() == [] and len(loop.evaluation_records()) == 4
    assert make(small_study(score_on="eval", name="other"), store).reused == 2


def test_asking_again_gives_the_same_open_jobs(small_study, store):
    loop = make(small_study(), store)
    first, *rest = loop.ask()
    loop.tell([execute(first)])
    assert loop.ask() == rest


def test_results_are_stored_before_the_round_is_complete(small_study, store):
    loop = make(small_study(), store)
    job = loop.ask()[0]
    loop.tell([execute(job)])
    assert store.count() == len(job.cohort.members)


def test_a_failed_cohort_stops_the_study(small_study, store):
    loop = make(small_study(), store)
    with pytest.raises(TrainingFailed, match="out of luck"):
        loop.tell([JobResult(loop.ask()[0].number, None, error="out of luck")])
    assert store.count() == 0


def test_remaining_steps_reach_zero(small_study, store):
    loop = make(small_study(), store)
    seen = [loop.remaining_steps()]
    while not loop.done:
        loop.tell([execute(loop.ask()[0])])
        seen.append(loop.remaining_steps())
    assert seen[0] > 0 and seen[-1] == 0


def test_results_survive_the_transport(small_study, store):
    value = execute(make(small_study(), store).ask()[0]).value
    again = decode(encode(value))
    for name in vars(value):
        first, second = np.asarray(getattr(value, name)), np.asarray(getattr(again, name))
        assert first.dtype == second.dtype and np.array_equal(first, second, equal_nan=True), name


def test_cohort_sizes_do_not_change_results(small_study, tmp_path):
    ledgers = []
    for workers in (1, 3):
        with Store.open(f"sqlite:///{tmp_path / f'{workers}.sqlite'}") as store:
            finish(make(small_study(), store, workers))
            ledgers.append({record.key: record for record in store.all_runs()})
    one, three = ledgers
    assert one.keys() == three.keys()
    assert all(same_result(one[key], three[key]) for key in one)
