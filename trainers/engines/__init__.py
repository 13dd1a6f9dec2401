"""Engines do the arithmetic of the training loop: one compiled for CPUs, one of tensors for GPUs."""

from typing import cast

from trainers.cohort import TrainConfig
from trainers.engines.base import Engine
from trainers.engines.batched.engine import BatchedEngine
from trainers.engines.columns.mlp import ColumnsEngine
from trainers.engines.columns.resnet import ResNetColumnsEngine
from trainers.methods import METHODS, Columns
from trainers.numeric_path import NumericPath
from trainers.streams.base import ImageStream, PixelStream, TaskStream


def make_engine(
    method: str, seeds: tuple[int, ...], stream: TaskStream, config: TrainConfig, path: NumericPath
) -> Engine:
    """The engine that a numeric path names, or the method's own. Numba is imported where it is needed only."""
    grows = isinstance(METHODS[method].rule, Columns)
    if config.network != "mlp" and grows:
        (seed,) = seeds
        return ResNetColumnsEngine(cast(ImageStream, stream), seed, config, path)
    if config.network != "mlp":
        return BatchedEngine(stream, seeds, config, METHODS[method], path)
    pixels = cast(PixelStream, stream)
    if grows:
        return ColumnsEngine(pixels, seeds, config, path)
    if path.device == "cuda" or path.products == "torch":
        return BatchedEngine(stream, seeds, config, METHODS[method], path)
    from trainers.engines.compiled.engine import CompiledEngine

    (seed,) = seeds
    return CompiledEngine(pixels, seed, config, METHODS[method], path)
