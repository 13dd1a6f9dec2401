"""A confidence function for tests: where the maximum of a parabola may lie, seed by seed (Fieller's t test)."""

import numpy as np
from scipy.stats import t

QUANTILE = 0.975


def parabola_hull(values, scores, low, high):
    """Hull of the coordinates at which the mean slope of the seeds' parabolas is not told from 0."""
    table = np.array(scores, dtype=float)
    seeds = [row for row in table.T if np.isfinite(row).sum() >= 3]
    if len(seeds) < 2 or high <= low:
        return None
    fits = [_parabola(np.array(values), row) for row in seeds]
    x = np.linspace(low, high, 401)
    slopes = np.array([linear + 2 * square * x for linear, square in fits])
    mean = slopes.mean(axis=0)
    error = t.ppf(QUANTILE, len(fits) - 1) * slopes.std(axis=0, ddof=1) / len(fits) ** 0.5
    open_ = np.abs(mean) <= error
    open_[0] |= mean[0] <= error[0]
    open_[-1] |= mean[-1] >= -error[-1]
    found = x[open_]
    return None if not len(found) else (float(found[0]), float(found[-1]))


def _parabola(values, row):
    known = np.isfinite(row)
    design = np.stack([np.ones(known.sum()), values[known], values[known] ** 2], axis=1)
    _, linear, square = np.linalg.lstsq(design, row[known], rcond=None)[0]
    return linear, square
