"""Curves of A_T against ε with a known maximum, and the noise that seeds put on them."""

import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# As measured on Permuted MNIST, 2,000 images a task, 3 tasks, 11 values of ε, 20 seeds: what a seed adds to every ε,
# and what is left once value and seed are taken out. The latter does not hang together between neighbouring ε
# (correlation −0.01 at a distance of 0.1); differences of ε below 0.001 are as noisy as those of 0.05.
SEED_SD, REST_SD = 0.0115, 0.0058
PEAK = 0.866


class Objective(NamedTuple):
    """A curve on [0, 1]. best: where it is highest; None where it is flat. right: whether it is a parabola."""

    name: str
    mean: Callable[[float], float]
    best: float | None
    right: bool


def bump(x: float, centre: float, height: float, width: float) -> float:
    return height * float(np.exp(-(((x - centre) / width) ** 2)))


OBJECTIVES = (
    Objective("parabola, steep", lambda x: PEAK - 0.30 * (x - 0.4) ** 2, 0.4, True),
    Objective("parabola, as on MNIST", lambda x: PEAK - 0.09 * (x - 0.6) ** 2, 0.6, True),
    Objective("peak near 0", lambda x: PEAK - 0.05 * float(np.log((x + 0.02) / 0.09)) ** 2 / 2, 0.07, False),
    Objective("two peaks", lambda x: 0.83 + bump(x, 0.2, 0.028, 0.12) + bump(x, 0.75, 0.036, 0.12), 0.75, False),
    Objective("best at the end", lambda x: PEAK - 0.06 * (1 - x), 1.0, False),
    Objective("flat", lambda x: PEAK, None, True),
)


class Noisy:
    """Scores of one search: the same (value, seed) has the same score however often it is asked for."""

    def __init__(self, objective: Objective, repetition: int, seeds: int) -> None:
        self._objective, self._repetition = objective, repetition
        self._of_seeds = SEED_SD * np.random.default_rng((repetition, 1)).standard_normal(seeds)
        self.asked: dict[tuple[float, int], float] = {}

    def __call__(self, value: float, seed: int) -> float:
        key = value, seed
        if key not in self.asked:
            drawn = np.random.default_rng((self._repetition, 2, seed, zlib.crc32(repr(value).encode())))
            rest = REST_SD * drawn.standard_normal()
            self.asked[key] = self._objective.mean(value) + float(self._of_seeds[seed] + rest)
        return self.asked[key]
