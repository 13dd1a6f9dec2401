"""Engines do the arithmetic of the training loop, for CPUs and GPUs."""

import threading
from typing import cast

from trainers.cohort import Architecture, Cohort
from trainers.engines.base import Engine
from trainers.engines.batched.engine import BatchedEngine
from trainers.engines.columns.mlp import ColumnsEngine
from trainers.engines.columns.resnet import ResNetColumnsEngine
from trainers.engines.image_choice import fastest_image_path
from trainers.engines.pixel_choice import fastest_path
from trainers.engines.precision import one_thread as one_thread
from trainers.methods import Columns
from trainers.networks import OwnNetwork, make_network
from trainers.numeric_path import NumericPath
from trainers.streams.base import ImageStream, PixelStream, TaskStream
from trainers.streams.competing import check_scenario

_IMPORTS = threading.Lock()


def make_engine(
    cohort: Cohort, seeds: tuple[int, ...], stream: TaskStream, architecture: Architecture, path: NumericPath
) -> Engine:
    """Returns the engine that a numeric path names, or the method's own.

    For learners of these seeds that are alike in all that is not per learner. All but the engines of multilayer
    perceptrons in batches or columns take one seed: of another the tasks may have another number of steps, and the
    compiled engine's data are to stay in the cache. Raises ValueError where a method has no form for the network, or an
    own one cannot be trained on the stream, and ForeignError where its code fails.
    """
    architecture.check(cohort.declared)
    check_scenario(cohort.declared, stream)
    if isinstance(cohort.declared.rule, Columns):
        if architecture.residual:
            return ResNetColumnsEngine(cohort, seeds, cast(ImageStream, stream), architecture, path)
        return ColumnsEngine(cohort, seeds, cast(PixelStream, stream), architecture, path)
    if not architecture.perceptron or path.device != "cpu" or path.products == "torch":
        return BatchedEngine(cohort, seeds, stream, architecture, path)
    # Numba is imported where it is needed only: a GPU machine need not have it. By one thread at a time: where there is
    # no memory for it, another thread would see half of it, and say something else.
    with _IMPORTS:
        from trainers.engines.compiled.engine import CompiledEngine

    return CompiledEngine(cohort, seeds, cast(PixelStream, stream), architecture, path)


def way_of(architecture: Architecture, stream: TaskStream, path: NumericPath) -> str:
    """Returns in words, for a report, how members of an own network are trained; "" for our networks.

    Raises as `make_network` does.
    """
    net = make_network(architecture, stream)
    return net.way(path.one_by_one) if isinstance(net, OwnNetwork) else ""


def fastest_for(stream: TaskStream, architecture: Architecture) -> NumericPath:
    """Returns the fastest numeric path of this machine's CPU for what is trained on a stream, by a measurement.

    Of an own network the one that trains its members one after another, bit-identical in any cohort; not measured.
    """
    if architecture.own:
        return NumericPath(products="onednn")
    if architecture.residual:
        return fastest_image_path(architecture.network, cast(ImageStream, stream).pixels.shape[1])
    pixels = cast(PixelStream, stream)
    return fastest_path(pixels.inputs, architecture.hidden, pixels.density)
