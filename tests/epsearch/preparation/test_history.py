"""What a ledger keeps of a study: a name is one study's, of one kind."""

import pytest

from epsearch.failures.errors import UsageError
from epsearch.preparation import history
from epsearch.preparation.build import build
from epsearch.study.description import Disjointness
from epsearch.study.kinds import Comparison
from results.ledger.store import Store


def test_a_study_of_another_kind_is_said_to_be_one(small_study, tmp_path):
    """And not by the hundred options in which two kinds differ."""
    compared = build(Comparison, {"name": "mine", "out": str(tmp_path), "numeric_path": "cpu-float32-mkl"})
    searched = small_study(name="mine", numeric_path="cpu-float32-mkl")
    with Store.open(f"sqlite:///{tmp_path}/ledger.sqlite") as store:
        history.save(store, compared, {}, Disjointness(), extend=False)
        for extend in (False, True):
            with pytest.raises(UsageError, match=r"^.mine. is a study of `epsearch compare`; choose another --name$"):
                history.save(store, searched, {}, Disjointness(), extend)
        assert [row.config["kind"] for row in store.studies()] == ["compare"]
