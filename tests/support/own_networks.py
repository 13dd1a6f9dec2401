"""Modules as users write them, and runs of them by a plain loop."""

import torch
from torch import nn

from tests.support.image_run import ImageLearner
from tests.support.plain_run import run_of
from tests.support.reference import PlainLearner
from trainers.networks import make_network
from trainers.schedule import generator


def perceptron(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, outputs))


def normalised(inputs, outputs):
    """A convolution for images, with batch normalisation; one value of a channel is left of them."""
    channels, _, _ = inputs
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 12, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, outputs),
    )


class Deciding(nn.Module):
    """What is done depends on numbers: torch.func cannot batch that."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        found = self.module(x)
        return found if float(found.detach().sum()) < float("inf") else -found


def deciding(inputs, outputs):
    return Deciding(normalised(inputs, outputs) if isinstance(inputs, tuple) else perceptron(inputs, outputs))


class Recurrent(nn.Module):
    """Reads pixels one by one."""

    def __init__(self, outputs):
        super().__init__()
        self.cell, self.last = nn.GRU(1, 8, batch_first=True), nn.Linear(8, outputs)

    def forward(self, x):
        return self.last(self.cell(x[..., None])[0][:, -1])


def own_run(one, stream, architecture):
    """As `plain_run`, of a network of a user's: of images in float64."""
    made = untrained_module(one.seed, stream, architecture)
    if hasattr(stream, "pixels"):
        network = ImageLearner(made.double(), stream.heads(one.seed), stream.balanced)
        network.numbers = [*stream.tasks]

        def examples(positions, labels):
            x = torch.from_numpy(stream.pixels[positions] / 255 - stream.mean)
            return x.permute(0, 3, 1, 2), torch.from_numpy(labels)
    else:
        network = OwnLearner(made)

        def examples(inputs, labels):
            return torch.from_numpy(inputs).float() / stream.largest, torch.from_numpy(labels)

    return run_of(network, examples, one, stream)


def untrained_module(seed, stream, architecture):
    """What the user's factory makes, with the start that a seed has."""
    net = make_network(architecture, stream)
    row = torch.from_numpy(net.init(generator(seed, "init", min(stream.tasks))))
    averages = net.statistics(row[None]).get("statistics")
    made = net.facts.plugged.factory(net.facts.inputs, net.facts.outputs)
    made.load_state_dict(net.state_dict(row, None if averages is None else averages[0]))
    return made


class OwnLearner(PlainLearner):
    def __init__(self, network):
        self.network = network


def flat_row(net, row):
    """One member's parameters [D] in the order of `PlainLearner.flat`."""
    return torch.cat([view.reshape(-1) for view in net.layout.views(row).values()])
