"""Orders of tasks beside seeds: members, keys, statistics, errors."""

import json
import re

import numpy as np
import pytest

from epsearch.failures.errors import UsageError
from epsearch.findings.facts import unit_notes
from epsearch.findings.reports import _of_joint_training, _row, comparison
from epsearch.loop.content import content, run_of
from epsearch.loop.jobs import Run, execute, member_name
from epsearch.preparation.build import build
from epsearch.preparation.data import open_evaluation
from epsearch.preparation.extension import check_extension
from epsearch.study.kinds import Comparison, Search
from results.ledger.record import Unit
from results.ledger.store import Store
from results.metrics import last_task_accuracy
from results.verdict.orders import of_rows
from tests.epsearch.conftest import SMALL, TINY
from tests.support.drive import fake, finish, make
from trainers.streams.task_order import drawn_order


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


@pytest.mark.slow
def test_every_seed_is_trained_in_every_order(small_study, store):
    study = small_study(seeds="0,3", orders=2, certify=0)
    assert study.units == (0, Unit(1, 0), 3, Unit(1, 3)) and [str(unit) for unit in study.units][1] == "0 in order 1"
    loop = make(study, store)
    jobs = finish(loop)
    orders = {job.order for job in jobs}
    assert orders == {0, 1} and all(job.stream.order == job.order for job in jobs)
    of_point = {}
    for record in loop.search_records():
        of_point.setdefault(record.epsilon, set()).add(record.unit)
    assert all(units == {0, Unit(1, 0), 3, Unit(1, 3)} for units in of_point.values())


@pytest.mark.slow
def test_the_streams_own_order_keeps_its_runs(small_study, store):
    plain = make(small_study(certify=0), store)
    finish(plain)
    loop = make(small_study(orders=2, certify=0), store)
    first = loop.ask()
    assert loop.reused and {job.order for job in first} == {1}, "what order 0 needs is in the ledger"
    stored = {record.key for record in store.all_runs()}
    finish(loop)
    assert loop.reused + loop.trained == len(loop.records)
    assert {record.unit.order for record in store.all_runs() if record.key not in stored} == {1}


def test_a_member_is_trained_on_the_tasks_in_its_order(small_study, store):
    loop = make(small_study(orders=2, certify=0), store)
    job = next(job for job in loop.ask() if job.order == 1)
    tasks = job.stream.open().tasks
    assert tasks == drawn_order(1, 0, len(tasks)) != tuple(range(len(tasks)))
    own = make(small_study(certify=0), store)
    plain = next(other for other in own.ask() if set(other.cohort.learners) & set(job.cohort.learners))
    one, other = execute(job).value, execute(plain).value
    assert not np.array_equal(one.accuracies[0], other.accuracies[0], equal_nan=True)


def test_contents_name_an_order_and_runs_come_back(small_study):
    study = small_study(orders=3)
    images = open_evaluation(small_study())[0].describe()
    learner = study.learner((0.5,), 1)
    plain, second = (content(study, images, Run("cv", learner, order)) for order in (0, 2))
    assert "order" not in plain and second == plain | {"order": 2}
    listed = small_study(order="1,0,2,3")
    moved = content(listed, images, Run("cv", learner))
    assert moved["stream"] == plain["stream"] | {"order": (1, 0)} and "order" not in moved
    assert content(small_study(order="0,1,3,2"), images, Run("cv", learner)) == plain, "D^CV stands in its own order"
    assert member_name(Run("cv", learner, 2)).endswith("_seed=1_order=2_cv")


@pytest.mark.slow
def test_records_know_their_unit(small_study, store):
    loop = make(small_study(orders=2, certify=0), store)
    finish(loop)
    for record in store.all_runs():
        run = run_of(record)
        assert (run.order, run.learner.seed) == (record.unit.order, record.unit.seed)
        assert loop._key(run) == record.key


def test_the_chosen_value_is_that_of_all_units(small_study, store):
    """Order 1 alone would choose another value than order 0: what counts is the mean over both."""
    loop = make(small_study(orders=2, choose="tried", points=3, repeats=1, certify=0), store)

    def train(job):
        height = {0: {0.0: 0.5, 0.5: 0.6, 1.0: 0.9}, 1: {0.0: 0.5, 0.5: 0.6, 1.0: 0.1}}[job.order]
        return fake(lambda one: height.get(getattr(one, "epsilon", 0.0), 0.4))(job)

    finish(loop, train)
    assert loop.best.point == (0.5,) and loop.best.value == pytest.approx(0.6)


def test_orders_may_be_added_to_a_stored_search(small_study):
    two, three = small_study(orders=2), small_study(orders=3)
    check_extension(two, three)
    assert set(two.units) < set(three.units)
    with pytest.raises(UsageError, match="orders can only increase; got 2, which were 3"):
        check_extension(three, two)


def test_old_studies_have_no_orders_in_their_identity(small_study):
    plain = small_study()
    assert not {"orders", "order"} & plain.identity().keys()
    assert small_study(orders=2).identity() == plain.identity() | {"orders": 2}
    assert small_study(order="1,0,2,3").identity() == plain.identity() | {"order": [1, 0, 2, 3]}


@pytest.mark.slow
def test_rows_of_a_table_are_trained_in_every_order(tmp_path, store):
    study = build(Comparison, TINY | {"out": tmp_path / "runs", "methods": "van,joint", "seeds": 2, "orders": 2})
    loop = make(study, store)
    finish(loop)
    assert [record.unit for record in loop.records_of(loop.runs(loop.rows[0]))] == [0, Unit(1, 0), 1, Unit(1, 1)]
    joint = _of_joint_training(loop)
    (row,) = (row for row in loop.rows if row.method == "joint")
    records = loop.records_of(loop.runs(row))
    assert joint == {one.unit: last_task_accuracy(one.accuracies) for one in records} and len(joint) == 4
    *_, members = _row(loop, loop.rows[0], joint)
    assert [one.joint for one in members] == [joint[one.unit] for one in members] and len(set(joint.values())) > 2


def test_every_seed_of_a_table_may_have_an_order_of_its_own(tmp_path, store):
    """Its members are those of the same seed and order in a study of all orders, and no variance is split."""
    options = TINY | {"out": tmp_path / "runs", "methods": "van", "seeds": "0,2", "tasks": 5}
    study = build(Comparison, options | {"order_by_seed": True})
    assert study.units == (0, Unit(2, 2)) and study.identity() == build(Comparison, options).identity() | {
        "order_by_seed": True
    }
    open_evaluation(study)
    finish(loop := make(study, store))
    whole = make(build(Comparison, options | {"orders": 3}), store)
    records = loop.records_of(loop.runs(loop.rows[0]))
    assert [one.unit for one in records] == [0, Unit(2, 2)]
    assert {one.key for one in records} == {one.key for one in whole.records_of(whole.runs(whole.rows[0]))}
    assert of_rows(comparison(loop, {})) == () and not unit_notes(study)


@pytest.mark.parametrize("more", [{"orders": 2}, {"order": "0,1,3,2"}, {"seeds": "0,1000"}], ids=str)
def test_orders_by_seed_exclude_others(more, tmp_path):
    with pytest.raises(UsageError, match="order-by-seed needs seeds < 1000, and neither --orders nor --order"):
        build(Comparison, TINY | {"out": tmp_path, "methods": "van", "order_by_seed": True} | more)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"order": "3,0,1"}, "order must list every task once, like 3,0,1,2, got '3,0,1'"),
        ({"order": "0,0,1,2"}, "order must list every task once, like 3,0,1,2, got '0,0,1,2'"),
        ({"order": "3,0,1,2"}, "order must have the tasks 0…3, those of the search, 0…1, first; got 3,0,1,2"),
        ({"order": "1,0"}, "order must have the tasks 0…3, those of the search, 0…1, first; got 1,0"),
        ({"order": "1,0,2,3", "orders": 2}, "order is one order, and orders are drawn: leave one out, got orders 2"),
        ({"orders": 0}, "orders must be >= 1, got 0"),
        ({"orders": 2, "race": True}, "race drops values by seeds of one order; leave it out, or give orders 1, got 2"),
    ],
)
def test_wrong_orders_are_refused_in_one_line(options, line, tmp_path):
    with pytest.raises(UsageError) as error:
        build(Search, SMALL | {"out": tmp_path} | options)
    assert str(error.value).startswith(line)


def test_more_orders_than_there_are_is_refused(small_study):
    with pytest.raises(UsageError, match="orders must be <= 2, as 2 tasks have no more, got 3; more --tasks have"):
        open_evaluation(small_study(orders=3))


def test_a_unit_of_the_streams_own_order_is_its_seed():
    unit = Unit(2, 7)
    assert Unit(0, 7) == 7 and json.dumps(Unit(0, 7)) == "7" and f"{Unit(0, 7)}" == "7"
    assert (unit.order, unit.seed, f"{unit}") == (2, 7, "7 in order 2") and sorted([unit, Unit(0, 9)])[0] == 9


@pytest.mark.slow
def test_a_search_says_what_orders_do(epsearch, tmp_path):
    """From the command line to `show --why` and the report: units, shares of the variance, a figure."""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items() if name != "repeats"]
    more = ["--repeats=1", "--seeds=3", "--orders=4", "--cv-tasks=3", "--tasks=6", "--name=ordered", "--points=3"]
    ran = epsearch("run", *options, *more)
    assert ran.status == 0 and "4 orders × 3 seeds" in ran.out
    why = " ".join(epsearch("show", "ordered", "--why").out.split())
    assert "4 orders × 3 seeds make 12 units" in why
    assert re.search(r"The best ε (is|lies between) .* in (all )?[234] orders", why)
    assert re.search(r"Of the variance of A_T, \d+ % \(\d+ to \d+ %\) lies between orders of tasks", why)
    found = epsearch("show", "ordered", "--why", "--json").json
    assert len(found["evaluation"]) <= 2 and all(row["n"] == 12 for row in found["evaluation"])
    page = (tmp_path / "runs" / "ordered" / "report.html").read_text(encoding="utf-8")
    assert "by order of tasks" in page and "Orders of tasks" in page


@pytest.mark.slow
def test_a_table_says_what_orders_do(epsearch, tmp_path):
    options = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    ran = epsearch("compare", *options, "--methods=van,er", "--orders=2", "--name=rows")
    assert ran.status == 0
    why = " ".join(epsearch("show", "rows", "--why").out.split())
    assert why.count("Of the variance of A_T") == 3, "VAN, and ER with both of its reference batches"
    assert "Orders of tasks and seeds" in (tmp_path / "runs" / "rows" / "comparison.html").read_text(encoding="utf-8")
