"""Engines do the arithmetic of the training loop: one compiled for CPUs, one of tensors for GPUs."""

from typing import cast

from trainers.cohort import Architecture, Cohort
from trainers.engines.base import Engine
from trainers.engines.batched.engine import BatchedEngine
from trainers.engines.columns.mlp import ColumnsEngine
from trainers.engines.columns.resnet import ResNetColumnsEngine
from trainers.methods import Columns
from trainers.numeric_path import NumericPath
from trainers.streams.base import ImageStream, PixelStream, TaskStream


def make_engine(
    cohort: Cohort, seeds: tuple[int, ...], stream: TaskStream, architecture: Architecture, path: NumericPath
) -> Engine:
    """The engine that a numeric path names, or the method's own.

    For learners of these seeds that are alike in all that is not per learner. Numba is imported where it is needed
    only.
    """
    grows = isinstance(cohort.declared.rule, Columns)
    if architecture.network != "mlp":
        if not grows:
            return BatchedEngine(cohort, seeds, stream, architecture, path)
        (seed,) = seeds
        return ResNetColumnsEngine(cohort, seed, cast(ImageStream, stream), architecture, path)
    pixels = cast(PixelStream, stream)
    if grows:
        return ColumnsEngine(cohort, seeds, pixels, architecture, path)
    if path.device == "cuda" or path.products == "torch":
        return BatchedEngine(cohort, seeds, stream, architecture, path)
    from trainers.engines.compiled.engine import CompiledEngine

    (seed,) = seeds
    return CompiledEngine(cohort, seed, pixels, architecture, path)
