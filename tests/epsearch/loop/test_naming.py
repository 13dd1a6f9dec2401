"""A study names the top of its curve: trained, evaluated, resumed; stored studies keep the best tried value."""

import pytest

from epsearch.failures.errors import UsageError
from epsearch.findings.search import search_results
from epsearch.preparation import history
from epsearch.preparation.build import extend_search, restore
from epsearch.preparation.extension import check_extension
from epsearch.study.description import Disjointness
from results.ledger.store import Store
from results.verdict.answer import answer
from results.verdict.assessment import trust
from tests.support.drive import fake, finish, make

# The highest mean is at 0.7, a lucky value far from where the curve is highest.
LUCKY = fake(
    lambda one: (
        0.9
        - 0.1 * (one.epsilon - 0.4) ** 2
        + 0.004 * ((7 * one.seed + int(997 * one.epsilon)) % 5)
        + 0.04 * (one.epsilon == 0.7 and one.seed == 2)
    )
)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


@pytest.fixture
def store(url):
    with Store.open(url) as opened:
        yield opened


@pytest.fixture
def study(small_study, url):
    def one(**options):
        return small_study(**{"strategy": "grid", "points": 21, "repeats": 1, "seeds": 4, "storage": url} | options)

    return one


@pytest.mark.slow
def test_the_named_value_is_trained_with_every_seed_and_evaluated(study, store):
    loop = make(study(), store)
    assert loop.counts().most == 4 and loop.counts().least == 0
    stages = [job.stage for job in finish(loop, LUCKY) if job.phase == "cv" and not job.certify]
    named = loop.best.point
    assert 0.2 < named[0] < 0.6 and loop.driver.choice.tried != named
    assert list(dict.fromkeys(stages)) == ["batch 1 of 1", "the value that the curve names"]
    assert loop.driver.assigned_seeds()[named] == (0, 1, 2, 3)
    evaluated = {record.epsilon for record in loop.evaluation_records()}
    assert evaluated == {named[0], 0.0}
    again = make(study(), store)
    assert again.done and again.best == loop.best and again.driver.choice == loop.driver.choice


@pytest.mark.slow
def test_it_goes_on_where_it_was_killed(study, store, tmp_path):
    whole = make(study(), store)
    jobs = len(finish(whole, LUCKY))
    for stop in (jobs - 2, jobs - 4, 3):
        with Store.open(f"sqlite:///{tmp_path / f'{stop}.sqlite'}") as other:
            killed = make(study(), other)
            for _ in range(stop):
                killed.tell([LUCKY(killed.ask()[0])])
            loop = make(study(), other)
            finish(loop, LUCKY)
            assert loop.best == whole.best and loop.rounds() == whole.rounds()


@pytest.mark.slow
def test_the_best_tried_value_is_there_for_who_wants_it(study, store):
    loop = make(study(choose="tried"), store)
    finish(loop, LUCKY)
    assert loop.best.point == (0.7,) and loop.driver.choice is None
    assert not any(one.named for one in loop.rounds())
    by_curve = make(study(name="by-curve"), store)
    finish(by_curve, LUCKY)
    assert by_curve.trained == 4 * 2, "the named value, on both streams; all else is in the ledger"


@pytest.mark.slow
def test_the_report_says_both_values_and_what_the_other_one_costs(study, store):
    loop = make(study(), store)
    finish(loop, LUCKY)
    results = search_results(loop, {})
    text = answer(results)
    assert results.by_curve and results.rounds[-1].named
    assert "where a curve through all scores is highest: A_T" in text
    assert "22 values were tried in 1 batch; the highest of their means" in text
    assert "is that of ε = 0.7" in text
    assert "points in expectation" not in text and "took no part in its choice" in text


def test_without_a_curve_the_report_says_why(study, store):
    loop = make(study(points=3), store)
    finish(loop, LUCKY)
    text = answer(search_results(loop, {}))
    assert "the best of 3 values tried" in text and "No curve names another one: fewer than 4 points" in text


@pytest.mark.slow
def test_where_a_member_of_the_named_value_diverges_the_best_tried_one_is_chosen(study, store):
    tried = {round(0.05 * step, 2) for step in range(21)}
    lost = fake(
        lambda one: 0.9 - 0.1 * (one.epsilon - 0.42) ** 2 + 0.001 * one.seed if one.epsilon in tried else float("nan")
    )
    loop = make(study(), store)
    finish(loop, lost)
    assert loop.best.point == (0.4,) and loop.driver.choice.point not in (None, (0.4,))
    assert "of which a member diverged" in answer(search_results(loop, {}))


@pytest.mark.slow
def test_where_nothing_is_resolved_the_advice_is_the_chosen_value(study, store):
    loop = make(study(points=9), store)
    finish(loop, fake(lambda one: 0.9 + 0.004 * ((7 * one.seed + int(997 * one.epsilon)) % 5)))
    results = search_results(loop, {})
    assert results.by_curve and trust(results).verdict.kind in ("level", "open")
    assert trust(results).verdict.advice.startswith("Take the chosen ε.")


class TestStored:
    """Development versions stored searches by the best tried value without the option."""

    def stored(self, study, store):
        history.save(store, study(choose="tried", name="old"), {"kind": "made up"}, Disjointness(), extend=False)
        row = store.study("old")
        assert row.config["study"]["choose"] == "tried"
        without = {name: value for name, value in row.config["study"].items() if name != "choose"}
        store.change_study(row, row.config | {"study": without})
        return store.study("old")

    def test_it_chooses_the_best_tried_value(self, study, store, tmp_path):
        row = self.stored(study, store)
        old = study(choose="tried", name="old")
        assert history.read(row, study().storage, tmp_path).study.identity() == old.identity()
        history.save(store, old, {"kind": "made up"}, Disjointness(), extend=False)
        with pytest.raises(UsageError, match='choose is "tried" there, "curve" here'):
            history.save(store, study(name="old"), {"kind": "made up"}, Disjointness(), extend=False)

    def test_a_study_by_the_curve_says_so(self, study, store, tmp_path):
        history.save(store, study(name="new"), {"kind": "made up"}, Disjointness(), extend=False)
        row = store.study("new")
        assert row.config["study"]["choose"] == "curve"
        with pytest.raises(UsageError, match="choose"):
            history.save(store, study(name="new", choose="tried"), {"kind": "made up"}, Disjointness(), extend=False)
        assert restore(row.config, "new", tmp_path, study().storage).choose == "curve"

    def test_names_that_nobody_chose_are_those_of_before(self, study):
        assert study(choose="curve").name == study().name != study(choose="tried").name

    @pytest.mark.slow
    def test_it_may_grow_to_the_curve(self, study, store):
        old = study(choose="tried", name="old")
        finish(make(old, store), LUCKY)
        after = extend_search(old, {"choose": "curve"})
        check_extension(old, after)
        loop = make(after, store, earlier=(old,))
        finish(loop, LUCKY)
        assert loop.best.point != (0.7,) and loop.rounds()[-1].named
