"""Steps of the reduced ResNet-18 beside plain PyTorch loops, and how fast they could be at most.

    uv run python benchmarks/image_limits.py [--turns 5] [--small FILE]

One step is a mini-batch of 10 made-up images and a reference batch, forward and backward, as A-GEM takes it. Beside
epsearch's step: a plain loop in PyTorch's usual layout (NCHW), with channels last, and the same compiled by
torch.compile; one pass for both batches, of which each is normalised by itself, but whose gradients are not told
apart; and the convolutions alone, as if all else took no time. Their FLOP a second stand beside those of a matrix
product. On one thread; cases take turns, and processor seconds count. Writes benchmarks/results/image_limits.json.
"""

import argparse
import copy
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import image_steps
import machine
import torch
from torch import Tensor, nn
from torch.nn import functional
from turns import summary

from trainers.networks.resnet import REDUCED

LAST = torch.channels_last
SIDE, CLASSES, SQUARE = 32, 100, 1024
REFERENCES, TESTS = (64, 256), (10, 64, 256, 1024)
BASE = "channels last"
Steps = dict[str, Callable[[], object]]


class NormalisedApart(nn.BatchNorm2d):
    """Batch normalisation of each part of a batch by itself."""

    parts: tuple[int, ...] = ()
    """Sizes of the parts; none for one part."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalises [B, C, H, W]."""
        if not self.parts:
            return super().forward(input)
        return torch.cat([super(NormalisedApart, self).forward(part) for part in input.split(self.parts)])


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = convolution(inputs, outputs, 3, stride), convolution(outputs, outputs, 3, 1)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else convolution(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Takes and returns [B, C, H, W]."""
        return functional.relu(self.second(functional.relu(self.first(x))) + self.shortcut(x))


def convolution(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Sequential:
    """Returns a convolution without bias and its batch normalisation."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), NormalisedApart(outputs))


def plain_network() -> nn.Sequential:
    """Returns GEM's reduced ResNet-18 as a plain PyTorch module."""
    layers: list[nn.Module] = [convolution(3, REDUCED[0], 3, 1), nn.ReLU()]
    for inputs, width, stride in zip((REDUCED[0], *REDUCED), REDUCED, (1, 2, 2, 2), strict=False):
        layers += [Block(inputs, width, stride), Block(width, width, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(REDUCED[-1], CLASSES))


def gradients(net: nn.Module, batches: Sequence[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, ...]]:
    """Returns the gradient of each batch by parameters, in a pass of its own."""
    losses = (functional.cross_entropy(net(x), labels) for x, labels in batches)
    return [torch.autograd.grad(loss, list(net.parameters())) for loss in losses]


def joined_gradient(net: nn.Module, x: Tensor, labels: Tensor, parts: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Returns the sum of the gradients of all parts, of one pass: less than a step needs, which takes them apart."""
    losses = map(functional.cross_entropy, net(x).split(parts), labels.split(parts))
    return torch.autograd.grad(sum(losses), list(net.parameters()))


def convolutions_of(net: nn.Module, x: Tensor) -> Callable[[], None]:
    """Returns a function that does all convolutions of a forward and a backward pass, and nothing else."""
    seen: list[tuple[nn.Conv2d, Tensor]] = []

    def see(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        assert isinstance(layer, nn.Conv2d)
        seen.append((layer, inputs[0].detach().clone(memory_format=torch.preserve_format)))

    handles = [one.register_forward_hook(see) for one in net.modules() if isinstance(one, nn.Conv2d)]
    net(x)
    for handle in handles:
        handle.remove()
    # The images need no gradient, all other inputs do.
    work = [(layer, values.requires_grad_(number > 0)) for number, (layer, values) in enumerate(seen)]
    grads = [torch.randn_like(layer(values)) for layer, values in work]

    def step() -> None:
        for (layer, values), grad in zip(work, grads, strict=True):
            wanted = [layer.weight, values] if values.requires_grad else [layer.weight]
            torch.autograd.grad(layer(values), wanted, grad)

    return step


def steps_of(reference: int, compiled: nn.Module | None) -> Steps:
    """Returns one step of each kind with a reference batch of this size."""
    torch.manual_seed(0)
    parts = (image_steps.BATCH, reference)
    usual = [(torch.rand(size, 3, SIDE, SIDE), torch.arange(size) % CLASSES) for size in parts]
    last = [(x.contiguous(memory_format=LAST), labels) for x, labels in usual]
    x, labels = (torch.cat(each) for each in zip(*last, strict=True))
    net = plain_network()
    net_last = copy.deepcopy(net).to(memory_format=LAST)
    apart = copy.deepcopy(net_last)
    for layer in apart.modules():
        if isinstance(layer, NormalisedApart):
            layer.parts = parts
    alone = [convolutions_of(net_last, one) for one, _ in last]
    own = image_steps.step_of(image_steps.network("reduced_resnet18"), SIDE, reference, 1, False, "cpu")
    return {
        "epsearch": torch.no_grad()(own),
        "NCHW": partial(gradients, net, usual),
        BASE: partial(gradients, net_last, last),
        **({} if compiled is None else {"channels last, torch.compile": partial(gradients, compiled, last)}),
        "channels last, both batches in one pass": partial(joined_gradient, apart, x, labels, parts),
        "convolutions alone": lambda: [step() for step in alone],
    }


def compiled_network() -> tuple[nn.Module | None, float]:
    """Returns the network behind torch.compile with its seconds, or None where this machine has no compiler."""
    torch.manual_seed(0)
    net = torch.compile(plain_network().to(memory_format=LAST), dynamic=False)
    started = time.perf_counter()
    sizes = (image_steps.BATCH, *REFERENCES)
    try:
        for size in sizes:
            x = torch.rand(size, 3, SIDE, SIDE).contiguous(memory_format=LAST)
            gradients(net, [(x, torch.arange(size) % CLASSES)])
    except RuntimeError as error:  # torch names the compiler that is missing
        print(f"torch.compile failed: {error!s:.200}")
        return None, 0.0
    return net, (time.perf_counter() - started) / len(sizes)


def tests_of() -> Steps:
    """Returns forward passes of batches of several sizes."""
    net = plain_network().to(memory_format=LAST).eval()
    batches = {size: torch.rand(size, 3, SIDE, SIDE).contiguous(memory_format=LAST) for size in TESTS}
    return {str(size): torch.no_grad()(partial(net, batch)) for size, batch in batches.items()}


def measured(turns: int, references: Sequence[int], with_compiler: bool) -> dict[str, Any]:
    """Returns the figures, printed on the way."""
    torch.set_num_threads(1)
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    compiled, seconds = compiled_network() if with_compiler else (None, 0.0)
    square = torch.rand(SQUARE, SQUARE)
    product = {"product": lambda: square @ square}
    cost, rows = image_steps.gflop(image_steps.network("reduced_resnet18"), SIDE), []
    for reference in references:
        seen = image_steps.in_turns(steps_of(reference, compiled) | product, turns, time.process_time)
        rate = 2e-9 * SQUARE**3 / summary(seen.pop("product"))["median"]
        gflop = cost * (image_steps.BATCH + reference)
        rows.append({"reference_batch": reference, "gflop": gflop, "product_gflops": rate, "seconds": seen})
        for name, times in seen.items():
            middle = summary(times)["median"]
            ratio = summary(seen[BASE])["median"] / middle
            print(f"{reference}: {name}: {middle:.3f} s, {ratio:.2f} x {BASE}, {gflop / middle:.0f} GFLOP/s")
    tests = {
        size: int(size) / summary(times)["median"]
        for size, times in image_steps.in_turns(tests_of(), turns, time.process_time).items()
    }
    print(f"images tested a second, by batch: {tests}")
    return {"turns": turns, "load_before": round(load, 2), "compile_seconds": seconds, "rows": rows, "tests": tests}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--small", metavar="FILE", type=Path, help="tries it with a small batch, into FILE")
    arguments = parser.parse_args()
    references = (16,) if arguments.small else REFERENCES
    machine.save("image_limits", measured(arguments.turns, references, not arguments.small), arguments.small)


if __name__ == "__main__":
    main()
