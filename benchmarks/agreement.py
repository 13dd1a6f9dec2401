"""How far the engine's float32 results on a numeric path are from a plain float64 loop on the same batches."""

from itertools import pairwise
from typing import Any

import images as pictures
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from trainers import Cohort, Learner
from trainers.networks import MLP
from trainers.numeric_path import NumericPath
from trainers.population import MLP as NETWORK
from trainers.population import Training, train_cohort
from trainers.schedule import generator, memory_choice, reference_batches, training_order
from trainers.streams.permuted import PermutedStream

Labelled = tuple[Tensor, Tensor]
TESTS = 1000


def worst(
    path: NumericPath | None, epsilons: tuple[float, ...] = (0.0, 0.07185, 1.0), steps: int = 30
) -> dict[str, Any]:
    """Largest differences over runs of three tasks × `steps`: of the final parameters, relative to their norm, of an
    accuracy, and of the share of projected steps.

    Float32 and float64 may class an image differently that lies on the border of two classes: one image is 0.1 points.
    """
    chosen = tuple(Learner.of("soft_agem", seed=0, epsilon=epsilon) for epsilon in epsilons)
    stream = PermutedStream(pictures.made_up(chosen[0].shared.batch_size * steps, TESTS), range(3))
    sizes = (stream.inputs, *NETWORK.hidden, stream.classes)
    result = train_cohort(Cohort(chosen), Training(stream, NETWORK, path))
    parameters, accuracy, projected = 0.0, 0.0, 0.0
    for row, learner in enumerate(chosen):
        layers, exact, share = plain_float64(learner, stream)
        parameters = max(parameters, _distance(layers, layers_of(sizes, result.params[row])))
        lower = np.tri(len(exact), dtype=bool)
        accuracy = max(accuracy, float(np.abs(result.accuracies[row] - exact)[lower].max()))
        projected = max(projected, float(np.abs(result.violations[row] - share)[1:].max()))
    return {
        "steps": 3 * steps,
        "tests": TESTS,
        "epsilons": list(epsilons),
        "largest_parameter_difference": parameters,
        "largest_accuracy_difference": accuracy,
        "largest_projected_share_difference": projected,
    }


def _distance(exact: list[Labelled], other: list[Labelled]) -> float:
    ours, theirs = (torch.cat([part.reshape(-1) for layer in layers for part in layer]) for layers in (exact, other))
    return float((ours - theirs).norm() / ours.norm())


def layers_of(sizes: tuple[int, ...], row: NDArray[np.float32]) -> list[Labelled]:
    """A member's parameters without padding, in float64: weight [in, out] and bias of every layer."""
    views = MLP(sizes).layers(torch.from_numpy(row)[None])
    return [(w[0, :k, :n].double(), b[0, :n].double()) for (k, n), (w, b) in zip(pairwise(sizes), views, strict=True)]


def plain_float64(
    learner: Learner, stream: PermutedStream
) -> tuple[list[Labelled], NDArray[np.float64], NDArray[np.float64]]:
    """(final layers, accuracy [T, T] on task j after task k, share of projected steps [T]), with the engine's draws."""
    values, sizes = learner.hyperparameters, (stream.inputs, *NETWORK.hidden, stream.classes)
    start = MLP(sizes).init(generator(learner.seed, "init", stream.tasks.start))
    layers = [(w.clone().requires_grad_(), b.clone().requires_grad_()) for w, b in layers_of(sizes, start)]
    parameters = [part for layer in layers for part in layer]
    tasks, size = len(stream.tasks), values.batch_size
    accuracies, shares = np.full((tasks, tasks), np.nan), np.full(tasks, np.nan)
    memory: list[Labelled] = []
    for task, number in enumerate(stream.tasks):
        order = training_order(learner.seed, number, stream.available, stream.examples)
        x, y = double(stream.train(learner.seed, number, order), stream.largest)
        stored = (
            torch.cat([part[0] for part in memory]) if memory else x[:0],
            torch.cat([y[:0], *(p[1] for p in memory)]),
        )
        steps = -(-len(y) // size)
        drawn = reference_batches(learner.seed, number, len(stored[1]), values.memory_batch, steps)
        projected = 0
        for step in range(steps):
            now = slice(size * step, size * step + size)
            g = gradient(layers, parameters, (x[now], y[now]))
            if memory:
                rows = torch.from_numpy(np.array(drawn[step]))
                r = gradient(layers, parameters, (stored[0][rows], stored[1][rows]))
                projected += int(g @ r < 0)
                g = _direction(g, r, values.epsilon)
            with torch.no_grad():
                for part, step_part in zip(parameters, g.split([p.numel() for p in parameters]), strict=True):
                    part -= values.lr * step_part.view_as(part)
        kept = memory_choice(learner.seed, number, y.numpy(), values.memory)
        memory.append((x[kept], y[kept]))
        shares[task] = projected / steps
        for tested in range(task + 1):
            x_test, y_test = double(stream.test(learner.seed, stream.tasks[tested]), stream.largest)
            with torch.no_grad():
                accuracies[task, tested] = float((logits(layers, x_test).argmax(1) == y_test).double().mean())
    return [(w.detach(), b.detach()) for w, b in layers], accuracies, shares


def _direction(g: Tensor, r: Tensor, epsilon: float) -> Tensor:
    """Algorithm 1 of the ε-SOFT-GEM paper; ε = 0 is A-GEM."""
    if g @ r >= 0:
        return g
    if epsilon == 0:
        return g - (g @ r) / (r @ r) * r
    unit_g, unit_r = g / g.norm(), r / r.norm()
    return unit_g - (unit_g @ unit_r - epsilon) * unit_r


def double(examples: Any, largest: float) -> Labelled:
    return torch.tensor(examples.inputs, dtype=torch.float64) / largest, torch.tensor(examples.labels)


def logits(layers: list[Labelled], x: Tensor) -> Tensor:
    for index, (weight, bias) in enumerate(layers):
        x = x @ weight + bias
        if index + 1 < len(layers):
            x = x.relu()
    return x


def gradient(layers: list[Labelled], parameters: list[Tensor], batch: Labelled) -> Tensor:
    loss = functional.cross_entropy(logits(layers, batch[0]), batch[1])
    return torch.cat([part.reshape(-1) for part in torch.autograd.grad(loss, parameters)])
