"""Whether as many members of a study of images as are trained at a time fit into memory, said before it starts."""

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


def fitted(study: AnyStudy, stream: TaskStream, listener: Listener) -> AnyStudy:
    """The study with as many workers as fit, where it was not told how many; one line says what they take.

    Networks of pixels take next to nothing and are not looked at. Where the system does not say how much memory is
    free, nothing is changed.
    """
    if study.foreign or study.network == "mlp":
        return study
    from trainers.footprint import bytes_of, free_bytes

    path = NumericPath.parse(str(study.numeric_path))
    # Of the learner that takes the most: which one a worker gets is not known yet.
    cohorts = [Cohort((one,)) for one in CHECKS[study.kind].trained(study)]
    needed = max(bytes_of(cohort, stream, study.architecture, path) for cohort in cohorts)
    free, slots = free_bytes(path), local_slots(study)
    # One at least: a cohort that does not fit all the same is trained in halves.
    fit = slots if free is None else max(1, min(slots, free // needed))
    known = "" if free is None else f", {free / GIB:.1f} GiB are free"
    line = f"one member takes about {needed / GIB:.2g} GiB{known}"
    if fit < slots and study.workers is None and not on_cluster(study):
        line += f": {fit} at a time instead of {slots}"
        study = replace(study, workers=fit)
    listener(Note(line))
    return study
