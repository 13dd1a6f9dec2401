"""The queue's worker: how many at a time, in which order, and what becomes of what fails, is killed, or is refused."""

import errno
import os
from itertools import pairwise
from typing import ClassVar

import pytest

from epsearch.events import Planned
from epsearch.failures.errors import Unavailable
from epsearch.service.work import job, processes, scheduler
from epsearch.service.work.log_listener import log_listener
from epsearch.service.work.scheduler import MOST_TRIES, Scheduler
from results.ledger.store import Store, StoreError
from results.ledger.writers.holder import here
from results.ledger.writers.states import CANCELLED, CANCELLING, FAILED, FINISHED, QUEUED, RUNNING
from tests.support.leases import FAR, change, expire
from tests.support.limits import HANGS
from tests.support.service import settings, until

GIVEN = {"kind": "run", "options": {"dataset": "permuted_digits"}}


class Fake:
    """A process that does what a test says."""

    made: ClassVar[list["Fake"]] = []
    """All that were started, in their order."""

    def __init__(self, name, settings):
        self.name, self.pid, self.ended, self.words, self.interrupted = name, 1, None, "", 0
        Fake.made.append(self)

    def status(self):
        return self.ended

    def interrupt(self):
        self.interrupted += 1

    def last_error(self):
        return self.words


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    monkeypatch.setattr(scheduler, "StudyProcess", Fake)
    monkeypatch.setattr(Fake, "made", [])


@pytest.fixture
def own(tmp_path):
    return settings(tmp_path / "runs", parallel=2)


@pytest.fixture
def store(own):
    with Store.open(own.storage) as opened:
        yield opened


@pytest.fixture
def worker(own, store):
    return Scheduler(own, store)


@pytest.fixture
def holder(own):
    """The ledger as a study's process has it."""
    with Store.open(own.storage) as opened:
        yield opened


def submit(store, *names):
    for name in names:
        store.queue.submit(name, GIVEN)


def started():
    return [one.name for one in Fake.made]


def looked(worker):
    """A look that finds what has ended, and one that begins what may begin then."""
    worker.step()
    worker.step()


def state(store, name="a"):
    there = store.leases.state_of(name)
    return there.state, there.reason


def test_so_many_at_a_time_by_priority_and_age(worker, store):
    submit(store, "a", "b")
    store.queue.submit("urgent", GIVEN, priority=5)
    worker.step()
    assert started() == ["urgent", "a"] and worker.pids == {"urgent": 1, "a": 1}
    worker.step()
    assert started() == ["urgent", "a"]
    store.queue.submit("more", GIVEN, priority=9)
    Fake.made[1].ended = -9
    worker.step()
    assert started() == ["urgent", "a", "more"], "a waits again, behind what is more urgent"
    assert [store.queue.submissions()[name].tries for name in ("urgent", "a", "b", "more")] == [1, 1, 0, 1]


def test_what_others_train_counts_and_is_left_alone(own, worker, store, holder):
    submit(store, "a", "b", "c")
    holder.leases.acquire("a", FAR)
    worker.step()
    assert started() == ["b"]
    holder.leases.release()
    worker.step()
    assert started() == ["b", "a"], "it was left running"


def test_one_that_another_service_is_about_to_train_is_not_started_twice(worker, store, holder):
    submit(store, "a")
    holder.leases.acquire("a", FAR, begin=False)
    worker.step()
    assert started() == []


@pytest.mark.parametrize("end", [FINISHED, FAILED, CANCELLED])
def test_what_has_ended_is_closed(worker, store, holder, end):
    submit(store, "a")
    worker.step()
    holder.leases.acquire("a", here())
    if end == CANCELLED:
        store.leases.cancel("a")
    holder.leases.enter(end, "why")
    worker.step()
    assert store.queue.submissions()["a"].open, "its process still writes the report, and holds it"
    holder.leases.release()
    Fake.made[0].ended = 0 if end == FINISHED else 1
    worker.step()
    worker.step()
    assert not store.queue.submissions()["a"].open and state(store)[0] == end and started() == ["a"] and not worker.pids


def test_a_study_that_is_refused_fails_with_the_line_that_says_why(worker, store):
    submit(store, "a", "b")
    worker.step()
    Fake.made[0].ended, Fake.made[0].words = 2, "cv-tasks must be at least 1"
    Fake.made[1].ended = 2
    worker.step()
    assert state(store, "a") == (FAILED, "cv-tasks must be at least 1")
    assert state(store, "b") == (FAILED, "it was refused")
    worker.step()
    assert started() == ["a", "b"] and not any(one.open for one in store.queue.submissions().values())


def test_a_process_that_is_killed_again_and_again_is_given_up(worker, store):
    submit(store, "a")
    for number in range(MOST_TRIES):
        looked(worker)
        assert len(Fake.made) == number + 1 and state(store)[0] == QUEUED
        Fake.made[-1].ended = -9
    looked(worker)
    assert len(Fake.made) == MOST_TRIES == 5
    assert state(store) == (FAILED, "its process ended 5 times without a message")
    store.queue.submit("a", GIVEN)
    looked(worker)
    assert len(Fake.made) == 6, "whoever submits it once more has it tried again"


def test_one_that_fails_for_another_reason_says_it_when_it_is_given_up(worker, store):
    submit(store, "a")
    for _ in range(MOST_TRIES):
        looked(worker)
        Fake.made[-1].ended, Fake.made[-1].words = 1, "no space left"
    looked(worker)
    assert state(store) == (FAILED, "no space left") and len(Fake.made) == MOST_TRIES


def test_one_that_goes_on_is_never_given_up(worker, store, holder):
    submit(store, "a")
    for number in range(3 * MOST_TRIES):
        looked(worker)
        assert len(Fake.made) == number + 1
        holder.leases.acquire("a", here())
        if number % 2:
            store.queue.set_tries("a", 0)  # as a process does that has stored a member
        expire(store)
        change(store, "UPDATE epsearch_leases SET expires = 0")
        Fake.made[-1].ended = -9
    assert state(store)[0] == RUNNING


def test_a_cancelled_study_whose_process_was_killed_is_cancelled(worker, store, holder):
    submit(store, "a")
    holder.leases.acquire("a", here())
    assert store.leases.cancel("a").state == CANCELLING
    expire(store)
    worker.step()
    worker.step()
    assert state(store)[0] == CANCELLED and not store.queue.submissions()["a"].open and started() == []


def test_one_that_was_deleted_is_forgotten(worker, store, holder):
    submit(store, "a")
    holder.leases.acquire("a", here())
    holder.delete_study("a", list)
    holder.leases.release()
    worker.step()
    assert started() == []


TROUBLES = ["ENOSPC", "EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "EIO", "EROFS", "EDQUOT"]


@pytest.mark.few(4)
@pytest.mark.parametrize("where", ["StudyProcess", "probe"])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_trouble_of_the_machine_is_waited_for_and_said_once(worker, store, monkeypatch, capfd, trouble, where):
    number, clock, tries = getattr(errno, trouble), [1000.0], []
    real = getattr(scheduler, where)

    def fails(*given):
        tries.append(clock[0])
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(scheduler, "monotonic", lambda: clock[0])
    monkeypatch.setattr(scheduler, where, fails)
    submit(store, *(f"s{n}" for n in range(8)))
    for _ in range(100):
        worker.step()
        clock[0] += 1
    words = f"no process could be started for s0: {os.strerror(number)}"
    assert [later - before for before, later in pairwise(tries)][:5] == [1, 2, 4, 5, 5]
    assert capfd.readouterr().err == f"epsearch: studies of the queue wait: {words}\n"
    assert all(one.open and one.tries == 0 for one in store.queue.submissions().values()) and started() == []
    assert {there.state for there in store.leases.states().values()} == {QUEUED}
    monkeypatch.setattr(scheduler, where, real)
    clock[0] += 5
    worker.step()
    assert started() == ["s0", "s1"] and worker._trouble == ""


def test_what_is_wrong_with_one_study_alone_fails_it_alone(worker, store, monkeypatch):
    def taken(name, settings):
        if name == "a":
            raise FileExistsError(17, "File exists")
        return Fake(name, settings)

    monkeypatch.setattr(scheduler, "StudyProcess", taken)
    submit(store, "a", "b")
    worker.step()
    assert state(store) == (FAILED, "no process could be started for a: File exists") and started() == ["b"]


@pytest.mark.few(6)
@pytest.mark.parametrize("status", [1, 2, 70])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_process_that_meets_a_trouble_of_the_machine_is_tried_again(worker, store, monkeypatch, trouble, status):
    clock, words = [1000.0], f"cannot write to runs/a: {os.strerror(getattr(errno, trouble))}"
    monkeypatch.setattr(scheduler, "monotonic", lambda: clock[0])
    submit(store, "a")
    for number in range(4 * MOST_TRIES):
        worker.step()
        assert len(Fake.made) == number + 1
        Fake.made[-1].ended, Fake.made[-1].words = status, words
        worker.step()
        assert state(store)[0] == QUEUED and words in worker._trouble
        clock[0] += 5
    worker.step()
    Fake.made[-1].ended, Fake.made[-1].words = 2, "cv-tasks must be at least 1"
    worker.step()
    assert state(store) == (FAILED, "cv-tasks must be at least 1")


def test_a_trouble_is_over_where_no_study_waits_any_more(worker, store, monkeypatch):
    clock, full = [1000.0], OSError(errno.ENOSPC, "No space left on device")

    def probe(folder):
        raise full

    monkeypatch.setattr(scheduler, "monotonic", lambda: clock[0])
    monkeypatch.setattr(scheduler, "probe", probe)
    submit(store, "a")
    worker.step()
    assert worker._trouble
    store.leases.cancel("a")
    clock[0] += 5
    worker.step()
    assert not worker._trouble


@pytest.mark.slow
def test_ready_says_for_what_studies_wait(worker, store, monkeypatch):
    monkeypatch.setattr(scheduler, "POLL_SECONDS", 0.01)
    full = [OSError(errno.ENOSPC, "No space left on device")]

    def probe(folder):
        if full:
            raise full[0]

    monkeypatch.setattr(scheduler, "probe", probe)
    submit(store, "a")
    worker.start()
    try:
        until(lambda: worker.problem)
        with pytest.raises(Unavailable, match=r"^studies of the queue wait: no process .* for a: No space left on"):
            worker.check()
        full.clear()
        until(started)
        until(lambda: not worker.problem)
        worker.check()
    finally:
        worker.stop()


def test_a_service_that_ends_starts_nothing_more_and_interrupts_what_it_has_started(worker, store, monkeypatch):
    monkeypatch.setattr(scheduler, "POLL_SECONDS", 0.01)
    with pytest.raises(Unavailable, match="the queue has ended"):
        worker.check()
    submit(store, "a", "b")
    worker.start()
    until(lambda: len(Fake.made) == 2)
    worker.check()
    worker.stop()
    assert [one.interrupted for one in Fake.made] == [1, 1]
    submit(store, "c")
    worker._thread.join(HANGS)
    assert started() == ["a", "b"]
    with pytest.raises(Unavailable, match="the queue has ended"):
        worker.check()


def test_another_service_takes_over_what_one_has_left(own, worker, store, holder):
    submit(store, "a", "b")
    worker.step()
    holder.leases.acquire("a", here())
    after = Scheduler(own, store)  # of a service that was killed nothing but the ledger is left
    after.step()
    assert started() == ["a", "b", "b"], "b had not begun: whichever of its processes is first has it"
    holder.leases.enter(FINISHED)
    holder.leases.release()
    after.step()
    assert not store.queue.submissions()["a"].open and started().count("a") == 1


def test_a_database_that_is_gone_is_told_and_found_again(worker, store, monkeypatch):
    monkeypatch.setattr(scheduler, "POLL_SECONDS", 0.01)
    real, gone = store.leases.states, [True]

    def states():
        if gone:
            raise StoreError("cannot read from the ledger: gone")
        return real()

    monkeypatch.setattr(store.leases, "states", states)
    worker.start()
    try:
        until(lambda: worker.problem)
        with pytest.raises(Unavailable, match="gone"):
            worker.check()
        gone.clear()
        until(lambda: not worker.problem)
        worker.check()
    finally:
        worker.stop()


def test_a_fault_of_ours_is_told_and_ends_no_queue(worker, store, monkeypatch):
    faults = [ZeroDivisionError("by nothing")]
    sound = worker.step
    monkeypatch.setattr(scheduler, "POLL_SECONDS", 0.02)

    def step():
        if faults:
            raise faults[0]
        sound()

    monkeypatch.setattr(worker, "step", step)
    submit(store, "a")
    worker.start()
    try:
        until(lambda: worker.problem)
        with pytest.raises(Unavailable, match=r"^a bug in epsearch: ZeroDivisionError: by nothing$"):
            worker.check()
        faults.clear()
        until(started)
        until(lambda: not worker.problem)
        worker.check()
    finally:
        worker.stop()


def test_a_job_has_its_plan_made_as_a_terminal_has():
    """Without it, nobody knows how long the start takes, nor the time to go before there is a speed."""
    made = []
    log_listener(lambda: None)(Planned(lambda: made.append("plan")))
    assert made == ["plan"]


@pytest.mark.parametrize("name", ["epsearch.sqlite-journal", "epsearch.sqlite-wal", "--help", "-rf", "CON", "é" * 120])
def test_a_name_that_an_earlier_version_took_fails_and_no_folder_is_made(worker, store, own, name):
    submit(store, name, "fine")
    worker.step()
    assert started() == ["fine"] and state(store, name)[0] == FAILED and "name " in state(store, name)[1]
    assert not (own.out / name).is_dir() and not store.queue.submissions()[name].open


@pytest.mark.parametrize("name", ["--help", "-rf", "--out", "plain"])
def test_whatever_a_name_is_it_is_no_option_of_its_process(own, name, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["job", *processes._command(name, own)[3:]])
    with pytest.raises(SystemExit) as stop:
        job.main()
    assert stop.value.code == 2 and f"no study {name!r} was submitted" in capsys.readouterr().err
