"""Studies in a ledger, with scores that are made up."""

import pytest

from epsearch.preparation import history
from epsearch.preparation.build import build, extend_search
from epsearch.preparation.data import open_evaluation
from epsearch.session.session import make_folder
from epsearch.study.description import Disjointness
from epsearch.study.kinds import KINDS, Search
from results.ledger.store import Store
from tests.epsearch.conftest import SMALL, TINY
from tests.support.drive import fake, finish, make

SCORED = fake(lambda one: 0.8 - 0.3 * (getattr(one, "epsilon", 0.0) - 0.4) ** 2 + 0.01 * one.seed)


class Studies:
    """Puts studies into the ledger of a folder, as if they had been trained."""

    def __init__(self, folder):
        self.out = folder / "runs"

    def trained(self, command="run", jobs=None, train=SCORED, **options):
        """A study that is trained to its end, or with so many jobs; its loop."""
        kind = KINDS[command]
        usual = SMALL | {"certify": 0} if kind is Search else TINY
        study = build(
            kind, {one: value for one, value in usual.items() if one in kind.options()} | options | {"out": self.out}
        )
        return self._keep(study, jobs, train)

    def extended(self, loop, **options):
        """The same with other options, trained to its end."""
        return self._keep(extend_search(loop.study, options), None, SCORED, extend=True)

    def _keep(self, study, jobs, train, extend=False):
        make_folder(study.out)
        with Store.open(study.storage) as store:
            earlier = history.save(store, study, open_evaluation(study)[0].describe(), Disjointness(), extend)
            loop = make(study, store, earlier=earlier)
            if jobs is None:
                finish(loop, train)
            for _ in range(jobs or 0):
                loop.tell([train(loop.ask()[0])])
            return loop


@pytest.fixture
def studies(tmp_path):
    return Studies(tmp_path)
