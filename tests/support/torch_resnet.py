"""An ordinary residual network of torch.nn modules, written from the paper's text, to compare with."""

import torch
from torch import nn


class BasicBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor, beside: torch.Tensor | float = 0.0) -> torch.Tensor:
        h = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(h + self.downsample(x) + beside)


class TorchResNet(nn.Module):
    """`large`: the stem and pooling of ImageNet. attributes: a joint embedding instead of a linear layer."""

    def __init__(
        self, widths: tuple[int, ...], large: bool, outputs: int, attributes: torch.Tensor | None = None
    ) -> None:
        super().__init__()
        self.large, self.attributes = large, attributes
        self.conv1 = nn.Conv2d(3, widths[0], 7 if large else 3, 2 if large else 1, 3 if large else 1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        inputs = widths[0]
        for stage, width in enumerate(widths, 1):
            stride = 1 if stage == 1 else 2
            blocks = nn.Sequential(BasicBlock(inputs, width, stride), BasicBlock(width, width, 1))
            setattr(self, f"layer{stage}", blocks)
            inputs = width
        if attributes is None:
            self.fc = nn.Linear(inputs, outputs)
        else:
            self.embedding = nn.Linear(inputs, attributes.shape[1])  # weight [A, F]; its bias is replaced
            self.embedding.bias = nn.Parameter(torch.zeros(len(attributes)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for stage in range(5):
            x = self.stage(stage, x)
        features = x.mean(dim=(2, 3))
        if self.attributes is None:
            return self.fc(features)
        return features @ (self.attributes @ self.embedding.weight).T + self.embedding.bias

    def stage(self, number: int, x: torch.Tensor, beside: torch.Tensor | float = 0.0) -> torch.Tensor:
        """The stem, 0, or a stage of blocks; `beside` is added before its last ReLU."""
        if number:
            first, last = getattr(self, f"layer{number}")
            return last(first(x), beside)
        h = torch.relu(self.bn1(self.conv1(x)) + beside)
        return nn.functional.max_pool2d(h, 3, stride=2, padding=1) if self.large else h


class ProgressiveResNet(nn.Module):
    """A column for each task; laterals[k][j] lead from column j to column k: one a stage, one to the logits."""

    def __init__(self, widths: tuple[int, ...], large: bool, outputs: int, count: int) -> None:
        super().__init__()
        self.columns = nn.ModuleList(TorchResNet(widths, large, outputs) for _ in range(count))
        strides = (2 if large else 1, 1, 2, 2, 2)
        shapes = list(zip((3, widths[0], *widths[:-1]), (widths[0], *widths), strides, strict=True))
        self.laterals = nn.ModuleList(
            nn.ModuleList(
                nn.ModuleList([*(nn.Conv2d(k, n, 1, s) for k, n, s in shapes), nn.Linear(widths[-1], outputs)])
                for _ in range(number)
            )
            for number in range(count)
        )

    def forward(self, x: torch.Tensor, number: int) -> torch.Tensor:
        """Logits of column `number`, which alone is in training mode where the network is."""
        for index, column in enumerate(self.columns):
            column.train(self.training and index == number)
        below = [x] * (number + 1)
        for stage in range(5):
            below = [
                self.columns[k].stage(stage, below[k], sum(self.laterals[k][j][stage](below[j]) for j in range(k)))
                for k in range(number + 1)
            ]
        pooled = [h.mean(dim=(2, 3)) for h in below]
        return self.columns[number].fc(pooled[number]) + sum(
            self.laterals[number][j][5](pooled[j]) for j in range(number)
        )

    def trainable(self, number: int) -> dict[str, nn.Parameter]:
        """Parameters of a column and of what leads to it."""
        column = dict(self.columns[number].named_parameters())
        return column | {f"lateral.{name}": value for name, value in self.laterals[number].named_parameters()}
