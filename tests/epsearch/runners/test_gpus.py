"""All GPUs of a machine, with a process each. There is none here: the CPU trains in their place (`fake_gpu_worker`)."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from epsearch import machine, run
from epsearch.failures.errors import TrainingFailed, Unavailable
from epsearch.runners import gpus, local, registry
from epsearch.session import plan
from results.ledger.store import Store
from tests.support.blocked import ROOT
from tests.support.events import Recorded
from tests.support.fake_gpu_worker import FAKE
from trainers.cohort import Cohort

GIB = 2**30


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
    assert "GPU GPU-1 (Fake GPU) is left out: 0.0 of its 0.0 GiB may be taken, and one member needs 0.0 GiB" in lines
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


@pytest.mark.slow
def test_where_none_has_room_the_study_is_refused(study, fake):
    fake(**{"0": (10, ""), "1": (10, "")})
    with pytest.raises(Unavailable, match=r"no GPU can be used; GPU 0 \(Fake 0\) is left out: 0.0 of"):
        run(study)


@pytest.mark.slow
def test_more_workers_than_gpus_share_their_memory(study, fake):
    log = fake(**{"0": (GIB, ""), "1": (GIB, "")})
    said = Recorded()
    run(replace(study, workers=3), said)
    assert {(token, share) for token, *_, share in log()} <= {("0", 0.5), ("1", 1.0)}
    assert "trained by 3 workers on GPUs: 2 × Fake 0, 1 × Fake 1" in said.notes


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
