"""Learners whose start is perturbed by as little as rounding.

The differences of their results measure the rounding noise.
"""

import numpy as np
import torch
from torch import Tensor

from trainers.cohort import Architecture, Cohort
from trainers.engines import make_engine
from trainers.engines.base import Engine
from trainers.numeric_path import NumericPath
from trainers.schedule import generator
from trainers.streams.base import TaskStream

SIZE = 1e-7
"""By how much of itself each parameter is moved: 0.8 to 1.7 of the distance between two numbers of 24 bits."""


def make_moved(
    cohort: Cohort, seeds: tuple[int, ...], stream: TaskStream, architecture: Architecture, path: NumericPath
) -> Engine:
    """Returns an engine as `make_engine`, whose untrained networks are perturbed.

    Data, order and memory are the same.
    """
    engine = make_engine(cohort, seeds, stream, architecture, path)
    start = engine.start
    engine.start = lambda: perturb(start(), seeds)  # type: ignore[method-assign]
    return engine


def perturb(start: Tensor, seeds: tuple[int, ...]) -> Tensor:
    """Returns the parameters [S, D] times 1 ± `SIZE`, rounded to their type; the signs are drawn for each seed.

    What is 0, as biases and what fills up a row are, stays 0.
    """
    # Signs, not numbers between −1 and 1: of those many would be lost in the rounding.
    signs = np.stack([generator(seed, "moved").choice((-1.0, 1.0), start.shape[1]) for seed in seeds])
    return (start.cpu().double() * (1 + SIZE * torch.from_numpy(signs))).to(start.dtype).to(start.device)
