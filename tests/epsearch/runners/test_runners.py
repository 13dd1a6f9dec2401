"""Local threads and Ray Tune store the same results; a killed or interrupted run goes on from the ledger."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from epsearch import run
from epsearch.failures import stopping
from epsearch.failures.errors import Interrupted, TrainingFailed
from epsearch.runners import local
from epsearch.runners.on_ray import cleanup
from epsearch.runners.progress import Monitor
from results.ledger.record import same_result
from results.ledger.store import Store
from results.search_tables import evaluation_table
from search_spaces import STRATEGIES
from tests.epsearch.conftest import SMALL
from tests.support import halting
from tests.support.descendants import descendants
from tests.support.events import Recorded
from tests.support.limits import HANGS


def ledger(study):
    with Store.open(study.storage) as store:
        return {record.key: record for record in store.all_runs()}


def equal(one, other):
    return one.keys() == other.keys() and all(same_result(one[key], other[key]) for key in one)


FIRST = "narrowing"
TABLES = ("chosen", "chosen_score", "rounds", "evaluation")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"race": True, "seeds": 3}, marks=pytest.mark.cluster),
        pytest.param({"protocol": "extrapolated", "cv_tasks": "3..5", "tasks": 9}, marks=pytest.mark.cluster),
        *(
            pytest.param({"strategy": name, "seeds": 3}, marks=[pytest.mark.cluster, pytest.mark.exhaustive])
            for name in STRATEGIES
            if name != FIRST
        ),
    ],
    ids=str,
)
def test_both_runners_store_the_same_results(small_study, tmp_path, ray_address, options):
    """With different cohorts: four for each of two workers, and four for the one thread."""
    pool = small_study(runner="tune", address=ray_address, workers=2, out=tmp_path / "tune", **options)
    threads = small_study(runner="local", workers=1, out=tmp_path / "local", **options)
    by_tune, by_threads = run(pool), run(threads)
    assert equal(ledger(pool), ledger(threads))
    assert by_tune.results.chosen == by_threads.results.chosen
    assert by_tune.results.rounds == by_threads.results.rounds
    assert evaluation_table(by_tune.results).equals(evaluation_table(by_threads.results))
    assert by_tune.effort.trained == by_threads.effort.trained > 0


def arguments(out, runner):
    options = SMALL | {"runner": runner, "out": out, "workers": 2}
    return ["run", "--json", *(part for name, value in options.items() for part in (flag(name), str(value)))]


on_both_runners = pytest.mark.parametrize("runner", ["local", pytest.param("tune", marks=pytest.mark.cluster)])
in_processes = pytest.mark.parametrize(
    "runner", [pytest.param("local", marks=pytest.mark.slow), pytest.param("tune", marks=pytest.mark.cluster)]
)


def flag(name):
    return "--" + name.replace("_", "-")


def finished(out, runner):
    """What a run that nobody disturbs prints, in a process of its own."""
    command = [sys.executable, "-m", "epsearch", *arguments(out, runner)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPSEARCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        return finished(tmp_path_factory.mktemp("undisturbed"), "local")


def rows(out):
    """Members in the ledger of a run that has ended."""
    with closing(sqlite3.connect(f"file:{out / 'epsearch.sqlite'}?mode=ro", uri=True)) as connection:
        return connection.execute("select count(*) from epsearch_runs").fetchone()[0]


@in_processes
def test_a_killed_run_goes_on_to_the_same_table(runner, undisturbed, tmp_path):
    process, go_on = halting.start(4, *arguments(tmp_path, runner))
    process.send_signal(signal.SIGKILL)
    go_on()
    process.communicate(timeout=HANGS)
    stored = rows(tmp_path)
    resumed = finished(tmp_path, runner)
    assert resumed["effort"]["reused"] >= stored >= 4 and resumed["effort"]["trained"] > 0
    assert all(resumed[field] == undisturbed[field] for field in TABLES)


@in_processes
def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(runner, tmp_path):
    process, go_on = halting.start(4, *arguments(tmp_path, runner))
    process.send_signal(signal.SIGINT)
    go_on()
    out, err = process.communicate(timeout=HANGS)
    assert process.returncode == 130
    assert err.decode().strip().splitlines()[-1].startswith("epsearch: stopped; ")
    assert "the same command resumes from there" in err.decode() and "Traceback" not in err.decode()
    assert out == b"" and rows(tmp_path) >= 4


@pytest.mark.cluster
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds Ray's processes in /proc")
def test_a_ray_that_loses_its_head_ends_the_run_in_one_line(undisturbed, tmp_path):
    """Ray would end it a minute later; and the same command goes on with threads."""
    process, go_on = halting.start(4, *arguments(tmp_path, "tune"), "--quiet")
    (head,) = (pid for pid, name in descendants(process.pid) if name == "gcs_server")
    os.kill(head, signal.SIGKILL)
    out, err = process.communicate(timeout=HANGS)
    go_on()
    line = f"epsearch: Ray was lost (its gcs_server has ended); try --runner local; {stopping.RESUMES}\n"
    assert (process.returncode, out, err.decode()) == (1, b"", line)
    resumed = finished(tmp_path, "local")
    assert resumed["effort"]["reused"] >= 4
    assert all(resumed[field] == undisturbed[field] for field in TABLES)


@pytest.mark.cluster
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds Ray's processes in /proc")
@pytest.mark.parametrize(
    "whom", ["all that it has started, Ray first", pytest.param("its group", marks=pytest.mark.exhaustive)]
)
def test_a_termination_of_many_processes_is_no_loss_of_ray(whom, tmp_path):
    """As `kill -- -PID`, the end of a container, or of a job of Slurm: the line and status of a stop."""
    process, go_on = halting.start(4, *arguments(tmp_path, "tune"), "--quiet", start_new_session=True)
    if whom == "its group":
        os.killpg(process.pid, signal.SIGTERM)
    else:
        for pid in reversed([pid for pid, _ in descendants(process.pid)]):
            with suppress(ProcessLookupError):  # it has ended with another one
                os.kill(pid, signal.SIGTERM)
    go_on()
    out, err = process.communicate(timeout=HANGS)
    lines = err.decode().strip().splitlines()
    assert lines and lines[-1] in [f"epsearch: stopped; {words}" for words in (stopping.KEPT, stopping.RESUMES)]
    assert (process.returncode, out) == (130, b"") and "Traceback" not in err.decode()
    assert "Ray was lost" not in err.decode() and rows(tmp_path) >= 4


@pytest.mark.slow
def test_cohorts_that_fail_end_the_run_behind_all_others(small_study, monkeypatch):
    """Two of the first round, one after the other: the third of its jobs is trained, and what is trained ahead."""
    study, events, begun = small_study(points=6, workers=1), Recorded(), []
    original, why = (
        local.execute,
        ["out of memory (no room); fewer --workers or smaller sizes need less", "OSError: no"],
    )

    def failing(job, progress):
        begun.append(job)
        if len(begun) < 3:
            raise MemoryError("no room") if len(begun) == 1 else OSError("no")
        return original(job, progress)

    monkeypatch.setattr(local, "execute", failing)
    with pytest.raises(TrainingFailed) as caught:
        run(study, events)
    assert str(caught.value) == f"2 cohorts could not be trained: {'; '.join(why)}" and caught.value.traceback
    assert [note for note in events.notes if "giving up" in note] == [
        f"giving up on one cohort: {one}; the others continue" for one in why
    ]
    trained = [(run.phase, run.learner) for job in begun[2:] for run in job.runs]
    assert {phase for phase, _ in trained} == {"cv", "eval"} and len({job.number for job in begun}) == len(begun)
    assert len(ledger(study)) == len(trained) == len(events.stored)
    monkeypatch.setattr(local, "execute", original)
    assert run(study).effort.reused == len(trained)


NOT_THERE = """
import os
from trainers.streams import DataError, PermutedStream
from trainers.streams.pixels.digits import load

def factory(tasks, examples_per_task):
    if os.getpid() != DRIVER:
        raise DataError("the data are not on this machine")
    return PermutedStream(load(), tasks, examples_per_task)
"""


@pytest.mark.slow
def test_an_error_in_a_worker_is_one_line(small_study, tmp_path, capfd, monkeypatch, ray_address):
    """The driver has the data of a user's own stream; the workers, to which its module travels, have not."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(NOT_THERE.replace("DRIVER", str(os.getpid())))
    study = small_study(dataset="mine:factory", runner="tune", address=ray_address)
    with pytest.raises(
        TrainingFailed, match=r"^\d+ cohorts could not be trained: DataError: the data are not on this machine$"
    ):
        run(study)
    shown = capfd.readouterr()
    assert "Traceback" not in shown.err + shown.out


@pytest.mark.cluster
def test_workers_of_a_cluster_read_no_data_themselves(small_study, tmp_path, ray_address):
    """The files are gone by then; the driver has read them before."""
    from tests.trainers.streams.test_permuted import write_idx
    from trainers.streams.pixels import mnist

    mnist.load.cache_clear()
    folder = write_idx(tmp_path / "data", images=(100, 20))
    small = {"dataset": "permuted_mnist", "data_dir": tmp_path / "data", "repeats": 1, "points": 3}
    alone = small_study(**small, out=tmp_path / "alone")
    run(alone)
    study = small_study(**small, out=tmp_path / "cluster", runner="tune", address=ray_address)

    class Gone(Recorded):
        def begin(self, event):
            super().begin(event)
            for path in folder.iterdir():
                path.unlink()

    run(study, Gone())
    mnist.load.cache_clear()
    assert equal(ledger(study), ledger(alone))


def actors():
    """Process numbers of Tune's workers in every Ray that this process has started."""
    return {pid for pid, name in descendants(os.getpid()) if name.startswith("ray::Impl")}


def killing(relay):
    """A Relay that kills the only worker once while it starts, once while it trains and once while it is idle.

    Tune calls it between two of its steps, so it cannot miss these moments on a slow machine. The idle worker dies
    after Tune has its result for good, and before the next trial is handed to it.
    """

    others = actors()  # of tests before, which may still be ending

    class Killer(relay):
        killed, errors = [], 0

        def kill(self, moment, pid):
            os.kill(pid, signal.SIGKILL)
            self.killed.append(moment)

        def on_step_begin(self, iteration, trials, **info):
            if not self.killed and (starting := actors() - others):
                self.kill("starting", starting.pop())

        def on_trial_result(self, iteration, trials, trial, result, **info):
            super().on_trial_result(iteration, trials, trial, result)
            if self.killed == ["starting"]:
                self.kill("training", result["pid"])

        def on_trial_complete(self, iteration, trials, trial, **info):
            if self.killed == ["starting", "training"]:
                self.kill("idle", trial.last_result["pid"])

        def on_trial_error(self, iteration, trials, trial, **info):
            type(self).errors += 1

    return Killer


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the starting worker in /proc")
def test_a_worker_that_dies_is_replaced(epsearch, small_options, monkeypatch, ray_address):
    """SIGKILL, whenever it comes, costs one attempt, and the run ends as it should."""
    from epsearch.runners.on_ray import trials

    killer = killing(trials.Relay)
    monkeypatch.setattr(trials, "Relay", killer)
    answer = epsearch("run", "--json", *small_options, "--runner", "tune", "--workers", 1, "--address", ray_address)
    assert (killer.killed, killer.errors) == (["starting", "training", "idle"], 3)
    assert answer.status == 0 and answer.json["evaluation"], answer.err
    assert "Traceback" not in answer.err


@pytest.mark.cluster
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the worker in /proc")
def test_a_worker_that_is_stopped_is_replaced(epsearch, small_options, monkeypatch, ray_address):
    """SIGSTOP: it hangs, with its core, until it is ended. Which worker is silent for too long is said by the test."""
    from epsearch.runners.on_ray import trials

    stopped, others = [], actors()

    class Stopping(trials.Relay):
        def on_step_begin(self, iteration, trials, **info):
            heartbeats = self._source.heartbeats
            running = [one.trial_id for one in trials if one.status == "RUNNING"]
            if not stopped and running and (found := actors() - others):
                stopped.extend(found)  # one, which is still importing what it needs
                os.kill(stopped[0], signal.SIGSTOP)
                original, heartbeats.hanging = (
                    heartbeats.hanging,
                    lambda: (setattr(heartbeats, "hanging", original), running)[1],
                )
            super().on_step_begin(iteration, trials)

    monkeypatch.setattr(trials, "Relay", Stopping)
    where = ["--runner", "tune", "--workers", 1, "--address", ray_address]
    answer = epsearch("run", *small_options, *where)
    assert answer.status == 0, answer.err
    assert "a worker reported nothing for 600 seconds and was killed" in answer.err
    assert len(stopped) == 1 and not Path(f"/proc/{stopped[0]}").exists()


@pytest.mark.cluster
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")
def test_nothing_of_a_killed_run_outlives_it(tmp_path):
    process, go_on = halting.start(4, *arguments(tmp_path, "tune"), "--quiet")
    theirs = {pid for pid, _ in descendants(process.pid)}
    (folder,) = (one for one in cleanup.temporary().glob("epsearch-*") if theirs & {*cleanup.processes(one)})
    process.kill()
    go_on()
    process.communicate(timeout=HANGS)
    deadline = time.monotonic() + HANGS
    while folder.exists() or cleanup.processes(folder):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
def test_interrupting_the_local_runner_stops_its_threads(small_study, monkeypatch):
    study = small_study(examples_per_task=1000)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def update(self, loop, *ended):
        original(self, loop, *ended)
        if loop.trained:
            signal.raise_signal(signal.SIGINT)

    original = Monitor.update
    monkeypatch.setattr(Monitor, "update", update)
    try:
        with pytest.raises(Interrupted):
            run(study)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ledger(study)


@pytest.mark.parametrize("error", [Interrupted, KeyboardInterrupt])
def test_what_finishes_while_a_training_is_stopped_is_stored(error):
    """A thread that has reported its last step trains to its end; its member would be trained again."""
    stored, loop_of_tests = [], SimpleNamespace()
    loop_of_tests.tell = stored.extend
    all_begun = threading.Barrier(3)  # a job that no thread has taken up yet is not trained

    def train(job, progress):
        all_begun.wait(HANGS)
        if job.number == 0:
            raise Interrupted
        assert threads._stop.wait(HANGS)
        return job

    monitor = SimpleNamespace(stopping=False, update=lambda loop, ended: None)
    with pytest.raises(error), local.Threads(3, monitor, train=train) as threads:
        threads.begin([SimpleNamespace(number=number) for number in range(error is not Interrupted, 3)])
        if error is not Interrupted:
            all_begun.wait(HANGS)
        threads.collect(loop_of_tests, None if error is Interrupted else 0.0)
        raise error
    assert sorted(job.number for job in stored) == [1, 2]


@pytest.mark.slow
@on_both_runners
def test_a_listener_can_stop_a_run_which_then_goes_on_from_there(small_study, tmp_path, ray_address, runner):
    """In the middle of cohorts that would take minutes to their end; what was stored by then is told."""
    options = {"repeats": 1, "points": 3, "runner": runner, "workers": 2}
    options |= {"address": ray_address} if runner == "tune" else {}
    study = small_study(**options, examples_per_task=400, batch_size=1, tasks=3, name="mine")

    class Impatient(Recorded):
        def stop_wanted(self):
            return bool(self.stored) and self.seen[-1].member_steps > self.steps_then

        def records(self, stored):
            if not self.stored:  # once: where cohorts are short, their last steps come just before their records
                self.steps_then = self.seen[-1].member_steps
            super().records(stored)

    events = Impatient()
    with pytest.raises(Interrupted):
        run(study, events)
    kept = ledger(study)
    assert {record.key for record in events.stored} == kept.keys() and len(kept) > 0
    again = run(study)
    assert again.effort.reused == len(kept) and again.effort.trained > 0
    straight = run(
        small_study(**options, examples_per_task=400, batch_size=1, tasks=3, name="mine", out=tmp_path / "straight")
    )
    assert evaluation_table(again.results).equals(evaluation_table(straight.results))


@pytest.mark.slow
def test_workers_of_ray_have_their_share_of_a_busy_machine(ray_address):
    """Ray would give them a niceness of 15, with which one busy process beside leaves them a thirtieth of a core."""
    code = f"""import os, ray
ray.init({ray_address!r}, log_to_driver=False)
print(ray.get(ray.remote(lambda: os.nice(0)).remote()))"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(found.stdout) == os.nice(0)


@pytest.mark.slow
def test_they_stand_back_for_other_work_as_far_as_a_study_says():
    code = """import os
from epsearch.runners.on_ray.private import PrivateRay
own = PrivateRay(1, niceness=7)
own.start(), own.join()
import ray
print(ray.get(ray.remote(lambda: os.nice(0)).remote()) - os.nice(0))
own.end()"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(found.stdout) == 7


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere niceness is that of the whole process")
def test_threads_stand_back_and_their_process_does_not(small_study, monkeypatch):
    seen, execute = set(), local.execute

    def looked(job, *rest):
        seen.add(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return execute(job, *rest)

    monkeypatch.setattr(local, "execute", looked)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    run(small_study(runner="local", niceness=5, repeats=1, points=3, seeds=2))
    assert seen == {min(before + 5, 19)} and os.getpriority(os.PRIO_PROCESS, 0) == before


@pytest.mark.slow
@on_both_runners
def test_a_listener_can_stop_a_cohort_that_has_just_begun(small_study, ray_address, runner):
    """Cohorts of minutes, stopped at their first report of steps, do not go on to the end: nothing of them is kept."""
    address = {"address": ray_address} if runner == "tune" else {}
    study = small_study(runner=runner, workers=2, batch_size=1, examples_per_task=1400, tasks=20, **address)

    class AtOnce(Recorded):
        def stop_wanted(self):
            return bool(self.seen) and self.seen[-1].member_steps > 0

    events = AtOnce()
    with pytest.raises(Interrupted):
        run(study, events)
    assert ledger(study) == {} == dict.fromkeys(events.stored)


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_one_line(small_study):
    from epsearch.failures.errors import UsageError

    with pytest.raises(UsageError, match=r"cannot join the Ray cluster at '127.0.0.1:1'") as error:
        run(small_study(runner="tune", address="127.0.0.1:1"))
    assert "\n" not in str(error.value)
