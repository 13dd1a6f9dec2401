"""Resources of a cohort on a Ray: a core or a part of a GPU, and memory; number of cohorts at a time."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from epsearch.failures.errors import UsageError
from epsearch.loop.base import Loop
from epsearch.loop.jobs import Job
from epsearch.study.description import Study
from trainers.cohort import Cohort


def slots(study: Study) -> int:
    """Returns the number of trials that the Ray runs at a time. Raises UsageError if it has no core or GPU for them."""
    import ray

    kind = "GPU" if study.device == "cuda" else "CPU"
    count = int(ray.cluster_resources().get(kind, 0))  # type: ignore[no-untyped-call]
    if count < 1:
        raise UsageError(f"the Ray cluster at {study.address!r} has no {kind}; start a worker node first")
    return count


def trial_resources(loop: Loop, nodes: Sequence[dict[str, float]], gpu_bytes: Callable[[], int]) -> dict[str, float]:
    """Returns the resources of a trial, by Ray's names, for `loop.workers` trials at a time.

    nodes: resources of each node, as Ray reports them; gpu_bytes: returns the bytes of the smallest GPU.
    """
    if loop.study.device == "cuda":
        gpus = sum(int(node.get("GPU", 0)) for node in nodes)
        if loop.workers <= gpus:
            return {"gpu": 1.0}
        return {"gpu": 1 / trials_per_gpu(loop.workers, gpus, largest(loop), gpu_bytes())}
    needed = 0 if loop.study.address == "local" else largest(loop)  # on this machine `fit` has checked the memory
    # At most that of the largest node, or the trial would wait for ever; a smaller node trains the cohort in halves.
    needed = min(needed, int(max((node.get("memory", 0) for node in nodes), default=0)))
    return {"cpu": 1.0} | ({"memory": needed} if needed else {})


def trials_per_gpu(workers: int, gpus: int, needed: int, memory: int) -> int:
    """Returns the number of trials that share a GPU.

    workers: trials at a time; needed: bytes of one member; memory: usable bytes of a GPU.

    >>> trials_per_gpu(workers=8, gpus=2, needed=3, memory=80), trials_per_gpu(workers=8, gpus=2, needed=30, memory=80)
    (4, 2)
    >>> trials_per_gpu(workers=8, gpus=2, needed=90, memory=80)
    1
    """
    return max(1, min(math.ceil(workers / gpus), memory // max(1, needed)))


def largest(loop: Loop) -> int:
    """Returns the largest memory of a member of the open jobs, in bytes; 0 for perceptrons, which need little.

    A cohort is trained in parts if its members do not fit together.
    """
    if loop.study.foreign or loop.study.network == "mlp":
        return 0
    return max((_member_bytes(job) for job in loop.ask()), default=0)


def smallest_gpu() -> int:
    """Returns the usable bytes of the smallest GPU of the Ray, measured on each node that has one."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    measure = ray.remote(num_cpus=0, num_gpus=0.01)(_gpu_bytes)
    targets = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in _nodes() if _gpus(node)]
    return int(min(ray.get([measure.options(scheduling_strategy=target).remote() for target in targets])))


def nodes() -> list[dict[str, float]]:
    """Returns the resources of each live node."""
    return [node["Resources"] for node in _nodes()]


def _nodes() -> list[dict[str, Any]]:
    import ray

    return [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]


def _gpus(node: dict[str, Any]) -> int:
    return int(node["Resources"].get("GPU", 0))


def _gpu_bytes() -> int:
    """Returns the usable bytes of this worker's GPU."""
    import torch

    from trainers.free_memory import SAFE

    return int(SAFE * torch.cuda.mem_get_info()[1])


def _member_bytes(job: Job) -> int:
    from trainers.footprint import bytes_of
    from trainers.numeric_path import NumericPath

    cohort = Cohort(job.cohort.learners[:1])
    return bytes_of(cohort, job.stream.open(), job.architecture, NumericPath.parse(job.path))
