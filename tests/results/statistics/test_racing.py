from __future__ import annotations

import numpy as np
import pytest

from results.statistics.anova import residuals
from results.statistics.racing import adjusted_means, gaps_to_leader, separated

NAN = np.nan


def test_adjusted_means_are_plain_where_the_table_is_complete() -> None:
    scores = np.random.default_rng(1).normal(size=(6, 5))
    assert adjusted_means(scores) == pytest.approx(scores.mean(axis=1))


def test_a_setting_dropped_after_easy_seeds_does_not_lead() -> None:
    scores = np.array([[5.0, 5.0, 1.0, 1.0], [4.0, 4.5, NAN, NAN], [NAN, NAN, NAN, NAN], [2.0, NAN, 0.0, 0.0]])
    assert adjusted_means(scores) == pytest.approx([3.0, 3.0 - 0.75, NAN, 3.0 - 5 / 3], nan_ok=True)
    assert np.isnan(adjusted_means(np.full((2, 2), NAN))).all()


def test_separated_drops_what_is_far_below_and_keeps_the_dropped_out() -> None:
    noise = np.random.default_rng(2).normal(0, 0.01, (4, 3)) + np.array([0.5, -0.5, 0.0])
    scores = noise + np.array([[0.9], [0.9], [0.2], [0.1]])
    assert separated(scores, looks=3).tolist() == [False, False, True, True]
    scores[3, 2] = NAN
    assert separated(scores, looks=3).tolist() == [False, False, True, True]
    scores[0, 0] = NAN  # one lost on the way is still in, judged on the seeds that all have
    assert separated(scores, looks=3).tolist() == [False, False, True, True]


def test_a_table_that_has_shrunk_is_judged_by_those_who_began() -> None:
    # The gap of the second row is significant among two settings, not among twenty.
    noise = np.array([[0.0, 0.3, -0.3, 0.1, -0.1], [0.3, 0.0, 0.1, -0.3, -0.1]])
    scores = noise + np.array([[1.0], [0.5]])
    assert separated(scores, looks=1).tolist() == [False, True]
    assert separated(scores, looks=1, starters=20).tolist() == [False, False]
    whole = np.vstack([scores, np.full((18, 5), NAN)])
    assert separated(whole, looks=1)[:2].tolist() == separated(scores, looks=1, starters=20).tolist()
    with pytest.raises(ValueError, match="starters must be >= the 2 points of the table, got 1"):
        separated(scores, looks=1, starters=1)


def test_a_row_that_a_race_left_is_compared_with_the_noise_of_all() -> None:
    scores = np.array([[84.8, 84.1, 85.3, 85.0], [79.8, 79.0, NAN, NAN], [78.7, 78.3, NAN, NAN]])
    leader, one, other = gaps_to_leader(scores)
    assert leader.below == (0, 0) and leader.df == 3
    # The seeds that only the leader has say nothing about the noise.
    noise = residuals(scores[:, :2])
    assert one.df == other.df == noise.spare == 2 and one.seeds == 2
    assert one.below == pytest.approx((5.05, (noise.pure / 2) ** 0.5))
    assert other.below == pytest.approx((5.95, 0.15)), "its own error is the larger one"
    whole = gaps_to_leader(scores[:, :2])
    assert [gap.df for gap in whole] == [1, 1, 1], "no row has fewer seeds than the leader"


def test_separated_without_replication_or_noise() -> None:
    assert not separated(np.array([[1.0], [0.0]]), looks=1).any()
    assert separated(np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]]), looks=1).tolist() == [False, False, True]
    assert not separated(np.array([[1.0, 2.0]]), looks=1).any()
    assert separated(np.full((2, 3), NAN), looks=1).all()
    with pytest.raises(ValueError, match="looks must be"):
        separated(np.zeros((2, 2)), looks=0)


def race(rng: np.random.Generator, means: np.ndarray, seeds: int, first: float = 1) -> np.ndarray:
    """A whole race: two seeds for all, then one more at a time for those still in; first: noise of the first."""
    noise = rng.normal(0, 1, (len(means), seeds)) * np.r_[first, np.ones(len(means) - 1)][:, None]
    full = means[:, None] + noise + rng.normal(0, 2, seeds)
    scores = np.full(full.shape, NAN)
    scores[:, :2] = full[:, :2]
    for r in range(2, seeds):
        still = ~separated(scores, looks=seeds - 2)
        scores[still, r] = full[still, r]
    return scores


@pytest.mark.slow
def test_a_race_seldom_drops_the_best_and_saves_work() -> None:
    # Seeds 0…399, 11 settings, 8 seeds; promised: at most 5 %.
    flat = np.r_[0.0, np.full(10, -1e-6)]
    spread = -(np.linspace(0, 1, 11) ** 2) * 8
    races = [race(np.random.default_rng(seed), flat, 8) for seed in range(400)]
    dropped = np.mean([np.isnan(r[0, -1]) for r in races])
    assert dropped <= 0.05
    assert np.mean([np.isnan(r[:, -1]).any() for r in races]) > dropped > 0  # the test does drop settings by chance
    assert np.mean([np.isnan(race(np.random.default_rng(seed), spread, 8)).mean() for seed in range(50)]) > 0.2


@pytest.mark.slow
def test_a_noisy_best_is_kept_where_each_pair_has_its_own_noise() -> None:
    # Three times as noisy as the others, 11 settings, 8 seeds, races of seeds 0…299. Promised is at most 5 %.
    flat = np.r_[0.0, np.full(10, -1e-6)]

    races = [race(np.random.default_rng(seed), flat, 8, first=3) for seed in range(300)]
    assert np.mean([np.isnan(one[0, -1]) for one in races]) <= 0.05


def test_the_error_rate_is_that_of_all_looks_together() -> None:
    # A gap that a look after few of many seeds does not see, and the last one does.
    scores = np.array([[1.0, 1.3, 0.7, 1.1], [0.0, 0.1, -0.1, 0.2], [0.9, 1.2, 0.8, 1.0]])
    assert not separated(scores, looks=30).any()
    assert separated(scores, looks=3).tolist() == [False, True, False]


def test_means_over_the_first_seeds_of_the_leader() -> None:
    scores = np.array([[5.0, 5.0, 1.0], [4.0, 5.0, NAN], [3.0, 3.0, 0.0]])
    assert adjusted_means(scores, over=2) == pytest.approx([5.0, 4.5, 5.0 - 5 / 3])
