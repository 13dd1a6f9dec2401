"""What the coverage is measured on: curves with a known top, noise, and which values are tried with how many seeds."""

import os
from collections.abc import Callable
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from objectives import PEAK, REST_SD, SEED_SD

from search_spaces import STRATEGIES, Budget, Observation, Parameter, Space

FAILED_SHARE, FAILED_BY = 0.03, 0.08
"""Share of the members that fail, and by how much their A_T is lower."""
OUTLIER_SHARE, OUTLIER_BY, OUTLIER_NOISE = 0.1, 0.1, 5
"""Share of the seeds that are outliers, by how much they are lower, and how much noisier."""
SLOPE_SD, LENGTH = 0.02, 0.15
"""Of the slope that each seed has for itself; length scale of noise that is smooth along ε."""

Means = Callable[[np.ndarray], np.ndarray]


class Curve(NamedTuple):
    """Mean A_T over ε in [0, 1]; NaN where members diverge. apart: whether ε = 0 has another formula."""

    mean: Means
    apart: bool = False


def parabola(top: float, bend: float) -> Means:
    return lambda x: PEAK - bend * (x - top) ** 2


def cliff(below: Means, at: float, drop: float) -> Means:
    return lambda x: np.where(x < at, below(x), below(x) - drop)


def step(at_zero: float, above: Means) -> Means:
    return lambda x: np.where(x == 0, at_zero, above(x))


def two_bumps(x: np.ndarray, first: float) -> np.ndarray:
    return 0.83 + first * np.exp(-(((x - 0.2) / 0.12) ** 2)) + 0.036 * np.exp(-(((x - 0.75) / 0.12) ** 2))


def cusp(top: float, slope: float) -> Means:
    return lambda x: PEAK - slope * np.abs(x - top)


def near_an_end(top: float, mirrored: bool = False) -> Means:
    """A narrow top at an end, a slow fall beyond it."""
    return lambda x: PEAK - 0.01 * np.log(((1 - x if mirrored else x) + 0.01) / (top + 0.01)) ** 2


def rise_and_fall(x: np.ndarray) -> np.ndarray:
    """The shape of the main data set: a steep rise within the first tried values, then a slow fall; a kink at 0.047."""
    return PEAK - 0.03 * np.abs(np.log10((x + 0.003) / 0.05))


CURVES = {
    "parabola, steep": Curve(parabola(0.4, 0.30)),
    "parabola, shallow": Curve(parabola(0.6, 0.09)),
    "best at the end": Curve(parabola(1.0, 0.06)),
    "skewed, top 0.07": Curve(lambda x: PEAK - 0.05 * np.log((x + 0.02) / 0.09) ** 2 / 2),
    "top 0.02, ε = 0 apart": Curve(step(PEAK - 0.04, near_an_end(0.02)), apart=True),
    "top 0.05, ε = 0 apart": Curve(step(PEAK - 0.04, near_an_end(0.05)), apart=True),
    "kink at 0.047, ε = 0 apart": Curve(step(PEAK - 0.04, rise_and_fall), apart=True),
    "top 0.98": Curve(near_an_end(0.02, mirrored=True)),
    "cusp at 0.3": Curve(cusp(0.3, 0.06)),
    "cusp at 0.75": Curve(cusp(0.75, 0.1)),
    "cliff behind 0.6": Curve(cliff(lambda x: PEAK - 0.02 * (0.6 - x), 0.6 + 1e-9, 0.2)),
    "cliff behind 0.85, NaN": Curve(cliff(parabola(0.7, 0.2), 0.85, float("nan"))),
    "plateau": Curve(lambda x: PEAK - 0.06 * np.exp(-x / 0.15)),
    "plateau, slow": Curve(lambda x: PEAK - 0.06 * np.exp(-x / 0.3)),
    "plateau with a corner": Curve(lambda x: PEAK - 0.1 * np.maximum(0.0, 0.5 - x)),
    "ε = 0 apart, lower": Curve(step(PEAK - 0.06, parabola(0.2, 0.09)), apart=True),
    "ε = 0 apart, higher": Curve(step(PEAK, lambda x: PEAK - 0.02 - 0.05 * x), apart=True),
    "two peaks": Curve(lambda x: two_bumps(x, 0.028)),
    "two low peaks": Curve(lambda x: 0.86 + 0.01 * sum(np.exp(-(((x - top) / 0.12) ** 2)) for top in (0.33, 0.67))),
    "spike at 0.44": Curve(lambda x: PEAK - 0.04 + 0.04 * np.exp(-0.5 * ((x - 0.44) / 0.04) ** 2)),
    "flat": Curve(lambda x: np.full(x.shape, PEAK)),
}


NOISES = ("equal", "heteroscedastic", "t3", "smooth", "seed slopes", "outlier seeds", "failed")
GRIDS = {"grid of 11": 11, "grid of 33": 33}
NARROWING = "narrowing"
"""A strategy with 5 rounds of 11 values: up to 46 different ones."""


IN_ALL_NOISE = (
    "parabola, steep",
    "best at the end",
    "kink at 0.047, ε = 0 apart",
    "cusp at 0.3",
    "cliff behind 0.6",
    "plateau",
    "two peaks",
    "flat",
)
"""The curves that are measured with every kind of noise: one of each kind."""


class Cell(NamedTuple):
    """One case."""

    curve: str
    noise: str
    tried: str
    """A grid or a strategy."""
    seeds: int

    @property
    def name(self) -> str:
        return f"{self.curve} | {self.noise} | {self.tried} | {self.seeds}"


CELLS = (
    *(Cell(curve, "equal", tried, 5) for curve in CURVES for tried in (*GRIDS, NARROWING)),
    *(Cell(curve, "equal", NARROWING, seeds) for curve in CURVES for seeds in (3, 10)),
    *(Cell(curve, noise, NARROWING, 5) for curve in IN_ALL_NOISE for noise in NOISES[1:]),
)
"""Every curve by each way of trying values and by the number of seeds; one of each kind by the kind of noise."""


class Noise:
    """What seeds add to the means; every call draws the next values."""

    def __init__(self, kind: str, seeds: int, rng: np.random.Generator) -> None:
        self._kind, self._rng = kind, rng
        self._effect = SEED_SD * rng.standard_normal(seeds)
        self._scale = np.full(seeds, REST_SD)
        if kind == "outlier seeds":
            out = rng.random(seeds) < OUTLIER_SHARE
            self._effect -= OUTLIER_BY * out
            self._scale[out] *= OUTLIER_NOISE
        self._slopes = SLOPE_SD * rng.standard_normal(seeds)
        # A sum of cosines of random frequencies is a Gaussian process with a squared-exponential kernel (nearly).
        self._waves = rng.standard_normal((64, seeds)) / LENGTH, rng.uniform(0, 2 * np.pi, (64, seeds))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """[K, R] for x [K]."""
        shape = len(x), len(self._scale)
        normal = self._kind != "t3"
        rest = self._rng.standard_normal(shape) if normal else self._rng.standard_t(3, shape) / np.sqrt(3)
        if self._kind == "heteroscedastic":
            rest *= (0.4 + 1.6 * x)[:, None]
        if self._kind == "smooth":
            frequencies, phases = self._waves
            waves = np.cos(x[:, None, None] * frequencies + phases).sum(axis=1) * np.sqrt(2 / len(phases))
            rest = 0.3 * rest + waves
        added = self._effect + self._scale * rest
        if self._kind == "seed slopes":
            added += (x[:, None] - 0.5) * self._slopes
        if self._kind == "failed":
            added -= FAILED_BY * (self._rng.random(shape) < FAILED_SHARE)
        return np.asarray(added)


def table(cell: Cell, number: int) -> tuple[np.ndarray, np.ndarray]:
    """The values [K] that are tried, in ascending order, and the scores [K, R] of table `number` of a cell."""
    rng = np.random.default_rng([number, *cell.name.encode()])
    mean, noise = CURVES[cell.curve].mean, Noise(cell.noise, cell.seeds, rng)
    if cell.tried in GRIDS:
        x = np.linspace(0, 1, GRIDS[cell.tried])
        return x, mean(x)[:, None] + noise(x)
    rows: dict[float, np.ndarray] = {}
    space = Space((Parameter("epsilon", 0.0, 1.0, apart=(0.0,) if CURVES[cell.curve].apart else ()),))
    strategy = STRATEGIES[NARROWING](space, Budget(11, 5, number))
    while not strategy.done:
        asked = strategy.ask()
        new = np.array(sorted({float(one.point[0]) for one in asked} - rows.keys()))
        rows.update(zip(new.tolist(), mean(new)[:, None] + noise(new), strict=True))
        told = [rows[float(one.point[0])] for one in asked]
        scores = [None if np.isnan(row).any() else float(row.mean()) for row in told]
        strategy.tell([Observation(one.number, score) for one, score in zip(asked, scores, strict=True)])
    return np.array(sorted(rows)), np.stack([rows[value] for value in sorted(rows)])


def missed(curve: Curve, low: float, high: float, shut: tuple[bool, bool]) -> float:
    """How far the best value in [low, high] lies below the top; shut: ends that do not belong to it themselves."""
    even = np.linspace(0, 1, 10_001)
    # Just above 0, too: with another formula at 0 the best value may be a limit.
    x = np.unique(np.r_[even, 1e-9, low, high])
    means = curve.mean(x)
    inside = (x >= low) & (x <= high) & ~(shut[0] & (x == low)) & ~(shut[1] & (x == high))
    return float(np.nanmax(means) - np.nanmax(means[inside], initial=-np.inf))
