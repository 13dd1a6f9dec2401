"""Answers against print while a study trains: stored with every member, so that nothing is lost by a kill."""

import pytest

from epsearch.findings.listing import list_studies, load
from epsearch.preparation import history
from epsearch.preparation.build import build
from epsearch.preparation.data import prepare
from epsearch.session.session import make_loop
from epsearch.study.kinds import Comparison
from results.ledger.store import Store
from tests.support.drive import fake
from tests.support.packs import EXACT, own

PACK = own(method="agem", printed=EXACT | {"mean": 70.0}, margin=1, seeds=4)


@pytest.fixture
def begun(tmp_path):
    """A study from the pack in a ledger, and a function that opens its loop anew, as a process after a kill does."""
    study = build(
        Comparison, {"from_pack": PACK, "out": tmp_path, "device": "cpu", "numeric_path": "cpu-float32-torch"}
    )
    prepared = prepare(study, lambda event: None)
    with Store.open(study.storage) as store:
        history.save(store, study, prepared.images, prepared.disjointness, extend=False)

        def opened():
            loop = make_loop(study, prepared.images, store)
            loop.workers, loop.row = 2, store.study(study.name).checksum
            return loop

        yield study, opened


def test_every_member_comes_with_the_answer_so_far(begun):
    study, opened = begun
    assert opened().choice() is None and opened().headline() == "0/1 rows"
    train = fake(lambda one: 0.7 + 0.001 * one.seed)
    answers = []
    while not (loop := opened()).done:
        loop.tell([train(loop.ask()[0])])
        (row,) = list_studies(study.storage, study.out)
        answers.append(row.chosen["mine"])
    assert len(answers) >= 2 and answers[-1] == "within" and len(loop.records) == 4
    stored = load(None, study.storage, study.out)
    assert stored.study.from_pack == study.from_pack and stored.headline() == "1/1 rows; mine = within"
    assert stored.against_print()["difference"] == pytest.approx(0.15)


def test_a_diverged_seed_is_no_answer(begun):
    study, opened = begun
    train = fake(lambda one: float("nan") if one.seed == 1 else 0.7)
    while not (loop := opened()).done:
        loop.tell([train(job) for job in loop.ask()])
    found = loop.against_print()
    assert (found["answer"], found["n"], found["diverged"]) == ("cannot tell", 3, 1)
    assert list_studies(study.storage, study.out)[0].chosen == {"mine": "cannot tell"}
