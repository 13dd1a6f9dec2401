"""A Gaussian process over the tried points, with seed effects.

score[k, s] = u_s + f(x_k) + g_s(x_k) + noise. The effects u_s of the seeds are free, so that only differences within a
seed count, and f has no level of its own. f ~ GP(0, a² c(x, x′)) (Rasmussen & Williams 2006, ch. 2 and 5); g_s, which
makes neighbouring values of a seed alike, is one of smooth processes, one a seed, so that many values do not replace
seeds. The variance of the noise is integrated out (ibid., §2.7; Jeffreys' prior).

Nothing about f is estimated once and for all: its smoothness, lengths, amplitude and the warp of each axis are those of
a fixed grid, and their posterior probabilities weight all that is computed from them. A warp stretches one end of an
axis like a logarithm, so that a top near ε = 0 can be narrow where the rest is slow. No optimiser takes part, so that
the same scores give the same curve everywhere.

The time grows as the cube of the number of places. Of many points those that lie close together share one f.
"""

import itertools
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from typing import NamedTuple, ParamSpec, Self, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from results.statistics.paired import RELATIVE_ZERO, SEED
from results.statistics.racing import adjusted_means

LENGTHS = (0.06, 0.1, 0.17, 0.3, 0.5, 0.8, 1.3)
"""Length scales that are tried, in widths of the axis."""

AMPLITUDES = tuple(float(2**step) for step in range(13))
"""Amplitudes a of f that are tried, in standard deviations of the noise; none below that of the g_s. With smaller ones
f would be known to be level before any score, and that it is level is a finding that must rest on scores alone."""

INTERACTIONS = tuple(
    (amplitude, length) for amplitude in (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0) for length in (0.3, 1.0)
)[1:]
"""Amplitudes of the g_s that are tried, in the same unit, and their length scales. The first is none."""

MOST_INTERACTIONS, UNLIKELY_INTERACTION = 3, 3.0
"""So many of them are considered further, and none whose log evidence is this far below the best one's."""

STRETCHES = (0.1, 0.03)
"""Widths of an end of the axis that a warp stretches: x ↦ log(1 + x/width), and its mirror image."""

SMOOTH_PRIOR = 0.1
"""Prior odds of a smooth f (squared exponential) against one with kinks (Matérn 3/2). Few values do not tell them
apart, and then a smooth curve would promise too much between them."""

WARPED_PRIOR = 1.0
"""Prior odds of all warps together against none."""

UNLIKELY_SHAPE = 6.0
"""A shape whose log evidence is this far below the best one's is tried with the likeliest interaction alone."""

LEAST_WEIGHT, MOST_PARTS = 0.02, 24
"""Parts of the mixture with a lower weight than this share of the largest are left out, and all beyond this number."""

PASSES = 2
"""How often the axes are gone through, where there are several."""

MANY = 256
"""Points from which on those in one cell of a grid share their place; no more than so many cells have points."""

FINER = 1.1
"""Ratio of the sides of the grids that are tried."""

JITTER = 1e-10
"""Added to the diagonal of correlations, so that points close together do not make them singular."""

DRAW_JITTER = 1e-8
"""The same for the covariance of draws, which differences of large numbers make less exact."""

ROUNDED = 1e-12
"""Information in a direction of f, beside the largest, that is nothing but rounding."""

SAME = 9
"""Decimals in which two expected scores are the same: processors differ in the last bits, and the first is taken."""

DRAWS = 128
"""Joint draws of what a batch may show, by which its points are chosen; the same ones every time."""

WORTH_DRAWS = 8192
"""The same for the gain of the whole batch, which decides about another one."""

Correlation = Callable[[np.ndarray], np.ndarray]

P = ParamSpec("P")
R = TypeVar("R")

_ONE_AT_A_TIME = threading.RLock()  # the number of threads is the whole process's


@cache
def _openblas() -> ThreadpoolController:
    """Returns NumPy's BLAS, but for MKL, by which networks are trained."""
    return ThreadpoolController().select(internal_api="openblas")


def in_one_thread(compute: Callable[P, R]) -> Callable[P, R]:
    """Returns a function that uses one thread of BLAS: on matrices this small more of them wait for each other."""

    @wraps(compute)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        with _ONE_AT_A_TIME, _openblas().limit(limits=1):
            return compute(*args, **kwargs)

    return alone


def _smooth(r: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * r * r))


def _kinked(r: np.ndarray) -> np.ndarray:
    scaled = math.sqrt(3) * r
    return np.asarray((1 + scaled) * np.exp(-scaled))


CORRELATIONS: Mapping[str, Correlation] = {"smooth": _smooth, "kinked": _kinked}
"""Correlation by distance in length scales: squared exponential, Matérn 3/2."""

PRIORS = {"smooth": math.log(SMOOTH_PRIOR), "kinked": 0.0}


class Axis(NamedTuple):
    """How f depends on one axis."""

    length: float
    """Length scale, in widths of the (warped) axis."""
    stretch: float = 0.0
    """Width of the end that is stretched; 0 for none."""
    mirrored: bool = False
    """Whether that is the high end."""

    def warp(self, x: np.ndarray) -> np.ndarray:
        """Returns places on the warped axis, [0, 1] as before, for places x."""
        if not self.stretch:
            return x
        away = np.maximum(1 - x if self.mirrored else x, 0.0)
        warped = np.log1p(away / self.stretch) / math.log1p(1 / self.stretch)
        return np.asarray(1 - warped if self.mirrored else warped)


class Shape(NamedTuple):
    """What f looks like, but for its size."""

    kind: str
    """A key of `CORRELATIONS`."""
    axes: tuple[Axis, ...]

    def correlation(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Returns c [C, K] for places one [C, d] and other [K, d]."""
        warped = ([axis.warp(x[:, i]) / axis.length for i, axis in enumerate(self.axes)] for x in (one, other))
        squares = (np.square(a[:, None] - b[None]) for a, b in zip(*warped, strict=True))
        return CORRELATIONS[self.kind](np.sqrt(sum(squares, np.zeros((len(one), len(other))))))

    @property
    def prior(self) -> float:
        """Logarithm of its prior probability, but for a constant."""
        warped = sum(axis.stretch > 0 for axis in self.axes)
        return PRIORS[self.kind] + warped * math.log(WARPED_PRIOR / (2 * len(STRETCHES)))


@dataclass(frozen=True)
class Part:
    """The posterior of f for one shape, amplitude and interaction, in units of the noise."""

    weight: float
    """Posterior probability, in (0, 1]."""
    shape: Shape
    amplitude: float
    """a in standard deviations of the noise."""
    noise: float
    """Standard deviation of a single score around u + f + g."""
    root: np.ndarray
    """[K, K] L: LLᵀ is the correlation of the places, in directions of f that the scores make independent."""
    variances: np.ndarray
    """[K] the variance of f in these directions, given the scores."""
    centre: np.ndarray
    """[K] the mean of f in these directions, in the unit of the score."""

    def near(self, x: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Returns [K, C] how f at places `at` [C, d] follows from the directions."""
        return np.asarray(np.linalg.solve(self.root, self.shape.correlation(x, at)))

    def mean(self, x: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Returns the mean [C] of f at places `at` [C, d], given the scores at x [K, d]."""
        return np.asarray(self.shape.correlation(at, x) @ np.linalg.solve(self.root.T, self.centre))

    def covariance(self, at: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Returns the covariance [C, C] of f at `at`, given the scores and its noise; near: that of `at`."""
        # From the directions, not as a difference of large numbers: of f's level the scores tell nothing.
        free = self.amplitude**2 * (self.shape.correlation(at, at) - near.T @ near)
        return np.asarray(self.noise**2 * (free + (near.T * self.variances) @ near))


@dataclass(frozen=True)
class Process:
    """The posterior of f, a mixture. Axes are [0, 1] wide; f and its noise are in units of the score."""

    x: np.ndarray
    """[K, d] the tried places; of more than `MANY`, those [G, d] of groups."""
    parts: tuple[Part, ...]
    """By weight, the largest first; the weights add up to 1."""
    level: float
    """What is to be added to f, so that it is the mean score of a point with every seed."""
    free: int
    """Degrees of freedom of the noise: scores without one for each seed."""

    @classmethod
    @in_one_thread
    def fit(cls, x: np.ndarray, scores: np.ndarray) -> Self | None:
        """Returns the process for x [K, d] and scores [K, R], NaN where there is none.

        None below two points with a score, and where no two scores of one seed can be compared.
        """
        rows = ~np.isnan(scores).all(axis=1)
        x, scores = np.asarray(x, dtype=np.float64)[rows], scores[rows]
        there = ~np.isnan(scores)
        free = int(there.sum() - there.any(axis=0).sum())
        if len(x) < 2 or free < 1:
            return None
        place = _cells(x) if len(x) > MANY else np.arange(len(x))
        places = _summed(x, place) / np.bincount(place)[:, None]
        fits = list(_fits(places, _likely(places, _data(places, place, scores), free), free))
        ranked = sorted(
            ((float(one), number, row) for number, fit in enumerate(fits) for row, one in enumerate(fit.evidence)),
            key=lambda entry: -entry[0],
        )[:MOST_PARTS]
        weights = [math.exp(evidence - ranked[0][0]) for evidence, _, _ in ranked]
        weights = [weight for weight in weights if weight > LEAST_WEIGHT]
        parts = tuple(
            fits[number].part(row, weight / sum(weights), free)
            for (_, number, row), weight in zip(ranked, weights, strict=False)
        )
        without_level = cls(places, parts, 0.0, free)
        means = without_level._mean(places)[place]
        return cls(places, parts, float(np.nanmean(adjusted_means(scores) - means)), free)

    @property
    def noise(self) -> float:
        """Standard deviation of a single score around the curve of its seed."""
        return math.sqrt(sum(part.weight * part.noise**2 for part in self.parts))

    @in_one_thread
    def mean(self, at: np.ndarray) -> np.ndarray:
        """Returns the expected score [C] of points [C, d], in the mean over all seeds."""
        return self.level + self._mean(at)

    @in_one_thread
    def covariance(self, at: np.ndarray) -> np.ndarray:
        """Returns the covariance [C, C] of f at [C, d]: that within the parts, and that between their means."""
        total, mean = np.zeros((len(at), len(at))), self._mean(at)
        for part, near in zip(self.parts, self._near(at), strict=True):
            away = near.T @ part.centre - mean
            total += part.weight * (part.covariance(at, near) + np.outer(away, away))
        return total

    @in_one_thread
    def draws(self, at: np.ndarray, count: int) -> np.ndarray:
        """Returns about `count` joint draws [C, n] of f at [C, d], given the scores; the same ones every time.

        Every part has a share of them by its weight; the variance of the noise is drawn, too, so that few scores give
        long tails (a multivariate t distribution).
        """
        rng, drawn = np.random.default_rng((SEED, count)), list[np.ndarray]()
        normal, scales = rng.standard_normal((len(at), count)), self.free / rng.chisquare(self.free, count)
        ends = np.round(np.cumsum([0.0, *(part.weight for part in self.parts)]) * count).astype(int)
        for part, near, (first, end) in zip(self.parts, self._near(at), itertools.pairwise(ends), strict=True):
            covariance = part.covariance(at, near)
            covariance[np.diag_indices(len(at))] += DRAW_JITTER * (part.amplitude * part.noise) ** 2
            away = np.linalg.cholesky(covariance) @ normal[:, first:end] * np.sqrt(scales[first:end])
            drawn.append((near.T @ part.centre)[:, None] + away)
        return self.level + np.concatenate(drawn, axis=1)

    @in_one_thread
    def batch(self, at: np.ndarray, fresh: np.ndarray, count: int, seeds: int) -> tuple[list[int], float]:
        """Returns the rows of `at` [C, d] to try next, and by how much the top of the mean is then expected to rise.

        The knowledge gradient of a batch (Wu & Frazier 2016): E[max μ′] − max μ, where μ′ is the mean over `at` once
        the batch is known. Only differences from the present top are drawn: the level of f, which the seeds' effects
        leave free, changes no top, and so no outcome is worth less than 0. The batch is chosen one point at a time,
        each with the others' outcomes drawn jointly, from the same draws every time. fresh: bool [C], the rows that may
        be chosen; count: points of the batch, or fewer where no more are fresh; seeds: scores that each of them will
        have.
        """
        mean, covariance = self._mean(at), self._outcomes(at, seeds)
        top, noise = int(np.argmax(mean.round(SAME))), self.noise**2 / seeds
        gaps, rows, left = np.repeat((mean - mean[top])[:, None], DRAWS, axis=1), list[int](), fresh.copy()
        chosen = list[np.ndarray]()
        for normal in _normals(count, DRAWS)[: int(fresh.sum())]:
            open_rows = np.flatnonzero(left)
            spreads = covariance[:, open_rows] / np.sqrt(np.maximum(np.diag(covariance)[open_rows], 0.0) + noise)
            above = spreads - spreads[top]
            worth = np.array([(gaps + one[:, None] * normal).max(axis=0).mean() for one in above.T])
            best = int(np.argmax(worth.round(SAME)))
            rows.append(int(open_rows[best]))
            left[rows[-1]] = False
            gaps += above[:, best, None] * normal
            chosen.append(above[:, best])
            covariance = covariance - np.outer(spreads[:, best], spreads[:, best])
        if not rows:
            return [], 0.0
        # What is chosen last is the best of many by the draws that chose it: its worth is that of other, more draws.
        outcomes = np.array(chosen).T @ _normals(len(rows), WORTH_DRAWS)
        return rows, float(((mean - mean[top])[:, None] + outcomes).max(axis=0).mean())

    def _near(self, places: np.ndarray) -> Iterator[np.ndarray]:
        known: dict[int, np.ndarray] = {}
        for part in self.parts:  # parts that differ in their amplitude alone share their directions
            if id(part.root) not in known:
                known[id(part.root)] = part.near(self.x, places)
            yield known[id(part.root)]

    def _mean(self, places: np.ndarray) -> np.ndarray:
        return sum((part.weight * part.mean(self.x, places) for part in self.parts), np.zeros(len(places)))

    def _outcomes(self, places: np.ndarray, seeds: int) -> np.ndarray:
        """Returns the covariance [C, C] of the mean scores that points would show, but for their own noise.

        A score shows f above the seed's effect, which is known from the tried points: of f their mean comes off, with
        the noise of that mean.
        """
        count = len(places)
        covariance = self.covariance(np.concatenate([places, self.x]))
        centred = covariance - covariance[:, count:].mean(axis=1, keepdims=True)
        centred -= centred[count:].mean(axis=0)
        return np.asarray(centred[:count, :count] + self.noise**2 / (seeds * len(self.x)))


class _Data(NamedTuple):
    """Sufficient statistics of the scores for f, without the effects of the seeds, for one interaction."""

    interaction: float
    """Amplitude of the g_s, in standard deviations of the noise."""
    precision: np.ndarray
    """[G, G] the information about f at the places, in units of the noise; singular along the level."""
    total: np.ndarray
    """[G] the information times what the scores lie above their seeds' effects."""
    squares: float
    """Sum of squares of the scores, weighted by their information."""
    evidence: float
    """Part of the log evidence that does not depend on f."""


class _Fit(NamedTuple):
    """One shape and interaction with all amplitudes [A]."""

    shape: Shape
    amplitudes: np.ndarray
    """[A] in standard deviations of the noise."""
    evidence: np.ndarray
    """[A] log evidence."""
    squares: np.ndarray
    """[A] sum of squares of the residuals, from which the noise follows."""
    values: np.ndarray
    """[K] information in each direction."""
    root: np.ndarray
    """[K, K] see `Part`."""
    total: np.ndarray
    """[K] `_Data.total` in the directions."""

    def part(self, row: int, weight: float, free: int) -> Part:
        """Returns the posterior for the amplitude of a row."""
        amplitude, noise = float(self.amplitudes[row]), math.sqrt(self.squares[row] / free)
        # Of the level the scores tell nothing, which is 0 but for rounding.
        informed = np.where(self.values > ROUNDED * self.values.max(), self.values, 0.0)
        variances = amplitude**2 / (1 + amplitude**2 * informed)
        centre = amplitude**2 / (1 + amplitude**2 * self.values) * self.total
        return Part(weight, self.shape, amplitude, noise, self.root, variances, centre)


def _normals(count: int, draws: int) -> np.ndarray:
    """Returns standard normal numbers [count, draws], every second column the negative of the one before.

    The same for one (count, draws) every time; pairs of opposite signs make their mean exactly 0.
    """
    half = np.random.default_rng((SEED, draws)).standard_normal((count, draws // 2))
    return np.stack([half, -half], axis=2).reshape(count, draws)


def _data(places: np.ndarray, place: np.ndarray, scores: np.ndarray) -> list[_Data]:
    """Returns the statistics for each of `INTERACTIONS`; place: [K] the row of each point in places.

    Seeds with scores of the same points share their equations.
    """
    there, axes = ~np.isnan(scores), places.shape[1]
    alike: dict[bytes, list[int]] = {}
    for seed in np.flatnonzero(there.sum(axis=0) > 1).tolist():
        alike.setdefault(there[:, seed].tobytes(), []).append(seed)
    found = []
    for amplitude, length in INTERACTIONS:
        common = Shape("smooth", (Axis(length),) * axes).correlation(places, places)
        precision, total = np.zeros((len(places), len(places))), np.zeros(len(places))
        squares = evidence = 0.0
        for seeds in alike.values():
            rows = np.flatnonzero(there[:, seeds[0]])
            at, y = place[rows], scores[rows][:, seeds]
            root = np.linalg.cholesky(np.eye(len(rows)) + amplitude**2 * common[np.ix_(at, at)])
            half = np.linalg.solve(root, np.column_stack([np.ones(len(rows)), y - y.mean(axis=0), np.eye(len(rows))]))
            ones, above, unit = half[:, 0], half[:, 1 : 1 + len(seeds)], half[:, 1 + len(seeds) :]
            size = float(ones @ ones)
            unit = unit - np.outer(ones, ones @ unit) / size
            above = above - np.outer(ones, ones @ above) / size
            np.add.at(precision, np.ix_(at, at), len(seeds) * unit.T @ unit)
            np.add.at(total, at, (unit.T @ above).sum(axis=1))
            squares += float((above**2).sum())
            evidence -= len(seeds) * (float(np.log(np.diag(root)).sum()) + math.log(size) / 2)
        found.append(_Data(amplitude, precision, total, squares, evidence))
    floor = (RELATIVE_ZERO * float(np.nanmax(np.abs(scores)))) ** 2 * scores.size
    return [one._replace(squares=max(one.squares, floor, np.finfo(np.float64).tiny)) for one in found]


def _likely(places: np.ndarray, data: Sequence[_Data], free: int) -> list[_Data]:
    """Returns the interactions that the scores do not speak against, by curves of some lengths, the likeliest first."""
    shapes = [Shape("kinked", (Axis(length),) * (places.shape[1])) for length in LENGTHS[1::2]]
    fits = [_fit(shape, root, data, free) for shape, root in ((shape, _root(places, shape)) for shape in shapes)]
    best = [max(float(fit.evidence.max()) for fit in of_one) for of_one in zip(*fits, strict=True)]
    order = sorted(range(len(data)), key=lambda number: -best[number])[:MOST_INTERACTIONS]
    return [data[number] for number in order if best[number] > max(best) - UNLIKELY_INTERACTION]


def _fits(places: np.ndarray, data: Sequence[_Data], free: int) -> Iterator[_Fit]:
    """Yields the fits of all shapes on one axis; on several, of those on the way to the highest evidence.

    There each axis in turn is tried with all lengths and warps, from the longest lengths on. data: the likeliest
    interaction first, with which shapes are compared.
    """
    count, known, roots = places.shape[1], dict[Shape, float](), dict[Shape, np.ndarray]()
    stretched = [(0.0, False), *itertools.product(STRETCHES if count == 1 else STRETCHES[1:], (False, True))]
    choices = [Axis(length, *end) for end in stretched for length in LENGTHS]
    for kind in CORRELATIONS:
        best = Shape(kind, (Axis(LENGTHS[-1]),) * count)
        for axis in [*range(count)] * (PASSES if count > 1 else 1):
            for choice in choices:
                shape = Shape(kind, (*best.axes[:axis], choice, *best.axes[axis + 1 :]))
                if shape not in known:
                    roots[shape] = _root(places, shape)
                    (fit,) = _fit(shape, roots[shape], data[:1], free)
                    known[shape] = float(fit.evidence.max())
                    yield fit
            best = max((shape for shape in known if shape.kind == kind), key=known.__getitem__)
    for shape, evidence in known.items():
        if evidence > max(known.values()) - UNLIKELY_SHAPE:
            yield from _fit(shape, roots[shape], data[1:], free)


def _root(places: np.ndarray, shape: Shape) -> np.ndarray:
    """Returns [K, K] the Cholesky factor of the correlation of places."""
    return np.linalg.cholesky(shape.correlation(places, places) + JITTER * np.eye(len(places)))


def _fit(shape: Shape, root: np.ndarray, data: Sequence[_Data], free: int) -> list[_Fit]:
    """Returns the fits of one shape, `root` from `_root`, with each interaction and all amplitudes."""
    return [_fit_one(shape, root, one, free) for one in data]


def _fit_one(shape: Shape, root: np.ndarray, data: _Data, free: int) -> _Fit:
    """Returns the fit of one shape and interaction with all amplitudes.

    The evidence is the logarithm of the restricted likelihood, with the noise integrated out, but for a constant.
    """
    values, vectors = np.linalg.eigh(root.T @ data.precision @ root)
    values, root = np.maximum(values, 0.0), root @ vectors
    amplitudes = np.array([amplitude for amplitude in AMPLITUDES if amplitude >= data.interaction])
    total, squared = root.T @ data.total, np.square(amplitudes)[:, None]
    grown = 1 + squared * values
    left = np.maximum(data.squares - (squared * total**2 / grown).sum(axis=1), RELATIVE_ZERO * data.squares)
    evidence = shape.prior + data.evidence - (np.log(grown).sum(axis=1) + free * np.log(left)) / 2
    return _Fit(shape, amplitudes, evidence, left, values, root, total)


def _cells(x: np.ndarray) -> np.ndarray:
    """Returns the number of each point's cell, [K], in the finest grid of which no more than `MANY` cells have one."""
    side = 1 / MANY
    while True:
        cells, place = np.unique(np.floor(x / side), axis=0, return_inverse=True)
        if len(cells) <= MANY:
            return np.asarray(place).reshape(len(x))
        side *= FINER


def _summed(rows: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Returns the sums [G, …] of the rows [K, …] of each place."""
    sums = np.zeros((place.max() + 1, *rows.shape[1:]))
    np.add.at(sums, place, rows)
    return sums
