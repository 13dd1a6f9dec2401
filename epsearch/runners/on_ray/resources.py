"""What a cohort takes of a Ray: a core or a part of a GPU, and memory; how many cohorts it trains at a time."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from epsearch.failures.errors import UsageError
from epsearch.loop.base import Loop
from epsearch.loop.jobs import Job
from epsearch.study.description import Study
from trainers.cohort import Cohort


class Share(NamedTuple):
    """What one trial takes."""

    resources: dict[str, float]
    """As Ray names them: cores or GPUs, and bytes of memory."""
    of_gpu: float = 1.0
    """The part of a GPU that it may fill."""


def slots(study: Study) -> int:
    """Trials that the Ray runs at a time: its cores, or its GPUs. Raises UsageError where it has none of them."""
    import ray

    kind = "GPU" if study.device == "cuda" else "CPU"
    found = int(ray.cluster_resources().get(kind, 0))  # type: ignore[no-untyped-call]
    if found < 1:
        raise UsageError(f"the Ray cluster at {study.address!r} has no {kind}; start a worker node first")
    return found


def share(loop: Loop, nodes: Sequence[dict[str, float]], gpu_bytes: Callable[[], int]) -> Share:
    """What each trial of the loop takes, as `loop.workers` at a time are wanted.

    nodes: resources of each of the nodes, as Ray tells them; gpu_bytes: bytes of the smallest GPU.
    """
    if loop.study.device == "cuda":
        gpus = sum(int(node.get("GPU", 0)) for node in nodes)
        if loop.workers <= gpus:
            return Share({"gpu": 1.0})
        part = 1 / on_one(loop.workers, gpus, largest(loop), gpu_bytes())
        return Share({"gpu": part}, part)
    needed = 0 if loop.study.address == "local" else largest(loop)  # of this machine alone `fit` has seen to it
    # No more than the largest node has, or the trial would wait for ever; there the cohort is trained in halves.
    needed = min(needed, int(max((node.get("memory", 0) for node in nodes), default=0)))
    return Share({"cpu": 1.0} | ({"memory": needed} if needed else {}))


def on_one(workers: int, gpus: int, needed: int, memory: int) -> int:
    """Trials that are to share one GPU.

    workers: trials at a time; needed: bytes that one member takes; memory: bytes of a GPU that may be filled.

    >>> on_one(workers=8, gpus=2, needed=3, memory=80), on_one(workers=8, gpus=2, needed=30, memory=80)
    (4, 2)
    >>> on_one(workers=8, gpus=2, needed=90, memory=80)
    1
    """
    return max(1, min(math.ceil(workers / gpus), memory // max(1, needed)))


def largest(loop: Loop) -> int:
    """Bytes that a member of the open jobs takes alone, at most; 0 for networks of pixels, which take next to nothing.

    A cohort of several is trained in parts where all do not fit.
    """
    if loop.study.foreign or loop.study.network == "mlp":
        return 0
    return max((_bytes_of_one(job) for job in loop.ask()), default=0)


def smallest_gpu() -> int:
    """Bytes of the smallest GPU of the Ray that may be filled, asked on each node that has one."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ask = ray.remote(num_cpus=0, num_gpus=0.01)(_gpu_bytes)
    places = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in _nodes() if _gpus(node)]
    return int(min(ray.get([ask.options(scheduling_strategy=place).remote() for place in places])))


def nodes() -> list[dict[str, float]]:
    """Resources of each node that is alive."""
    return [node["Resources"] for node in _nodes()]


def _nodes() -> list[dict[str, Any]]:
    import ray

    return [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]


def _gpus(node: dict[str, Any]) -> int:
    return int(node["Resources"].get("GPU", 0))


def _gpu_bytes() -> int:
    """Of the GPU of this worker."""
    import torch

    from trainers.footprint import SAFE

    return int(SAFE * torch.cuda.mem_get_info()[1])


def _bytes_of_one(job: Job) -> int:
    from trainers.footprint import bytes_of
    from trainers.numeric_path import NumericPath

    cohort = Cohort(job.cohort.learners[:1])
    return bytes_of(cohort, job.stream.open(), job.architecture, NumericPath.parse(job.path))
