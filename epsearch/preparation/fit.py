"""Whether as many members of a study of images as are trained at a time fit into memory, said before it starts."""

from dataclasses import replace
from typing import TypeVar

from epsearch.events import Events
from epsearch.preparation.rules import RULES
from epsearch.runners.local import local_slots
from epsearch.study.description import Study
from trainers.cohort import Cohort
from trainers.numeric_path import NumericPath
from trainers.streams.base import TaskStream

GIB = 2**30
AnyStudy = TypeVar("AnyStudy", bound=Study)


def fitted(study: AnyStudy, stream: TaskStream, events: Events) -> AnyStudy:
    """The study with as many workers as fit, where it was not told how many; one line says what they take."""
    if study.network == "mlp":
        return study
    from trainers.footprint import free_bytes

    path = NumericPath.parse(str(study.numeric_path))
    needed, free, slots = estimate(study, stream, path), free_bytes(path), local_slots(study)
    fit = slots if free is None else max(1, min(slots, free // needed))
    line = f"one member takes about {needed / GIB:.1f} GiB"
    if free is not None:
        line += f", {free / GIB:.1f} GiB are free"
    if fit < slots and study.workers is None and study.address == "local":
        line += f": {fit} at a time instead of {slots}"
        study = replace(study, workers=fit)
    events.note(line)
    return study


def estimate(study: Study, stream: TaskStream, path: NumericPath) -> int:
    """Bytes of one member of what takes the most."""
    from trainers.footprint import bytes_of

    return max(bytes_of(Cohort((one,)), stream, study.architecture, path) for one in RULES[study.kind].trained(study))
