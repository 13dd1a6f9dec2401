"""Threads at first: Ray is started where that pays, and then takes over; results are the same."""

import time
from concurrent.futures import Future
from contextlib import ExitStack, nullcontext
from types import SimpleNamespace

import pytest

from epsearch import run
from epsearch.failures.errors import Interrupted, Unavailable, UsageError
from epsearch.preparation.build import build
from epsearch.runners import auto, local, overheads
from epsearch.runners.on_ray import trials, tune
from epsearch.runners.registry import RUNNERS, runner_of
from epsearch.study.kinds import Search
from tests.support.events import Recorded
from tests.support.ledgers import results


class Joined:
    """A private Ray that is there."""

    def join(self):
        pass


@pytest.fixture
def soon(monkeypatch):
    """A function that lets Ray be worth its start at once, or never."""

    def is_worth(it):
        monkeypatch.setattr(auto.Monitor, "seconds_left", 100.0)
        monkeypatch.setattr(overheads, "expected_seconds", lambda part, usual=0.0: 1.0 if it else 1000.0)

    return is_worth


@pytest.fixture
def plain(small_study, tmp_path):
    study = small_study(runner="local", out=tmp_path / "plain", **SIZE)
    run(study)
    return results(study.out)


SIZE = {"repeats": 2, "points": 4, "seeds": 3, "certify": 1, "workers": 2}


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"runner": "auto", "workers": 2}, "auto"),
        ({"runner": "auto", "workers": 1}, "local"),
        ({"runner": "local"}, "local"),
        ({"runner": "tune"}, "tune"),
        ({"runner": "auto", "address": "10.0.0.1:6379"}, "tune"),
        ({"runner": "local", "address": "10.0.0.1:6379"}, "local"),
    ],
)
def test_who_begins(small_study, options, first):
    assert runner_of(small_study(**options)).name == first


@pytest.mark.slow
def test_a_study_that_is_over_sooner_never_starts_ray_and_says_so(small_study, soon, plain, monkeypatch):
    soon(False)
    monkeypatch.setattr(tune, "_start", lambda *_: pytest.fail("it was started"))
    told = Recorded()
    study = small_study(runner="auto", **SIZE)
    run(study, told)
    assert results(study.out) == plain
    assert [one for one in told.notes if "in about 1:40: Ray would take 16:40 to start" in one]


@pytest.mark.slow
@pytest.mark.parametrize(("needed", "starts"), [(24.0, True), (26.0, False)])
def test_it_pays_where_four_times_its_start_is_left(small_study, monkeypatch, needed, starts):
    monkeypatch.setattr(auto.Monitor, "seconds_left", 100.0)
    monkeypatch.setattr(overheads, "expected_seconds", lambda part, usual=0.0: needed)
    begun = []
    monkeypatch.setattr(tune, "_start", lambda *_: begun.append(1) or time.sleep(5))
    monkeypatch.setattr(tune.RayStart, "__call__", lambda *_: pytest.fail("threads were to have it all"))
    run(small_study(runner="auto", repeats=1, points=3, seeds=2, certify=0, workers=2))
    assert bool(begun) == starts
    assert RUNNERS["auto"].uses_ray(100.0) == starts


def test_a_study_that_turns_out_to_be_long_starts_ray_after_all(small_study, soon, tmp_path, monkeypatch):
    """The first seconds may make it seem short."""
    soon(True)
    starting, lines = tune.RayStart(Future(), tmp_path, Joined()), []
    loop = SimpleNamespace(notify=lines.append)
    monkeypatch.setattr(tune, "ready", lambda *_, **__: nullcontext(starting))
    with ExitStack() as stack:
        ray = auto._Takeover(small_study(), stack)
        for left in (None, 3.0, 2.0):
            ray.decide(loop, SimpleNamespace(seconds_left=left))
        assert len(lines) == 1 and "in about 0:03: " in lines[0]
        starting.done.set_result(None)
        assert ray.take_over(loop) is None
        ray.decide(loop, SimpleNamespace(seconds_left=5.0))
        assert ray.take_over(loop) is starting and len(lines) == 1


@pytest.mark.slow
def test_what_has_ended_ray_is_no_part_of_the_start_of_threads(small_study, soon, plain, monkeypatch):
    soon(True)
    kept, tuned = {}, Tuned(monkeypatch)
    monkeypatch.setattr(overheads, "remember", lambda part, seconds, share: kept.setdefault(part, seconds))
    monkeypatch.setattr(auto.Monitor, "beginning", 1234.0)
    study = small_study(runner="auto", **SIZE)
    run(study)
    assert tuned.trained and kept["auto"] == 1234.0 and results(study.out) == plain


@pytest.mark.slow
def test_without_a_speed_nothing_is_decided(small_study, plain, monkeypatch):
    monkeypatch.setattr(auto.Monitor, "seconds_left", None)
    monkeypatch.setattr(tune, "_start", lambda *_: pytest.fail("it was started"))
    study = small_study(runner="auto", **SIZE)
    run(study)
    assert results(study.out) == plain


@pytest.mark.slow
def test_a_ray_that_cannot_be_had_is_done_without(small_study, soon, plain, monkeypatch):
    def broken(*_):
        raise Unavailable("Ray does not start here (why not); try --runner local")

    soon(True)
    monkeypatch.setattr(tune, "_start", broken)
    told = Recorded()
    study = small_study(runner="auto", **SIZE)
    run(study, told)
    assert results(study.out) == plain
    assert told.notes.count("threads of this process go on: Ray does not start here (why not); try --runner local") == 1


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("place", ["_start", "ready"])
def test_threads_go_on_without_room_for_ray(small_study, soon, plain, monkeypatch, place):
    """Whether it is its folder that cannot be made, or a file of its own."""

    def full(*_, **__):
        raise OSError(28, "No space left on device", "/tmp")

    soon(True)
    monkeypatch.setattr(tune, place, full)
    told = Recorded()
    study = small_study(runner="auto", **SIZE)
    run(study, told)
    assert results(study.out) == plain
    said = "threads of this process go on: cannot write or read /tmp: No space left on device"
    assert told.notes.count(said) == 1


class Tuned:
    """In the place of Tune: trains in turn what it is handed, while threads go on.

    As Tune, it looks for news at the beginning of its steps, of which there is none while it has nothing to train.
    """

    def __init__(self, monkeypatch, begun=(1, 2)):
        self.trained, self.beside = [], []
        monkeypatch.setattr(tune, "_start", lambda *_: self.when_both_have_begun(begun))
        monkeypatch.setattr(tune.resources, "slots", lambda study: 2)
        monkeypatch.setattr(tune, "_fit_options", lambda loop: ())
        monkeypatch.setattr(tune.watchdog, "watch_ray", lambda look, **_: local.as_interrupted())
        monkeypatch.setattr(tune.RayStart, "join", lambda self: self.done.result())
        monkeypatch.setattr(trials, "fit", self.fit)

    def when_both_have_begun(self, begun):
        while len(begun) < 2:
            time.sleep(0.01)

    def fit(self, source, *options):
        while not source.done:
            if jobs := source.ask()[: int(source.room())]:
                source.collect()
                self.beside.append(2 - source.room())
            for job in jobs:
                self.trained.append(job.number)
                result = local.execute(job)
                source.tell([(job, report_of(result))])
            if not jobs:
                time.sleep(0.01)


def report_of(result):
    from epsearch.loop.jobs import encode

    told = {"steps": 0, "value": encode(result.value), "seconds": result.seconds, "machine": result.machine}
    fields = ("parameter_difference", "self_check", "imported")
    return told | {name: getattr(result, name) for name in fields}


@pytest.mark.slow
def test_ray_takes_over_what_no_thread_has_begun(small_study, soon, plain, monkeypatch):
    soon(True)
    tuned = Tuned(monkeypatch)
    study = small_study(runner="auto", **SIZE)
    done = run(study)
    assert results(study.out) == plain and done.effort.trained == len(plain)
    assert tuned.trained and len(set(tuned.trained)) == len(tuned.trained)


@pytest.mark.slow
def test_a_cohort_that_a_thread_trains_is_trained_once_and_waited_for(small_study, soon, plain, monkeypatch):
    soon(True)
    execute, begun = local.execute, []
    tuned = Tuned(monkeypatch, begun)

    def slow(job, *rest):
        begun.append(job.number)
        if rest and len(begun) == 1:  # the first one that a thread has
            time.sleep(2)
        return execute(job, *rest)

    monkeypatch.setattr(local, "execute", slow)
    study = small_study(runner="auto", **SIZE)
    run(study)
    assert results(study.out) == plain
    assert len(set(begun)) == len(begun), "none was trained twice"
    assert 1 in tuned.beside, "Tune had one place, as a thread was still at work"


@pytest.mark.slow
def test_what_threads_raise_beside_tune_ends_the_search(small_study, soon, monkeypatch):
    soon(True)
    execute, begun = local.execute, []
    Tuned(monkeypatch, begun)

    def stops(job, *rest):
        begun.append(job.number)
        if rest and len(begun) == 1:
            time.sleep(1)
            raise Interrupted
        return execute(job, *rest)

    monkeypatch.setattr(local, "execute", stops)
    with pytest.raises(Interrupted):
        run(small_study(runner="auto", **SIZE))


def test_what_ray_took_is_kept_without_the_wait_for_a_thread(small_study, soon, tmp_path, monkeypatch):
    soon(True)
    clock, kept = SimpleNamespace(now=100.0), {}
    starting, lines = tune.RayStart(Future(), tmp_path, Joined()), []
    loop = SimpleNamespace(notify=lines.append)
    monkeypatch.setattr(auto, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(tune, "ready", lambda *_, **__: nullcontext(starting))
    monkeypatch.setattr(overheads, "remember", kept.__setitem__)
    with ExitStack() as stack:
        ray = auto._Takeover(small_study(), stack)
        ray.decide(loop, SimpleNamespace(seconds_left=100.0))
        assert ray.take_over(loop) is None
        clock.now += 7
        starting.done.set_result(None)
        clock.now += 500  # all threads are at work
        assert ray.take_over(loop) is starting
        starting.worker_seconds = 5.0
        ray.remember()
    assert kept == {overheads.RAY_START: 12.0}


@pytest.mark.cluster
def test_a_real_ray_takes_over(small_study, soon, tmp_path, monkeypatch):
    soon(True)
    kept, sizes, execute = [], SIZE | {"repeats": 6, "points": 8}, local.execute

    def slow(*given):
        time.sleep(4)  # so that threads leave something to Ray, which takes seconds to start
        return execute(*given)

    monkeypatch.setattr(overheads, "remember", lambda part, *seconds: kept.append(part))
    monkeypatch.setattr(local, "execute", slow)
    study = small_study(runner="auto", **sizes)
    done = run(study)
    monkeypatch.setattr(local, "execute", execute)
    alone = small_study(runner="local", **sizes, out=tmp_path / "alone")
    run(alone)
    assert done.effort.trained > 0 and results(study.out) == results(alone.out)
    assert overheads.RAY_START in kept, "workers of Ray have told of steps"


def test_the_option_allows_every_runner_and_no_other():
    for name in RUNNERS:
        assert build(Search, {"runner": name}).runner == name
    with pytest.raises(UsageError, match="known: auto, tune, local"):
        build(Search, {"runner": "ray"})
