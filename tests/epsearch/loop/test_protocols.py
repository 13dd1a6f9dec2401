"""A study of protocols: views, choices, forks, orders, and every promise broken on purpose."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from epsearch.failures.errors import UsageError
from epsearch.findings.protocols import protocol_results
from epsearch.loop import walks
from epsearch.loop.content import content, run_of
from epsearch.loop.jobs import Run, execute
from epsearch.preparation.build import build
from epsearch.protocols import registry
from epsearch.protocols.protocol import MEMORY, TEST, Protocol, View
from epsearch.session.plan import make_plan
from epsearch.session.plan_text import in_brief, in_words
from epsearch.session.reruns import Reruns
from epsearch.study.kinds import ProtocolStudy
from results.ledger.store import Store
from results.verdict.protocols import peeking
from tests.support.drive import fake_matrices, finish, make
from trainers.forks import Fork

ONCE = "cv-tasks,first-k,end-of-training"
PER_TASK = "current-task,seen-tasks,seen-tasks-on-memory,chf,hindsight"
SMALL = {
    "dataset": "permuted_digits",
    "tasks": 7,
    "cv_tasks": 3,
    "examples_per_task": 100,
    "seeds": 2,
    "points": 3,
    "memory": 3,
    "memory_batch": 20,
    "numeric_path": "cpu-float32-mkl",
}


@pytest.fixture
def study(tmp_path):
    return lambda **more: build(ProtocolStudy, SMALL | {"out": tmp_path / "runs"} | more)


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


def matrix(one, tasks):
    """Makes up accuracies: small ε learns more, large ε forgets less; another seed is a little better."""
    age = np.maximum(np.arange(tasks)[:, None] - np.arange(tasks), 0)
    epsilon = getattr(one, "epsilon", 0.0)
    return np.clip((0.9 - 0.1 * epsilon + 0.01 * one.seed) * np.exp(-0.3 * (1 - epsilon) * age), 0, 1)


def results(loop):
    return {row.name: row for row in protocol_results(loop, {}).rows}


@pytest.mark.slow
def test_every_protocol_runs_to_its_end_and_is_judged_on_every_unit(study, store):
    loop = make(study(protocols=f"{ONCE},{PER_TASK},default,50-percent", orders=2), store)
    finish(loop)
    for name, row in results(loop).items():
        assert [record.unit for record in row.records] == list(loop.study.units), name
        assert set(row.choices) == {0, 1} and all(record.phase == "eval" for record in row.records), name
        assert all(record.tasks == 4 for record in row.records), name
    again = make(loop.study, store)
    assert again.done and results(again)["chf"].choices == results(loop)["chf"].choices, "resuming trains nothing"


@pytest.mark.slow
def test_trials_of_a_constant_continue_it_bit_for_bit(study, store):
    """Every trial that goes on with its value equals the first tasks of the run without an interruption."""
    loop = make(study(protocols="current-task,seen-tasks,seen-tasks-on-memory,chf,hindsight"), store)
    finish(loop)
    compared = 0
    for record in list(loop.records.values()):
        stream = record.content["stream"]
        if "prefix" not in stream or "schedule" in record.content:
            continue
        run = run_of(record)._replace(prefix=None)
        (alone,) = [execute(job) for job in [loop._job(0, ([run], None), 1)]]
        assert np.array_equal(
            alone.value.accuracies[0][: record.tasks, : record.tasks], record.accuracies, equal_nan=True
        )
        compared += 1
    assert compared > 3


@pytest.mark.slow
def test_a_fork_goes_on_where_its_states_are_gone(study, store, tmp_path, monkeypatch):
    loop = make(study(protocols="chf"), store)
    finish(loop)
    monkeypatch.setattr("epsearch.loop.jobs.learner_cache", lambda: tmp_path / "empty")
    for record in [one for one in loop.records.values() if "schedule" in one.content]:
        (again,) = [execute(loop._job(0, ([run_of(record)], None), 1))]
        assert str(again.value.fingerprints[0]) == record.fingerprint
    schedules = [record for record in loop.records.values() if "schedule" in record.content]
    assert schedules, "the decay changes the value"


def test_keys_tell_schedules_prefixes_and_views_apart(study, store):
    own = make(study(protocols="seen-tasks"), store)
    learner = own.study.learner((0.5,), 0)
    changed = walks.fork(learner, 1, epsilon=1.0)
    runs = [
        Run("validation", learner),
        Run("memory", learner),
        Run("eval", learner),
        Run("validation", learner, prefix=(2, None)),
        Run("validation", learner, prefix=(2, 3)),
        Run("validation", changed),
        Run("validation", walks.fork(learner, 0, epsilon=1.0)),
    ]
    assert len(set(map(own._key, runs))) == len(runs)
    same = walks.fork(learner, 1, epsilon=0.5)
    assert own._key(Run("validation", same)) == own._key(runs[0]), "an unchanged value is no other run"
    for run in runs:
        record = replace_content(own, run)
        assert run_of(record) == run


def test_another_memory_is_another_test_even_of_a_method_without_one(study, store):
    runs = []
    for size in (3, 5):
        own = make(study(protocols="seen-tasks-on-memory", method="ewc", search="strength=1,10", memory=size), store)
        runs.append({phase: own._key(Run(phase, own.study.learner((1.0,), 0))) for phase in ("validation", "memory")})
    assert runs[0]["validation"] == runs[1]["validation"] and runs[0]["memory"] != runs[1]["memory"]


def replace_content(loop, run):
    """A record of a run, with made-up accuracies."""
    tasks = run.prefix[0] if run.prefix else 4
    blank = np.full((tasks, tasks), 0.5)
    from results.ledger.record import RunRecord

    known = content(loop.study, loop.images, run)
    return RunRecord(
        key="0" * 64,
        phase=run.phase,
        method=known["method"],
        epsilon=known["epsilon"] or 0.0,
        seed=known["seed"],
        accuracies=blank,
        initial=blank[0],
        within=np.full((tasks, 11), np.nan),
        violations=blank[0],
        status="ok",
        diverged_task=None,
        diverged_step=None,
        steps=1,
        seconds=1.0,
        content=known,
        created="",
        fingerprint="",
        cohort="",
    )


@pytest.mark.parametrize(
    ("name", "peeks"),
    [
        *((name, False) for name in ("cv-tasks", "first-k", "end-of-training", "current-task", "seen-tasks-on-memory")),
        ("hindsight", True),
        ("end-of-training-on-test", True),
    ],
)
def test_whether_a_protocol_peeks_follows_from_hashes(study, store, name, peeks):
    loop = make(study(protocols=name), store)
    finish(loop, fake_matrices(matrix))
    evidence = results(loop)[name].evidence
    assert evidence.peeks is peeks and evidence.judged == 2 * 4 * 355
    assert evidence.selected > 0


def test_a_selection_that_peeks_is_caught(study, store, monkeypatch):
    """It says that it sees held-out examples, while its stream shows it the test sets."""
    loop = make(study(protocols="end-of-training"), store)
    finish(loop, fake_matrices(matrix))
    assert not results(loop)["end-of-training"].evidence.peeks
    honest = loop.stream
    monkeypatch.setattr(loop, "stream", lambda phase, order: honest("eval", order))
    assert results(loop)["end-of-training"].evidence.peeks


@pytest.mark.slow
def test_a_fork_that_drifts_is_caught(study, store):
    """Trained once more from its first task, it ends with other parameters."""

    def drifting(job):
        result = execute(job)
        marks = [
            "drift" if isinstance(one, Fork) else known
            for one, known in zip(job.cohort.learners, result.value.fingerprints, strict=True)
        ]
        return replace(result, value=replace(result.value, fingerprints=np.array(marks)))

    loop = make(study(protocols="chf"), store)
    finish(loop, drifting)
    stored = [record for record in loop.records.values() if "schedule" in record.content]
    again = Reruns(loop.study, loop.images, store, [run_of(one) for one in stored], {one.key: one for one in stored})
    finish(again)
    assert stored and all(
        not again.certificates[one.key].within(0.0) or again.results[one.key].value.fingerprints[0] != one.fingerprint
        for one in stored
    )


@pytest.mark.slow
def test_an_order_learns_nothing_from_another(study, store, tmp_path):
    """Other accuracies in order 1 leave the choices in order 0 as they are."""

    def other(one, tasks):
        return matrix(one, tasks)[::1] * (1.0 - 0.5 * getattr(one, "epsilon", 0.0))

    def by_order(job):
        return fake_matrices(other if job.order else matrix)(job)

    chosen = []
    for number, train in enumerate((fake_matrices(matrix), by_order)):
        with Store.open(f"sqlite:///{tmp_path / str(number)}") as own:
            loop = make(study(protocols=f"{ONCE},{PER_TASK}", orders=2), own)
            finish(loop, train)
            chosen.append({name: row.choices for name, row in results(loop).items()})
    assert {name: one[0] for name, one in chosen[0].items()} == {name: one[0] for name, one in chosen[1].items()}
    assert any(chosen[0][name][1] != chosen[1][name][1] for name in chosen[0]), "order 1 has other choices"


@pytest.mark.slow
def test_an_order_that_leaks_is_caught(study, store, monkeypatch):
    """Trials of order 1 with the members of order 0: the judged members of that order are then not of its choices."""
    real = walks.Walk._run
    monkeypatch.setattr(walks.Walk, "_run", lambda self, *how: real(self, *how)._replace(order=0))

    def by_order(job):
        return fake_matrices(matrix)(job)

    loop = make(study(protocols="seen-tasks", orders=2), store)
    finish(loop, by_order)
    with pytest.raises(AssertionError):
        of_its_order(loop)
    monkeypatch.setattr(walks.Walk, "_run", real)
    sound = make(study(protocols="seen-tasks", orders=2), store)
    finish(sound, by_order)
    of_its_order(sound)


def of_its_order(loop):
    """Raises AssertionError unless all that chose in an order was trained in that order."""
    for (_, order), walk in loop.walks.items():
        orders = {run.order for choice in walk.choices for run in choice.tried}
        assert orders == {order}, f"order {order} has chosen by members of {orders}"


@dataclass(frozen=True)
class Between(Protocol):
    """Chooses a value that nobody has trained."""

    def choose(self, question, trials):
        return 0.123


def test_a_value_that_was_never_trained_is_refused(study, store, monkeypatch):
    monkeypatch.setitem(registry.PROTOCOLS, "between", Between("between", "", View()))
    loop = make(study(protocols="between"), store)
    with pytest.raises(UsageError, match="must choose a value that it has tried"):
        finish(loop, fake_matrices(matrix))


PROPOSALS = {
    "return question.candidates[:1]": "proposes 0 again, which it has tried",
    "return (1.5,)": "must propose values in 0…1, got 1.5",
    "return (math.nan,)": "each value of propose of protocol own_protocols:own must return a finite number, got nan",
    "return ('a',)": "each value of propose of protocol own_protocols:own must return a finite number, got 'a'",
    "return 0.5": "propose of protocol own_protocols:own must return a tuple of numbers, got 0.5",
    "pass": "propose of protocol own_protocols:own must return a tuple of numbers, got None",
    "1 / 0": "propose of protocol own_protocols:own failed with ZeroDivisionError: division by zero, at own_protocols",
}
CHOICES = {
    "choose(self, question, trials): return 'high'": "choose of protocol own_protocols:own must return a finite number",
    "choose(self, question, trials): return {}[0]": "choose of protocol own_protocols:own failed with KeyError: 0, at",
    "score(self, trial): return 'high'": "score of protocol own_protocols:own must return a number, got 'high'",
    "score(self, trial): 1 / 0": "score of protocol own_protocols:own failed with ZeroDivisionError",
}
FAULTY = {
    **{f"propose(self, question, trials): {code}": line for code, line in PROPOSALS.items()},
    **CHOICES,
    "needs(self, question): 1 / 0": "needs of protocol own_protocols:own failed with ZeroDivisionError",
}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A function that writes the user's protocol, a class with this function."""
    monkeypatch.chdir(tmp_path)
    head = "import math\nfrom epsearch.protocols.protocol import Protocol, View\nclass Own(Protocol):\n    def "
    tail = '\nown = Own("own", "", View())\n'
    yield lambda function: (tmp_path / "own_protocols.py").write_text(head + function + tail, encoding="utf-8")
    registry.PLUGGED.clear()


@pytest.mark.parametrize("function", FAULTY)
def test_a_protocol_that_fails_is_one_line(function, own, study, store):
    own(function)
    with pytest.raises(UsageError) as refusal:
        finish(make(study(protocols="own_protocols:own"), store), fake_matrices(matrix))
    text = str(refusal.value)
    assert FAULTY[function] in text and "own_protocols:own" in text and "\n" not in text, text


def test_a_value_error_of_a_choice_stands_in_the_report(own, study, store):
    own("choose(self, question, trials): raise ValueError('none of these')")
    loop = make(study(protocols="own_protocols:own,default"), store)
    finish(loop, fake_matrices(matrix))
    assert "none of these" in results(loop)["own_protocols:own"].remark


def test_a_protocol_of_ones_own_that_works_is_that_of_epsearch(own, study, store):
    """Behind its guard it proposes, scores and chooses as the same rule of ours."""
    own("score(self, trial): return float(trial.accuracies.mean())")
    loop = make(study(protocols="own_protocols:own,end-of-training"), store)
    finish(loop, fake_matrices(matrix))
    mine, ours = (results(loop)[name] for name in ("own_protocols:own", "end-of-training"))
    assert mine.choices == ours.choices != {}


@pytest.mark.slow
def test_choices_follow_the_view(study, store):
    """By hand: learned alone favours ε = 0, all tasks so far ε = 1."""
    loop = make(study(protocols=f"{ONCE},{PER_TASK}"), store)
    finish(loop, fake_matrices(matrix))
    rows = results(loop)
    assert rows["current-task"].choices[0] == ((0, 0.0),)
    for name in ("seen-tasks", "seen-tasks-on-memory", "end-of-training", "cv-tasks", "hindsight", "first-k"):
        assert rows[name].choices[0] == ((0, 1.0),), name
    assert rows["chf"].choices[0] == ((0, 1.0),), "0.8 is within a fifth of 0.9"


@pytest.mark.slow
def test_test_sets_are_seen_after_every_other_choice(study, store):
    loop = make(study(protocols=f"{ONCE},{PER_TASK}"), store)
    phases = []
    while not loop.done:
        jobs = loop.ask()
        phases.append({job.phase for job in jobs})
        loop.tell([fake_matrices(matrix)(job) for job in jobs])
    first = next(number for number, seen in enumerate(phases) if "eval" in seen)
    assert all(seen == {"eval"} for seen in phases[first:])
    assert first > 2


@pytest.mark.slow
def test_costs_by_hand(study, store):
    """3 values × 2 seeds; 10 steps a task (9 where a tenth is held out); choices at tasks 2, 3, 4."""
    loop = make(study(protocols="cv-tasks,first-k,end-of-training,current-task,seen-tasks,default,40-percent"), store)
    finish(loop, fake_matrices(matrix))
    rows = results(loop)
    steps = {name: row.cost[0].steps for name, row in rows.items()}
    assert steps == {
        "cv-tasks": 6 * 27,
        "first-k": 6 * 18,
        "end-of-training": 6 * 36,
        "default": 0,
        "current-task": 6 * (18 + 9 + 9),
        "seen-tasks": 6 * (18 + 9 + 9),
        "40-percent": 6 * 14,
    }
    assert rows["seen-tasks"].cost[0].kept == 3 * 10 * 65, "held-out examples of three earlier tasks"
    assert rows["current-task"].cost[0].kept == 0 and rows["default"].cost[0].flop == 0
    assert rows["end-of-training"].cost[0].kept == 4 * 100 * 65, "64 pixels and a label"
    assert rows["first-k"].cost[0].kept == 2 * 100 * 65


def test_costs_of_many_runs_make_the_tests_of_a_stream_once(study, store):
    """They take longer than all else that a cost needs: thousands of runs of a study took minutes."""
    loop = make(study(protocols="end-of-training", measure_every=3), store)
    stream, made = loop.stream("eval", 0), []
    tests, stream.test = stream.test, lambda seed, task: made.append((seed, task)) or tests(seed, task)
    runs = [run for value in loop.study.candidates for run in loop.constants(value)]
    costs = {run.learner.seed: loop.cost_of(run) for run in runs}
    assert len(runs) == 6 and sorted(made) == [(0, 3), (1, 3)]
    stream.test = tests
    again = make(study(protocols="end-of-training", measure_every=3), store)
    assert costs == {run.learner.seed: again.cost_of(run) for run in runs}


def test_a_whole_run_measures_its_first_tasks_whatever_comes_later(study, store):
    """By hand: of a run of four tasks that diverges in the third, the first two are known."""
    loop = make(study(protocols="first-2,end-of-training"), store)
    run = loop.walks["end-of-training", 0].next_runs()[0]
    accuracies = np.arange(16.0).reshape(4, 4) / 16
    lost = replace(replace_content(loop, run), accuracies=accuracies, status="diverged", diverged_task=2)
    assert walks.matrices_of([lost], 2).tolist() == [[[0, 1 / 16], [4 / 16, 5 / 16]]]
    assert np.isnan(walks.matrices_of([lost], 3)).all()


def test_a_protocol_of_which_all_trials_diverge_has_no_choice(study, store):
    def lost(job):
        return fake_matrices(lambda one, tasks: np.full((tasks, tasks), np.nan))(job)

    loop = make(study(protocols="seen-tasks,default"), store)
    finish(loop, lost)
    rows = results(loop)
    assert rows["seen-tasks"].choices == {} and "all have diverged" in rows["seen-tasks"].remark
    assert rows["seen-tasks"].evidence.selected == 2 * 2 * 10, "it has seen tests, in vain"
    assert rows["default"].choices, "it needs no trial"


def test_views_have_the_tests_that_they_name(study):
    own = study(protocols="seen-tasks-on-memory", validation=0.4)
    held, kept, judged = (own.request(phase).open() for phase in ("validation", "memory", "eval"))
    task = held.tasks[1]
    assert len(held.test(0, task).labels) == 40 and len(judged.test(0, task).labels) == 355
    assert np.bincount(kept.test(0, task).labels, minlength=10).max() == 3, "memory examples a class"
    assert {held.size(0, task), kept.size(0, task), judged.size(0, task)} == {60}
    assert {registry.protocol(name).view.tests for name in ("seen-tasks-on-memory", "hindsight")} == {MEMORY, TEST}


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"protocols": "first-task"}, "protocol first-task sees 1 task, but epsilon of soft_agem needs 2"),
        ({"protocols": "first-9"}, "protocol first-9 needs 9 tasks, of 4"),
        ({"protocols": "published"}, "protocol published has no published value"),
        ({"protocols": "seen-task"}, "did you mean 'seen-tasks'"),
        ({"protocols": "cv-tasks,cv-tasks"}, "must be different protocols"),
        ({"protocols": "seen-tasks", "validation": 0}, "validation must be > 0 for protocol seen-tasks"),
        ({"protocols": "chf", "search": "lr=0.01..0.1"}, "protocol chf needs a hyperparameter that says"),
        ({"protocols": "chf", "search": "memory=3,5"}, "protocol chf needs"),
        ({"protocols": "seen-tasks", "search": "memory=3,5"}, "cannot change memory from task to task"),
        ({"protocols": "cv-tasks", "search": "epsilon=0..1 lr=0.1,0.2"}, "protocols choose one number"),
        ({"protocols": "cv-tasks", "search": "trigger=zero,epsilon"}, "protocols choose one number"),
        ({"protocols": "cv-tasks", "search": "epsilon=0.5"}, "two choices, got 1"),
        ({"protocols": "cv-tasks", "method": "joint", "search": "lr=0.1,0.2"}, "tasks one after another"),
    ],
)
def test_what_cannot_choose_is_refused_in_one_line(study, options, line):
    with pytest.raises(UsageError, match=line) as refusal:
        study(**options)
    text = str(refusal.value)
    assert "\n" not in text and len(text.split()) <= 25


def test_names_may_have_blanks_after_their_commas(study):
    assert study(protocols="first-2, end-of-training").protocols == ("first-2", "end-of-training")


def test_misleading_is_what_acts_by_replaying_the_same_task(study, store):
    loop = make(study(protocols="first-task", method="er", search="memory_batch=5,20"), store)
    finish(loop, fake_matrices(matrix))
    assert results(loop)["first-task"].remark.startswith("Misleading")


def test_the_search_tasks_are_seen_by_their_test_sets(study):
    own = study(protocols="cv-tasks,end-of-training", validation=0.4)
    searched, held = own.request("cv").open(), own.request("validation").open()
    assert len(searched.test(0, searched.tasks[0]).labels) == 355 and searched.size(0, searched.tasks[0]) == 60
    assert len(held.test(0, held.tasks[0]).labels) == 40


def test_a_share_that_ends_with_a_task_is_the_same_run(study, store):
    loop = make(study(protocols="first-2,50-percent"), store)
    keys = [{loop._key(run) for run in loop.walks[name, 0].next_runs()} for name in loop.study.protocols]
    assert keys[0] == keys[1] and len(keys[0]) == 3 * 2


@pytest.mark.slow
def test_a_choice_that_is_missing_at_a_later_task_is_no_choice(study, store):
    """All values diverge at the third task of order 1: what was chosen before is no answer for the stream."""

    def train(job):
        def made(one, tasks):
            lost = job.order == 1 and tasks > 2
            return np.full((tasks, tasks), np.nan) if lost else matrix(one, tasks)

        return fake_matrices(made)(job)

    loop = make(study(protocols="seen-tasks,default", orders=2), store)
    finish(loop, train)
    row = results(loop)["seen-tasks"]
    assert loop.walks["seen-tasks", 1].choices and set(row.choices) == set(row.cost) == {0}
    assert {record.unit.order for record in row.records} == {0}
    assert "all have diverged" in row.remark and loop.headline() == "1/2 protocols have chosen"


@pytest.mark.slow
def test_tests_that_chose_are_those_of_every_trial(study, store):
    """Trials may end in different tasks: by hand, 40 % of the steps of 4 tasks end in the second."""
    loop = make(study(protocols="40-percent,current-task"), store)
    finish(loop, fake_matrices(matrix))
    rows = results(loop)
    assert rows["40-percent"].evidence.selected == 2 * 2 * 10 and rows["current-task"].evidence.selected == 2 * 4 * 10
    (choice,) = loop.walks["40-percent", 0].choices
    runs = [run._replace(prefix=(1, 3)) if number else run for number, run in enumerate(choice.tried)]
    loop.walks["40-percent", 0].choices[0] = choice._replace(tried=tuple(runs))
    assert results(loop)["40-percent"].evidence.selected == 10 * (2 + 1), "the longest is not the last one"


@pytest.mark.slow
def test_what_was_kept_is_removed_at_the_end(study, store, tmp_path):
    """Trials, their origins, and origins of what is judged, which are trained on another stream."""
    kept, protocols = tmp_path / "kept", "current-task,chf,hindsight,first-2,40-percent"
    loop = make(study(protocols=protocols, orders=2, checkpoints=str(kept)), store)
    most = 0
    while not loop.done:
        loop.tell([execute(job) for job in loop.ask()])
        most = max(most, sum(path.is_file() for path in kept.rglob("*")) if not loop.done else 0)
    assert most > 10 and not [path for path in kept.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_a_choice_has_a_network_with_any_seed(study, store):
    loop = make(study(protocols="chf"), store)
    finish(loop)
    walk = loop.walks["chf", 0]
    assert [walk.learner(seed) for seed in loop.study.seeds] == [run.learner for run in walk.finals()]
    assert walk.learner(9).seed == 9 and isinstance(walk.learner(9), Fork)
    assert walk.learner(9).hyperparameters == walk.learner(0).hyperparameters


def test_orders_are_what_a_study_of_several_can_tell_apart(study, store):
    """Scores are means over the seeds of an order; the plan counts orders, and of one order seeds."""
    loop = make(study(protocols="first-k", orders=3), store)
    finish(loop, fake_matrices(lambda one, tasks: matrix(one, tasks)))
    by_unit = {
        (value, record.unit.order, record.unit.seed): record.accuracies[-1].mean()
        for value in loop.study.candidates
        for record in loop.records_of(loop.constants(value))
    }
    values = loop.study.candidates
    expected = [[np.mean([by_unit[value, order, seed] for seed in (0, 1)]) for order in range(3)] for value in values]
    assert loop.scores() == pytest.approx(np.array(expected))
    assert (loop.study.compared_on, loop.study.compared_unit) == ((3,), "order")
    assert (study().compared_on, study().compared_unit) == ((2,), "seed")
    plan = make_plan(loop, probe=False)
    assert in_words(plan)["statistics"].startswith("3 orders cannot reach p < 0.05")
    assert in_brief(plan)["power"].startswith("sign-flip test: 3 orders")


def test_scores_of_an_order_are_of_that_order(study, store):
    def by_order(job):
        return fake_matrices(lambda one, tasks: matrix(one, tasks) * (1 - 0.1 * job.order))(job)

    loop = make(study(protocols="first-k", orders=3), store)
    finish(loop, by_order)
    assert np.all(np.diff(loop.scores(), axis=1) < 0)


def test_a_page_of_orders_does_not_call_their_units_independent(study, store):
    loop = make(study(protocols="first-k", orders=2), store)
    assert not any("independent" in note for note in protocol_results(loop, {}).notes)
    assert peeking(results(loop)["first-k"]) == "it has not chosen yet"
    finish(loop, fake_matrices(matrix))
    assert peeking(results(loop)["first-k"]).startswith("it does not peek")


def test_counts_by_hand_before_anything_is_trained(study, store):
    """3 values × 2 seeds; ε acts from the second of 4 tasks on."""
    counts = make(study(protocols="seen-tasks"), store).counts()
    assert (counts.now, counts.most, counts.final) == (6, 2 * 6, 6 + 2), "task 2; tasks 3 and 4; candidates and choice"
    both = make(study(protocols="seen-tasks,end-of-training"), store).counts()
    assert (both.now, both.final) == (6, 6 + 2 + 2), "first tasks are those of whole runs"


@pytest.mark.slow
def test_only_what_a_whole_run_measures_is_read_from_it(study, store):
    """A view that ends inside a task has members of its own; decayed values and forks are trained no further."""
    loop = make(study(protocols="60-percent,end-of-training,chf", points=2), store)
    jobs = finish(loop, fake_matrices(lambda one, tasks: matrix(one, tasks) * (1 - 0.9 * getattr(one, "epsilon", 0.0))))
    runs = [run for job in jobs for run in job.runs if run.phase == "validation"]
    inside = [run for run in runs if run.prefix is not None and run.prefix[1] is not None]
    assert len(inside) == 2 * 2 and {run.prefix[0] for run in inside} == {3}
    decayed = [run for run in runs if not isinstance(run.learner, Fork) and 0 < run.learner.hyperparameters.epsilon < 1]
    tried = {run.learner.hyperparameters.epsilon: run.prefix for run in reversed(decayed)}  # the first of each
    assert tried == dict.fromkeys((0.5, 0.25, 0.125), (2, None)), "up to task 2, and no further"
    forks = [run for run in runs if isinstance(run.learner, Fork)]
    assert forks and all(run.prefix is None or run.prefix[0] == run.learner.after + 2 for run in forks)


def test_a_choice_stays_where_later_tasks_show_no_difference(study, store):
    def until_task_2(one, tasks):
        return np.full((tasks, tasks), 0.5 - (tasks == 2) * abs(getattr(one, "epsilon", 0.0) - 0.5) / 10)

    loop = make(study(protocols="seen-tasks"), store)
    finish(loop, fake_matrices(until_task_2))
    assert results(loop)["seen-tasks"].choices[0] == ((0, 0.5),)
