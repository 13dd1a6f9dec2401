"""Members that lie far off what their value and their seed suggest: failed runs that still gave a number."""

from typing import NamedTuple

import numpy as np

from results.statistics.anova import left_out
from results.statistics.paired import student_tail

LEVEL = 0.001
"""Error rate of the test of all cells of a table."""

AT_LEAST = 8.0
"""A cell that is called far off is that many standard deviations of the noise away: where noise has long tails or is
not equal, many cells are significant."""

TOGETHER = 0.7
"""Cells are left out at once from this share of the largest t: a cell that is not a failure itself, but beside one,
deviates by half of it at most."""

MOST_FAR_OFF = 0.1
"""With more than this share of its cells significant, a table has noise of another kind, and no exceptions."""

FEWEST = 3
"""Fewest points and seeds: of two cells that differ, nobody knows which one is off."""


class FarOff(NamedTuple):
    """One cell of a table [K, R]."""

    row: int
    """Its point."""
    column: int
    """Its seed."""
    by: float
    """The cell minus what the others suggest for its point and its seed, in the unit of the scores."""


def far_off(scores: np.ndarray) -> tuple[FarOff, ...]:
    """Returns the cells of scores [K, R] that are outliers of score = point + seed + noise, in the order of the table.

    Studentised residuals are tested with Bonferroni's correction for all cells; the largest are left out, until none is
    significant. Of what was left out, only cells at least `AT_LEAST` standard deviations of the remaining noise away
    are far off.
    """
    left = np.array(scores, dtype=np.float64)
    cells = int((~np.isnan(left)).sum())
    if not cells or min((~np.isnan(left)).sum(axis=axis).max() for axis in (0, 1)) < FEWEST:
        return ()
    away = dict[tuple[int, int], float]()
    while len(away) <= MOST_FAR_OFF * cells:
        others = left_out(left)
        sizes = np.nan_to_num(np.abs(others.t))
        largest = float(sizes.max())
        if 2 * cells * student_tail(largest, others.df) > LEVEL:
            return tuple(FarOff(*at, by) for at, by in sorted(away.items()) if abs(by) >= AT_LEAST * others.noise)
        for row, column in np.argwhere(sizes >= TOGETHER * largest).tolist():
            away[row, column] = float(others.by[row, column])
            left[row, column] = np.nan
    return ()


def without(scores: np.ndarray, cells: tuple[FarOff, ...]) -> np.ndarray:
    """Returns scores [K, R] with NaN in these cells."""
    kept = np.array(scores, dtype=np.float64)
    for one in cells:
        kept[one.row, one.column] = np.nan
    return kept
