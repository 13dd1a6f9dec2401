"""What is submitted while a study is being trained."""

from __future__ import annotations

import pytest

from epsearch.service.studies import Busy, Studies
from results.ledger.store import Store
from results.ledger.writers.states import QUEUED, RUNNING
from tests.support import service
from tests.support.leases import FAR


def test_the_same_study_once_more_is_the_one_that_is_being_trained(tmp_path):
    """Another of its name is refused, whatever it differs in."""
    own = service.settings(tmp_path / "runs")
    with Store.open(own.storage) as store, Store.open(own.storage) as far:
        studies = Studies(own, store)
        study = studies.build(service.STUDY | {"name": "mine"})
        assert studies.submit(study, "ann") == ("mine", "") and store.standing("mine").state == QUEUED
        far.acquire("mine", FAR)
        before = store.submissions()["mine"]
        assert studies.submit(study, "ben") == ("mine", "")
        assert store.submissions()["mine"] == before and store.standing("mine").state == RUNNING
        with pytest.raises(Busy, match=r"^study 'mine' is being trained by .*; cancel it, or wait for its end$"):
            studies.submit(studies.build(service.STUDY | {"name": "mine", "points": 7}), "ben")
