"""How attempts at a job are counted when its worker dies, without a Ray that runs."""

import json
import signal
from concurrent.futures import Future
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

pytest.importorskip("ray.tune")

from ray.exceptions import OutOfMemoryError

from epsearch.failures.errors import Interrupted, TrainingFailed
from epsearch.loop.claims import Claims
from epsearch.runners.on_ray import private, resources, trials, tune
from epsearch.runners.on_ray.private import PrivateRay
from epsearch.runners.on_ray.trials import ATTEMPTS, Source, fit
from epsearch.runners.on_ray.watchdog import Heartbeats


class Loop:
    """A study of two jobs that are open until they are told, or given up."""

    def __init__(self):
        self.jobs = {number: SimpleNamespace(number=number, stage="repeat 1 of 2") for number in range(2)}
        self.lines, self.claims = [], Claims(SimpleNamespace(lease=None), str)
        self.notify = self.lines.append

    @property
    def done(self):
        return not self.jobs

    def ask(self):
        return self.claims.of([self.jobs], 2)

    def tell(self, results):
        for result in results:
            if result.value is None:
                self.notify(self.claims.give_up(result))
            else:
                del self.jobs[result.number]


@pytest.fixture
def source(monkeypatch):
    monkeypatch.setattr(trials, "decode", str)
    return Source(Loop(), SimpleNamespace(update=lambda loop, ended=(): None, jobs=Loop.ask, stopping=False))


ANSWER = {"value": "trained", "seconds": 1.0, "parameter_difference": 0.0, "machine": "0123abcd"}
ANSWER |= {"self_check": "", "imported": 0.0}
DEAD = "its worker died, in the last of 5 attempts (repeat 1 of 2)"


def test_a_job_whose_worker_died_stays_open(source):
    first, second = source.ask()
    source.tell([(first, None)])
    assert source.ask() == [first, second] and not source.done
    source.tell([(first, ANSWER), (second, ANSWER)])
    assert source.done and source.error is None


def test_every_attempt_is_told_and_what_is_given_up_ends_the_run_behind_all_others(source):
    loop, (first, second) = source._loop, source.ask()
    for attempt in range(2, ATTEMPTS + 1):
        source.tell([(second, None)])
        again = f"its cohort is trained again, attempt {attempt} of 5"
        assert loop.lines.pop() == f"a worker died (repeat 1 of 2): {again}"
    source.tell([(second, None)])
    assert loop.lines == [f"giving up on one cohort: {DEAD}; the others continue"]
    assert source.ask() == [first] and not source.done
    source.tell([(first, ANSWER)])
    assert loop.jobs == {second.number: second}
    assert source.done and isinstance(source.error, TrainingFailed)
    assert str(source.error) == f"a cohort could not be trained: {DEAD}"


def test_all_that_failed_is_listed(source):
    for job in source.ask():
        for _ in range(ATTEMPTS):
            source.tell([(job, None)])
    assert source.done and str(source.error) == f"2 cohorts could not be trained: {DEAD}"


class Worker:
    """A trial that runs and has told nothing yet."""

    status = "RUNNING"

    def __init__(self, job):
        self.trial_id, self.config = f"trial {job.number}", {"job": job}
        self.temporary_state = SimpleNamespace(ray_actor=f"worker {job.number}")


def test_a_worker_that_is_silent_for_too_long_is_ended_and_its_job_is_open(monkeypatch):
    now, ended = [0.0], []
    monkeypatch.setattr(trials.ray, "kill", ended.append)
    source = Source(
        Loop(),
        SimpleNamespace(update=lambda loop, ended=(): None, steps=lambda *_: None, jobs=Loop.ask, stopping=False),
        50,
    )
    source.heartbeats = Heartbeats(50, clock=lambda: now[0])
    relay, (hangs, works) = trials.Relay(source), map(Worker, source.ask())
    for seconds in range(0, 60, 10):
        now[0] = seconds
        relay.on_step_begin(seconds, [hangs, works])
        relay.on_trial_result(seconds, [hangs, works], works, {"steps": 1, "work": 1.0})
        assert ended == []
    now[0] = 60
    relay.on_step_begin(60, [hangs, works])
    relay.on_step_begin(60, [hangs, works])
    assert ended == ["worker 0"]
    source.tell([(hangs.config["job"], None)])
    words = "a worker reported nothing for 50 seconds and was killed (repeat 1 of 2): its cohort is trained again"
    assert source._loop.lines == [f"{words}, attempt 2 of 5"]
    assert len(source.ask()) == 2 and not source.done


def test_an_error_in_training_is_not_tried_again(source):
    first, second = source.ask()
    source.tell([(first, {"error": "ValueError: no", "traceback": "Traceback of a worker"})])
    assert source.ask() == [second] and not source.done
    for _ in range(ATTEMPTS):
        source.tell([(second, None)])
    assert source.done and str(source.error) == f"2 cohorts could not be trained: ValueError: no; {DEAD}"
    assert source.error.traceback == "Traceback of a worker"


def test_where_the_fault_lies_comes_along(source):
    result = trials._result_of(source.ask()[0], {"error": "IndexError: no", "traceback": "Traceback of a worker"})
    assert (result.error, result.traceback) == ("IndexError: no", "Traceback of a worker")


def test_our_own_errors_do_not_escape_into_tune():
    """Neither those of the loop, nor those of the progress line, such as a pipe that is closed."""

    def closed(*rest):
        raise BrokenPipeError

    source = Source(Loop(), SimpleNamespace(steps=closed, stopping=False))
    source.steps(1, 1.0)
    assert source.done and isinstance(source.error, BrokenPipeError)
    source = Source(SimpleNamespace(done=False), SimpleNamespace(jobs=closed))
    assert source.ask() == [] and isinstance(source.error, BrokenPipeError)


@pytest.mark.slow
def test_a_ray_that_does_not_start(epsearch, small_options, monkeypatch):
    said = {"lost": "The current node timed out during startup."}
    monkeypatch.setattr(private, "HEAD", ["-c", f"print({json.dumps(said)!r})"])
    answer = epsearch("run", *small_options, "--runner", "tune", "--quiet")
    assert answer.status == 1 and answer.err.strip().count("\n") == 0
    assert "Ray does not start here (The current node timed out during startup.); try --runner local;" in answer.err


@pytest.mark.slow
@pytest.mark.parametrize("ours", [None, BrokenPipeError()], ids=["Ray's", "ours"])
def test_a_ray_that_is_lost(epsearch, small_options, monkeypatch, ours):
    def fit(source, *options):
        source.error = ours
        raise RuntimeError("Failed to connect to GCS\n  at address")

    monkeypatch.setattr(tune, "_start", lambda *_: None)
    monkeypatch.setattr(tune.RayStart, "join", lambda self: None)
    monkeypatch.setattr(resources, "nodes", list)
    monkeypatch.setattr(trials, "fit", fit)
    answer = epsearch("run", *small_options, "--runner", "tune", "--workers", 1, "--quiet")
    said = "Ray was lost (Failed to connect to GCS); try --runner local;" if ours is None else "broken pipe"
    assert answer.status == 1 and said in answer.err and answer.err.strip().count("\n") == 0


class Ends:
    """A Tuner that ends without a trial, as Tune does when it is interrupted, or was told that nothing is left."""

    def __init__(self, interrupted):
        self._interrupted = interrupted

    def fit(self):
        before = signal.signal(signal.SIGINT, lambda *_: None)
        if self._interrupted:
            signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("interrupted", [True, False])
def test_an_interruption_of_tune_is_told_from_its_end(source, monkeypatch, interrupted):
    """By what Tune does with the handler of Ctrl-C: it says neither."""
    monkeypatch.setattr(trials, "_tuner", lambda *_: Ends(interrupted))
    before = signal.getsignal(signal.SIGINT)
    try:
        assert fit(source, None, 2, {"cpu": 1.0}) is interrupted
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.parametrize("busy", [True, False])
def test_what_is_left_when_tune_ends_is_trained_unless_it_was_interrupted(monkeypatch, tmp_path, busy):
    """Others may have dropped their claims meanwhile; threads may still train what they began."""
    monkeypatch.setattr(trials, "decode", str)
    monkeypatch.setattr(tune, "_fit_options", lambda *_: ())
    monkeypatch.setattr(tune, "import_tune", lambda: None)
    monkeypatch.setattr(tune.watchdog, "watch_ray", lambda look, **_: nullcontext())
    loop, ends = Loop(), []
    loop.study = SimpleNamespace(task_timeout=None, address="local")
    threads = SimpleNamespace(busy=busy, waiting=lambda jobs: [] if busy and len(ends) == 1 else jobs, free=2)
    threads.collect = lambda loop, *_: setattr(threads, "busy", False) or ends.append("a thread has ended")
    monitor = SimpleNamespace(update=lambda loop, ended=(): None, jobs=Loop.ask, stopping=False, steps=None)
    monitor.interruption = Interrupted
    starting = tune.RayStart(Future(), tmp_path, PrivateRay(1))
    starting.done.set_result(None)

    def fit(source, *options):
        ends.append(signal.getsignal(signal.SIGINT))
        signal.signal(signal.SIGINT, lambda *_: None)  # what Tune leaves behind
        if len(ends) > 1:
            source.tell([(job, ANSWER) for job in list(loop.jobs.values())])
        return False

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(trials, "fit", fit)
    try:
        tune._run(starting, loop, monitor, threads)
        assert loop.done and ends == [handlers[signal.SIGINT], *["a thread has ended"] * busy, handlers[signal.SIGINT]]
        loop.jobs = Loop().jobs
        monkeypatch.setattr(trials, "fit", lambda source, *options: True)
        with pytest.raises(Interrupted):
            tune._run(starting, loop, monitor, threads)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


class BreaksOff:
    """A Tuner that starts every job it is given and breaks off as Tune does when Ray ends a worker for memory."""

    def __init__(self, searcher, cause):
        self.searcher, self.cause = searcher, cause

    def fit(self):
        self.given = [self.searcher.suggest(trial) for trial in "abc"]
        raise RuntimeError("Caught unexpected exception") from self.cause


def run(source, monkeypatch, cause):
    """Runs `fit` on Tuners that break off; returns them."""
    made = []

    def tuner(searcher, *rest):
        made.append(BreaksOff(searcher, cause))
        return made[-1]

    monkeypatch.setattr(trials, "_tuner", tuner)
    try:
        fit(source, None, 2, {"cpu": 1.0})
    except RuntimeError as error:
        assert error.__cause__ is cause
    return made


def test_a_new_tune_goes_on_when_ray_ends_a_worker_for_memory(source, monkeypatch):
    made = run(source, monkeypatch, OutOfMemoryError("2 workers were killed"))
    assert len(made) == ATTEMPTS and str(source.error) == f"2 cohorts could not be trained: {DEAD}"
    assert all([one and one["number"] for one in tuner.given] == [0, 1, None] for tuner in made)


def test_any_other_error_of_tune_is_raised(source, monkeypatch):
    assert len(run(source, monkeypatch, ValueError("a bug"))) == 1
    assert source.error is None
