"""What is found of a search while a round is open: the verdict stands on finished rounds alone."""

from __future__ import annotations

import pytest

from epsearch.findings.search import search_results, search_so_far
from epsearch.preparation.build import extend_search
from results.ledger.store import Store
from results.verdict.assessment import trust
from tests.support.drive import fake, finish, make

PEAK = fake(lambda one: 0.9 - 0.4 * (one.epsilon - 0.4) ** 2 + 0.001 * one.seed)


def one_job_more(loop):
    """Trains jobs, one at a time, until there is a new member in the search."""
    before = len(loop.search_records())
    while len(loop.search_records()) == before:
        loop.tell([PEAK(loop.ask()[0])])


@pytest.mark.slow
def test_members_of_an_open_round_count_for_figures_alone(small_study):
    study = small_study(points=5, repeats=2, seeds=2, choose="tried")
    study.out.mkdir()
    with Store.open(study.storage) as store:
        loop = make(study, store, workers=5)
        one_job_more(loop)
        assert loop.best is None and search_so_far(loop).search == loop.search_records() != ()
        finish(loop, PEAK)
        whole = search_results(loop, {})
        assert whole.search == loop.search_records() and {one.spread.n for one in trust(whole).points} == {2}

        grown = make(extend_search(study, {"seeds": 4}), store, workers=5, earlier=(study,))
        while grown.best is None:
            one_job_more(grown)
        one_job_more(grown)  # of the second round, whose points have two seeds of four
        results = search_results(grown, {})
        (first, second) = grown.strategy.rounds
        assert [one.points for one in results.rounds] == [first.points] and len(grown.rounds()) == 2
        assert {one.point: one.spread.n for one in trust(results).points} == dict.fromkeys(first.points, 4)
        so_far = search_so_far(grown)
        assert so_far.search == grown.search_records() and so_far.rounds[1].points == second.points
