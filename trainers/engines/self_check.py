"""Checks the arithmetic of a device before training.

Its steps are compared with float64, its graphs with its steps. Results of a GPU are never judged by those of float32 on
a CPU, whose own rounding in batch normalisation is the larger one. Both engines begin every step where the device's
parameters are, so that nothing adds up.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import cast

import numpy as np
import torch
from torch import Tensor

from trainers.cohort import SMALLEST_IMAGE, Architecture, Cohort, Learner
from trainers.engines import make_engine
from trainers.engines.base import Engine, Learners
from trainers.engines.batched.engine import BatchedEngine
from trainers.engines.batched.graphs import ROUNDING, GraphMismatch, distance
from trainers.engines.columns.mlp import ColumnsEngine
from trainers.engines.columns.resnet import ResNetColumnsEngine
from trainers.hyperparameters import Value
from trainers.networks.base import Batch
from trainers.numeric_path import NumericPath
from trainers.scenarios import DOMAIN, SCENARIOS
from trainers.streams import PermutedStream
from trainers.streams.base import Examples, Images, ImageStream, PixelStream, TaskStream
from trainers.streams.competing import scenario_of
from trainers.streams.images.image_set import ImageSet
from trainers.streams.images.split import SplitStream
from trainers.streams.split_pixels import SplitPixelsStream

TASKS = range(3)
STEPS, IMAGE_STEPS = 20, 6  # of each task: float64 on a CPU is slow
# Learning rate, ε. Steps so long that the rounding of the parameters themselves is little beside them.
LEARNERS = ((0.3, 0.5), (0.15, 0.0))
IMAGE_RATE = 1 / 3  # of those rates
SIZES: dict[str, Value] = {"batch_size": 10, "memory": 5, "memory_batch": 20, "fisher_every": 5}
WEIGHTS: dict[str, Value] = {"strength": 0.01, "alpha": 0.001, "beta": 0.1}  # no method diverges by them
IMAGE_SIZES: dict[str, Value] = {"batch_size": 3, "memory": 2, "memory_batch": 4}
CLASSES, ATTRIBUTES = 6, 8

# Of the change of the parameters in one step: the median difference from float64, relative. Where nothing is wrong it
# is a tenth of this or less; gradients that are rounded to 8 bits are above it.
TOLERANCE, RESIDUAL, TF32 = 5e-5, 2e-3, 1e-2
# A ReLU that opens in one arithmetic and not in the other is no fault: so many steps may be so many times as far.
KINKS, FAR = 0.1, 100.0

EngineOf = Callable[[Cohort, tuple[int, ...], TaskStream, Architecture, NumericPath], Engine]


class SelfCheckFailed(RuntimeError):
    """The device does not compute what it should; the message is one line."""


@dataclass(frozen=True)
class _Checked:
    """Result of a self-check that passed."""

    plain: float
    """Median relative difference from float64 of the change of parameters in steps that project nothing."""
    projected: float
    """The same of steps that project; 0 where there are none."""
    graphs: bool | None
    """Whether graphs take the steps that the code takes; None where none were recorded."""

    def __str__(self) -> str:
        steps = {True: "graphs", False: "nographs", None: "steps"}[self.graphs]
        return f"{steps}-{max(self.plain, self.projected):.0e}"


def check(
    learner: Learner,
    stream: TaskStream,
    architecture: Architecture,
    path: NumericPath,
    engine_of: EngineOf = make_engine,
) -> _Checked:
    """Trains a few learners on small made-up tasks, on the path's device and in float64 on the CPU.

    learner: one such as are to be trained; its sizes, learning rate, ε and weights are chosen here. stream: with inputs
    and a head such as are to be trained on. engine_of: what makes the engine that is checked. Raises SelfCheckFailed.
    """
    network = architecture if architecture.pretrained is None else replace(architecture, pretrained=None)
    small = make_noise_tasks(stream, network, learner.declared.scenarios)
    cohort = _cohort(learner, network)
    with torch.no_grad(), engine_of(cohort, (0,), small, network, path) as engine:
        exact = in_float64(make_engine(cohort, (0,), small, network, NumericPath()))
        plain, projected = _against(engine, exact, cohort, STEPS if network.perceptron else IMAGE_STEPS)
        allowed = TF32 if path.precision == "tf32" else TOLERANCE if network.perceptron else RESIDUAL
        for what, far in (("", plain), (" that are projected", projected)):
            _judge(f"{learner.method} on {network.network}", what, far, allowed)
        graphs = _recorded_alike(engine, cohort)
    return _Checked(median(plain), median(projected or [0.0]), graphs)


def make_noise_tasks(like: TaskStream, network: Architecture, scenarios: tuple[str, ...] = SCENARIOS) -> TaskStream:
    """Returns three small tasks of noise, with inputs and a head like those of another stream.

    The inputs have the same size, and the head is of the same kind. The scenario is the stream's, or the first of
    `scenarios`, with two classes a task at least.
    """
    rng = np.random.default_rng(0)
    scenario = scenario_of(like) if scenario_of(like) in scenarios else scenarios[0]
    if not hasattr(like, "pixels"):
        pixel = cast(PixelStream, like)
        outputs = pixel.outputs if scenario == scenario_of(like) else max(pixel.outputs, 2 * len(TASKS))
        labels = np.arange(max(outputs, 200)) % outputs
        bytes_ = rng.integers(0, int(pixel.largest) + 1, (len(labels), pixel.inputs)).astype(np.uint8)
        part = Examples(bytes_, labels)
        images = Images(part, part, outputs, pixel.largest)
        if scenario != DOMAIN and outputs >= len(TASKS):
            return SplitPixelsStream(images, TASKS, outputs // len(TASKS), None, scenario)
        return PermutedStream(images, TASKS, 200)
    image, side = cast(ImageStream, like), SMALLEST_IMAGE.get(network.network)
    height, width = image.pixels.shape[1:3] if side is None else (side, side)
    labels = np.tile(np.arange(CLASSES), 34)
    pixels = rng.integers(0, 256, (len(labels), height, width, 3)).astype(np.uint8)
    test = np.arange(len(labels)) >= 30 * CLASSES
    attributes = rng.random((CLASSES, ATTRIBUTES), dtype=np.float32)
    mean = np.full((height, width, 3), 0.5, dtype=np.float32)
    names = tuple(map(str, range(CLASSES)))
    made = ImageSet(pixels, labels, test, np.zeros_like(test), names, attributes, mean, "made up")
    of_images = scenario if scenario in SplitStream.scenarios else None
    return SplitStream(made, TASKS, CLASSES // len(TASKS), None, image.attributes is not None, of_images)


def in_float64(engine: Engine) -> Engine:
    """Returns the engine, for learners in float64: inputs are what float32 has of them."""
    if isinstance(engine, (BatchedEngine, ResNetColumnsEngine)):
        batch = engine._feed.batch

        def wide(rows: Tensor, seed: Tensor) -> Batch:
            made = batch(rows, seed)
            return made._replace(x=made.x.double())

        engine._feed.batch = wide  # type: ignore[method-assign]
    elif isinstance(engine, ColumnsEngine):
        scale = engine._scale
        engine._scale = lambda stored: scale(stored).double()  # type: ignore[method-assign]
    return engine


def _cohort(learner: Learner, network: Architecture) -> Cohort:
    """Returns two learners of the method, with values that are known to tell faults from rounding."""
    own, rate = learner.hyperparameters, 1.0 if network.perceptron else IMAGE_RATE
    sizes = WEIGHTS | (SIZES if network.perceptron else SIZES | IMAGE_SIZES)
    tried = (sizes | {"lr": lr * rate, "epsilon": epsilon} for lr, epsilon in LEARNERS)
    combinations = ({name: value for name, value in values.items() if name in vars(own)} for values in tried)
    return Cohort(tuple(Learner(learner.method, own.but(**values), seed=0) for values in combinations))


def _new_learners(engine: Engine, cohort: Cohort) -> Learners:
    params, names = engine.start().repeat(len(cohort.learners), 1), cohort.declared.per_learner
    values = {name: [learner.hyperparameters.get(name) for learner in cohort.learners] for name in names}
    seed = torch.zeros(len(params), dtype=torch.int64, device=params.device)
    return Learners.of(params, seed, values, engine.state(params))


def _against(engine: Engine, exact: Engine, cohort: Cohort, most: int) -> tuple[list[float], list[float]]:
    """Returns the differences of the steps that project nothing, and of those that do, by member and step."""
    learners, differences = _new_learners(engine, cohort), ([], [])  # type: tuple[Learners, tuple[list[float], list[float]]]
    for task in TASKS:
        for each in (engine, exact):
            each.load_task(task)
        learners.reset()
        for step in range(min(engine.steps, most)):
            for far, projected in _step(engine, exact, learners, step):
                differences[projected].append(far)
        engine.finish(learners, task == 0)
        for each in (engine, exact):
            each.remember(task)
    return differences


def _step(engine: Engine, exact: Engine, learners: Learners, step: int) -> Iterator[tuple[float, bool]]:
    """Takes a step with both; of each member (difference of the change of its parameters, whether it was projected)."""
    wide = _wide(learners)
    before, projected = wide.params.clone(), wide.projected.clone()
    exact.train(wide, step, step + 1)
    engine.train(learners, step, step + 1)
    meant, moved = wide.params - before, learners.params.cpu().double() - before
    far = (moved - meant).norm(dim=1) / meant.norm(dim=1)
    yield from zip(far.nan_to_num(torch.inf).tolist(), (wide.projected > projected).tolist(), strict=True)


def _wide(learners: Learners) -> Learners:
    """Returns a copy in float64, on the CPU."""
    values = {name: value.cpu() for name, value in learners.own.items()}
    state = {name: value.cpu().double() for name, value in learners.state.items()}
    rest = (learners.first_bad.cpu().clone(), learners.projected.cpu().clone())
    return Learners(learners.params.cpu().double(), learners.seed.cpu(), values, *rest, state)


def _judge(who: str, what: str, far: list[float], allowed: float) -> None:
    """Raises SelfCheckFailed where the differences are no rounding."""
    beyond = sum(error > FAR * allowed for error in far)
    if far and (median(far) > allowed or beyond > KINKS * len(far)):
        raise SelfCheckFailed(
            f"the self-check of {who} failed: steps{what} move the parameters otherwise than float64 does, by "
            f"{median(far):.0e} of the step in the median of {len(far)} (allowed {allowed:.0e}), in {beyond} by more "
            f"than {FAR * allowed:.0e}"
        )


def _recorded_alike(engine: Engine, cohort: Cohort) -> bool | None:
    """Returns whether a task by graphs ends as it does step by step, bit for bit; None without a recorded graph.

    Where the code does not repeat itself bit for bit, by no more than a few times as much.
    """
    if not isinstance(engine, BatchedEngine) or engine.graphs is None:
        return None
    start = _new_learners(engine, cohort)
    engine.load_task(TASKS[1])  # what was remembered of the first task is its memory

    def train_copy(graphs: bool) -> tuple[Tensor, ...]:
        learners = _copy(start)
        recorder, engine.graphs = engine.graphs, engine.graphs if graphs else None
        engine.train(learners, 0, engine.steps)
        engine.graphs = recorder
        return learners.arrays

    try:
        replayed, stepped = train_copy(True), train_copy(False)
    except GraphMismatch:
        return False
    if not engine.graphs.used:
        return None
    far = distance(replayed, stepped)
    return far == 0 or far <= ROUNDING * distance(stepped, train_copy(False))


def _copy(learners: Learners) -> Learners:
    rest = (learners.first_bad.clone(), learners.projected.clone())
    state = {name: value.clone() for name, value in learners.state.items()}
    return Learners(learners.params.clone(), learners.seed, learners.own, *rest, state)
