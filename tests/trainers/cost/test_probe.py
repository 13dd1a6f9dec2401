"""The measurement before a study takes real steps of a later task, tells their rate, and leaves nothing behind."""

import threading
import time

import pytest
import torch

from tests.support.learners import SMALL, few, learner
from tests.support.made_images import made_images
from tests.support.numeric_paths import MKL, TWIN
from tests.support.toy_streams import toy
from trainers import Architecture, Cohort
from trainers.cost import probe
from trainers.cost.probe import EngineCall, measure, rates_of, steady_task
from trainers.engines import make_engine
from trainers.engines.compiled.engine import CompiledEngine
from trainers.footprint import bytes_of
from trainers.numeric_path import NumericPath
from trainers.population import Training
from trainers.streams.images.split import SplitStream

COHORT = Cohort(tuple(few("soft_agem", seed, epsilon=epsilon) for seed in (0, 1) for epsilon in (0.0, 0.5, 1.0)))


def training(stream=None, path=MKL, **options):
    return Training(stream or toy(), **{"architecture": SMALL, "path": path} | options)


class Watched:
    """Stands for `make_engine`, and notes what is asked of the engines."""

    def __init__(self, monkeypatch):
        self.asked = []
        monkeypatch.setattr(probe, "make_engine", self)

    def __call__(self, *what):
        engine = make_engine(*what)
        watched = self

        class Engine:
            def __getattr__(self, name):
                watched.asked.append((name, threading.current_thread().name))
                return getattr(engine, name)

            def load_task(self, task):
                watched.asked.append((f"load {task}", threading.current_thread().name))
                engine.load_task(task)

        return Engine()


class Ticks(threading.local):
    """A clock that shows a hundredth of a second more to a thread whenever that looks."""

    seconds = 0.0

    def __call__(self):
        self.seconds += 0.01
        return self.seconds


@pytest.fixture(autouse=True)
def ticks(monkeypatch):
    monkeypatch.setattr(probe, "now", Ticks())


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path))
    threads = torch.get_num_threads()
    yield
    assert not list(tmp_path.iterdir())
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("probe")]
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("path", [MKL, TWIN], ids=str)
@pytest.mark.parametrize("method", ["soft_agem", "gem", "ewc", "er", "prognn"])
def test_a_perceptron(method, path):
    cohort = Cohort(tuple(few(method, seed) for seed in (0, 0, 1)))
    found = measure(cohort, training(toy(range(4)), path), 0.2, 2)
    assert 2 <= len(found.windows) <= probe.WINDOWS and min(found.windows) > 0 and found.seconds > 0
    assert (found.task, found.learners, found.threads) == (2 if method in ("gem", "prognn") else 1, 2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("path", [NumericPath(products="onednn"), TWIN], ids=str)
def test_a_residual_network(path, monkeypatch):
    monkeypatch.setattr("trainers.networks.REDUCED", (8, 16, 24, 32))
    stream = SplitStream(made_images(classes=8, train=5, size=16), range(1, 4), 2)
    cohort = Cohort(tuple(learner("soft_agem", batch_size=4, memory=2, memory_batch=5, epsilon=e) for e in (0, 0.5, 1)))
    found = measure(cohort, training(stream, path, architecture=Architecture("reduced_resnet18")), 0.2, 2)
    assert len(found.windows) >= 2 and min(found.windows) > 0
    assert found.learners == 3


def test_earlier_tasks_fill_the_memory_and_only_one_is_trained(monkeypatch):
    watched = Watched(monkeypatch)
    measure(COHORT, training(toy(range(4))), 0.1, 1, task=2)
    names = [name for name, _ in watched.asked]
    loaded = [name for name in names if name.startswith("load")]
    assert loaded == ["load 0", "load 1", "load 2"] and names.count("remember") == 2
    assert names.count("train") > 2 and names.index("train") > names.index("load 2")
    assert "accuracy" not in names and "finish" not in names


def test_the_first_task_is_shared_by_the_members_of_a_seed():
    assert measure(COHORT, training(), 0.1, 1, task=0).learners == 1


def test_members_that_do_not_fit_are_measured_in_halves():
    assert measure(COHORT, training(bytes_free=bytes_for(2)), 0.1, 1).learners == 1
    assert measure(COHORT, training(), 0.1, 1).learners == 3


def bytes_for(count):
    return bytes_of(COHORT.part(range(count)), toy(), SMALL, MKL)


def test_slow_steps_are_waited_for():
    """The time is over before the first step is."""
    found = measure(COHORT, training(), 1e-9, 3)
    assert len(found.windows) >= 1 and min(found.windows) > 0


@pytest.mark.parametrize("at_once", [1, 3])
def test_what_training_raises_ends_all_threads(at_once, monkeypatch):
    def broken(self, *what):
        raise RuntimeError("no such product")

    monkeypatch.setattr(CompiledEngine, "train", broken)
    with pytest.raises(RuntimeError, match="no such product"):
        measure(COHORT, training(), 60, at_once)


def test_one_thread_that_fails_later_ends_the_others(monkeypatch):
    real, calls = CompiledEngine.train, []

    def breaking(self, *what):
        calls.append(1)
        if len(calls) == 20:
            raise RuntimeError("no such product")
        real(self, *what)

    monkeypatch.setattr(CompiledEngine, "train", breaking)
    with pytest.raises(RuntimeError, match="no such product"):
        measure(COHORT, training(), 60, 2)


def test_a_cohort_that_diverges_is_measured_all_the_same():
    found = measure(Cohort((few("soft_agem", lr=1e30),)), training(), 0.1, 1)
    assert min(found.windows) > 0


@pytest.mark.parametrize(("method", "task"), [("van", 1), ("soft_agem", 1), ("gem", 3), ("prognn", 3)])
def test_the_task_that_stands_for_the_later_ones(method, task):
    """With a full reference batch all are alike; GEM's and progressive networks' grow evenly: the middle one does."""
    assert steady_task(Cohort((few(method),)), toy(range(6)), SMALL) == task


def test_one_task_stands_for_itself():
    assert steady_task(COHORT, toy(range(1)), SMALL) == 0


def test_windows_are_of_the_time_in_which_all_are_at_work():
    alone = [EngineCall(number, number + 1, 3) for number in range(20)]
    assert rates_of([alone]) == (20, (3.0,) * 8)
    seconds, rates = rates_of([alone, [EngineCall(4, 9, 10), EngineCall(9, 14, 20)]])
    assert seconds == 10 and rates == (3 + 2, 3 + 4)


@pytest.mark.parametrize(("seconds", "at_once"), [(0, 1), (1, 0)])
def test_refusals(seconds, at_once):
    with pytest.raises(ValueError, match=r"seconds must be > 0 and at_once >= 1"):
        measure(COHORT, training(), seconds, at_once)


def test_the_share_is_that_of_the_processor_time(monkeypatch):
    """A thread's own clock shows half of what the wall's does: it had half of a core."""

    class Half(threading.local):
        seconds = 0.0

        def __call__(self):
            self.seconds += 0.005
            return self.seconds

    monkeypatch.setitem(probe.CLOCKS, "cpu", Half())
    assert measure(COHORT, training(), 0.1, 2).share == pytest.approx(0.5)
    assert probe.CLOCKS["cuda"] is time.perf_counter
