"""Whole runs on streams of images by a plain loop over one member of torch.nn modules, each example under its mask."""

import itertools

import numpy as np
import torch

from tests.support.plain_run import run_of
from tests.support.reference import PlainLearner
from tests.support.torch_resnet import TorchResNet
from trainers.networks import make_resnet
from trainers.scenarios import CLASS
from trainers.schedule import generator
from trainers.streams.competing import scenario_of


def plain_image_run(one, stream, architecture):
    """As `plain_run`, for a residual network, in float64."""
    net = make_resnet(architecture, stream)
    row = torch.from_numpy(net.init(generator(one.seed, "init", min(stream.tasks)))).double()
    attributes = None if stream.attributes is None else torch.tensor(stream.attributes)
    network = ImageLearner(torch_twin(net, row, attributes), stream.heads(one.seed), stream.balanced)
    network.seen = [*stream.tasks] if scenario_of(stream) == CLASS else None
    network.numbers = [*stream.tasks]
    network.mixed = getattr(stream, "mixed", False)

    def examples(positions, labels):
        x = torch.from_numpy(stream.pixels[positions] / 255 - stream.mean)
        return x.permute(0, 3, 1, 2), torch.from_numpy(labels)

    return run_of(network, examples, one, stream)


def torch_twin(net, row, attributes):
    """The network of torch.nn with a row's parameters; names and order are those of torchvision."""
    made = TorchResNet(net.widths, net.large, net.head.outputs, attributes).to(row.dtype)
    named, views = dict(made.named_parameters()), net.layout.views(row[None])
    assert named.keys() == views.keys()
    with torch.no_grad():
        for name, view in views.items():
            named[name].copy_(view[0])
    return made


def flat_row(net, row):
    """One member's parameters [D] in the order of `PlainLearner.flat`."""
    views = net.layout.views(row)
    made = TorchResNet(net.widths, net.large, net.head.outputs, getattr(net.head, "_attributes", None))
    return torch.cat([views[name].reshape(-1) for name, _ in made.named_parameters()])


class ImageLearner(PlainLearner):
    """A residual network that sees, of every example, its own task's outputs alone."""

    normalises = True
    seen = None
    """All tasks, in a class-incremental stream, where outputs of tasks so far compete."""
    mixed = False
    """Whether all of them are seen from the first step on."""

    def __init__(self, network, heads, balanced):
        self.network, self._heads, self._balanced = network, torch.from_numpy(heads), balanced

    def outputs(self, x):
        self.network.train()
        return self.network(x)

    def outputs_of(self, label):
        return torch.nonzero(self._allowed(torch.tensor([label]))[0])[:, 0].tolist()

    def known(self):
        groups = [torch.nonzero(self._heads == number)[:, 0].tolist() for number in self.numbers[: self.task]]
        if self.seen is None:
            return [(group, group) for group in groups]
        old = sorted(itertools.chain(*groups))
        return [(old, self.outputs_of(int(old[0])))] if old else []

    def gradient(self, x, y):
        self.network.train()
        logits = self.network(x)
        losses = [
            torch.nn.functional.cross_entropy(z[mine][None], (torch.nonzero(mine)[:, 0] == label).nonzero()[:, 0])
            for z, label, mine in zip(logits, y, self._allowed(y), strict=True)
        ]
        return self._flat_gradient(torch.stack(losses).mean())

    def sensitivity(self, x, y):
        self.network.eval()
        return self._flat_gradient((self.network(x)[self._allowed(y)] ** 2).sum())

    def accuracy(self, x, y):
        self.network.eval()
        with torch.no_grad():
            logits = self.network(x).masked_fill(~self._allowed(y), -torch.inf)
        hits = (logits.argmax(1) == y).double().numpy()
        if self._balanced:
            return float(np.mean([hits[y.numpy() == label].mean() for label in np.unique(y)]))
        return float(hits.mean())

    def _allowed(self, y):
        if self.seen is not None:
            seen = self.seen if self.mixed else self.seen[: self.task + 1]
            return torch.tensor([int(head) in seen for head in self._heads]).repeat(len(y), 1)
        return self._heads[y][:, None] == self._heads
