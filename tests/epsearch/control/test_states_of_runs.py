"""What a run leaves behind of itself: its state, its events, and that it can be cancelled, watched and resumed."""

import subprocess
import sys
import threading
from contextlib import contextmanager

import psutil
import pytest

from epsearch import Interrupted, UsageError, run
from epsearch.control import cancelling, watching
from epsearch.control.cancelling import cancel
from epsearch.control.resuming import failed_studies, stored_study
from epsearch.control.watching import watch
from epsearch.failures.errors import Cancelled, TimeSpent, TrainingFailed, Unavailable
from epsearch.loop.jobs import JobResult
from epsearch.runners import local
from epsearch.session import lease
from results.ledger.store import Store
from results.ledger.writers.holder import Holder
from tests.support.events import Recorded
from tests.support.limits import HANGS

OPTIONS = {"repeats": 1, "points": 3, "certify": 0, "runner": "local", "name": "mine"}
HOLDS = """
import subprocess, sys, time
from results.ledger.store import Store
from results.ledger.writers.holder import here
store = Store.open(sys.argv[1])
store.leases.acquire("mine", here())
store.save_study("mine", {})
store.leases.enter("running")
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
print(child.pid, flush=True)
time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for module, name in ((lease, "TICK_SECONDS"), (cancelling, "POLL_SECONDS"), (watching, "POLL_SECONDS")):
        monkeypatch.setattr(module, name, 0.02)


@pytest.fixture
def study(small_study):
    return small_study(**OPTIONS)


def current(study):
    with Store.read(study.storage) as store:
        return store.leases.state_of("mine")


class Slow(Recorded):
    """Stands still after the first records until it is told to go on, or the training is to stop."""

    def __init__(self):
        super().__init__()
        self.there, self.go_on = threading.Event(), threading.Event()

    def records(self, stored):
        super().records(stored)
        self.there.set()
        self.go_on.wait(HANGS)


@contextmanager
def another_thread(work):
    """Runs it beside the block; what it returned, or raised, is in the list that the block gets, at its end."""
    came = []

    def caught():
        try:
            came.append(work())
        except BaseException as error:  # noqa: BLE001  looked at by the test
            came.append(error)

    thread = threading.Thread(target=caught)
    thread.start()
    yield came
    thread.join(HANGS)
    assert not thread.is_alive()


@pytest.mark.slow
def test_a_run_is_running_and_then_finished(study):
    slow = Slow()
    with another_thread(lambda: run(study, slow)):
        assert slow.there.wait(HANGS)
        assert current(study).now == "running"
        slow.go_on.set()
    assert current(study).now == "finished"


@pytest.mark.slow
def test_a_study_is_cancelled_from_outside_and_keeps_what_is_finished(study, epsearch):
    slow = Slow()
    with another_thread(lambda: run(study, slow)) as came:
        assert slow.there.wait(HANGS)
        with another_thread(lambda: cancel("mine", study.storage, study.out, HANGS)) as cancelled:
            while current(study).state != "cancelling":
                pass
            threading.Timer(0.2, slow.go_on.set).start()  # by then the run has looked
    assert isinstance(came[0], Interrupted) and cancelled[0].state == "cancelled"
    with Store.read(study.storage) as store:
        kept = store.all_runs()
    assert kept
    with pytest.raises(Cancelled, match=r"^study 'mine' was cancelled; `epsearch resume mine` takes it up again$"):
        run(study)
    assert current(study).now == "cancelled", "asking changes nothing"
    outcome = run(stored_study("mine", study.storage, study.out, {"runner": "local"}), resume=True)
    assert outcome.effort.reused >= len(kept) and current(study).now == "finished"


@pytest.mark.slow
def test_a_process_that_does_not_stop_is_killed_with_its_children(study):
    study.out.mkdir(parents=True)
    command = [sys.executable, "-c", HOLDS, study.storage.revealed]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        child = psutil.Process(int(process.stdout.readline()))
        assert cancel("mine", study.storage, study.out, deadline=0.1).state == "cancelled"
        assert process.wait(HANGS) != 0
        psutil.wait_procs([child], HANGS)
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


@pytest.mark.slow
def test_what_a_killed_run_left_is_cancelled_at_once(study):
    study.out.mkdir(parents=True)
    command = [sys.executable, "-c", HOLDS, study.storage.revealed]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        child = psutil.Process(int(process.stdout.readline()))
        process.kill()
        child.kill()
    assert current(study).now == "interrupted"
    assert cancel("mine", study.storage, study.out, deadline=HANGS).state == "cancelled"


def test_a_process_of_another_machine_cannot_be_killed_from_here(study):
    study.out.mkdir(parents=True)
    with Store.open(study.storage) as store:
        store.leases.acquire("mine", Holder("far", "another boot", "pid:[1]", 4711, 99))
        store.save_study("mine", {})
        store.leases.enter("running")
        with pytest.raises(Unavailable, match="pid 4711 on host far, on another machine, stops when"):
            cancel("mine", study.storage, study.out, deadline=0.1)
        assert store.leases.state_of("mine").state == "cancelling"


@pytest.mark.slow
def test_what_has_ended_or_is_not_there_cannot_be_cancelled(study):
    run(study)
    with pytest.raises(UsageError, match=r"^study 'mine' is finished: there is nothing to cancel$"):
        cancel("mine", study.storage, study.out, 1.0)
    with pytest.raises(UsageError, match=r"^no study 'mene'; known: mine; did you mean 'mine'\?$"):
        cancel("mene", study.storage, study.out, 1.0)


@pytest.mark.slow
def test_a_study_that_failed_says_why_and_can_be_resumed(study, monkeypatch, epsearch):
    with monkeypatch.context() as broken:
        broken.setattr(local, "execute", lambda job, progress: JobResult(job.number, None, error="no luck"))
        with pytest.raises(TrainingFailed):
            run(study)
    there = current(study)
    assert there.now == "failed" and there.reason.endswith(" cohorts could not be trained: no luck")
    assert failed_studies(study.storage) == ["mine"]
    assert f"failed: {there.reason}" in epsearch("list").out
    answer = epsearch("resume", "--failed", "--runner", "local", "--quiet")
    assert answer.status == 0 and current(study).now == "finished"
    assert epsearch("resume", "--failed").err == f"epsearch: no study in {study.storage} has failed\n"


@pytest.mark.slow
def test_a_refused_command_changes_no_state(study, small_study):
    run(study)
    before = current(study)
    with pytest.raises(UsageError):
        run(small_study(**OPTIONS | {"points": 4}))
    assert (current(study).state, current(study).changed) == (before.state, before.changed)


def test_an_interruption_is_seen_and_not_stored(study):
    with pytest.raises(Interrupted):
        run(study, Recorded(stop_after=1))
    there = current(study)
    assert (there.state, there.now) == ("running", "interrupted")


@pytest.mark.slow
def test_a_time_budget_ends_after_the_running_cohorts(small_study):
    study = small_study(**OPTIONS | {"time_budget": "1s", "workers": 1})

    class Late(Recorded):
        """The budget is over when the first records come."""

        def records(self, stored):
            super().records(stored)
            threading.Event().wait(1.1)

    late = Late()
    with pytest.raises(TimeSpent, match=r"^stopped: its time budget of 0:01 is spent$"):
        run(study, late)
    assert late.stored and current(study).now == "interrupted"
    assert run(small_study(**OPTIONS)).effort.reused == len(late.stored)


@pytest.mark.slow
def test_a_run_is_followed_from_another_terminal(study):
    slow, seen = Slow(), Recorded()
    with another_thread(lambda: run(study, slow)):
        assert slow.there.wait(HANGS)
        with another_thread(lambda: watch("mine", study.storage, study.out, seen)) as came:
            while not seen.notes:
                pass
            slow.go_on.set()
    assert came[0].state == "finished" and came[0].summary == "finished"
    assert seen.notes[0].startswith("mine · narrowing: 1 repeat × 3 ε") and seen.notes[-1] == "mine is finished"
    assert seen.seen and seen.seen[-1].member_steps == slow.seen[-1].member_steps


@pytest.mark.slow
def test_watching_what_is_over_tells_its_last_run_and_ends(study, epsearch):
    run(study)
    seen = Recorded()
    assert watch("mine", study.storage, study.out, seen).state == "finished"
    assert len(seen.seen) == 1 and seen.notes[-1] == "mine is finished"
    assert epsearch("watch", "mine").status == 0


@pytest.mark.slow
def test_events_stay_few(study):
    """At most one of progress a second."""
    run(study)
    with Store.read(study.storage) as store:
        kinds = [event.kind for event in store.events.read("mine")]
    assert kinds[0] == "state" and kinds[-1] == "state" and "begin" in kinds and "records" in kinds
