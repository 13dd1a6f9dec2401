from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from results.statistics.variance_shares import DRAWS, complete, sentence, variance_shares

NAN = math.nan


def drawn(rng: np.random.Generator, shares: tuple[float, float, float], orders: int = 10, seeds: int = 5) -> np.ndarray:
    """A table whose variance, 1, has these shares of order, seed and rest."""
    order, seed, rest = np.sqrt(shares)
    return (
        order * rng.normal(size=(orders, 1)) + seed * rng.normal(size=seeds) + rest * rng.normal(size=(orders, seeds))
    )


def test_a_case_by_hand() -> None:
    # Order effects −3, 0, 3, seed effects −2, 2, rest ±1, 0, ∓1: SS 36, 24, 4; MS 18, 24, 2.
    rest = np.array([[1, -1], [-1, 1], [0, 0]])
    table = 50 + np.array([[-3], [0], [3]]) + np.array([-2, 2]) + rest
    found = variance_shares(table)
    assert found is not None
    assert found.deviations == pytest.approx((math.sqrt(8), math.sqrt(22 / 3), math.sqrt(2)))
    total = 8 + 22 / 3 + 2
    assert found.shares == pytest.approx((8 / total, 22 / 3 / total, 2 / total))
    assert (found.orders, found.seeds, found.left_out) == (3, 2, (0, 0))


@pytest.mark.parametrize("shape", [(2, 2), (2, 7), (10, 5), (4, 3)])
def test_estimates_against_statsmodels(shape: tuple[int, int]) -> None:
    orders, seeds = shape
    for seed in range(5):
        table = 90 + drawn(np.random.default_rng(seed), (0.2, 0.2, 0.6), *shape)
        rows = [(o, s, table[o, s]) for o in range(orders) for s in range(seeds)]
        frame = pd.DataFrame(rows, columns=["o", "s", "y"])
        table_of = anova_lm(ols("y ~ C(o) + C(s)", frame).fit())
        order, by_seed, rest = (table_of["sum_sq"] / table_of["df"]).tolist()
        parts = np.array([max(0, (order - rest) / seeds), max(0, (by_seed - rest) / orders), rest])
        found = variance_shares(table)
        assert found is not None
        assert found.deviations == pytest.approx(np.sqrt(parts), abs=1e-6)
        assert found.shares == pytest.approx(parts / parts.sum(), abs=1e-9)
        moved = variance_shares(1e-3 * table - 7)
        assert moved is not None and moved.shares == pytest.approx(found.shares)
        assert np.array(moved.intervals) == pytest.approx(np.array(found.intervals))
        turned = variance_shares(table.T)
        assert turned is not None and turned.shares == pytest.approx([found.shares[i] for i in (1, 0, 2)])


@pytest.mark.parametrize("shape", [(3, 2), (10, 5), (5, 20)])
def test_levels_of_the_ends_where_they_are_known(shape: tuple[int, int]) -> None:
    """Without a rest the ratio of both variances has an F distribution, without seeds that of order and rest."""
    orders, seeds = shape
    free = (orders - 1, seeds - 1, (orders - 1) * (seeds - 1))
    levels, four_errors = [0.025, 0.975], 4 * math.sqrt(0.025 * 0.975 / DRAWS)
    rng = np.random.default_rng(3)
    by_order, by_seed = rng.normal(size=(orders, 1)), 0.7 * rng.normal(size=seeds)
    found = variance_shares(by_order + by_seed)
    assert found is not None
    ends = np.array(found.intervals[:2])
    ratio = by_order.var(ddof=1) / by_seed.var(ddof=1)
    assert stats.f.sf(ratio * (1 - ends[0]) / ends[0], *free[:2]) == pytest.approx(levels, abs=four_errors)
    assert ends[1] == pytest.approx(1 - ends[0][::-1])
    assert found.intervals[2] == found.shares[2:] * 2 == (0, 0)
    noise = rng.normal(size=shape)
    noise -= noise.mean(axis=0)  # no difference between seeds
    table = noise + 2 * by_order
    found = variance_shares(table)
    assert found is not None
    means = table.mean(axis=1, keepdims=True)
    rest = ((table - means) ** 2).sum() / free[2]
    low, high = found.intervals[0]
    # The share o/(o + s + 1), with o = (r − 1)/seeds and s = −1/orders in units of the rest, solved for r.
    known = np.array([end for end in (low, high) if 0 < end < 1])
    r = (known * (1 - 1 / seeds - 1 / orders) + 1 / seeds) * seeds / (1 - known)
    reached = stats.f.sf(seeds * means.var(ddof=1) / rest / r, free[0], free[2])
    assert reached == pytest.approx(levels[2 - len(known) :], abs=four_errors)
    assert high < 1 and low == 0 if len(known) == 1 else low > 0


COVERED = [(0.6, 0.1, 0.3), (0.1, 0.4, 0.5), (0.0, 0.0, 1.0)]


@pytest.mark.slow
@pytest.mark.parametrize("shares", COVERED)
def test_intervals_cover_the_true_shares(shares: tuple[float, float, float]) -> None:
    tables, rng = 300, np.random.default_rng(11)
    found = [variance_shares(drawn(rng, shares)) for _ in range(tables)]
    for part, true in enumerate(shares):
        ends = np.array([one.intervals[part] for one in found if one is not None])
        covered = ((ends[:, 0] <= true) & (true <= ends[:, 1])).sum()
        assert covered >= stats.binom.ppf(0.05, tables, 0.95), part
        # Not because they are all of [0, 1].
        assert (ends[:, 1] - ends[:, 0]).mean() < 0.75


def test_estimates_lie_in_their_intervals() -> None:
    rng = np.random.default_rng(5)
    for shape in ((2, 2), (2, 5), (10, 5)):
        for _ in range(50):
            found = variance_shares(drawn(rng, (0.3, 0.3, 0.4), *shape))
            assert found is not None and sum(found.shares) == pytest.approx(1)
            assert all(low <= share <= high for share, (low, high) in zip(found.shares, found.intervals, strict=True))


def test_missing_cells_cost_as_few_others_as_possible() -> None:
    table = drawn(np.random.default_rng(1), (0.3, 0.3, 0.4))
    table[3, 2] = NAN
    found = variance_shares(table)
    assert found is not None and (found.orders, found.seeds, found.left_out) == (9, 5, (1, 0))
    assert found._replace(left_out=(0, 0)) == variance_shares(np.delete(table, 3, axis=0))
    table[[1, 5, 7], 2] = NAN
    found = variance_shares(table)
    assert found is not None and found.left_out == (0, 1)
    assert "Left out, as runs are missing or diverged: 1 seed." in sentence(found)
    table[0] = np.inf
    found = variance_shares(table)
    assert found is not None and found.left_out == (1, 1) and "1 order and 1 seed." in sentence(found)
    layers = np.zeros((4, 3, 2))
    layers[1, :, 1] = NAN
    assert [mask.sum() for mask in complete(layers)] == [3, 3, 2]
    assert not np.zeros((2, 2))[np.ix_(*complete(np.full((2, 2), NAN)))].size


def test_too_few_orders_or_seeds() -> None:
    for shape in ((1, 5), (5, 1), (0, 3)):
        assert variance_shares(np.zeros(shape)) is None
    assert variance_shares(np.array([[1.0, 2.0], [NAN, 3.0]])) is None


def test_equal_cells_and_a_rest_alone() -> None:
    for level in (0.0, 91.3):
        found = variance_shares(np.full((3, 4), level) * (1 + 1e-16))
        assert found is not None and found.deviations == (0, 0, 0)
        assert sentence(found) == "A_T is the same in all runs of 3 orders × 4 seeds: it has no variance to divide."
    alone = variance_shares(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert alone is not None and alone.shares == (0, 0, 1) and alone.intervals == ((0, 0), (0, 0), (1, 1))


def test_the_sentence() -> None:
    found = variance_shares(np.array([[1.0, 2.0], [5.0, 4.0], [9.0, 9.5]]))
    assert found is not None
    low, high = (f"{100 * end:.0f}" for end in found.intervals[0])
    text = sentence(found, "the difference of A_T")
    assert text.startswith(
        f"Of the variance of the difference of A_T, {100 * found.shares[0]:.0f} % ({low} to {high} %)"
    )
    assert f"standard deviations {found.deviations[0]:.2f}, 0.00 and " in text
    assert text.endswith(" points, from 3 orders × 2 seeds.") and "nan" not in text and "–" not in text
