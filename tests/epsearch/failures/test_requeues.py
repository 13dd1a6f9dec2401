"""Requeued jobs of Slurm: one that keeps something is requeued again, one that keeps nothing ends."""

import pytest

from epsearch.failures import stopping
from epsearch.failures.errors import TimeSpent, Unavailable
from epsearch.failures.lines import failure
from epsearch.runners.time_left import LEAVE_SECONDS, TimeLeft
from epsearch.session import lease
from epsearch.session.session import train
from tests.support.events import Recorded
from trainers import checkpoints

SIZES = "--points 3 --repeats 1 --seeds 2 --cv-tasks 2 --tasks 4 --examples-per-task 60 --memory 3 --memory-batch 8"
RUN = ("run", *SIZES.split(), "--runner", "local", "--name", "mine", "--time-left", "1s", "--quiet")
LINE = r"^run 2 of this job kept nothing new for want of time; submit it with a longer --time"


@pytest.fixture(autouse=True)
def again(monkeypatch):
    """The flag that a status asks for another run, of this test alone; in a job that was requeued once."""
    flag = stopping.Event()
    monkeypatch.setattr(stopping, "AGAIN", flag)
    stopping.TRAINS.clear()
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    return flag


@pytest.mark.parametrize(("restarts", "status"), [(None, 75), ("", 75), ("0", 75), ("1", 1)])
def test_only_the_first_run_of_a_job_may_keep_nothing(epsearch, monkeypatch, small_study, restarts, status):
    if restarts is None:
        monkeypatch.delenv("SLURM_RESTART_COUNT")
    else:
        monkeypatch.setenv("SLURM_RESTART_COUNT", restarts)
    answer = epsearch(*RUN)
    assert answer.status == status and len(answer.err.splitlines()) == 1
    assert ("with a longer --time; " in answer.err) == (status == 1)
    if status == 1:
        assert "failed" in epsearch("list").out


def test_a_result_is_something_new(monkeypatch, small_study):
    first = Recorded()

    def whole(self, work):
        return self._until - LEAVE_SECONDS - self._begun if first.stored else None

    monkeypatch.setattr(TimeLeft, "_seconds", whole)
    with pytest.raises(TimeSpent):
        train(small_study(workers=1, time_left="1h"), first)
    assert first.stored


@pytest.mark.slow
def test_a_task_is_something_new(monkeypatch, tmp_path, small_study):
    """The time is over once a task was kept; then there is none left for another one."""
    place = tmp_path / "kept"
    monkeypatch.setattr(checkpoints, "AT_MOST_EVERY", 0.0)
    monkeypatch.setattr(TimeLeft, "over", property(lambda self: any(place.rglob("*.kept"))))
    study = small_study(workers=1, time_left="1h", checkpoints=str(place))
    with pytest.raises(TimeSpent):
        train(study, Recorded())
    with pytest.raises(Unavailable, match=LINE):
        train(study, Recorded())


def test_a_run_that_waited_for_another_one_may_keep_nothing(monkeypatch, small_study):
    monkeypatch.setattr(lease, "acquire", lambda *arguments, of=lease.acquire: of(*arguments) or True)
    with pytest.raises(TimeSpent):
        train(small_study(workers=1, time_left="1s"), Recorded())


def test_a_signal_before_the_training(again):
    again.set()
    words, status, _ = failure(KeyboardInterrupt())
    assert status == 1 and words.startswith("run 2 of this job kept nothing new")


def test_a_stop_by_the_user_is_none_of_it():
    assert failure(KeyboardInterrupt())[1] == 130
