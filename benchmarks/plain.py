"""A-GEM as anyone would write it in PyTorch: one member, nn.Sequential, autograd, flattened gradients, SGD by hand."""

import torch
from torch import Tensor, nn


class PlainLoop:
    """Holds a network and takes A-GEM steps on given batches."""

    def __init__(self, inputs: int, hidden: tuple[int, ...], classes: int, learning_rate: float) -> None:
        sizes = (inputs, *hidden)
        layers: list[nn.Module] = []
        for size, following in zip(sizes, hidden, strict=False):
            layers += [nn.Linear(size, following), nn.ReLU()]
        self.network = nn.Sequential(*layers, nn.Linear(sizes[-1], classes))
        self.parameters = list(self.network.parameters())
        self.learning_rate = learning_rate

    def step(self, x: Tensor, y: Tensor, x_ref: Tensor, y_ref: Tensor) -> None:
        g_ref = self._gradient(x_ref, y_ref)
        g = self._gradient(x, y)
        dot = torch.dot(g, g_ref)
        if dot < 0:
            g = g - dot / torch.dot(g_ref, g_ref) * g_ref
        with torch.no_grad():
            start = 0
            for parameter in self.parameters:
                step = g[start : start + parameter.numel()].view_as(parameter)
                parameter.sub_(step, alpha=self.learning_rate)
                start += parameter.numel()

    def _gradient(self, x: Tensor, y: Tensor) -> Tensor:
        loss = nn.functional.cross_entropy(self.network(x), y)
        return torch.cat([grad.reshape(-1) for grad in torch.autograd.grad(loss, self.parameters)])
