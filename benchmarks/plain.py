"""A-GEM as anyone would write it in PyTorch: one member, nn.Sequential, autograd, flattened gradients, SGD by hand."""

import torch
from torch import Tensor, nn

from trainers.streams.base import Images

Labelled = tuple[Tensor, Tensor]


class PlainLoop:
    """Holds a network and takes A-GEM steps on given batches."""

    def __init__(
        self, inputs: int, hidden: tuple[int, ...], classes: int, learning_rate: float, device: str = "cpu"
    ) -> None:
        sizes = (inputs, *hidden)
        layers: list[nn.Module] = []
        for size, following in zip(sizes, hidden, strict=False):
            layers += [nn.Linear(size, following), nn.ReLU()]
        self.network = nn.Sequential(*layers, nn.Linear(sizes[-1], classes)).to(device)
        self.parameters = list(self.network.parameters())
        self.learning_rate = learning_rate

    def step(self, x: Tensor, y: Tensor, reference: Labelled | None = None) -> None:
        g = self._gradient(x, y)
        if reference is not None:
            g_ref = self._gradient(*reference)
            dot = torch.dot(g, g_ref)
            if dot < 0:
                g = g - dot / torch.dot(g_ref, g_ref) * g_ref
        with torch.no_grad():
            start = 0
            for parameter in self.parameters:
                step = g[start : start + parameter.numel()].view_as(parameter)
                parameter.sub_(step, alpha=self.learning_rate)
                start += parameter.numel()

    def accuracy(self, x: Tensor, y: Tensor) -> float:
        with torch.no_grad():
            return float((self.network(x).argmax(1) == y).float().mean())

    def _gradient(self, x: Tensor, y: Tensor) -> Tensor:
        loss = nn.functional.cross_entropy(self.network(x), y)
        return torch.cat([grad.reshape(-1) for grad in torch.autograd.grad(loss, self.parameters)])


def train_member(
    images: Images, seed: int, tasks: int, examples: int, memory_batch: int = 256, per_class: int = 25, batch: int = 10
) -> list[list[float]]:
    """One whole trial on Permuted MNIST: after every task the accuracy on each task so far."""
    torch.manual_seed(seed)
    x, y = _tensors(images.train.inputs, images.train.labels, images.largest)
    x_test, y_test = _tensors(images.test.inputs, images.test.labels, images.largest)
    learner = PlainLoop(x.shape[1], (256, 256), images.classes, 0.1)
    permutations, accuracies = [], []
    memory: Labelled = x[:0], y[:0]
    for _ in range(tasks):
        permutations.append(torch.randperm(x.shape[1]))
        order = torch.randperm(len(x))[:examples]
        x_task, y_task = x[order][:, permutations[-1]], y[order]
        for start in range(0, examples, batch):
            drawn = torch.randperm(len(memory[1]))[:memory_batch]
            reference = (memory[0][drawn], memory[1][drawn]) if len(drawn) else None
            learner.step(x_task[start : start + batch], y_task[start : start + batch], reference)
        kept = torch.cat([torch.where(y_task == label)[0][:per_class] for label in range(images.classes)])
        memory = torch.cat([memory[0], x_task[kept]]), torch.cat([memory[1], y_task[kept]])
        accuracies.append([learner.accuracy(x_test[:, permutation], y_test) for permutation in permutations])
    return accuracies


def _tensors(inputs: object, labels: object, largest: float) -> Labelled:
    return torch.tensor(inputs, dtype=torch.float32) / largest, torch.tensor(labels)
