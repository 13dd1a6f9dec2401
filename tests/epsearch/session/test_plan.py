"""What `epsearch plan` says before anything is trained, and that it leaves nothing behind."""

import pytest

from epsearch.session.plan import make_plan
from epsearch.session.plan_text import in_words
from results.ledger.store import Store
from tests.support.drive import fake, finish, make

PEAK = fake(lambda one: 0.9 - 0.4 * (one.epsilon - 0.4) ** 2 + 0.003 * one.seed + 0.001 * ((one.seed * 7) % 3))


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


def test_members_and_steps_are_those_that_are_then_trained(small_study, store):
    study = small_study(strategy="random", repeats=3, points=4, seeds=3, certify=0)
    plan = make_plan(make(study, store))
    assert plan.ahead.fewest == plan.ahead.largest == 3 * 4 * 3 + 2 * 3 and plan.ahead.known == 0
    loop = make(study, store)
    finish(loop)
    assert len(store.all_runs()) == plan.ahead.largest
    assert sum(record.steps for record in store.all_runs()) == plan.steps
    after = make_plan(make(study, store))
    assert after.ahead.largest == 0 and after.steps == 0 and after.ahead.known == len(store.all_runs())
    assert in_words(after)["time"] == "nothing is left to train"


def test_a_narrowing_may_end_early_and_never_takes_more_than_planned(small_study, store):
    study = small_study(repeats=3, points=5, seeds=2)
    before = make_plan(make(study, store)).ahead
    assert before.now == 10 and before.least == 0 and before.most == 2 * 3 * 2
    finish(make(study, store), PEAK)
    assert before.fewest <= len(store.all_runs()) + study.certify <= before.largest


def test_what_the_ledger_holds_is_counted(small_study, store):
    finish(make(small_study(repeats=1), store), PEAK)
    plan = make_plan(make(small_study(repeats=1, seeds=3), store))
    assert plan.ahead.known == 2 * (4 + 1) and plan.ahead.now == 4


def test_flop_follow_members_and_tasks(small_study, store):
    one = make_plan(make(small_study(strategy="grid", repeats=1, certify=0), store))
    two = make_plan(make(small_study(strategy="grid", repeats=1, certify=0, seeds=4), store))
    assert two.flop == pytest.approx(2 * one.flop) and two.steps == 2 * one.steps > 0


def test_a_probe_gives_a_time_with_an_interval(small_study, store, monkeypatch):
    monkeypatch.setattr("epsearch.session.plan.WORTH_A_PROBE", 0.0)
    monkeypatch.setattr("epsearch.session.plan.PROBE_SECONDS", 0.5)
    plan = make_plan(make(small_study(examples_per_task=400), store))
    assert plan.eta is not None and 0 <= plan.eta.low < plan.eta.seconds < plan.eta.high
    assert len(store.all_runs()) == 0
    assert in_words(plan)["time"].startswith("about ")


def test_noise_is_known_once_something_was_trained(small_study, store):
    assert "not measured yet" in in_words(make_plan(make(small_study(), store)))["statistics"]
    finish(make(small_study(), store), PEAK)
    found = make_plan(make(small_study(repeats=3), store)).resolutions[0]
    assert found.seeds == 2 and found.smallest_p == 0.5 and found.points >= 0


def test_the_command_trains_and_leaves_nothing(epsearch, small_options, tmp_path):
    answer = epsearch("plan", *small_options)
    assert answer.status == 0 and not (tmp_path / "runs").exists()
    for part in ("members", "SGD steps", "FLOP", "GiB", "2 seeds cannot reach p < 0.05"):
        assert part in answer.out
    found = epsearch("plan", *small_options, "--json").json
    assert found["ahead"]["now"] == 8 and found["resolution"][0]["smallest_p"] == 0.5
    epsearch("run", *small_options, "--name", "ran")
    assert epsearch("plan", *small_options, "--name", "ran", "--json").json["ahead"]["now"] == 0


def test_a_grid_knows_its_points(small_study, store):
    study = small_study(search="memory=2,4,6", strategy="grid", points=5, repeats=4, certify=0)
    loop = make(study, store)
    plan = make_plan(loop)
    assert plan.ahead.fewest == plan.ahead.largest and loop.stage == "batch 1 of 1"
    loop = make(study, store)
    finish(loop)
    assert len(store.all_runs()) == plan.ahead.largest
    assert plan.steps == sum(record.steps for record in store.all_runs())


def test_what_is_searched_counts_in_steps(small_study, store):
    study = small_study(search="batch_size=5,60", strategy="grid", points=4, repeats=1, certify=0, eval_seeds=7)
    plan = make_plan(make(study, store))
    assert plan.ahead.now == 4 and [one.seeds for one in plan.resolutions] == [2, 7]
    searched = 2 * 2 * (60 // 5 + 1)  # seeds, tasks, steps of either batch size
    assert plan.steps == searched + plan.ahead.final * 2 * 60 // study.value("batch_size")


def test_a_probe_that_fails_is_said_and_no_more(small_study, store, monkeypatch):
    def fails(*_):
        raise MemoryError("no room for a cohort")

    monkeypatch.setattr("epsearch.session.plan.WORTH_A_PROBE", 0.0)
    monkeypatch.setattr("epsearch.session.plan.measure", fails)
    plan = make_plan(make(small_study(), store))
    assert plan.eta is None and in_words(plan)["time"] == "could not be measured: no room for a cohort"
