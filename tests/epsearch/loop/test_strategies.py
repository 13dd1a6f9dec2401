"""Searches by every strategy, over any hyperparameter, raced and grown: what is asked for, stored and chosen."""

import json
from dataclasses import replace

import numpy as np
import pytest

from epsearch.failures.errors import UsageError
from epsearch.findings import evaluations
from epsearch.ledger.damage import Unreadable
from epsearch.loop.strategy_driver import race
from epsearch.preparation import history
from epsearch.preparation.build import extend_search
from epsearch.preparation.data import open_evaluation
from epsearch.preparation.extension import check_extension
from epsearch.study.description import Disjointness
from results.ledger.record import same_result
from results.ledger.schema import study_to_row
from results.ledger.store import Store
from search_spaces import STRATEGIES
from tests.support.drive import fake, finish, make
from tests.support.ledgers import execute, query
from trainers.cohort import LARGEST_SEED
from trainers.streams import PermutedStream

PEAK = fake(lambda one: 0.9 - 0.4 * (one.epsilon - 0.4) ** 2 + 0.001 * one.seed + 0.0004 * ((one.seed * 7) % 3))


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


@pytest.fixture
def other_store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'other.sqlite'}") as opened:
        yield opened


def shared_results(one, other):
    """Pairs of records of the same key in two ledgers."""
    there = {record.key: record for record in other.all_runs()}
    return [(record, there[record.key]) for record in one.all_runs() if record.key in there]


class TestStrategies:
    @pytest.mark.slow
    @pytest.mark.few(6)
    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_every_strategy_searches_evaluates_and_is_found_again(self, small_study, store, strategy):
        study = small_study(strategy=strategy, points=5, repeats=3, seeds=3)
        loop = make(study, store)
        finish(loop, PEAK)
        assert loop.done and abs(loop.best.point[0] - 0.4) < 0.2
        tried = {record.epsilon for record in loop.search_records()}
        assert loop.best.point[0] in tried and len(loop.search_records()) == 3 * len(tried) <= 48
        again = make(study, store)
        assert again.done and again.trained == 0 and again.best == loop.best
        assert again.strategy.rounds == loop.strategy.rounds

    @pytest.mark.slow
    @pytest.mark.parametrize("strategy", ["tpe", "interval-ci", "qmc"])
    def test_suggestions_do_not_depend_on_the_order_in_which_results_come(
        self, small_study, store, other_store, strategy
    ):
        study = small_study(strategy=strategy, points=4, repeats=2, seeds=2)
        ahead, behind = make(study, store), make(study, other_store, workers=5)
        finish(ahead, PEAK)
        while not behind.done:
            behind.tell([PEAK(behind.ask()[-1])])
        assert ahead.strategy.rounds == behind.strategy.rounds and ahead.best == behind.best

    def test_the_seed_of_a_strategy_makes_another_search(self, small_study, store):
        first, same, other = (
            make(small_study(strategy="random", strategy_seed=seed), store).strategy.ask() for seed in (0, 0, 1)
        )
        assert first == same != other

    def test_a_study_of_old_keeps_its_name(self, small_study):
        assert "strategy" not in small_study().identity() and "epsilon" not in small_study().identity()
        assert small_study().digest() == small_study(strategy="narrowing", race=False).digest()
        assert small_study().digest() != small_study(strategy="tpe").digest()


class TestSpaces:
    def test_a_method_without_epsilon_over_its_strength(self, small_study, store):
        loop = make(small_study(method="ewc", search="strength=log:0.1..1000", points=5, fisher_every=6), store)
        finish(loop, fake(lambda one: 0.9 - 0.1 * (np.log10(one.strength) - 1) ** 2))
        assert loop.best.point == (10.0,)
        assert {record.content["strength"] for record in loop.evaluation_records()} == {10.0}

    @pytest.mark.slow
    def test_really_trained_over_learning_rate_and_memory(self, small_study, store):
        study = small_study(search="lr=log:0.01..0.1 memory=2,4 epsilon=0..1", strategy="random", points=3, repeats=1)
        loop = make(study, store)
        finish(loop)
        assert loop.done and len(loop.search_records()) == 3 * 2
        for point in loop.driver.assigned_seeds():
            rate, memory, epsilon = point
            wanted = [
                record
                for record in loop.search_records()
                if (record.content["config"]["learning_rate"], record.epsilon) == (rate, epsilon)
            ]
            assert {record.content["config"]["memory"] for record in wanted} == {memory}
        assert {record.key for record in loop.evaluation_records()} >= {
            record.key for record in store.all_runs() if record.method == "agem" and record.phase == "eval"
        }

    @pytest.mark.slow
    def test_a_learning_rate_of_its_own_gives_the_same_result_as_that_of_the_study(
        self, small_study, store, other_store
    ):
        finish(make(small_study(search="lr=0.05,0.1,0.2", strategy="grid", epsilon=0.5, points=3, repeats=1), store))
        finish(make(small_study(lr=0.2, search="epsilon=0.5,0.7,1", strategy="grid", points=3, repeats=1), other_store))
        pairs = shared_results(store, other_store)
        assert pairs and all(same_result(*pair) for pair in pairs)
        assert {pair[0].epsilon for pair in pairs if pair[0].phase == "cv"} == {0.5}

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                {"method": "ewc"},
                "method 'ewc' has no ε; name what --search is to try: strength, fisher_every, lr, batch_size",
            ),
            ({"search": "lr=0.1..1", "interval": "0 1"}, "interval is that of ε alone"),
            ({"search": "strength=1..2"}, "method 'soft_agem': no hyperparameter 'strength'"),
            ({"search": "epsilom=0..1"}, "did you mean 'epsilon'?"),
            ({"search": "epsilon=0..2"}, "epsilon must be in [0, 1], got 2"),
            ({"search": "lr=log:0..1"}, "lr must be > 0 and <= 1e+30, got 0"),
            ({"search": "memory=10.5,20"}, "memory must be whole, >= 1 and <= 1000000000, got 10.5"),
            ({"search": "lr"}, "search takes NAME=LOW..HIGH, log:LOW..HIGH or A,B,…, got 'lr'"),
            ({"search": "lr=a..b"}, "with numbers, got 'a'"),
            ({"search": "lr=1..0.5"}, "low must be < high"),
            (
                {"search": "lr=0.1..1 epsilon=0..1"},
                "one interval LOW..HIGH, got lr=0.1..1 epsilon=0..1; grid, random, qmc, tpe, gp, cmaes, kg can search",
            ),
            (
                {"search": "lr=0.1,0.2"},
                "one interval LOW..HIGH, got lr=0.1,0.2; grid, random, qmc, tpe, gp can search this",
            ),
            ({"search": "scale=unit,rew"}, "no scale (search) 'rew'; known: unit, raw; did you mean 'raw'?"),
            ({"search": "batch_size=10..90"}, "examples-per-task must be >= batch-size, got 60 and 90"),
            ({"strategy": "tpee"}, "no strategy 'tpee'"),
        ],
    )
    def test_bad_input_is_one_line(self, small_study, options, message):
        with pytest.raises(UsageError) as error:
            small_study(**options)
        assert message in str(error.value) and "\n" not in str(error.value)


def entitled(scores, lost=(), enough=None):
    gone = np.zeros(scores.shape, dtype=bool)
    for place in lost:
        gone[place] = True
    return [count for count, _ in race.assign_seeds(scores, gone, enough or scores.shape[1])]


class TestRace:
    def test_everyone_has_two_seeds_and_only_who_may_be_best_gets_more(self):
        rng = np.random.default_rng(0)
        scores = np.array([0.5, 0.8, 0.801, 0.6])[:, None] + 0.002 * rng.standard_normal((4, 6))
        counts = entitled(scores)
        assert counts[0] == counts[3] == 2 and counts[1] == counts[2] == 6
        begun = scores.copy()
        begun[:, 2:] = np.nan
        assert entitled(begun) == [2, 3, 3, 2]
        begun[2, 1] = np.nan  # one of the first is not known yet: nobody goes on
        assert entitled(begun) == [2, 2, 2, 2]

    def test_a_lost_value_gets_no_more_seeds(self):
        scores = np.array([[0.8, 0.81, 0.8, 0.82], [np.nan, 0.9, 0.9, 0.9]])
        assert entitled(scores, lost=[(1, 0)]) == [4, 2]
        assert entitled(scores, lost=[(1, 0), (0, 1)]) == [2, 2]
        assert entitled(scores[:, :1], lost=[(1, 0)]) == [1, 1]

    def test_a_value_that_is_lost_late_keeps_the_seeds_it_had(self):
        scores = np.array([[0.8, 0.81, 0.8, 0.82, 0.81], [0.9, 0.91, 0.9, np.nan, 0.9]])
        scores[0] += 0.1
        assert entitled(scores, lost=[(1, 3)]) == [5, 4]

    def test_more_seeds_than_enough_are_for_those_that_cannot_be_told_apart(self):
        rng = np.random.default_rng(0)
        scores = np.array([0.5, 0.8, 0.801, 0.6])[:, None] + 0.002 * rng.standard_normal((4, 12))
        assert entitled(scores, enough=4) == [2, 12, 12, 2]
        begun = scores.copy()
        begun[:, 4:] = np.nan
        assert entitled(begun, enough=4) == [2, 5, 5, 2]
        scores[2] -= 0.3  # now all but one are dropped early, and that one has enough
        assert entitled(scores, enough=4) == [3, 4, 3, 2]

    def test_who_is_dropped_and_who_merely_has_few_seeds(self):
        scores = np.array([0.5, 0.8, 0.8])[:, None] + 0.002 * np.random.default_rng(0).standard_normal((3, 5))
        lost = np.zeros(scores.shape, dtype=bool)
        lost[2, 1] = True
        found = race.assign_seeds(np.where(lost, np.nan, scores), lost, enough=5)
        assert found == [(2, True), (5, False), (2, False)]

    @pytest.mark.slow
    def test_undecided_values_get_more_seeds_and_rounds_stay_comparable(self, small_study, store):
        # Seeds beyond the third are 0.3 higher: whoever gets them must not win by that.
        late = fake(
            lambda one: 0.5 - 0.4 * (one.epsilon - 0.4) ** 2 + 0.3 * (one.seed > 2)
            + 0.01 * ((7 * one.seed + int(997 * one.epsilon)) % 5)
        )  # fmt: skip
        study = small_study(seeds=3, most_seeds=6, points=5, race=True)
        assert study.search_seeds == (0, 1, 2, 3, 4, 5) and study.final_seeds == (0, 1, 2)
        loop = make(study, store)
        finish(loop, late)
        shares = {len(seeds) for seeds in loop.driver.assigned_seeds().values()}
        assert 6 in shares and min(shares) < 6
        assert all(score < 0.6 for one in loop.rounds() for score in one.scores)
        assert {record.seed for record in loop.evaluation_records()} == {0, 1, 2}
        again = make(study, store)
        assert again.done and again.best == loop.best and again.driver.assigned_seeds() == loop.driver.assigned_seeds()
        assert loop.dropped_points() and all(
            len(loop.driver.assigned_seeds()[point]) < 6 for point in loop.dropped_points()
        )

    def test_the_rule_of_a_race_is_stored_with_it(self, small_study, store):
        race, plain = small_study(name="one", race=True), small_study(name="one")
        assert race.identity()["race_rule"] == "pairs" and "race_rule" not in plain.identity()
        assert extend_search(plain, {"race": True}).identity() == race.identity()
        check_extension(plain, race)
        history.save(store, race, {}, Disjointness(), extend=False)
        row = store.study("one")
        assert history.read(row, race.storage, race.out).study.identity() == race.identity()
        del row.config["study"]["race_rule"]  # as of a development version
        with pytest.raises(Unreadable, match=r"^study 'one' cannot be read, needs another version .* pooled noise"):
            history.read(row, race.storage, race.out)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"most_seeds": 9}, "most-seeds is for a race; give --race, or leave it out"),
            ({"race": True, "most_seeds": 3, "seeds": 3}, "most-seeds must be > the number of seeds, got 3 and 3"),
            ({"race": True, "most_seeds": 2}, "most-seeds must be >= 3, got 2"),
            ({"race": True, "most_seeds": 4, "seeds": f"1,{LARGEST_SEED}"}, "follow the largest"),
        ],
    )
    def test_bad_input_is_one_line(self, small_study, options, message):
        with pytest.raises(UsageError) as error:
            small_study(**options)
        assert message in str(error.value) and "\n" not in str(error.value)

    @pytest.mark.slow
    def test_a_race_stores_what_a_plain_run_stores(self, small_study, store, other_store):
        raced, plain = (small_study(seeds=4, points=5, repeats=1, race=race) for race in (True, False))
        loop = make(raced, store)
        finish(loop)
        finish(make(plain, other_store))
        pairs = shared_results(store, other_store)
        assert len(pairs) >= 10 and all(same_result(*pair) for pair in pairs)
        assert sum(map(len, loop.driver.assigned_seeds().values())) <= 20

    @pytest.mark.slow
    def test_members_are_saved_and_the_choice_is_the_plain_one(self, small_study, store, other_store):
        raced, plain = (make(small_study(seeds=5, points=7, race=race), into) for race, into in
                        ((True, store), (False, other_store)))  # fmt: skip
        finish(raced, PEAK)
        finish(plain, PEAK)
        assert raced.best.point == pytest.approx(plain.best.point, abs=0.01)
        assert len(raced.search_records()) < len(plain.search_records()) == 5 * len(plain.driver.assigned_seeds())
        shares = raced.driver.assigned_seeds()
        assert len(shares[raced.best.point]) == 5 and min(map(len, shares.values())) == 2

    @pytest.mark.slow
    def test_a_race_does_not_depend_on_what_else_the_ledger_knows(self, small_study, store, other_store):
        noisy = fake(
            lambda one: 0.9 - 0.4 * (one.epsilon - 0.4) ** 2 + 0.002 * ((7 * one.seed + int(997 * one.epsilon)) % 5)
        )
        raced = small_study(seeds=4, points=5, race=True, choose="tried")
        alone = make(raced, store)
        finish(alone, noisy)
        plain = small_study(seeds=4, points=5, choose="tried")
        finish(make(plain, other_store), noisy)
        grown = make(raced, other_store, earlier=(plain,))  # which has every seed of every value at hand
        assert grown.strategy.rounds == alone.strategy.rounds
        after = make(raced, other_store)
        finish(after, noisy)
        assert min(map(len, alone.driver.assigned_seeds().values())) < 4
        assert after.strategy.rounds == alone.strategy.rounds
        assert after.driver.assigned_seeds() == alone.driver.assigned_seeds() and after.best == alone.best
        assert {record.key for record in after.search_records()} == {record.key for record in alone.search_records()}


class TestGrowth:
    @pytest.mark.slow
    def test_more_repeats_and_seeds_reuse_every_run(self, small_study, store, other_store):
        first = small_study(points=4, repeats=1)
        finish(make(first, store))
        known = {record.key for record in store.all_runs()}
        after = extend_search(first, {"repeats": 2, "seeds": 3})
        check_extension(first, after)
        loop = make(after, store, earlier=(first,))
        finish(loop)
        assert known < {record.key for record in store.all_runs()}
        finish(make(after, other_store))
        pairs = shared_results(store, other_store)
        assert len(pairs) == len(other_store.all_runs()) and all(same_result(*pair) for pair in pairs)

    def test_another_strategy_keeps_what_the_first_one_found(self, small_study, store):
        first = small_study(points=11, repeats=3, choose="tried")
        finish(make(first, store), PEAK)
        after = extend_search(first, {"strategy": "random", "points": 3, "repeats": 1})
        loop = make(after, store, earlier=(first,))
        finish(loop, PEAK)
        before = make(first, store)
        assert loop.best == before.best and loop.best.value > loop.strategy.best.value
        assert {record.key for record in before.search_records()} < {record.key for record in loop.search_records()}
        assert [one.number for one in loop.rounds()] == [1, 2, 3, 4]

    @pytest.mark.slow
    def test_rounds_that_are_gone_through_again_stand_there_once(self, small_study, store):
        first = small_study(points=11, repeats=2)
        finish(make(first, store), PEAK)
        loop = make(extend_search(first, {"repeats": 3}), store, earlier=(first,))
        finish(loop, PEAK)
        assert loop.rounds() == loop.strategy.rounds and len(loop.rounds()) == 3

    def test_where_interval_ci_searches_now_it_alone_decides(self, small_study, store):
        first = small_study(points=10, repeats=1, seeds=4, choose="tried")
        lucky = fake(lambda one: 0.95 if one.epsilon == 8 / 9 else 0.9 - (one.epsilon - 0.4) ** 2 + 0.001 * one.seed)
        finish(make(first, store), lucky)
        loop = make(extend_search(first, {"strategy": "interval-ci", "points": 11}), store, earlier=(first,))
        finish(loop, lucky)
        assert loop.earlier[0].best.point == (8 / 9,) and loop.earlier[0].best.value > loop.strategy.best.value
        assert loop.best == loop.strategy.best

    def test_on_other_data_or_arithmetic_nothing_grows(self, small_study, store):
        study = small_study(name="one")
        images, disjointness = {"kind": "made up", "sizes": (1, 2)}, Disjointness()
        history.save(store, study, images, disjointness, extend=False)
        assert history.save(store, study, images, disjointness, extend=False) == ()
        more = extend_search(study, {"seeds": 3})
        for other, data in ((more, {"kind": "others"}), (replace(more, numeric_path="cpu-float32-onednn"), images)):
            with pytest.raises(UsageError) as error:
                history.save(store, other, data, disjointness, extend=True)
            assert "--extend" not in str(error.value) and "exists with another configuration" in str(error.value)
        (before,) = history.save(store, more, images, disjointness, extend=True)
        assert before.seeds == (0, 1) and store.study("one").config["study"]["seeds"] == [0, 1, 2]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"lr": 0.5}, "lr is"),
            ({"seeds": "1,2"}, "seeds can only be added at the end; got [1, 2], which were [0, 1]"),
            ({"search": "lr=0.1..1"}, "extend goes on searching epsilon, got lr"),
            ({"repeats": 1}, "repeats can only increase; got 1, which were 2"),
            ({"points": 3, "race": True}, "points can only increase; got 3, which were 4"),
        ],
    )
    def test_what_may_not_change(self, small_study, options, message):
        first = small_study()
        with pytest.raises(UsageError) as error:
            check_extension(first, extend_search(first, options))
        assert message in str(error.value)


class TestEvaluation:
    def test_tasks_that_are_the_same_on_both_sides_are_refused(self, small_study, monkeypatch):
        monkeypatch.setattr(PermutedStream, "permutation", lambda stream, seed, task: np.arange(stream.inputs)[::-1])
        with pytest.raises(UsageError, match="must not share tasks"):
            open_evaluation(small_study())

    def test_two_points_that_are_one_member_are_counted_once(self, small_study, store):
        loop = make(small_study(search="epsilon=0,0.5 scale=raw,unit", strategy="grid", points=4, repeats=1), store)
        finish(loop, fake(lambda one: 0.9 - one.epsilon))
        assert loop.best.point[0] == 0.0
        assert sorted(record.seed for record in loop.evaluation_records()) == [0, 1]

    @pytest.mark.slow
    def test_a_choice_of_agem_is_a_look_too(self, small_study, store):
        finish(make(small_study(), store), PEAK)
        zero = make(small_study(interval="0 0.3"), store)
        finish(zero, fake(lambda one: 0.9 - one.epsilon))
        assert zero.best.point == (0.0,)
        found = evaluations.evaluations(zero, store)
        assert [look.mine for look in found].count(True) == 1 and len(found) == 2

    @pytest.mark.slow
    def test_where_agem_itself_is_searched_its_other_choices_are_looks(self, small_study, store):
        finish(make(small_study(), store), PEAK)  # another method's choice is none
        first, second = (small_study(method="agem", search=f"lr={ends}") for ends in ("0.05..0.1", "0.1..0.2"))
        finish(make(first, store), fake(lambda one: one.lr))
        loop = make(second, store)
        finish(loop, fake(lambda one: one.lr))
        assert sorted((look.point, look.mine) for look in evaluations.evaluations(loop, store)) == [
            ("lr = 0.1", False),
            ("lr = 0.2", True),
        ]

    def test_zero_stands_apart_in_soft_gem_alone(self, small_study):
        study = small_study(search="epsilon=0..1 lr=0.1..1", strategy="random")
        assert [one.apart for one in study.space.parameters] == [(0.0,), ()]
        assert [one.apart for one in replace(study, method="mine").space.parameters] == [(), ()]

    def test_its_seeds_may_differ(self, small_study, store):
        loop = make(small_study(eval_seeds="5,6,7"), store)
        finish(loop, PEAK)
        assert {record.seed for record in loop.evaluation_records()} == {5, 6, 7}
        assert {record.seed for record in loop.search_records()} == {0, 1}

    @pytest.mark.slow
    def test_every_choice_that_was_looked_at_counts(self, small_study, store):
        first = make(small_study(), store)
        finish(first, PEAK)
        assert [look.mine for look in evaluations.evaluations(first, store)] == [True]
        second = make(small_study(lr=0.05), store)
        finish(second, PEAK)
        found = evaluations.evaluations(second, store)
        assert [look.mine for look in found] == [False, True] and "lr" in found[0].point


class TestCommands:
    @pytest.mark.slow
    def test_a_search_over_several_hyperparameters(self, epsearch, small_options, tmp_path):
        options = [*small_options, "--strategy", "random", "--repeats", "1", "--name", "several"]
        answer = epsearch("run", *options, "--search", "lr=log:0.01..0.1", "memory=2,4", "--race", "--json")
        assert answer.status == 0, answer.err
        assert set(answer.json["chosen"]) == {"lr", "memory"} and answer.json["strategy"] == "random"
        assert answer.json["trust"]["kind"] in ("resolved", "one-sided", "edge", "level", "open", "diverging")
        assert answer.json["race"]["plain"] == 8 and "none shared" in answer.json["seal"]
        assert [look.keys() for look in answer.json["looks"]] == [{"setting", "when", "mine", "elsewhere"}]
        assert (tmp_path / "runs" / "several" / "report.html").exists()

    @pytest.mark.slow
    def test_a_race_by_the_rule_of_development_versions_is_listed_and_exported(self, epsearch, small_options, tmp_path):
        out, options = tmp_path / "runs", [*small_options, "--name", "old", "--repeats", "1", "--seeds", "3", "--race"]
        epsearch("run", *options)
        ((config,),) = query(out, "SELECT config FROM epsearch_studies")
        row = json.loads(config)
        del row["study"]["race_rule"]
        sealed = study_to_row("old", row, "2026-01-01")
        execute(out, f"UPDATE epsearch_studies SET config = '{sealed['config']}', created = '2026-01-01', "
                f"checksum = '{sealed['checksum']}'")  # fmt: skip
        for command in (["run", *options], ["show", "old"], ["report", "old"]):
            answer = epsearch(*command)
            assert answer.status == 2 and answer.err.count("\n") == 1 and "pooled noise" in answer.err
        assert "pooled noise" in epsearch("list", "--json").json[0]["status"]
        assert epsearch("export", "--all", str(out / "old.zip")).status == 0
        again = epsearch("run", *options, "--name", "new", "--json").json["effort"]
        assert again["trained"] == 0 and again["reused"] > 0

    @pytest.mark.slow
    def test_a_study_grows_and_says_how(self, epsearch, small_options):
        epsearch("run", *small_options, "--name", "grows")
        refused = epsearch("run", *small_options, "--name", "grows", "--seeds", "3")
        assert refused.status == 2 and refused.err.strip().endswith("or extend it with --extend")
        extend = ["run", "--name", "grows", "--extend", "--runner", "local", "--json"]
        grown = epsearch(*extend, "--seeds", "3", "--repeats", "3")
        assert grown.status == 0, grown.err
        assert grown.json["effort"]["reused"] >= 8 and grown.json["config"]["seeds"] == [0, 1, 2]
        assert epsearch("show", "grows", "--json").json["finished"] is True
        again = epsearch(*extend, "--strategy", "random")
        assert again.json["effort"]["reused"] >= 15 and again.json["strategy"] == "random"

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--extend"], "extend needs --name"),
            (["--extend", "--name", "nobody"], "no ledger "),
            (["--name", "one", "--extend", "--lr", "0.5"], "lr is 0.03 there, 0.5 here"),
            (["--method", "all"], "no method 'all'"),
            (["--search", "lr=inf,0.1"], "lr must be > 0 and <= 1e+30, got inf"),
            (["--memory-batch", "all", "--search", "memory_batch=4..8"], "memory-batch must be a number"),
            (["--eval-seeds", "x"], "eval-seeds must be"),
        ],
    )
    def test_an_extension_that_is_refused_is_one_line(self, epsearch, small_options, options, message):
        if "one" in options:
            epsearch("run", *small_options, "--name", "one", "--repeats", "1")
        answer = epsearch("run", *options, "--runner", "local")
        assert answer.status == 2 and message in answer.err and answer.err.count("\n") == 1, answer.err

    @pytest.mark.slow
    def test_a_file_names_the_study_that_grows(self, epsearch, small_options, tmp_path):
        epsearch("run", *small_options, "--name", "filed", "--repeats", "1")
        file = tmp_path / "runs" / "filed" / "study.yaml"
        grown = epsearch("run", "--config", str(file), "--extend", "--repeats", "2", "--json")
        assert grown.status == 0 and grown.json["effort"]["reused"] >= 8, grown.err

    @pytest.mark.slow
    def test_searches_side_by_side(self, epsearch, small_options, tmp_path):
        for strategy in ("narrowing", "random"):
            epsearch("run", *small_options, "--name", strategy, "--strategy", strategy)
        answer = epsearch("report", "narrowing", "random")
        assert answer.status == 0 and "random" in answer.out, answer.err
        assert (tmp_path / "runs" / "strategies" / "strategies.html").exists()
        assert len(epsearch("report", "narrowing", "random", "--json").json["studies"]) == 2
        assert "no study 'gone'" in epsearch("report", "narrowing", "gone").err
        assert "must be different ones" in epsearch("report", "random", "random").err

    @pytest.mark.slow
    def test_a_run_shows_the_plan_first(self, epsearch, small_options):
        answer = epsearch("run", *small_options)
        lines = answer.err.splitlines()
        first = next(index for index, line in enumerate(lines) if line.endswith("these options says more"))
        assert first < next(index for index, line in enumerate(lines) if "repeat 1 of 2" in line)
