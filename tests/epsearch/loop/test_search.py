"""The loop of a study: what it asks for, what it takes from the ledger, what it stores."""

from dataclasses import replace

import numpy as np
import pytest

from epsearch.failures.errors import TrainingFailed, UsageError
from epsearch.loop.jobs import JobResult, decode, encode, execute
from epsearch.loop.search import SearchLoop
from epsearch.preparation.data import open_evaluation
from results.ledger.record import same_result
from results.ledger.store import Store
from results.metrics import average_accuracy
from tests.support.drive import fake, finish, make


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


@pytest.mark.slow
def test_a_study_runs_to_its_end(small_study, store):
    loop = make(small_study(), store)
    jobs = finish(loop)
    assert loop.strategy.done and len(loop.strategy.rounds) == 2
    assert {job.phase for job in jobs} == {"cv", "eval"}
    members = [(job.phase, member) for job in jobs if not job.certify for member in job.cohort.learners]
    assert len(members) == len(set(members)) == len(store.all_runs()) == loop.trained
    best = loop.strategy.best
    scores = [
        float(average_accuracy(record.accuracies))
        for record in loop.search_records()
        if record.epsilon == best.point[0]
    ]
    assert best.value == pytest.approx(sum(scores) / 2) and len(scores) == 2
    assert {record.epsilon for record in loop.evaluation_records()} == {best.point[0], 0.0}
    assert all(record.accuracies.shape == (2, 2) for record in loop.evaluation_records())


class Closed:
    """A ledger that nobody may ask."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} was asked for")


def test_making_a_loop_reads_nothing(small_study, store):
    stream = open_evaluation(small_study())[0].describe()
    loop = SearchLoop(small_study(), stream, Closed())
    assert not loop.done and loop.stage == "repeat 1 of 2" and loop.missing()
    with pytest.raises(AssertionError, match="get was asked for"):
        loop.catch_up()


@pytest.mark.slow
def test_records_of_earlier_loops_need_not_be_in_the_ledger(small_study, store, tmp_path):
    first = make(small_study(certify=0), store)
    finish(first)
    stream = open_evaluation(small_study(certify=0))[0].describe()
    with Store.open(f"sqlite:///{tmp_path / 'empty.sqlite'}") as empty:
        loop = SearchLoop(small_study(certify=0), stream, empty, earlier=[first]).catch_up()
        assert loop.evaluating and not loop.done and loop.best == first.best and not empty.all_runs()
        assert loop.reused == len(first.search_records()) > 0 and loop.rounds() == first.rounds()


@pytest.mark.slow
def test_looking_at_what_is_upcoming_opens_nothing(small_study, store):
    """At every stage of a search, the jobs that are then handed out are those that were seen."""
    study, stages = small_study(), set()
    while not (loop := make(study, store, workers=2)).done:
        seen = loop.upcoming(2)
        assert seen == loop.upcoming(2) and loop.upcoming(1) != []
        asked = loop.ask()
        assert sorted(map(content, seen)) == sorted(map(content, asked))
        stages.add(loop.stage)
        loop.tell([execute(job) for job in asked])
    assert stages >= {"repeat 1 of 2", "repeat 2 of 2"} and loop.upcoming(2) == []


def content(job):
    """A job, but for its number."""
    return str(replace(job, number=0))


@pytest.mark.slow
def test_what_the_ledger_holds_is_never_trained_again(small_study, store):
    first = make(small_study(), store)
    finish(first)
    again = make(small_study(), store)
    assert again.done and again.ask() == [] and again.trained == 0 and again.reused == first.trained
    other = make(small_study(seeds=3), store)  # another study: two of its three seeds are known
    assert {member.seed for job in other.ask() for member in job.cohort.learners} == {2}


@pytest.mark.slow
def test_agem_is_known_by_one_key_in_every_reading(small_study, store):
    finish(make(small_study(), store))
    other = make(small_study(trigger="epsilon"), store)
    asked = {member.hyperparameters.epsilon for job in other.ask() for member in job.cohort.learners}
    assert 0.0 not in asked and 1.0 in asked


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [{"lr": 0.2}, {"memory": 4}, {"memory_batch": 9}, {"batch_size": 5}, {"cv_tasks": 3}, {"examples_per_task": 70}],
)
def test_whatever_changes_a_result_changes_every_key(small_study, store, change):
    finish(make(small_study(), store))
    other = make(small_study(**change), store)
    assert other.reused == 0


@pytest.mark.slow
def test_the_search_stream_does_not_know_how_many_tasks_follow(small_study, store):
    finish(make(small_study(), store))
    assert make(small_study(tasks=5), store).reused > 0


@pytest.mark.slow
def test_scoring_on_the_evaluation_stream_reuses_its_members(small_study, store):
    loop = make(small_study(score_on="eval"), store)
    jobs = finish(loop)
    assert {job.phase for job in jobs} == {"eval"}
    assert {record.epsilon for record in loop.evaluation_records()} == {loop.best.point[0], 0.0}


def test_a_diverged_seed_costs_its_epsilon_the_score(small_study, store):
    loop = make(small_study(), store)
    finish(loop, fake(lambda one: np.nan if one.epsilon > 0.6 and one.seed == 1 else 0.5 + one.epsilon / 10))
    first = loop.strategy.rounds[0]
    assert [score is None for score in first.scores] == [False, False, True, True]
    assert loop.best.point[0] <= 0.6
    lost = [record for record in store.all_runs() if record.status == "diverged"]
    assert lost and all(record.seed == 1 and record.diverged_task == 0 for record in lost)


def test_a_search_that_loses_everything_ends_without_an_answer(small_study, store):
    loop = make(small_study(), store)
    finish(loop, fake(lambda one: np.nan))
    assert loop.done and loop.strategy.best is None and loop.evaluation_records() == ()


def test_the_best_of_the_scores_is_evaluated(small_study, store):
    loop = make(small_study(points=11, repeats=3, choose="tried"), store)
    finish(loop, fake(lambda one: 0.9 - (one.epsilon - 0.33) ** 2))
    assert loop.best.point[0] == 0.326  # of [0.29, 0.38] in steps of 0.009
    assert len(loop.strategy.rounds) == 3


def test_cohorts_fill_the_workers_and_keep_seeds_together(small_study, store):
    loop = make(small_study(points=11, seeds=5), store, workers=2)
    sizes = [len(job.cohort.learners) for job in loop.ask() if job.phase == "cv"]
    # At most a quarter of a worker's share, and what is begun last is small: nobody waits long for the last worker.
    assert sizes == [7, 7, 7, 7, 7, 7, 6, 3, 2, 1, 1] and sum(sizes) == 55
    assert all(len({member.seed for member in job.cohort.learners}) <= 2 for job in loop.ask())
    few = make(small_study(points=3, seeds=1), store, workers=8)
    assert [len(job.cohort.learners) for job in few.ask() if job.phase == "cv"] == [1, 1, 1]


@pytest.mark.slow
def test_a_waiting_worker_evaluates_agem_ahead(small_study, store):
    """What the evaluation needs in any case comes after the stage's own jobs, each member once, over all stages."""
    loop = make(small_study(choose="tried"), store)
    phases = [job.phase for job in loop.ask()]
    assert phases == sorted(phases) and phases.count("eval") == 2
    ahead = [job for job in loop.ask() if job.phase == "eval"]
    assert all(member.hyperparameters.epsilon == 0 for job in ahead for member in job.cohort.learners)
    loop.tell([execute(ahead[0])])
    assert not loop.evaluating and loop.stage == "repeat 1 of 2"
    while not loop.evaluating:
        loop.tell([execute(loop.ask()[0])])
    evaluated = [member for job in loop.ask() if not job.certify for member in job.cohort.learners]
    assert (
        len(evaluated) == 3 and sum(member.hyperparameters.epsilon == 0 for member in evaluated) == 1
    )  # the other is known
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
    assert len(store.all_runs()) == len(job.cohort.learners)


def test_the_user_is_notified_once_all_results_are_stored(small_study, store):
    """A listener that raises loses none of them."""
    loop = make(small_study(), store)
    first, second = loop.ask()[:2]
    failed, result = JobResult(first.number, None, error="gone"), fake(lambda one: 0.5)(second)
    noted = replace(result, value=replace(result.value, note="does not fit"))

    def notify(line):
        raise KeyboardInterrupt(line)

    loop.notify = notify
    with pytest.raises(KeyboardInterrupt, match="giving up on one cohort"):
        loop.tell([failed, noted])
    assert len(store.all_runs()) == len(second.cohort.learners)


@pytest.mark.slow
def test_a_cohort_that_failed_ends_the_study_behind_all_others(small_study, store):
    """Of the round and of what is trained ahead of it; the next round does not begin."""
    loop, lines = make(small_study(), store), []
    loop.notify = lines.append
    failed, *others = loop.ask()
    loop.tell([JobResult(failed.number, None, error="out of luck"), execute(others[0])])
    assert loop.ask() == others[1:] and lines == ["giving up on one cohort: out of luck; the others continue"]
    loop.tell([execute(job) for job in others[1:]])
    for _ in range(2):
        with pytest.raises(TrainingFailed, match=r"^a cohort could not be trained: out of luck$"):
            loop.ask()
    assert len(store.all_runs()) == sum(len(job.runs) for job in others) and loop.stage == "repeat 1 of 2"


def test_a_cohort_of_code_from_outside_ends_the_study_at_once(small_study, store):
    loop, lines = make(small_study(), store), []
    loop.notify = lines.append
    failed, other, *_ = loop.ask()
    done = execute(other)
    done = replace(done, value=replace(done.value, note="a note of the worker"))
    with pytest.raises(UsageError, match=r"^your stream raised$"):
        loop.tell([done, JobResult(failed.number, None, error="your stream raised", foreign=True)])
    assert len(store.all_runs()) == len(other.runs) and lines == ["a note of the worker"]


@pytest.mark.slow
def test_remaining_work_reach_zero(small_study, store):
    loop = make(small_study(), store)
    seen = [loop.work_of(loop.counts())[1]]
    while not loop.done:
        loop.tell([execute(loop.ask()[0])])
        seen.append(loop.work_of(loop.counts())[1])
    assert seen[0] > 0 and seen[-1] == 0


def test_results_survive_the_transport(small_study, store):
    value = execute(make(small_study(), store).ask()[0]).value
    again = decode(encode(value))
    for name in vars(value):
        first, second = np.asarray(getattr(value, name)), np.asarray(getattr(again, name))
        if name == "params":  # a megabyte a member: their fingerprints travel
            assert all(one is None for one in second)
        else:
            assert first.dtype.kind == second.dtype.kind
            np.testing.assert_array_equal(first, second)


@pytest.mark.slow
def test_cohort_sizes_do_not_change_results(small_study, tmp_path):
    ledgers = []
    for workers in (1, 3):
        with Store.open(f"sqlite:///{tmp_path / f'{workers}.sqlite'}") as store:
            finish(make(small_study(), store, workers))
            ledgers.append({record.key: record for record in store.all_runs()})
    one, three = ledgers
    assert one.keys() == three.keys()
    assert all(same_result(one[key], three[key]) for key in one)


class TestCertificates:
    """A few members of the search are trained again, alone, and compared with what the ledger has of them."""

    @pytest.mark.slow
    def test_on_a_cpu_nothing_differs(self, small_study, store):
        loop = make(small_study(certify=3, points=8, repeats=1, choose="tried"), store, workers=1)
        jobs = [job for job in finish(loop) if job.certify]
        assert len(jobs) == len(loop.certificates) == 3
        assert all(len(job.cohort.learners) == 1 and len(job.certify.cohort) > 1 for job in jobs)
        searched = {record.key for record in loop.search_records()}
        for key, found in store.certificates(searched).items():
            assert (found.accuracy_difference, found.parameter_difference) == (0.0, 0.0), key
        assert loop.stage == "evaluation" and loop.stage_members() == (4, 4)

    @pytest.mark.slow
    def test_they_are_made_once(self, small_study, store):
        finish(make(small_study(), store))
        again = make(small_study(), store)
        assert again.done and len(again.certificates) == 2
        more = make(small_study(certify=4), store)
        assert not more.done and len(more.ask()) >= 2

    @pytest.mark.slow
    def test_none_are_made_when_none_are_wanted(self, small_study, store):
        loop = make(small_study(certify=0), store)
        assert not any(job.certify for job in finish(loop)) and loop.certificates == {}

    @pytest.mark.slow
    def test_a_difference_of_accuracies_is_seen(self, small_study, store):
        def flawed(job):
            result = execute(job)
            if job.certify:
                result.value.accuracies[0, 1, 0] += 0.125
            return result

        loop = make(small_study(), store)
        finish(loop, flawed)
        assert [one.accuracy_difference for one in loop.certificates.values()] == [pytest.approx(0.125)] * 2

    @pytest.mark.slow
    def test_what_only_one_of_them_measured_is_an_infinite_difference(self, small_study, store):
        def lost(job):
            result = execute(job)
            if job.certify:
                result.value.accuracies[:] = np.nan
            return result

        loop = make(small_study(), store)
        finish(loop, lost)
        assert {one.accuracy_difference for one in loop.certificates.values()} == {np.inf}

    @pytest.mark.slow
    def test_other_parameters_are_measured_against_the_same_cohort(self, small_study, store, monkeypatch):
        """Where the fingerprints differ, the cohort is trained again too, to say by how much."""
        import trainers.paths

        loop = make(small_study(points=8, repeats=1), store, workers=1)
        trained = []
        original = trainers.paths.train_path

        def spoilt(cohort, training, progress=None):
            result = original(cohort, training, progress)
            if training.folder is None and len(cohort.learners) == 1:
                result.params[0] = result.params[0] + np.float32(0.5)
                result.fingerprints[0] = "another"
            trained.append(len(cohort.learners))
            return result

        monkeypatch.setattr(trainers.paths, "train_path", spoilt)
        finish(loop)
        for found in loop.certificates.values():
            assert found.accuracy_difference == 0 and found.parameter_difference == pytest.approx(0.5)
        assert trained[-2] == 1 and trained[-1] > 1


@pytest.mark.slow
def test_the_first_task_is_shared_between_rounds_and_studies(small_study, store, cache):
    loop = make(small_study(), store)
    finish(loop)
    assert loop.saved > 0
    files = {path.name for path in (cache / "learners").iterdir()}
    assert len(files) == 4  # two seeds, of the search stream and of the evaluation stream
    other = make(small_study(memory=4), store)
    finish(other)
    assert {path.name for path in (cache / "learners").iterdir()} == files
    # every member but the certified ones, which are trained without sharing
    assert other.saved == 6 * other.trained


@pytest.mark.slow
def test_a_shared_first_task_changes_no_record(small_study, tmp_path, monkeypatch):
    ledgers = []
    for cache in ("one", "one", "two"):  # the second finds every first task, the others none
        monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / cache))
        with Store.open(f"sqlite:///{tmp_path / f'{len(ledgers)}.sqlite'}") as store:
            finish(make(small_study(), store))
            ledgers.append({record.key: record for record in store.all_runs()})
    assert all(same_result(ledgers[0][key], other[key]) for other in ledgers[1:] for key in ledgers[0])


def test_more_certificates_than_members_still_end_at_no_steps_to_go(small_study, store):
    loop = make(small_study(points=3, seeds=1, repeats=1, certify=9), store)
    finish(loop)
    assert len(loop.certificates) == 3 and loop.work_of(loop.counts())[1] == 0
