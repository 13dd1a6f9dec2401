"""Limits the workers of a study of images by the free memory."""

from dataclasses import replace
from typing import TypeVar

from epsearch.events import Listener, Note
from epsearch.preparation.checks import CHECKS
from epsearch.runners.local import local_slots
from epsearch.runners.registry import on_cluster
from epsearch.study.description import Study
from trainers.cohort import Cohort
from trainers.numeric_path import NumericPath
from trainers.streams.base import TaskStream

GIB = 2**30
AnyStudy = TypeVar("AnyStudy", bound=Study)


def limit_workers(study: AnyStudy, stream: TaskStream, listener: Listener) -> AnyStudy:
    """Returns the study with as many workers as fit into memory, unless it sets their number; notifies the listener.

    Networks of pixels are left as they are, as they take little. So are all where the free memory is unknown.
    """
    if study.foreign or study.network == "mlp":
        return study
    from trainers.footprint import bytes_of
    from trainers.free_memory import free_bytes

    path = NumericPath.parse(str(study.numeric_path))
    # Of the largest learner, as any worker may get it.
    cohorts = [Cohort((learner,)) for learner in CHECKS[study.kind].trained(study)]
    needed = max(bytes_of(cohort, stream, study.architecture, path) for cohort in cohorts)
    free, slots = free_bytes(path), local_slots(study)
    # At least one: a cohort that does not fit is trained in halves.
    fit = slots if free is None else max(1, min(slots, free // needed))
    room = "" if free is None else f", {free / GIB:.1f} GiB are free"
    line = f"one member takes about {needed / GIB:.2g} GiB{room}"
    if path.device == "cpu" and fit < slots and study.workers is None and not on_cluster(study):
        line += f": {fit} at a time instead of {slots}"
        study = replace(study, workers=fit)
    listener(Note(line))
    return study
