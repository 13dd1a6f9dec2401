"""How attempts at a job are counted when its worker dies, without a Ray that runs."""

from types import SimpleNamespace

import pytest

pytest.importorskip("ray.tune")

from ray.exceptions import OutOfMemoryError

from epsearch.failures.errors import TrainingFailed
from epsearch.runners import trials, tune
from epsearch.runners.trials import ATTEMPTS, Attempt, Source, fit


class Loop:
    """A study of two jobs that are open until they are told, and that ends with the first one that fails."""

    def __init__(self):
        self.jobs = [SimpleNamespace(number=number, stage="repeat 1 of 2") for number in range(2)]

    @property
    def done(self):
        return not self.jobs

    def ask(self):
        return list(self.jobs)

    def tell(self, results):
        for result in results:
            if result.value is None:
                raise TrainingFailed(result.error)
            self.jobs = [job for job in self.jobs if job.number != result.number]


@pytest.fixture
def source(monkeypatch):
    monkeypatch.setattr(trials, "decode", str)
    return Source(Loop(), SimpleNamespace(update=lambda loop: None, jobs=Loop.ask, stopping=False))


ANSWER = {"value": "trained", "seconds": 1.0, "parameter_difference": 0.0}
DEAD = "its worker died 5 times (repeat 1 of 2)"


def test_a_job_whose_worker_died_stays_open(source):
    first, second = source.ask()
    source.tell([Attempt(first, None)])
    assert source.ask() == [first, second] and not source.done
    source.tell([Attempt(first, ANSWER), Attempt(second, ANSWER)])
    assert source.done and source.error is None


def test_a_job_that_always_kills_its_worker_ends_the_run(source):
    first, second = source.ask()
    for _ in range(ATTEMPTS - 1):
        source.tell([Attempt(first, None)])
        source.tell([Attempt(second, None)])
        assert not source.done
    source.tell([Attempt(second, None)])
    assert source.done and isinstance(source.error, TrainingFailed) and str(source.error) == DEAD


def test_an_error_in_training_is_not_tried_again(source):
    source.tell([Attempt(source.ask()[0], {"error": "ValueError: no"})])
    assert source.done and str(source.error) == "ValueError: no"


def test_where_the_fault_lies_comes_along(source):
    result = trials._result(Attempt(source.ask()[0], {"error": "IndexError: no", "traceback": "Traceback of a worker"}))
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


def test_a_ray_that_does_not_start(epsearch, small_options, monkeypatch):
    def timed_out(cores, folder):
        raise Exception("The current node timed out during startup.\nThis could happen because")

    monkeypatch.setattr(tune, "start_private_ray", timed_out)
    answer = epsearch("run", *small_options, "--runner", "tune", "--quiet")
    assert answer.status == 1 and answer.err.strip().count("\n") == 0
    assert "Ray does not start here (The current node timed out during startup.); try --runner local;" in answer.err


@pytest.mark.parametrize("ours", [None, BrokenPipeError()], ids=["Ray's", "ours"])
def test_a_ray_that_is_lost(epsearch, small_options, monkeypatch, ours):
    def fit(source, *rest):
        source.error = ours
        raise RuntimeError("Failed to connect to GCS\n  at address")

    monkeypatch.setattr(tune, "_start", lambda study, folder: None)
    monkeypatch.setattr(tune, "_cluster_slots", lambda study: 1)
    monkeypatch.setattr(trials, "fit", fit)
    answer = epsearch("run", *small_options, "--runner", "tune", "--workers", 1, "--quiet")
    said = "Ray was lost (Failed to connect to GCS); try --runner local;" if ours is None else "broken pipe"
    assert answer.status == 1 and said in answer.err and answer.err.strip().count("\n") == 0


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
        fit(source, "cpu", 2, None)
    except RuntimeError as error:
        assert error.__cause__ is cause
    return made


def test_a_new_tune_goes_on_when_ray_ends_a_worker_for_memory(source, monkeypatch):
    made = run(source, monkeypatch, OutOfMemoryError("2 workers were killed"))
    assert len(made) == ATTEMPTS and str(source.error) == DEAD
    assert all([one and one["number"] for one in tuner.given] == [0, 1, None] for tuner in made)


def test_any_other_error_of_tune_is_raised(source, monkeypatch):
    assert len(run(source, monkeypatch, ValueError("a bug"))) == 1
    assert source.error is None
