"""All GPUs of a machine, with a process each. There is none here: the CPU trains in their place (`fake_gpu_worker`)."""

import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from epsearch import machine, run
from epsearch.failures.errors import Interrupted, PluginError, TrainingFailed, Unavailable, UsageError
from epsearch.loop.jobs import JobResult
from epsearch.runners import gpu_worker, gpus, local, registry
from epsearch.session import plan
from results.ledger.store import Store
from tests.support.blocked import ROOT
from tests.support.descendants import descendants
from tests.support.events import Recorded
from tests.support.fake_gpu_worker import FAKE
from trainers.cohort import Cohort

GIB = 2**30
# Processes that do not tell what their GPU is; that take a job, and die; and that do not end it.
SILENT = "import time; time.sleep(1000)"
DYING = """
import pickle, sys, time
pickle.dump(("Fake", 1, 1), sys.stdout.buffer)
sys.stdout.buffer.flush()
pickle.load(sys.stdin.buffer)
"""
BUSY = f"{DYING}time.sleep(1000)"
JOBS = [SimpleNamespace(number=number, stage="search", limits=1) for number in range(2)]


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A function that gives this machine GPUs: by name (bytes free, fault); returns a function that reads their log."""

    def make(**given):
        monkeypatch.setenv(FAKE, json.dumps({"folder": str(tmp_path), "gpus": given}))
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        monkeypatch.setattr(gpus, "WORKER", ["-m", "tests.support.fake_gpu_worker"])
        monkeypatch.setattr(plan, "free_bytes", lambda path: None)
        for module in (gpus, local, registry, plan):
            monkeypatch.setattr(module, "visible_gpus", lambda: list(given))
        return lambda: [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]

    return make


@pytest.fixture
def study(small_study):
    return replace(small_study(runner="auto"), device="cuda", numeric_path="cuda-float32")


def stored(study):
    """Each member's accuracies, by what it was trained with."""
    with Store.open(study.storage) as store:
        runs = store.all_runs()
    return {json.dumps(one.content | {"numeric_path": ""}, sort_keys=True): one.accuracies for one in runs}


def bytes_of(study, tmp_path, count):
    """Bytes of so many members of the first cohort."""
    from tests.support.drive import make

    with Store.open(f"sqlite:///{tmp_path / 'other.sqlite'}") as store:
        (job, *_) = make(study, store).upcoming(1)
    return gpus._bytes(replace(job, cohort=Cohort(job.cohort.learners[:count])))


@pytest.mark.slow
def test_cohorts_are_shared_by_what_fits_on_each_gpu(study, small_study, fake, tmp_path):
    small = bytes_of(study, tmp_path, 3)
    log = fake(**{"0": (GIB, ""), "MIG-2": (small, ""), "GPU-1": (1000, ""), "3": (GIB, "start")})
    said = Recorded()
    run(study, said)
    trained = log()
    assert {token for token, *_ in trained} == {"0", "MIG-2"}
    assert all(needed <= small for token, _, needed, _ in trained if token == "MIG-2")
    assert max(count for token, count, *_ in trained if token == "0") > 3
    lines = "\n".join(said.notes)
    assert "GPU GPU-1 (Fake GPU) is left out: a member needs 0.0 GiB, 0.0 of 0.0 may be taken" in lines
    assert "GPU 3 is left out: its process does not start (no CUDA-capable device is detected)" in lines
    assert "trained by 2 workers on GPUs: 1 × Fake 0, 1 × Fake MIG" in lines
    twin = small_study(numeric_path="cpu-float32-torch", out=tmp_path / "cpu")
    run(twin)
    there, here = stored(study), stored(twin)
    assert len(there) > 8 and there.keys() == here.keys()
    for key, accuracies in there.items():  # tensors round otherwise in another cohort
        np.testing.assert_allclose(accuracies, here[key], atol=0.01)


@pytest.mark.slow
def test_a_gpu_that_fails_its_check_or_dies_leaves_its_work_to_others(study, fake):
    log = fake(**{"0": (GIB, "dies"), "MIG-7": (GIB, "check")})
    said = Recorded()
    run(study, said)
    assert {token for token, *_ in log()} == {"0"}
    lines = "\n".join(said.notes)
    assert "GPU MIG-7 (Fake MIG) is left out: the self-check of" in lines
    assert "GPU 0 (Fake 0) died (RuntimeError: CUDA error: an illegal memory access was encountered): its" in lines


@pytest.mark.slow
def test_where_none_passes_the_study_ends_in_one_line(study, fake):
    fake(**{"0": (GIB, "check"), "1": (GIB, "check")})
    with pytest.raises(TrainingFailed, match=r"the self-check of \w+ on mlp failed"):
        run(study)
    assert not stored(study)


def test_code_that_has_changed_ends_the_study_as_in_a_thread(small_study, tmp_path, monkeypatch):
    """With one line and status 2, and not cohort by cohort."""
    from tests.support.drive import make

    def changed(*given, **named):
        raise PluginError("my_net.py has changed since the study began")

    monkeypatch.setattr(gpu_worker, "execute", changed)
    answers = []
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as store:
        loop = make(small_study(), store)
        (job, *_) = loop.ask()
        answer = gpu_worker._train(job, 1.0, answers.append)
        assert answer.pop("steps") == 0 and answer.pop("work") == 0.0 and not answers
        assert not answer.pop("of_this_gpu", False)  # no other GPU is to try it
        with pytest.raises(UsageError, match=r"^my_net\.py has changed since the study began$"):
            loop.tell([JobResult(job.number, None, **answer)])


@pytest.mark.slow
def test_where_none_has_room_the_study_is_refused(study, fake):
    fake(**{"0": (10, ""), "1": (10, "")})
    with pytest.raises(Unavailable, match=r"no GPU can be used; GPU 0 \(Fake 0\) is left out: a member"):
        run(study)


@pytest.mark.slow
def test_more_workers_than_gpus_share_their_memory(study, fake):
    log = fake(**{"0": (GIB, ""), "1": (GIB, "")})
    said = Recorded()
    run(replace(study, workers=3), said)
    assert {(token, share) for token, *_, share in log()} <= {("0", 0.5), ("1", 1.0)}
    assert "trained by 3 workers on GPUs: 2 × Fake 0, 1 × Fake 1" in said.notes


def without_jobs(monkeypatch, code, *tokens):
    """A loop of a study on GPUs by name, whose processes run this code."""
    monkeypatch.setattr(gpus, "WORKER", ["-c", code])
    monkeypatch.setattr(gpus, "visible_gpus", lambda: list(tokens))
    return SimpleNamespace(study=SimpleNamespace(niceness=0, workers=None), upcoming=lambda workers: [])


@pytest.fixture
def ctrl_c():
    """Ctrl-C as in a terminal, also where the tests themselves run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_ctrl_c_ends_processes_that_start(monkeypatch, ctrl_c):
    """Before the time is over in which they may start, after which no GPU could be used."""
    loop = without_jobs(monkeypatch, SILENT, "0", "1")
    monkeypatch.setattr(gpus, "START_SECONDS", 30.0)
    before = descendants(os.getpid())
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(Interrupted):
        gpus._run(loop, None)
    assert set(descendants(os.getpid())) <= set(before)


@pytest.mark.slow
def test_a_job_that_waits_for_a_gpu_reports_nothing_and_ends_with_the_training(monkeypatch):
    """Reports would count the wait as time of its cohort, so that others seem not to fit into what is left."""
    loop, reports = without_jobs(monkeypatch, BUSY, "0"), []
    all_gpus = gpus._Gpus()
    all_gpus.begin(loop)
    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(all_gpus.train, job, lambda *report: reports.append(report)) for job in JOBS]
        time.sleep(1.0)
        assert not any(one.done() for one in results)
        all_gpus.stop()
        assert all(isinstance(one.exception(10), Interrupted) for one in results)
    all_gpus.end()
    assert reports == []


def test_nobody_waits_for_a_gpu_whose_process_cannot_be_started_again(monkeypatch):
    all_gpus = gpus._Gpus()
    all_gpus.begin(without_jobs(monkeypatch, DYING, "0"))

    def fail(*place):
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(gpus, "_Process", fail)
    with pytest.raises(OSError, match="Resource"):
        all_gpus.train(JOBS[0], lambda *report: None)
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(all_gpus.train, JOBS[1], lambda *report: None)
        latest = threading.Timer(10, all_gpus.stop)
        latest.start()
        assert result.result().error == "no GPU is left (search)"
        latest.cancel()
    all_gpus.end()


def test_threads_of_one_process_train_one_cohort_on_the_first_gpu(study, monkeypatch):
    """So does a verification, whose threads would record graphs beside each other."""
    monkeypatch.setattr(local, "visible_gpus", lambda: ["0", "1"])
    loop = SimpleNamespace(study=study)
    with local.training(loop, None) as threads:
        assert threads.workers == loop.workers == 1


@pytest.mark.parametrize(
    ("visible", "there", "names"),
    [
        (None, 2, ["0", "1"]),
        ("1,0", 2, ["1", "0"]),
        ("0,7", 1, ["0"]),
        (" GPU-ab , GPU-cd", 2, ["GPU-ab", "GPU-cd"]),
        ("MIG-a,MIG-b,MIG-a", 1, ["MIG-a", "MIG-b"]),
        ("MIG-GPU-a/1/0,MIG-GPU-a/2/0", 1, ["MIG-GPU-a/1/0", "MIG-GPU-a/2/0"]),
        ("MIG-a", 1, ["MIG-a"]),
    ],
    ids=str,
)
def test_names_of_gpus(monkeypatch, visible, there, names):
    """there: the GPUs that torch counts, which reads CUDA_VISIBLE_DEVICES as the driver does."""
    monkeypatch.setattr(machine, "cuda_present", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: there)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert machine.visible_gpus() == names


def test_hidden_gpus_are_none(monkeypatch):
    monkeypatch.setattr(machine, "cuda_present", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-a,MIG-b")
    assert machine.visible_gpus() == []


@pytest.mark.parametrize(
    ("there", "options", "runner"),
    [
        (2, {}, "gpus"),
        (2, {"runner": "local"}, "gpus"),
        (2, {"runner": "tune"}, "tune"),
        (2, {"address": "head:6379"}, "tune"),
        (2, {"workers": 1}, "tune"),
        (2, {"device": "cpu"}, "auto"),
        (1, {}, "tune"),
        (1, {"runner": "local"}, "local"),
    ],
    ids=str,
)
def test_which_runner_begins(study, monkeypatch, there, options, runner):
    monkeypatch.setattr(registry, "visible_gpus", lambda: [str(number) for number in range(there)])
    monkeypatch.setattr(registry, "ray_installed", lambda: True)
    monkeypatch.setattr(local, "usable_cores", lambda: 2)
    assert registry.runner_of(replace(study, **options)).name == runner
