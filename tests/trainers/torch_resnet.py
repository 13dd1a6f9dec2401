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

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(h + self.downsample(x))


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
        h = torch.relu(self.bn1(self.conv1(x)))
        if self.large:
            h = nn.functional.max_pool2d(h, 3, stride=2, padding=1)
        for stage in (1, 2, 3, 4):
            h = getattr(self, f"layer{stage}")(h)
        features = h.mean(dim=(2, 3))
        if self.attributes is None:
            return self.fc(features)
        return features @ (self.attributes @ self.embedding.weight).T + self.embedding.bias
