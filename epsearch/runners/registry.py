"""The runners by name. A new one is an entry here, and a word that the option `runner` allows."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec

from epsearch.failures.errors import UsageError
from epsearch.loop.base import Loop
from epsearch.machine import visible_gpus
from epsearch.runners import gpus, local, overheads
from epsearch.runners.progress import Monitor
from epsearch.study.description import Study

Run = Callable[[Loop, Monitor], None]
Ready = Callable[[Study], AbstractContextManager[Run]]


@dataclass(frozen=True)
class Runner:
    """Trains the jobs of a study; the stored results are the same by all of them."""

    name: str
    ready: Ready
    """Returns a context that yields the function to train a loop to its end; see `on_ray.tune.ready`."""
    workers: str = "threads"
    """Its workers at the start, in words."""
    starts_at_once: bool = True
    """Training begins at once: its first seconds give the speed, and no probe is needed before."""
    ray_may_join: bool = False
    """Ray may take over from the workers of the start."""
    starting: Callable[[Study], str] = lambda study: ""
    """Returns the stage before the first step, in words; empty if that takes no time."""
    uses_ray: Callable[[float | None], bool] = lambda training: False
    """Returns whether a run has a Ray; training: its seconds, None if unknown."""
    usual_overhead: float = 0.5
    """Seconds that start and end of its workers take before this machine has measured them."""

    @property
    def overhead(self) -> float:
        """Seconds that start and end of its workers take on an idle machine."""
        return overheads.expected_seconds(self.name, self.usual_overhead)


def _auto_ready(study: Study) -> AbstractContextManager[Run]:
    from epsearch.runners import auto  # late: it needs Ray, which may be absent or broken here

    return auto.ready(study)


def _tune_ready(study: Study) -> AbstractContextManager[Run]:
    from epsearch.runners.on_ray import tune  # late, as above

    return tune.ready(study)


def _ray_pays(training: float | None) -> bool:
    """Returns whether the training is much longer than Ray's start."""
    return training is None or training > overheads.LEAST_STARTS * overheads.expected_seconds(overheads.RAY_START)


def _starting_ray(study: Study) -> str:
    return "joining the Ray cluster" if on_cluster(study) else "starting Ray"


AUTO = Runner("auto", _auto_ready, ray_may_join=True, uses_ray=_ray_pays)
"""Threads of this process; Ray Tune starts beside them, and takes over, if that pays."""
LOCAL = Runner("local", local.ready)
"""Threads of this process."""
TUNE = Runner(
    "tune", _tune_ready, "Ray", False, starting=_starting_ray, uses_ray=lambda training: True, usual_overhead=13.0
)
"""Ray Tune alone."""
GPUS = Runner(
    "gpus",
    gpus.ready,
    "a process on each GPU",
    starting=lambda study: "starting a process on each GPU",
    usual_overhead=15.0,
)
"""A process on each GPU of this machine, where there are several: not by name."""
RUNNERS = {runner.name: runner for runner in (AUTO, LOCAL, TUNE)}


def ray_installed() -> bool:
    """Returns whether Ray is installed; it is not imported, so it may still be broken."""
    # A folder `ray` in the working folder would be a package without an origin.
    return (spec := find_spec("ray")) is not None and spec.origin is not None


def check_runner(study: Study) -> None:
    """Raises UsageError where a study needs a Ray that is not installed, or has no such GPUs."""
    if study.device == "mps" and runner_of(study) is TUNE:
        raise UsageError("device mps is for threads of this machine: runner must be local, and address local")
    if runner_of(study) is TUNE and not ray_installed():
        option, value, without = (
            ("address", study.address, "local") if on_cluster(study) else ("runner", study.runner, "auto or local")
        )
        raise UsageError(f"{option} must be {without} without Ray, got {value!r}; pip install 'epsearch[ray]'")


def on_cluster(study: Study) -> bool:
    """Returns whether a study is trained by a Ray cluster, not by this machine alone."""
    return study.address != "local"


def runner_of(study: Study) -> Runner:
    """Returns the runner of a study from its start on.

    A cluster is for work that this machine cannot do, and a GPU has no room for two training processes: both are Ray's
    alone, unless threads are requested. Several GPUs of this machine have a process each, unless Ray is requested.
    Where Ray is not installed, all that this machine can do is done by threads; so is the work of one worker, which a
    process of its own would not train faster.
    """
    alone = study.runner != TUNE.name and (study.runner == LOCAL.name or not on_cluster(study))
    if study.device == "cuda" and study.workers != 1 and alone and len(visible_gpus()) > 1:
        return GPUS
    if study.runner != AUTO.name:
        return RUNNERS[study.runner]
    if on_cluster(study):
        return TUNE
    if not ray_installed() or study.device == "mps":
        return LOCAL
    if study.device == "cuda":
        return TUNE
    return LOCAL if local.local_slots(study) == 1 else AUTO
