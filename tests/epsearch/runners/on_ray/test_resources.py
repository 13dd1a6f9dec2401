"""What a cohort takes of a Ray, as arithmetic: no GPU is needed."""

from types import SimpleNamespace

import pytest

from epsearch.runners.on_ray import resources
from epsearch.runners.on_ray.resources import trial_resources

NODES = [{"CPU": 8.0, "GPU": 1.0, "memory": 30.0}, {"CPU": 2.0, "GPU": 1.0, "memory": 70.0}, {"CPU": 4.0}]


def loop(device, workers, network="resnet18", address="head:6379"):
    return SimpleNamespace(
        study=SimpleNamespace(device=device, network=network, address=address, foreign=False), workers=workers
    )


def never():
    raise AssertionError("no GPU need be asked")


@pytest.fixture(autouse=True)
def sizes(monkeypatch):
    """A member takes 50 bytes."""
    monkeypatch.setattr(resources, "_member_bytes", lambda job: 50)


def asked(device, workers, **study):
    made = loop(device, workers, **study)
    made.ask = lambda: [None, None]
    return made


def test_with_a_gpu_for_each_a_cohort_has_it_alone():
    assert trial_resources(asked("cuda", 2), NODES, never) == {"gpu": 1.0}


@pytest.mark.parametrize(
    ("workers", "memory", "part"),
    [(4, 1000, 1 / 2), (5, 1000, 1 / 3), (64, 1000, 1 / 20), (64, 99, 1.0), (64, 40, 1.0)],
    ids=["two each", "rounded up", "as many as fit", "one fits", "none fits"],
)
def test_more_workers_than_gpus_share_them_as_far_as_their_memory_reaches(workers, memory, part):
    assert trial_resources(asked("cuda", workers), NODES, lambda: memory) == {"gpu": part}


def test_networks_of_pixels_share_a_gpu_among_all_workers():
    assert trial_resources(asked("cuda", 8, network="mlp"), NODES, lambda: 1000) == {"gpu": 1 / 4}


def test_on_a_cluster_a_cohort_takes_a_core_and_the_memory_of_a_member():
    assert trial_resources(asked("cpu", 8), NODES, never) == {"cpu": 1.0, "memory": 50}
    assert trial_resources(asked("cpu", 8, network="mlp"), NODES, never) == {"cpu": 1.0}


def test_no_more_memory_is_asked_for_than_the_largest_node_has():
    assert trial_resources(asked("cpu", 8), NODES[:1], never) == {"cpu": 1.0, "memory": 30}
    assert trial_resources(asked("cpu", 8), [{"CPU": 1.0}], never) == {"cpu": 1.0}


def test_a_private_ray_counts_cores_alone():
    assert trial_resources(asked("cpu", 8, address="local"), NODES, never) == {"cpu": 1.0}
