from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from results.statistics import anova
from results.statistics.anova import left_out, no_difference, residuals
from results.statistics.outliers import outliers, without

NAN = math.nan


def noise(seed: int, points: int = 11, seeds: int = 5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(0, 0.01, seeds) + rng.normal(0, 0.006, (points, seeds)))


@pytest.mark.parametrize("holes", [False, True])
def test_residuals_agree_with_an_independent_regression(holes: bool) -> None:
    scores = noise(1, 6, 4)
    if holes:
        scores[[0, 0, 3], [1, 2, 0]] = NAN
        scores[5, 1:] = NAN
    found = left_out(scores)
    assert np.isnan(found.t[5, 0]) == holes, "one cell of a point says nothing about itself"
    k, s = np.nonzero(~np.isnan(found.t))
    fit = smf.ols("y ~ C(s) + C(k)", pd.DataFrame({"y": scores[k, s], "k": k, "s": s})).fit()
    influence = fit.get_influence()
    assert found.t[k, s] == pytest.approx(influence.resid_studentized_external)
    assert found.by[k, s] == pytest.approx(influence.resid_press)
    assert found.noise == pytest.approx(math.sqrt(fit.mse_resid)) and found.df == fit.df_resid - 1


@pytest.mark.parametrize("holes", [False, True])
def test_many_points_are_judged_as_few_are(holes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the equations of the seeds instead of those of the points."""
    scores = noise(1, 40, 5)
    if holes:
        scores[np.random.default_rng(0).random(scores.shape) < 0.3] = NAN
        scores[7] = NAN
    few = left_out(scores), residuals(scores), no_difference(scores)
    monkeypatch.setattr(anova, "MANY", 10)
    many = left_out(scores), residuals(scores), no_difference(scores)
    for one, other in zip((*few[0], *few[1], few[2]), (*many[0], *many[1], many[2]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_failed_members_are_found_also_beside_each_other() -> None:
    scores = noise(2)
    failed = [(2, 1), (2, 4), (7, 1)]
    for row, column in failed:
        scores[row, column] -= 0.08
    found = outliers(scores)
    assert [(row, column) for row, column, _ in found] == failed
    assert [by for *_, by in found] == pytest.approx([-0.08] * 3, abs=0.03)
    kept = without(scores, found)
    assert np.isnan(kept).sum() == 3 and not outliers(kept)
    shifted = outliers(1e3 + 7 * scores + np.arange(5))  # a unit, and what a seed adds to all points
    assert [by / 7 for *_, by in shifted] == pytest.approx([by for *_, by in found])


def test_noise_alone_is_seldom_called_far_off() -> None:
    # Promised: one table in a thousand.
    assert sum(len(outliers(noise(seed, 11, seeds))) for seed in range(100) for seeds in (3, 5, 10)) <= 2


def test_long_tails_are_no_failures() -> None:
    tables = (np.random.default_rng(seed).standard_t(3, (11, 5)) for seed in range(100))
    assert np.mean([len(outliers(one)) > 0 for one in tables]) <= 0.2  # measured when written: 0.07


def test_what_cannot_be_told_is_not() -> None:
    two = noise(3, 11, 2)
    two[4, 1] -= 0.5
    assert outliers(two) == () == outliers(two.T), "either of two cells may be off"
    many = noise(4)
    many[np.arange(11), np.arange(11) % 5] -= 0.3
    assert outliers(many) == (), "a fifth of the members is no exception"
    assert outliers(np.full((4, 4), NAN)) == () == outliers(np.full((4, 4), 0.5)) == outliers(np.zeros((0, 0)))
    whole = noise(5)
    whole[:, 2] -= 0.5
    whole[3] -= 0.5
    assert outliers(whole) == (), "a seed or a value that is lower as a whole is no exception"
