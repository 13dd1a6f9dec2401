"""A search along tasks: predicted scores, further tasks, keys, and its promises."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from epsearch.failures.errors import UsageError
from epsearch.findings.search import search_results
from epsearch.loop.content import content, run_of
from epsearch.loop.jobs import Run, execute
from epsearch.preparation.build import extend_search
from epsearch.preparation.data import open_evaluation
from epsearch.preparation.extension import check_extension
from epsearch.study.kinds import Search
from results.ledger.store import Store
from results.pages.search.report import write_report
from results.verdict import along_tasks
from results.verdict.answer import answer
from results.verdict.forecast import forecast
from results.verdict.summary import summary
from tests.support.drive import fake_matrices, finish, make

ALONG = {
    "protocol": "extrapolated",
    "cv_tasks": 3,
    "tasks": 12,
    "certify": 0,
    "strategy": "grid",
    "points": 5,
    "repeats": 1,
}
NOISE = np.random.default_rng(0).standard_normal((8, 9, 9))


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


def matrix(rate, noise=0.001):
    """Makes up accuracies of values that learn less the larger ε is, and forget by rate(ε) at every further task."""

    def of(one, tasks):
        age = np.maximum(np.arange(tasks)[:, None] - np.arange(tasks), 0)
        epsilon = getattr(one, "epsilon", 0.0)
        learned = 0.95 - 0.12 * epsilon
        own = NOISE[one.seed + 4 * (epsilon > 0.5)]
        return np.clip(learned * np.exp(-rate(epsilon) * age) + noise * np.resize(own, (tasks, tasks)), 0, 1)

    return of


def forgets(epsilon):
    return 0.06 * (1 - epsilon)


@pytest.mark.slow
def test_the_prediction_chooses_another_value_than_few_tasks(small_study, tmp_path):
    chosen = {}
    for protocol in ("cv-tasks", "extrapolated"):
        with Store.open(f"sqlite:///{tmp_path / protocol}") as own:
            loop = make(small_study(**ALONG | {"protocol": protocol}), own)
            finish(loop, fake_matrices(matrix(forgets)))
            chosen[protocol] = loop.best.point[0]
    assert chosen["cv-tasks"] < 0.5 < chosen["extrapolated"], "A_3 is highest near 0, A_9 near 1"


@pytest.mark.slow
def test_it_goes_on_while_others_may_be_better_and_drops_the_rest(small_study, store):
    loop = make(small_study(**ALONG), store)
    jobs = finish(loop, fake_matrices(matrix(forgets, noise=0.01)))
    stages = loop.stages
    assert [stage.tasks for stage in stages] == list(range(3, 3 + len(stages))) and len(stages) > 1
    assert stages[-1].resolved or stages[-1].tasks == 9, "at most as many tasks as the evaluation has"
    for before, after in itertools.pairwise(stages):
        assert not before.resolved and set(after.points) == {before.choice, *before.rivals}
    grown = {
        more: {
            one.hyperparameters.get("epsilon", 0.0) for job in jobs if job.more == more for one in job.cohort.learners
        }
        for more in range(1, 7)
    }
    for more, values in grown.items():
        wanted = {point[0] for point in stages[more].points} if more < len(stages) else set()
        assert values == wanted, "a value that was dropped has no further task"
    assert loop.best.point == stages[-1].choice and loop.evaluation_records()
    assert {record.tasks for record in loop.grown_records()} == {stage.tasks for stage in stages[1:]}


@pytest.mark.slow
def test_it_ends_where_nothing_is_open(small_study, store):
    loop = make(small_study(**ALONG), store)
    jobs = finish(loop, fake_matrices(matrix(lambda epsilon: 0.0, noise=0.0)))
    assert len(loop.stages) == 1 and loop.stages[0].resolved and not any(job.more for job in jobs)


@pytest.mark.slow
def test_reopened_after_every_job_it_asks_for_nothing_twice(small_study, store):
    study = small_study(**ALONG | {"tasks": 9, "points": 4, "most_cv_tasks": 5})
    train, seen = fake_matrices(matrix(forgets, noise=0.01)), []
    for _ in range(100):
        loop = make(study, store, workers=1)
        if loop.done:
            break
        job = max(loop.ask(), key=lambda one: len(one.runs))
        seen += job.runs
        loop.tell([train(job)])
    assert loop.done and len(seen) == len(set(seen)) == len(loop.records)
    assert {run.more for run in seen} == set(range(len(loop.stages))) != {0}
    assert loop.stage == "evaluation" and loop.state() == "finished"


@pytest.mark.slow
def test_its_first_tasks_are_those_of_a_plain_study(small_study, tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'one'}") as one, Store.open(f"sqlite:///{tmp_path / 'two'}") as two:
        plain, along = make(small_study(**ALONG | {"protocol": "cv-tasks"}), one), make(small_study(**ALONG), two)
        for job in plain.ask():
            plain.tell([execute(job)])
        for job in (one for one in along.ask() if one.phase == "cv"):
            assert job.until == 3 and len(job.stream.open().tasks) == 9
            along.tell([execute(job)])
        known = [record for record in plain.records.values() if record.phase == "cv"]
        for record in known:
            if record.key not in along.records:
                continue
            other = along.records[record.key]
            assert record.fingerprint == other.fingerprint
            np.testing.assert_array_equal(record.accuracies, other.accuracies)
        assert len({record.key for record in known} & along.records.keys()) >= 10


@pytest.mark.slow
def test_a_member_goes_on_from_what_was_kept(small_study, store, cache):
    loop = make(small_study(**ALONG), store)
    grown = 0
    while not loop.done:
        jobs = loop.ask()
        for job in jobs:
            result = execute(job)
            if job.more:
                grown += 1
                every = sum(result.value.steps.tolist())
                assert result.value.saved == every * (job.until - 1) / job.until, "all tasks but the newest"
            loop.tell([result])
    assert grown
    assert not list((cache / "learners").rglob("runs/*")), "what was kept is removed once the search is over"


@pytest.mark.slow
def test_contents_name_further_tasks_and_runs_come_back(small_study, store):
    study, plain = small_study(**ALONG), small_study(**ALONG | {"protocol": "cv-tasks"})
    images, learner = open_evaluation(plain)[0].describe(), plain.learner((0.5,), 1)
    first = content(study, images, Run("cv", learner))
    assert first == content(plain, images, Run("cv", learner)) and first["stream"]["tasks"] == [0, 3]
    more = content(study, images, Run("cv", learner, 0, 2))
    assert more["stream"] == first["stream"] | {"beyond": [12, 14]}
    er = small_study(**ALONG | {"method": "er", "search": "memory=1..5"})
    assert content(er, images, Run("cv", er.learner((3,), 1)))["stream"]["length"] == 9, "of a reservoir"
    loop = make(study, store)
    finish(loop, fake_matrices(matrix(forgets, noise=0.01)))
    for record in store.all_runs():
        run = run_of(record)
        assert loop._key(run) == record.key and record.tasks == (9 if run.phase == "eval" else 3 + run.more)


def test_no_task_of_the_search_is_one_of_the_evaluation(small_study, monkeypatch):
    study = small_study(**ALONG)
    stream = study.request("cv", more=study.further_tasks).open()
    assert stream.tasks == (0, 1, 2, *range(12, 18)) and open_evaluation(study)[1].sound
    request = Search.request

    def peeking(self, phase, source=None, order=0, more=0):
        """Goes on to the tasks of the evaluation."""
        right = request(self, phase, source, order, more)
        return right if not more else type(right)(**{**vars(right), "order": (0, 1, 2, *range(3, 3 + more))})

    monkeypatch.setattr(Search, "request", peeking)
    with pytest.raises(UsageError, match="must not share tasks"):
        open_evaluation(study)


@pytest.mark.slow
def test_the_report_says_from_how_many_tasks_it_chose(small_study, tmp_path):
    study = small_study(**ALONG)
    study.out.mkdir()
    with Store.open(study.storage) as store:
        loop = make(study, store)
        finish(loop, fake_matrices(matrix(forgets, noise=0.01)))
        results, last = search_results(loop, {}), loop.stages[-1]
    assert results.chosen == last.choice and {record.tasks for record in results.search} == {3}
    assert summary(results).answer.startswith(f"ε = {last.choice[0]:g}   (predicted for 9 tasks from {last.tasks}")
    assert forecast(results).seen == last.tasks
    assert forecast(results).model.mean.max() == pytest.approx(last.predicted[0])
    more = "13" if last.tasks == 4 else f"13–{12 + last.tasks - 3}"
    seen = f"Chosen by A_T predicted from tasks 1–3 and {more} of other permutations"
    assert f"{seen}; the evaluation's tasks were not seen." in answer(results)
    assert "Of 3 tasks alone, which did not choose: " in answer(results)
    assert last.resolved and "--extend" not in summary(replace(results, eval_seeds=tuple(range(6)))).next_step
    assert [row["tasks"] for row in along_tasks.table(results)] == list(range(3, last.tasks + 1))
    page = write_report(results, tmp_path / "report").read_text(encoding="utf-8")
    assert page.index('id="figure-forecast"') < page.index("Along tasks") < page.index("What the search trained")
    assert page.index('id="figure-forecast"') < page.index("How far to trust"), "on the first screen"
    drawn = page.partition('data-place="figure-forecast"')[2].partition("</script>")[0]
    assert '"name":"chosen"' in drawn and '"mode":"lines","name":"95 % interval"' in drawn.replace(", ", ",")
    assert "The figure has the tasks of the search." not in page and (tmp_path / "report" / "stages.csv").exists()


def test_a_stream_with_an_end_has_no_further_tasks(small_study, store):
    split = {"dataset": "split_cifar", "tasks": 12}
    assert not small_study(**ALONG | split | {"examples_per_task": 60}).further_tasks


@pytest.mark.slow
def test_the_plan_counts_further_tasks_apart(small_study, store):
    loop = make(small_study(**ALONG), store)
    counts, study = loop.counts(), loop.study
    assert counts.most - counts.usual >= 5 * len(study.units) * study.further_tasks
    least, usual, most = loop.work_of(counts)
    assert least <= usual < most
    finish(loop, fake_matrices(matrix(forgets, noise=0.01)))
    assert loop.counts().largest == 0 and loop.work_of(loop.counts()) == (0, 0, 0)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"cv_tasks": 2}, "protocol extrapolated needs cv-tasks >= 3, got 2"),
        ({"seeds": 1}, "protocol extrapolated needs two seeds or more, got 1"),
        ({"race": True}, "protocol extrapolated needs all seeds of every value; leave --race out"),
        ({"score_on": "eval"}, "protocol extrapolated needs score-on cv, got eval"),
        ({"objective": "worst-task"}, "protocol extrapolated needs objective A_T, got worst-task"),
        ({"tasks": 6}, "protocol extrapolated needs more tasks in the evaluation than the 3 of cv-tasks, got 3"),
        ({"cv_tasks": 4, "most_cv_tasks": 3}, "protocol extrapolated needs most-cv-tasks >= cv-tasks, got 3 and 4"),
        ({"search": "memory=1,2,3"}, "protocol extrapolated needs numbers as searched values, got choices"),
        (
            {"protocol": "cv-tasks", "most_cv_tasks": 5},
            "most-cv-tasks is for --protocol extrapolated; give it, or leave it out",
        ),
    ],
)
def test_what_cannot_be_predicted_is_refused(small_study, options, line):
    with pytest.raises(UsageError) as refusal:
        small_study(**ALONG | options)
    assert str(refusal.value) == line


def test_a_range_is_short_for_both_options(small_study):
    study = small_study(**ALONG | {"cv_tasks": "3..5"})
    assert (study.cv_tasks, study.most_cv_tasks, study.further_tasks) == (3, 5, 2)
    assert study.identity()["most_cv_tasks"] == 5 and "protocol" not in small_study().identity()
    assert (
        small_study(
            **ALONG | {"dataset": "split_digits", "tasks": 5, "cv_tasks": 2, "protocol": "cv-tasks"}
        ).further_tasks
        == 0
    )
    check_extension(study, study.but(most_cv_tasks=6, eval_seeds=(*study.seeds, 9)))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"seeds": "0,1,2"}, r"extend can change most_cv_tasks, eval_seeds; seeds is \[0, 1\] there, \[0, 1, 2\] here"),
        ({"points": 7}, "extend can change most_cv_tasks, eval_seeds; points is 5 there, 7 here"),
        ({"most_cv_tasks": 4}, "most-cv-tasks can only increase; got 4, which were 5"),
        ({"eval_seeds": "1,2"}, "eval-seeds can only be added at the end"),
    ],
)
def test_an_extension_that_would_be_another_search_is_refused(small_study, options, line):
    study = small_study(**ALONG | {"seeds": "0,1", "most_cv_tasks": 5})
    with pytest.raises(UsageError, match=f"^{line}"):
        check_extension(study, small_study(**ALONG | {"seeds": "0,1", "most_cv_tasks": 5} | options))


def test_an_extension_says_what_it_may_change_and_how_far(small_study):
    study = small_study(**ALONG | {"most_cv_tasks": 5})
    assert extend_search(study, {"cv_tasks": "3..8"}).most_cv_tasks == 8, "short for both"
    for options, line in (
        ({"protocol": "cv-tasks"}, "^extend can change most_cv_tasks, eval_seeds; protocol is extrapolated there, cv-"),
        ({"cv_tasks": "4..8"}, "^extend can change most_cv_tasks, eval_seeds; cv_tasks is 3 there, 4 here"),
        ({"most_cv_tasks": 10}, "^most-cv-tasks must be <= 9 on this stream, got 10"),
    ):
        with pytest.raises(UsageError, match=line):
            extend_search(study, options)
    with pytest.raises(UsageError, match=r"^cv-tasks must be one number without --protocol extrapolated, got 3\.\.8"):
        extend_search(small_study(**ALONG | {"protocol": "cv-tasks"}), {"cv_tasks": "3..8"})


@pytest.mark.slow
def test_an_extended_search_is_the_longer_one(small_study, tmp_path):
    """Only members without a record are trained; choice and evaluation are those of one search."""
    options, train = ALONG | {"tasks": 9}, fake_matrices(matrix(forgets, noise=0.01))
    short, longer = (small_study(**options | {"most_cv_tasks": most}) for most in (3, 6))
    assert (short.task_limit, short.further_tasks, longer.further_tasks) == (6, 0, 3)
    short.out.mkdir()
    with Store.open(short.storage) as one, Store.open(f"sqlite:///{tmp_path / 'whole'}") as two:
        before = make(short, one)
        first = finish(before, train)
        assert not before.stages[-1].resolved and before.done
        step = summary(search_results(before, {})).next_step
        assert step == f"epsearch run --extend --name {short.name} --most-cv-tasks 6"
        check_extension(short, longer)
        extended, whole = make(longer, one, earlier=(short,)), make(longer, two)
        second = finish(extended, train)
        finish(whole, train)
        assert extended.stages == whole.stages and extended.best == whole.best and len(extended.stages) > 1
        assert extended.evaluation_records() and not {run for job in first for run in job.runs} & {
            run for job in second for run in job.runs
        }
        assert along_tasks.further(search_results(extended, {})) == "", "resolved, or at the most that there are"
