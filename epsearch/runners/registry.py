"""The runners by name. A new one is a class here, and a word that the option `runner` allows."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ClassVar

from epsearch.loop.base import Loop
from epsearch.runners import overheads
from epsearch.runners.progress import Monitor
from epsearch.study.description import Study

Run = Callable[[Loop, Monitor], None]


class Runner(ABC):
    """Trains the jobs of a study; the stored results are the same by all of them."""

    name: ClassVar[str]
    workers: ClassVar[str] = "threads"
    """Its workers at the start, in words."""
    starts_at_once: ClassVar[bool] = True
    """Training begins at once: its first seconds give the speed, and no probe is needed before."""
    ray_may_join: ClassVar[bool] = False
    """Ray may take over from the workers of the start."""

    @abstractmethod
    def ready(self, study: Study) -> AbstractContextManager[Run]:
        """Returns a context that yields the function to train a loop to its end; see `on_ray.tune.ready`."""

    def starting(self, study: Study) -> str:
        """Returns the stage before the first step, in words; empty if that takes no time."""
        return ""

    def uses_ray(self, training: float | None) -> bool:
        """Returns whether a run has a Ray; training: its seconds, None if unknown."""
        return False


class LocalRunner(Runner):
    """Threads of this process."""

    name = "local"

    def ready(self, study: Study) -> AbstractContextManager[Run]:
        """As `Runner.ready`."""
        from epsearch.runners import local

        return local.ready(study)


class AutoRunner(Runner):
    """Threads of this process; Ray Tune starts beside them, and takes over, if that pays."""

    name, ray_may_join = "auto", True

    def ready(self, study: Study) -> AbstractContextManager[Run]:
        """As `Runner.ready`."""
        from epsearch.runners import auto  # late: it needs Ray, which may be broken here

        return auto.ready(study)

    def uses_ray(self, training: float | None) -> bool:
        """As `Runner.uses_ray`: if the training is much longer than Ray's start."""
        return training is None or training > overheads.PAYS * overheads.expected(overheads.BESIDE)


class TuneRunner(Runner):
    """Ray Tune alone."""

    name, workers, starts_at_once = "tune", "Ray", False

    def ready(self, study: Study) -> AbstractContextManager[Run]:
        """As `Runner.ready`."""
        from epsearch.runners.on_ray import tune  # late, as for `AutoRunner`

        return tune.ready(study)

    def starting(self, study: Study) -> str:
        """As `Runner.starting`."""
        return "joining the Ray cluster" if on_cluster(study) else "starting Ray"

    def uses_ray(self, training: float | None) -> bool:
        """As `Runner.uses_ray`: always."""
        return True


RUNNERS = {one.name: one for one in (AutoRunner(), LocalRunner(), TuneRunner())}


def on_cluster(study: Study) -> bool:
    """Returns whether a study is trained by a Ray cluster, not by this machine alone."""
    return study.address != "local"


def runner_of(study: Study) -> Runner:
    """Returns the runner of a study from its start on.

    A cluster is there for what this machine cannot do, and a GPU has no room for two processes that train: both are
    Ray's alone, unless threads are asked for.
    """
    alone = study.runner == AutoRunner.name and (on_cluster(study) or study.device == "cuda")
    return RUNNERS[TuneRunner.name if alone else study.runner]
