"""One writer per study: another run of it is refused or waited for; one that was killed is taken over at once."""

import subprocess
import sys
import threading

import pytest
from sqlalchemy import create_engine, text

from epsearch import Interrupted, UsageError, run
from epsearch.session import lease, session
from results.ledger.store import Store
from results.ledger.writers.errors import LeaseLost
from results.ledger.writers.holder import here
from results.ledger.writers.leases import Leases
from tests.support.events import Recorded
from tests.support.limits import HANGS

OPTIONS = {"repeats": 1, "points": 3, "certify": 0, "runner": "local", "name": "mine"}


@pytest.fixture
def study(small_study):
    return small_study(**OPTIONS)


@pytest.fixture
def other(study):
    """Another run that holds the study."""
    study.out.mkdir(parents=True, exist_ok=True)
    with Store.open(study.storage) as store:
        store.leases.acquire("mine", here())
        yield store


@pytest.mark.slow
def test_another_run_of_the_study_is_refused_in_one_line(other, study, small_study):
    with pytest.raises(
        UsageError, match=r"^study 'mine' is being trained by pid \d+ on host .* --wait waits for its end$"
    ):
        run(study)
    assert other.all_runs() == [] and other.studies() == [], "nothing was trained or stored"
    assert run(small_study(**OPTIONS | {"name": "another"})).effort.trained > 0, "of other studies nothing is held"
    other.leases.release()
    assert run(study).effort.trained == 0, "the other one has trained the same members"


@pytest.mark.slow
def test_a_run_can_wait_for_the_end_of_another(other, study, monkeypatch):
    monkeypatch.setattr(lease, "POLL_SECONDS", 0.01)

    class Patient(Recorded):
        def stop_wanted(self):
            if len(self.warnings) == 1 and other.lease is not None:
                other.leases.release()
                other.lease = None
            return False

    events = Patient()
    assert run(study, events, wait=True).effort.trained > 0
    assert events.warnings[0].endswith("; waiting for its end") and len(events.warnings) == 1


def test_a_run_that_waits_can_be_stopped(other, study):
    with pytest.raises(Interrupted):
        run(study, Recorded(stop_after=0), wait=True)


@pytest.mark.slow
def test_the_same_command_after_a_kill_never_waits(study):
    code = f"""
import sys
from results.ledger.writers.holder import here
from results.ledger.store import Store
from results.ledger.writers.leases import Leases
Store.open({study.storage.revealed!r}).leases.acquire("mine", here())
print("held", flush=True)
sys.stdin.read()
"""
    study.out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match=f"is being trained by pid {holder.pid} "):
            run(study)
        holder.kill()
    assert run(study).effort.trained > 0


@pytest.mark.slow
def test_a_lease_is_renewed_and_given_back(study, monkeypatch):
    monkeypatch.setattr(lease, "LEASE_SECONDS", 0.03)
    renewed, renew = threading.Event(), Leases.renew

    def seen(leases):
        answer = renew(leases)
        renewed.set()
        return answer

    monkeypatch.setattr(Leases, "renew", seen)

    class Waits(Recorded):
        def begin(self, event):
            assert renewed.wait(HANGS)

    run(study, Waits())
    assert not [one for one in threading.enumerate() if one.name == "lease"]
    with Store.open(study.storage) as store:
        store.leases.acquire("mine", here())


def test_a_run_that_has_lost_its_lease_writes_no_more(study, monkeypatch):
    """As after a minute in which the machine slept: somebody else has gone on with the study for long."""
    monkeypatch.setattr(session, "WAIT_SECONDS", 0.0)

    class TakenOver(Recorded):
        def records(self, stored):
            super().records(stored)
            engine = create_engine(study.storage.revealed)
            with engine.begin() as connection:
                connection.execute(text("UPDATE epsearch_leases SET token = token + 1"))
            engine.dispose()

    events = TakenOver()
    with pytest.raises(LeaseLost) as caught:
        run(study, events)
    assert caught.value.study == "mine" and not caught.value.released
    with Store.open(study.storage) as store:
        assert {one.key for one in store.all_runs()} == {one.key for one in events.stored}
