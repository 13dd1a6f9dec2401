"""The time of a run: what begins in it, how it ends, and that the exit status asks for another run."""

import os
import signal
from types import SimpleNamespace

import pytest

from epsearch.failures import stopping
from epsearch.failures.errors import TimeSpent, UsageError
from epsearch.runners import time_left
from epsearch.runners.time_left import LEAVE_SECONDS, TimeLeft
from epsearch.session.session import train
from epsearch.slurm.time_left import clock, seconds_left
from tests.support import halting
from tests.support.events import Recorded
from tests.support.limits import HANGS

SIZES = "--points 3 --repeats 1 --seeds 2 --cv-tasks 2 --tasks 4 --examples-per-task 60 --memory 3 --memory-batch 8"


@pytest.fixture(autouse=True)
def again(monkeypatch):
    """The flag that a status asks for another run, of this test alone."""
    flag = stopping.Event()
    monkeypatch.setattr(stopping, "AGAIN", flag)
    return flag


@pytest.fixture
def now(monkeypatch):
    held = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(time_left.time, "monotonic", lambda: held.seconds)
    return held


def measured(times, now, number=1, work=100.0, seconds=10.0):
    """A cohort that has done so much work since its first report."""
    times.add(number, 5.0)  # before, it may have waited
    now.seconds += seconds
    times.add(number, work)


def test_what_would_not_end_in_time_does_not_begin(now, again):
    times = TimeLeft(until=now.seconds + 100 + LEAVE_SECONDS)
    assert times.begins(1e9), "no speed is known"
    measured(times, now)
    assert times.begins(900.0) and not times.refused
    assert not times.begins(901.0), "90 seconds are left, and ten units of work take one"
    assert times.begins(10.0), "a shorter one still does"
    assert str(times.end()) == "stopped: the next cohort takes 1:30, and 1:30 is left" and again.is_set()


def test_what_fits_into_no_run_begins_in_every_run(now):
    times = TimeLeft(until=now.seconds + 100 + LEAVE_SECONDS)
    measured(times, now)
    assert not times.begins(1000.0) and times.begins(1001.0)


def test_the_speed_is_that_of_one_cohort_however_many_run(now):
    times = TimeLeft(until=now.seconds + 1000)
    for number in range(4):
        times.add(number, 0.0)
    now.seconds += 10.0
    for number in range(4):
        times.add(number, 100.0)
    assert times._seconds(100.0) == 10.0


def test_running_cohorts_end_a_moment_before_the_machine(now, again):
    times = TimeLeft(until=now.seconds + 60)
    assert not times.over
    now.seconds += 60 - LEAVE_SECONDS
    assert times.over and isinstance(times.end(), TimeSpent) and again.is_set()


def test_a_budget_asks_for_no_other_run(now, again):
    times = TimeLeft(budget=10.0)
    assert times.begins(1.0)
    now.seconds += 10.0
    assert not times.begins(1.0)
    assert str(times.end()) == "stopped: its time budget of 0:10 is spent" and not again.is_set()


@pytest.mark.parametrize("text", ["", "1:2:3:4", "soon", "INVALID"])
def test_what_squeue_may_not_print(text):
    with pytest.raises(UsageError, match=r"^time-left slurm got .* from squeue; give a time like 2h$"):
        clock(text)


def squeue(folder, monkeypatch, script):
    """A program of this name, alone on PATH."""
    program = folder / "squeue"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.delenv("SLURM_JOB_END_TIME", raising=False)


@pytest.mark.skipif(os.name != "posix", reason="a shell script")
def test_what_slurm_leaves(tmp_path, monkeypatch):
    squeue(tmp_path, monkeypatch, '[ "$*" = "--noheader --jobs=7 --format=%L" ] && echo 1:30:00')
    assert seconds_left(None) is None and seconds_left("90s") == 90.0
    assert seconds_left("slurm") == 5400.0 and seconds_left("slurm-30m") == 3600.0 and seconds_left("slurm-2h") == 0.0
    squeue(tmp_path, monkeypatch, "echo UNLIMITED")
    assert seconds_left("slurm-30m") is None
    squeue(tmp_path, monkeypatch, "echo slurm_load_jobs error >&2; exit 1")
    with pytest.raises(UsageError, match="cannot be read from squeue: slurm_load_jobs error; give a time like 2h"):
        seconds_left("slurm")
    monkeypatch.setenv("SLURM_JOB_END_TIME", "100")
    assert seconds_left("slurm") == 0.0, "newer ones say it, and squeue, which fails here, is not asked"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("soon", "time-left must be a time like 2h, slurm, or slurm-2m, got 'soon'"),
        ("slurm-", "time-left must be a time like 2h, slurm, or slurm-2m, got 'slurm-'"),
        ("slurm", "time-left slurm needs a job of Slurm, and SLURM_JOB_ID is not set; give a time like 2h"),
    ],
)
def test_a_wrong_time_is_one_line(epsearch, monkeypatch, value, line):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    answer = epsearch("run", "--time-left", value)
    assert (answer.status, answer.err.strip()) == (2, f"epsearch: {line}")


@pytest.mark.slow
def test_a_run_without_time_asks_for_another_one(epsearch, small_study):
    answer = epsearch("run", *SIZES.split(), "--runner", "local", "--name", "mine", "--time-left", "1s", "--quiet")
    assert answer.status == 75 and answer.err.startswith("epsearch: stopped: the time of this machine is over; ")
    assert "the same command resumes from" in answer.err and len(answer.err.splitlines()) == 1
    assert epsearch("run", *SIZES.split(), "--runner", "local", "--name", "mine", "--time-left", "1h").status == 0


@pytest.mark.slow
def test_a_study_ends_where_no_cohort_fits_and_another_run_goes_on(small_study, monkeypatch, again):
    """All cohorts but the first are said to take longer than what is left."""
    first = Recorded()

    def whole(self, work):
        return self._until - LEAVE_SECONDS - self._begun if first.stored else None

    with monkeypatch.context() as patch, pytest.raises(TimeSpent, match=r"the next cohort takes 59:.*, and .* is left"):
        patch.setattr(TimeLeft, "_seconds", whole)
        train(small_study(workers=1, time_left="1h"), first)
    assert first.stored and again.is_set()
    _, effort = train(small_study(workers=1, time_left="1h"), Recorded())
    assert effort.reused == len(first.stored)


@pytest.mark.slow
@pytest.mark.skipif(stopping.TIME_SIGNAL is None, reason="a signal that Windows does not have")
@pytest.mark.parametrize("runner", ["local", pytest.param("tune", marks=pytest.mark.cluster)])
def test_the_signal_of_a_scheduler_ends_a_run_as_ctrl_c_does(tmp_path, runner):
    arguments = ["run", *SIZES.split(), *f"--runner {runner} --workers 2 --quiet --out {tmp_path / 'runs'}".split()]
    process, go_on = halting.start(4, *arguments)
    process.send_signal(signal.SIGUSR1)
    go_on()
    out, err = process.communicate(timeout=HANGS)
    last = err.decode().strip().splitlines()[-1]
    assert (process.returncode, out) == (75, b"") and "Traceback" not in err.decode()
    assert last.startswith(f"epsearch: {stopping.OUT_OF_TIME}; ") and "the same command resumes" in last


def test_the_signal_is_that_of_the_documentation():
    assert stopping.TIME_SIGNAL in (signal.SIGUSR1, None) and stopping.AGAIN_STATUS == os.EX_TEMPFAIL
