"""Whether the cohorts of a study of images fit into memory, said before it starts."""

from dataclasses import replace
from typing import TypeVar

from rich.console import Console

from epsearch.runners.slots import local_slots
from epsearch.study import Comparison, MemoryStudy, Setup, Study
from trainers.cohort import Cohort, Member, TrainConfig
from trainers.numeric_path import NumericPath
from trainers.streams.base import TaskStream

GIB = 2**30
AnySetup = TypeVar("AnySetup", bound=Setup)


def fitted(study: AnySetup, stream: TaskStream, console: Console, quiet: bool) -> AnySetup:
    """The study with as many workers as fit, where it was not told how many; one line says what they take."""
    if study.network == "mlp":
        return study
    from trainers.footprint import free_bytes

    path = NumericPath.parse(str(study.numeric_path))
    needed, free, slots = estimate(study, stream, path), free_bytes(path), local_slots(study)
    fit = slots if free is None else max(1, min(slots, free // needed))
    line = f"a cohort takes about {needed / GIB:.1f} GiB"
    if free is not None:
        line += f", {free / GIB:.1f} GiB are free"
    if fit < slots and study.workers is None and study.address == "local":
        line += f": {fit} at a time instead of {slots}"
        study = replace(study, workers=fit)
    if not quiet:
        console.print(line, highlight=False, soft_wrap=True)
    return study


def estimate(study: Setup, stream: TaskStream, path: NumericPath) -> int:
    """Bytes of a member of the method that takes the most."""
    from trainers.footprint import bytes_of

    one, config = (Member(0.5, study.seeds[0], strength=1.0),), _largest_config(study)
    return max(bytes_of(Cohort(method, one), stream, config, path) for method in _methods(study))


def _methods(study: Setup) -> tuple[str, ...]:
    if isinstance(study, Study):
        return (study.method,)
    assert isinstance(study, (Comparison, MemoryStudy))
    return study.methods


def _largest_config(study: Setup) -> TrainConfig:
    """What the estimate depends on."""
    memory = max(study.sizes) if isinstance(study, MemoryStudy) else study.memory  # type: ignore[attr-defined]
    return TrainConfig(
        batch_size=study.batch_size,
        memory=memory,
        memory_batch=study.memory_batch,
        network=study.network,
        pretrained=study.pretrained,
    )
