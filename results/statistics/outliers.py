"""Outliers: failed runs that still have a score.

They lie far off the fit of the other members to their value and their seed.
"""

import math

import numpy as np

from results.statistics.anova import left_out
from results.statistics.paired import student_tail

LEVEL = 0.001
"""Error rate of the test of all cells of a table."""

AT_LEAST = 8.0
"""A cell that is called far off is that many standard deviations of the noise away: where noise has long tails or is
not equal, many cells are significant. At half of it a cell is left out while others are judged."""

MOST_FAR_OFF = 0.1
"""With more than this share of its cells left out, a table has noise of another kind, and no exceptions."""

TRIMMED = 0.623
"""Variance of a standard normal variable within its central 1 − `MOST_FAR_OFF`."""

SWEEPS = 5
"""Sweeps of the median polish; more change nothing that matters."""

FEWEST = 3
"""Fewest points and seeds: of two cells that differ, nobody knows which one is off."""


def outliers(scores: np.ndarray) -> tuple[tuple[int, int, float], ...]:
    """Returns the cells of scores [K, R] that are outliers of score = point + seed + noise, in the order of the table.

    Each is (row, column, its score minus the fit of the others to its point and seed, in the unit of the scores).

    Medians (Tukey's median polish), which a few failures do not move, say which cells may be outliers. Each of these is
    then compared with the fit to all cells that are none: it is far off if its studentised residual is significant with
    Bonferroni's correction for all cells, and the cell at least `AT_LEAST` standard deviations of the noise away.
    """
    there = ~np.isnan(scores)
    cells = int(there.sum())
    if not cells or min(there.sum(axis=axis).max() for axis in (0, 1)) < FEWEST:
        return ()
    polished = _polished(scores, there)
    suspects = np.argwhere(polished >= AT_LEAST / 2 * _scale(polished[there], there)).tolist()
    if not suspects or len(suspects) > MOST_FAR_OFF * cells:
        return ()
    sound = np.array(scores, dtype=np.float64)
    sound[tuple(np.transpose(suspects))] = np.nan
    noise, found = left_out(sound).noise, []
    for row, column in suspects:
        sound[row, column] = scores[row, column]
        others = left_out(sound)
        sound[row, column] = np.nan
        by, t = float(others.by[row, column]), abs(float(others.t[row, column]))
        if abs(by) >= AT_LEAST * noise and 2 * cells * student_tail(t, others.df) <= LEVEL:
            found.append((row, column, by))
    return tuple(found)


def _polished(scores: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Returns the sizes [K, R] of the residuals of a median polish; 0 where there is no score."""
    rows, columns = there.any(axis=1), there.any(axis=0)
    left = scores[np.ix_(rows, columns)]
    for _ in range(SWEEPS):
        left = left - _medians(left.T)
        left = left - _medians(left)[:, None]
    sizes = np.zeros(scores.shape)
    sizes[np.ix_(rows, columns)] = np.nan_to_num(np.abs(left))
    return sizes


def _medians(table: np.ndarray) -> np.ndarray:
    """Returns the medians of the rows, without NaN; for small tables much faster than `np.nanmedian`."""
    ordered, counts = np.sort(table, axis=1), (~np.isnan(table)).sum(axis=1)  # NaN comes last
    rows = np.arange(len(table))
    return np.asarray((ordered[rows, (counts - 1) // 2] + ordered[rows, counts // 2]) / 2)


def _scale(sizes: np.ndarray, there: np.ndarray) -> float:
    """Returns the standard deviation of the noise, from the sizes [n] of residuals without the largest."""
    kept = np.sort(sizes)[: math.ceil((1 - MOST_FAR_OFF) * len(sizes))]
    # What the points and the seeds take up; at least one is left, as there are three of both.
    free = (len(sizes) - there.any(axis=1).sum() - there.any(axis=0).sum() + 1) / len(sizes)
    return math.sqrt(float((kept**2).mean()) / TRIMMED / max(free, 1 / len(sizes)))


def without(scores: np.ndarray, cells: tuple[tuple[int, int, float], ...]) -> np.ndarray:
    """Returns scores [K, R] with NaN in these cells of `outliers`."""
    masked = np.array(scores, dtype=np.float64)
    for row, column, _ in cells:
        masked[row, column] = np.nan
    return masked
