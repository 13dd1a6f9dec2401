"""Networks that grow: engines of every numeric path, learners on the way, and the networks that they are equal to."""

import pytest
import torch

from tests.support.learners import engine_of, learner, untrained
from trainers import Architecture
from trainers.numeric_path import NumericPath

SMALL = (24, 16)
PATHS = (NumericPath(products="mkl"), NumericPath(products="onednn"), NumericPath())
on_every_path = pytest.mark.parametrize("path", PATHS, ids=str)


def learners(engine, rates=(0.1,), seed=None):
    """Learners on the way, as the training loop has them: their seeds are indices into the engine's."""
    return untrained(engine, [learner("prognn", lr=rate) for rate in rates], seed)


def made(stream, seeds, path, hidden=SMALL, batch_size=4, **values):
    return engine_of(
        learner("prognn", batch_size=batch_size, **values), stream, path, Architecture(hidden=hidden), seeds
    )


def trained(engine, members, tasks):
    for task in range(tasks):
        engine.load_task(task)
        engine.train(members, 0, engine.steps)
        engine.finish(members, task == 0)
        engine.remember(task)
    return members


def unpadded(net, column, number):
    """The layers of a column as lists of (one matrix [out, in] a source, bias [out]); one source in the first layer."""
    found = []
    for index, (weight, bias) in enumerate(column):
        k, n = net.sizes[index : index + 2]
        stride = net.widths[index]
        sources = [weight[j * stride : j * stride + k, :n].T for j in range(number + 1 if index else 1)]
        found.append((sources, bias[:n]))
    return found


def summands(total, count, rng):
    """`count` random tensors whose sum is the total."""
    parts = [torch.randn(total.shape, generator=rng, dtype=total.dtype) * 0.1 for _ in range(count - 1)]
    return [*parts, total - sum(parts)]


def split(layers, number, rng):
    """[layer][source] = (weight [out, in], bias [out]): W, b and every U, c; they add up to the collapsed layers."""
    return [
        list(
            zip(
                sources if index else summands(sources[0], number + 1, rng),
                summands(bias, number + 1, rng),
                strict=True,
            )
        )
        for index, (sources, bias) in enumerate(layers)
    ]


class Progressive(torch.nn.Module):
    """The network of Rusu et al. as anyone would write it: columns[k][l][j] is W and b for j = k, else U and c."""

    def __init__(self, columns):
        super().__init__()
        self.columns = torch.nn.ModuleList(
            torch.nn.ModuleList(torch.nn.ModuleList(linear(*pair) for pair in layer) for layer in column)
            for column in columns
        )

    def forward(self, x, number):
        below = [x] * (number + 1)
        for index in range(len(self.columns[0])):
            above = [
                sum(part(h) for part, h in zip(self.columns[k][index], below, strict=False)) for k in range(number + 1)
            ]
            below = [torch.relu(z) for z in above]
        return above[number]

    def step(self, x, y, number, rate, outputs=slice(None), optimizer=None):
        """outputs: those of the task, of which labels are numbers; optimizer: torch's, else plain SGD."""
        trainable = list(self.columns[number].parameters())
        loss = torch.nn.functional.cross_entropy(self(x, number)[:, outputs], y - (outputs.start or 0))
        for parameter, gradient in zip(trainable, torch.autograd.grad(loss, trainable), strict=True):
            if optimizer:
                parameter.grad = gradient
            else:
                parameter.data -= rate * gradient
        if optimizer:
            optimizer.step()

    def collapsed(self, number):
        """The parameters that act, in the order of `unpadded`, as one vector."""
        parts = []
        for index, layer in enumerate(self.columns[number]):
            weights = [part.weight for part in layer]
            parts += weights if index else [sum(weights)]
            parts.append(sum(part.bias for part in layer))
        return torch.cat([part.detach().reshape(-1) for part in parts])


def linear(weight, bias):
    made = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype)
    made.weight.data, made.bias.data = weight.clone(), bias.clone()
    return made


def flat(net, column, number):
    layers = unpadded(net, column, number)
    return torch.cat([part.reshape(-1) for sources, bias in layers for part in (*sources, bias)])


def progressive(net, row):
    rng = torch.Generator().manual_seed(1)
    return Progressive([split(unpadded(net, c, k), k, rng) for k, c in enumerate(net.columns(row))])
