from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy.stats import f
from statsmodels.stats.anova import anova_lm

from results.statistics.anova import lack_of_fit, no_difference
from results.statistics.curve import SeedFit, fit_by_seed
from results.statistics.paired import UNKNOWN
from tests.support.seed_tables import parabola, table

X = np.linspace(0, 1, 11)
TRUTH = parabola(0.4, 0.05)


def fitted(x: np.ndarray, scores: np.ndarray) -> SeedFit:
    fit = fit_by_seed(x, scores)
    assert fit is not None
    return fit


def gaps(scores: np.ndarray) -> np.ndarray:
    """The table with a race's holes: two seeds for all, the rest for the middle, and one member lost."""
    holed = scores.copy()
    holed[[0, 1, 8, 9, 10], 2:] = np.nan
    holed[4, 1] = np.nan
    return holed


def test_a_complete_table_is_the_t_test_over_quadratics_of_single_seeds() -> None:
    scores = table(np.random.default_rng(3), X, TRUTH, 5, smooth=True)
    fit, each = fitted(X, scores), np.polyfit(X, scores, 2)  # [3, R] x², x, 1
    for x in (0.0, 0.37, 1.0):
        slopes = (2 * each[0] * x + each[1]) * fit.scale
        assert fit.slope(x) == pytest.approx((slopes.mean(), slopes.std(ddof=1) / math.sqrt(5)), rel=1e-9)
    bends = each[0] * fit.scale**2
    assert fit.curvature() == pytest.approx((bends.mean(), bends.std(ddof=1) / math.sqrt(5)), rel=1e-9)
    assert fit.at(X) == pytest.approx(np.polyval(each.mean(axis=1), X), rel=1e-9)
    assert fit.effective_seeds == pytest.approx(5)
    rival = scores[7] - 0.001
    below = np.array([np.polyval(each[:, s], 0.4) for s in range(5)]) - rival
    assert fit.below_curve(0.4, rival) == pytest.approx((below.mean(), below.std(ddof=1) / math.sqrt(5)), rel=1e-9)


def test_an_unbalanced_table_is_least_squares_with_seed_effects_refitted_without_each_seed() -> None:
    scores = gaps(table(np.random.default_rng(4), X, TRUTH, 4))
    fit = fitted(X, scores)
    k, s = np.nonzero(~np.isnan(scores))
    z = (X[k] - fit.centre) / fit.scale

    def reference(skip: int) -> np.ndarray:
        use = s != skip
        frame = pd.DataFrame({"y": scores[k, s][use], "z": z[use], "s": s[use]})
        return np.asarray(smf.ols("y ~ z + I(z**2) + C(s)", frame).fit().params[["z", "I(z ** 2)"]])

    assert fit.beta == pytest.approx(reference(-1), rel=1e-9)
    assert fit.left_out == pytest.approx(np.array([reference(skip) for skip in range(4)]), rel=1e-9)
    assert 2 < fit.effective_seeds < 4
    # One row with two of the four seeds against the curve at x = 0.4, by refitting without each seed.
    point, row = np.array([fit.z(0.4), fit.z(0.4) ** 2]), scores[0]

    def below(beta: np.ndarray, skip: int) -> float:
        tops = {q: fit.level[q] + (point - fit.design[q]) @ beta for q in (0, 1) if q != skip}
        return float(np.mean([top - row[q] for q, top in tops.items()]))

    left = np.array([below(fit.left_out[j], j) for j in range(4)])
    error = math.sqrt(3 / 4 * ((left - left.mean()) ** 2).sum())
    assert fit.below_curve(0.4, row) == pytest.approx((below(fit.beta, -1), error), rel=1e-9)
    assert fit.below_curve(0.4, np.array([1.0, *3 * [math.nan]])) is UNKNOWN


@pytest.mark.parametrize("holes", [False, True])
def test_tests_of_the_layout_agree_with_an_independent_analysis_of_variance(holes: bool) -> None:
    scores = table(np.random.default_rng(5), X, lambda x: 0.9 + 0.02 * x**3, 4)
    scores = gaps(scores) if holes else scores
    k, s = np.nonzero(~np.isnan(scores))
    frame = pd.DataFrame({"y": scores[k, s], "z": 2 * X[k] - 1, "k": k, "s": s})
    seeds, curve, cubic, free = (
        smf.ols(f"y ~ C(s){more}", frame).fit()
        for more in ("", " + z + I(z**2)", " + z + I(z**2) + I(z**3)", " + C(k)")
    )
    whole = anova_lm(curve, free)["Pr(>F)"].iloc[1]
    error = free.ssr / free.df_resid
    one = f.sf((curve.ssr - cubic.ssr) / error, 1, free.df_resid)
    assert lack_of_fit(X, scores, fitted(X, scores)) == pytest.approx(min(1, 2 * min(whole, one)), rel=1e-6)
    assert no_difference(scores) == pytest.approx(anova_lm(seeds, free)["Pr(>F)"].iloc[1], rel=1e-6)


def test_lack_of_fit_without_noise_and_without_freedom() -> None:
    exact = np.tile(TRUTH(X)[:, None], 3)
    assert lack_of_fit(X, exact, fitted(X, exact)) == 1.0
    kinked = np.tile(-np.abs(X - 0.4)[:, None], 3)
    assert lack_of_fit(X, kinked, fitted(X, kinked)) < 1e-100
    equal = np.full((11, 3), 0.7)
    assert lack_of_fit(X, equal, fitted(X, equal)) == 1.0 == no_difference(equal)
    assert math.isnan(no_difference(equal[:, :1])) and math.isnan(no_difference(np.full((3, 3), np.nan)))


def test_no_fit_without_replication_or_points() -> None:
    scores = table(np.random.default_rng(6), X, TRUTH, 3)
    assert fit_by_seed(X, scores[:, :1]) is None
    assert fit_by_seed(X[:3], scores[:3]) is None
    alone = scores.copy()
    alone[1:, 1:] = np.nan  # all that is known of the curve comes from one seed
    assert fit_by_seed(X, alone) is None


@pytest.mark.parametrize(("stretch", "size"), [(1e-9, 1.0), (1e6, 1e-12), (1.0, 1e9)])
def test_units_do_not_matter(stretch: float, size: float) -> None:
    scores = table(np.random.default_rng(7), X, TRUTH, 4)
    plain, scaled = fitted(X, scores), fitted(X * stretch, scores * size)
    assert scaled.beta / size == pytest.approx(plain.beta, rel=1e-6)
    assert scaled.best(0, stretch) / stretch == pytest.approx(plain.best(0, 1), rel=1e-6)
