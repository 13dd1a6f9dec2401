"""Measures the fastest CPU path of a residual network.

Members are trained in turn, or in one grouped convolution.
"""

from functools import cache

import torch

from trainers.cohort import IMAGE_NETWORKS
from trainers.engines.pixel_choice import CLEARLY, seconds
from trainers.networks.base import Batch
from trainers.networks.heads import Linear
from trainers.networks.resnet import REDUCED, STANDARD, ResNet
from trainers.numeric_path import NumericPath
from trainers.schedule import generator

MEMBERS, TURNS = 3, 3
BATCH_PIXELS = 2**16  # of the images of one measured step


@cache
def fastest_image_path(network: str, size: int) -> NumericPath:
    """Measures and returns the fastest path for images of size × size. Takes seconds, once a process.

    One after another is kept unless the other is clearly faster: a member is then the same in any cohort, bit for bit.
    """
    assert network in IMAGE_NETWORKS
    large = network == "resnet18"
    net = ResNet(STANDARD if large else REDUCED, large, Linear(10, random_bias=False))
    params, into = torch.from_numpy(net.init(generator(0, "measure"))).repeat(MEMBERS, 1), torch.empty(MEMBERS, net.row)
    # Smaller images come in larger batches, so that a step takes about as long for every size.
    statistics, count = net.statistics(params), max(2, BATCH_PIXELS // size**2)
    batch = Batch(torch.rand(1, count, size, size, 3), torch.zeros(1, count, dtype=torch.int64), None)
    weight = torch.full((1, count, 1), 1 / count)

    def step(rows: slice) -> None:
        of_rows = {name: values[rows] for name, values in statistics.items()}
        net.gradients(params[rows], of_rows, batch, weight, (count,), [into[rows]])

    def in_turn() -> None:
        for member in range(MEMBERS):
            step(slice(member, member + 1))

    taken = seconds({"together": lambda: step(slice(MEMBERS)), "in turn": in_turn}, TURNS)
    return NumericPath(products="torch" if taken["together"] * CLEARLY < taken["in turn"] else "onednn")
