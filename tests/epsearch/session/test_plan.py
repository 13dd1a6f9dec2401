"""What `epsearch plan` says before anything is trained, and that it leaves nothing behind."""

import re
from dataclasses import replace

import pytest

from epsearch.preparation.build import build
from epsearch.runners import overheads
from epsearch.session.plan import make_plan
from epsearch.session.plan_text import in_a_line, in_brief, in_words
from epsearch.study.kinds import Comparison
from results.ledger.store import Store
from tests.support.drive import fake, finish, make
from trainers.cost.probe import Rates

PEAK = fake(lambda one: 0.9 - 0.4 * (one.epsilon - 0.4) ** 2 + 0.003 * one.seed + 0.001 * ((one.seed * 7) % 3))


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


@pytest.mark.slow
def test_members_and_steps_are_those_that_are_then_trained(small_study, store):
    study = small_study(strategy="random", repeats=3, points=4, seeds=3, certify=0, choose="tried")
    plan = make_plan(make(study, store))
    assert plan.counts.fewest == plan.counts.largest == 3 * 4 * 3 + 2 * 3 and plan.counts.known == 0
    loop = make(study, store)
    finish(loop)
    assert len(store.all_runs()) == plan.counts.largest
    assert sum(record.steps for record in store.all_runs()) == plan.steps
    after = make_plan(make(study, store))
    assert after.counts.largest == 0 and after.steps == 0 and after.counts.known == len(store.all_runs())
    assert in_words(after)["time"] == "nothing is left to train"


def test_a_narrowing_may_end_early_and_never_takes_more_than_planned(small_study, store):
    study = small_study(repeats=3, points=5, seeds=2, choose="tried")
    before = make_plan(make(study, store)).counts
    assert before.now == 10 and before.least == 0 and before.most == 2 * 3 * 2
    finish(make(study, store), PEAK)
    assert before.fewest <= len(store.all_runs()) + study.certify <= before.largest


def test_the_value_that_a_curve_names_is_counted(small_study, store):
    """Its members are not known before: it may have been tried, and choices alone have no curve."""
    sizes = {"strategy": "grid", "repeats": 2, "points": 5, "seeds": 3, "certify": 0}
    tried, curve = (make_plan(make(small_study(**sizes, choose=how), store)).counts for how in ("tried", "curve"))
    assert curve.largest == tried.largest + 3 and curve.fewest == tried.fewest
    choices = make_plan(make(small_study(**sizes, search="memory=2,4,6"), store)).counts
    assert choices.fewest == choices.largest


def test_a_long_search_of_intervals_is_told_of_a_shorter_one(small_study, store):
    long = {"repeats": 5, "points": 11, "seeds": 3}
    plan = make_plan(make(small_study(**long), store))
    assert "--strategy kg" in in_words(plan)["suggestion"] and plan.as_json()["suggestion"] == plan.suggestion
    assert in_brief(plan)["advice"] == plan.suggestion and len(in_brief(plan)) <= 5
    assert in_a_line(plan).startswith(f"about {plan.counts.expected}, at most {plan.counts.largest} members")
    assert plan.counts.fewest < plan.counts.expected < plan.counts.largest
    assert f"usually about {plan.counts.expected}, at most {plan.counts.largest} to train" in in_words(plan)["members"]
    (members,) = re.findall(r"usually about (\d+) members", plan.suggestion)
    assert int(members) < plan.counts.expected
    for other in ({"strategy": "kg"}, {"repeats": 2}, {"seeds": 1}, {"strategy": "grid", "search": "memory=2,4,6"}):
        assert "suggestion" not in in_words(make_plan(make(small_study(**long | other), store)))


@pytest.mark.slow
def test_a_stage_can_use_as_many_workers_as_it_has_members(small_study, store):
    study = small_study(strategy="grid", repeats=2, points=5, seeds=3, certify=2)
    plan = make_plan(make(study, store))
    assert plan.usable == plan.as_json()["usable_workers"] == 15
    assert in_words(plan)["workers"] == "up to 15 at a time, a member each; more would idle"
    assert len(make(study, store, workers=15).upcoming(15)) == len(make(study, store).upcoming(1000)) == 15 + 3
    loop = make(study, store)
    loop.tell([PEAK(job) for job in loop.ask() if job.phase == "cv"][:1])
    assert make_plan(make(study, store)).usable == 15  # the next round has as many as this one had
    while not loop.evaluating:
        loop.tell([PEAK(next(job for job in loop.ask() if job.phase == "cv"))])
    assert make_plan(make(study, store)).usable == 2 * 3 + 2
    finish(loop, PEAK)
    assert "workers" not in in_words(make_plan(make(study, store)))


def test_what_the_ledger_holds_is_counted(small_study, store):
    finish(make(small_study(repeats=1), store), PEAK)
    plan = make_plan(make(small_study(repeats=1, seeds=3), store))
    assert plan.counts.known == 2 * (4 + 1) and plan.counts.now == 4


def test_flop_follow_members_and_tasks(small_study, store):
    one = make_plan(make(small_study(strategy="grid", repeats=1, certify=0), store))
    two = make_plan(make(small_study(strategy="grid", repeats=1, certify=0, seeds=4), store))
    assert two.flop == pytest.approx(2 * one.flop) and two.steps == 2 * one.steps > 0


@pytest.mark.slow
def test_a_probe_gives_a_time_with_an_interval(small_study, store, monkeypatch):
    monkeypatch.setattr("epsearch.session.plan.WORTH_A_PROBE", 0.0)
    monkeypatch.setattr("epsearch.session.plan.PROBE_SECONDS", 0.5)
    plan = make_plan(make(small_study(examples_per_task=400), store))
    assert plan.eta is not None and 0 <= plan.eta.low < plan.eta.seconds < plan.eta.high
    assert len(store.all_runs()) == 0
    assert in_words(plan)["time"].startswith("about ")


def test_little_work_is_not_probed_but_has_a_time(small_study, store, monkeypatch):
    """Nearly all of it is that of Ray and of the report, which earlier runs have told."""
    monkeypatch.setattr("epsearch.session.plan.measure", lambda *_: pytest.fail("that would take longer"))
    for seconds in (20.0, 22.0, 90.0):
        overheads.remember("tune", seconds)
    overheads.remember(overheads.REPORT, 4.0)
    eta = make_plan(make(small_study(runner="tune"), store)).eta
    assert (eta.start, eta.report, eta.share) == (22.0, 4.0, 1.0)
    assert 26 < eta.seconds < 26 + 3 and eta.low < eta.seconds <= eta.high
    assert eta.training == pytest.approx(eta.seconds - 26)


def test_beside_other_programs_all_takes_longer_and_the_plan_says_so(small_study, store, monkeypatch):
    monkeypatch.setattr("epsearch.session.plan.WORTH_A_PROBE", 0.0)

    def probe(share):
        rates = Rates((1e6, 1.1e6, 0.9e6), share, 1, 2, 2, 3.0)
        monkeypatch.setattr("epsearch.session.plan.measure", lambda *_: rates)
        return make_plan(make(small_study(), store))

    alone, nearly, half = probe(1.0), probe(0.9), probe(0.5)
    assert nearly.eta == alone.eta, "threads of one process wait for each other that much"
    assert half.eta.seconds == pytest.approx(2 * alone.eta.seconds) and half.eta.low == pytest.approx(alone.eta.low)
    assert (
        "this machine is busy, the probe had 50 %" in in_words(half)["time"] and "busy" not in in_words(alone)["time"]
    )


@pytest.mark.slow
def test_a_comparison_has_a_plan(store, tmp_path):
    options = {"tasks": 4, "cv_tasks": 2, "seeds": 2, "examples_per_task": 60, "memory": 3, "tune": True}
    options |= {"methods": "van,agem,ewc", "out": str(tmp_path), "numeric_path": "cpu-float32-mkl"}
    study = build(Comparison, options)
    loop = make(study, store)
    plan = make_plan(loop)
    candidates, rows = len({one for row in loop.rows for one in row.candidates()}), len(loop.rows)
    assert (plan.counts.now, plan.counts.final, plan.counts.most) == (2 * candidates, 2 * rows, 0)
    told = f"{2 * (candidates + rows)} to train ({2 * candidates} now, {2 * rows} in the evaluation); 0 in"
    assert in_words(plan)["members"].startswith(told)
    assert [one.seeds for one in plan.resolutions] == [2] and plan.eta.seconds > 0
    finish(loop)
    assert sum(record.steps for record in store.all_runs()) == plan.steps
    assert make_plan(make(study, store)).counts.largest == 0


def test_noise_is_known_once_something_was_trained(small_study, store):
    assert "not measured yet" in in_words(make_plan(make(small_study(), store)))["statistics"]
    finish(make(small_study(), store), PEAK)
    found = make_plan(make(small_study(repeats=3), store)).resolutions[0]
    assert found.seeds == 2 and found.smallest_p == 0.5 and found.points >= 0


@pytest.mark.slow
def test_the_command_trains_and_leaves_nothing(epsearch, small_options, tmp_path):
    answer = epsearch("plan", *small_options)
    assert answer.status == 0 and not (tmp_path / "runs").exists()
    for part in ("members", "time", "GiB", "sign-flip test: 2 seeds cannot reach p < 0.05, 6 can"):
        assert part in answer.out
    assert len(answer.out.splitlines()) <= 5
    whole = epsearch("plan", *small_options, "--verbose")
    for part in ("members", "SGD steps", "FLOP", "GiB", "2 seeds cannot reach p < 0.05"):
        assert part in whole.out
    found = epsearch("plan", *small_options, "--json").json
    assert found["ahead"]["now"] == 8 and found["resolution"][0]["smallest_p"] == 0.5
    epsearch("run", *small_options, "--name", "ran")
    assert epsearch("plan", *small_options, "--name", "ran", "--json").json["ahead"]["now"] == 0


@pytest.mark.slow
def test_a_grid_knows_its_points(small_study, store):
    study = small_study(search="memory=2,4,6", strategy="grid", points=5, repeats=4, certify=0)
    loop = make(study, store)
    plan = make_plan(loop)
    assert plan.counts.fewest == plan.counts.largest and loop.stage == "batch 1 of 1"
    loop = make(study, store)
    finish(loop)
    assert len(store.all_runs()) == plan.counts.largest
    assert plan.steps == sum(record.steps for record in store.all_runs())


def test_what_is_searched_counts_in_steps(small_study, store):
    study = small_study(search="batch_size=5,60", strategy="grid", points=4, repeats=1, certify=0, eval_seeds=7)
    plan = make_plan(make(study, store))
    assert plan.counts.now == 4 and [one.seeds for one in plan.resolutions] == [2, 7]
    searched = 2 * 2 * (60 // 5 + 1)  # seeds, tasks, steps of either batch size
    assert plan.steps == searched + plan.counts.final * 2 * 60 // study.value("batch_size")


def test_a_probe_that_fails_is_said_and_no_more(small_study, store, monkeypatch):
    def fails(*_):
        raise MemoryError("no room for a cohort")

    monkeypatch.setattr("epsearch.session.plan.WORTH_A_PROBE", 0.0)
    monkeypatch.setattr("epsearch.session.plan.measure", fails)
    plan = make_plan(make(small_study(), store))
    assert plan.eta is None and in_words(plan)["time"] == "could not be measured: no room for a cohort"


def test_memory_is_that_of_processes_and_cohorts(small_study, store):
    """One process trains in threads; Ray has a process for each worker, and its own."""
    loops = {
        runner: make(small_study(name=runner, runner=runner, workers=3, strategy="grid", certify=0), store)
        for runner in ("local", "tune")
    }
    local, tune = (make_plan(loop) for loop in loops.values())
    assert local.bytes_processes >= overheads.OWN + overheads.LIBRARIES
    assert local.bytes_processes == pytest.approx(
        overheads.process_bytes(False, 3), abs=2**28
    )  # of a process that grows
    assert tune.bytes_processes - local.bytes_processes == pytest.approx(overheads.RAY + 3 * overheads.OWN, abs=2**28)
    cohorts = local.bytes_needed - local.bytes_processes
    assert 0 < cohorts < 2**27 and tune.bytes_needed - tune.bytes_processes == cohorts
    assert " for the process, " in in_words(local)["memory"] and "3 cohorts at a time" in in_words(local)["memory"]
    assert "Ray, its 3 workers and this process" in in_words(tune)["memory"]
    finish(loops["local"], PEAK)
    after = make_plan(loops["local"])
    assert after.bytes_needed == after.bytes_processes == 0 and "memory" not in in_words(after)


@pytest.mark.parametrize(("gpus", "at_once", "words"), [(2, 3, "each GPU"), (2, 1, "the GPU"), (1, 3, "the GPU")])
def test_memory_is_that_of_each_gpu_in_use(small_study, store, monkeypatch, gpus, at_once, words):
    plan = make_plan(make(small_study(runner="local", workers=3), store))
    monkeypatch.setattr("epsearch.session.plan_text.visible_gpus", lambda: ["0", "1"][:gpus])
    plan = replace(plan, study=replace(plan.study, device="cuda"), at_once=at_once)
    assert f" of {words} for {at_once} cohort" in in_words(plan)["memory"]


def test_a_process_that_is_larger_than_usual_counts_as_it_is(monkeypatch):
    monkeypatch.setattr(overheads, "resident_bytes", lambda: 5 * 2**30)
    assert overheads.process_bytes(False, 8) == 5 * 2**30


def test_tables_are_planned_below_the_plan_of_searches(epsearch, tmp_path):
    size = ["--tasks", "4", "--cv-tasks", "2", "--seeds", "2", "--examples-per-task", "60", "--runner", "local"]
    size += ["--out", str(tmp_path / "runs")]
    compared = epsearch("plan", "compare", *size, "--memory", "3", "--methods", "van,agem", "--json")
    assert compared.status == 0 and compared.json["ahead"]["now"] == 2 * 2, compared.err
    assert compared.json["words"]["members"].startswith("4 to train") and not (tmp_path / "runs").exists()
    sizes = epsearch("plan", "memory", *size, "--sizes", "2,3", "--methods", "agem", "--verbose")
    assert sizes.status == 0 and "4 to train" in sizes.out and "GiB for the process" in sizes.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "3", "compare"], "seeds stands before compare; give options behind `epsearch plan compare`"),
        (["compare", "--race"], "No such option: --race"),
        (["comapre"], "Did you mean 'compare'?"),
    ],
)
def test_a_plan_of_what_is_not_there_is_one_line(epsearch, arguments, message):
    answer = epsearch("plan", *arguments)
    assert answer.status == 2 and message in answer.err and answer.err.count("\n") == 1, answer.err
