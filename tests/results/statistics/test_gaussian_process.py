"""The Gaussian process agrees with scikit-learn's, and a batch is worth what drawing its outcomes says."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from results.statistics import gaussian_process
from results.statistics.gaussian_process import LENGTHS, MANY, Axis, Process, Shape

GRID = np.linspace(0, 1, 41)[:, None]
FREE = 1e6
"""Variance of what scikit-learn gets in the place of an effect that may be anything."""


def fixed(x, table, amplitude, lengths, noise, kind="smooth", interaction=0.0):
    """The process of one shape, amplitude, noise and interaction, with all of their probability."""
    shape, found = Shape(kind, tuple(map(Axis, lengths))), gaussian_process
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(found, "AMPLITUDES", (amplitude / noise,))
        patch.setattr(found, "INTERACTIONS", ((interaction / noise, 0.3),))
        patch.setattr(
            found, "_fits", lambda places, data, free: found._fit(shape, found._root(places, shape), data[:1], free)
        )
        process = Process.fit(x, table)
    return replace(process, parts=tuple(replace(part, noise=noise) for part in process.parts))


def scores(seeds, points=9, noise=0.02, seed=0):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(size=points))
    table = -((x - 0.4) ** 2)[:, None] + 0.3 * rng.standard_normal(seeds) + noise * rng.standard_normal((points, seeds))
    return x[:, None], table


def theirs(x, table, amplitude, lengths, noise, at):
    """Mean and covariance at `at`, without their level: of single scores, each seed with an effect of its own."""
    rows, seeds = np.nonzero(~np.isnan(table))
    kernel = ConstantKernel(amplitude**2) * RBF(lengths)
    shared = FREE * (seeds[:, None] == seeds)
    covariance = kernel(x[rows]) + shared + noise**2 * np.eye(len(rows))
    to_known = kernel(at, x[rows])
    solved = np.linalg.solve(covariance, to_known.T)
    return solved.T @ table[rows, seeds], kernel(at) - to_known @ solved


def centred(covariance):
    """Of differences to the mean over all places, which is all that scores within seeds tell."""
    away = np.eye(len(covariance)) - 1 / len(covariance)
    return away @ covariance @ away


@pytest.mark.parametrize("seeds", [1, 4])
def test_a_complete_table_gives_what_scikit_learn_says_of_the_means(seeds):
    x, table = scores(seeds)
    amplitude, length, noise = 0.2, 0.3, 0.02
    ours = fixed(x, table, amplitude, (length,), noise)
    kernel = ConstantKernel(amplitude**2, "fixed") * RBF(length, "fixed") + ConstantKernel(FREE, "fixed")
    their = GaussianProcessRegressor(kernel, alpha=noise**2 / seeds, optimizer=None).fit(x, table.mean(axis=1))
    mean, covariance = their.predict(GRID, return_cov=True)
    assert np.ptp(ours.mean(GRID) - mean) < 1e-7
    assert np.allclose(centred(ours.covariance(GRID)), centred(covariance), atol=1e-7)
    assert np.allclose(ours.mean(x).mean(), table.mean(), atol=1e-3), "with the level of a point with every seed"


def test_missing_scores_and_two_axes_agree_with_single_scores():
    rng = np.random.default_rng(3)
    x, table = rng.uniform(size=(12, 2)), rng.standard_normal((12, 5))
    table[rng.uniform(size=table.shape) < 0.3] = np.nan
    at = rng.uniform(size=(30, 2))
    ours = fixed(x, table, 0.7, (0.2, 0.9), 0.5)
    mean, covariance = theirs(x, table, 0.7, (0.2, 0.9), 0.5, at)
    assert np.allclose(ours.mean(at) - ours.mean(at).mean(), mean - mean.mean(), atol=1e-5)
    assert np.allclose(centred(ours.covariance(at)), centred(covariance), atol=1e-5)


@pytest.mark.parametrize("kind", ["smooth", "kinked"])
@pytest.mark.parametrize("interaction", [0.0, 0.06])
def test_parts_are_weighted_by_their_likelihood(kind, interaction):
    """Of single scores whose seeds may have any effect, with the noise integrated out by a fine grid."""
    rng = np.random.default_rng(4)
    x, table = scores(3, points=7, noise=0.03)
    table[1, 0] = np.nan
    rows, seeds = np.nonzero(~np.isnan(table))
    y, same = table[rows, seeds] - np.nanmean(table), (seeds[:, None] == seeds).astype(float)

    def theirs(amplitude, length):
        kernel = RBF(length) if kind == "smooth" else Matern(length, nu=1.5)
        unit = amplitude**2 * kernel(x[rows]) + np.eye(len(rows)) + FREE * same
        unit += interaction**2 * same * RBF(0.3)(x[rows])
        squares, size = float(y @ np.linalg.solve(unit, y)), np.linalg.slogdet(unit)[1]
        free = len(rows) - 3
        return -size / 2 - free / 2 * np.log(squares)

    def ours(amplitude, length):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gaussian_process, "AMPLITUDES", (amplitude,))
            patch.setattr(gaussian_process, "INTERACTIONS", ((interaction, 0.3),))
            (data,) = gaussian_process._data(x, np.arange(len(x)), table)
            shape = Shape(kind, (Axis(length),))
            return (
                gaussian_process._fit_one(shape, gaussian_process._root(x, shape), data, len(rows) - 3).evidence[0]
                - shape.prior
            )

    pairs = [(float(rng.uniform(0.5, 20)), float(rng.uniform(0.1, 1.0))) for _ in range(6)]
    away = [ours(*pair) - theirs(*pair) for pair in pairs]
    assert np.ptp(away) < 1e-3


def test_the_parts_are_the_likeliest_and_their_weights_one():
    x, table = scores(5)
    found = Process.fit(x, table)
    weights = [part.weight for part in found.parts]
    assert sum(weights) == pytest.approx(1) and weights == sorted(weights, reverse=True)
    assert {axis.length for part in found.parts for axis in part.shape.axes} <= {*LENGTHS}
    assert 0.015 < found.noise < 0.025


def test_a_seed_that_rises_where_another_falls_is_no_news_about_the_mean_curve():
    """Of many values with a slope of its own in each seed, the curve is no better known than by so many seeds."""
    rng, x = np.random.default_rng(7), np.linspace(0, 1, 41)[:, None]
    slopes = 0.3 * rng.standard_normal(4)
    table = 0.01 * rng.standard_normal((41, 4)) + (x - 0.5) * slopes
    found = Process.fit(x, table)
    covariance = found.covariance(np.array([[0.0], [1.0]]))
    error = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert error > 0.5 * slopes.std(ddof=1) / 2  # not 0.01 · √(2/4)/√41
    (low, high), true = found.mean(np.array([[0.0], [1.0]])), slopes.mean()
    assert high - low == pytest.approx(true, abs=0.1)


def test_a_warp_finds_a_narrow_top_at_an_end_that_one_length_would_smooth_away():
    x = np.linspace(0, 1, 46)[:, None]
    top = lambda v: 0.9 - 0.03 * np.log((v + 0.01) / 0.04) ** 2  # noqa: E731
    table = top(x) + 0.01 * np.random.default_rng(3).standard_normal(5) + 0.003 * np.zeros((46, 5))
    table += 0.003 * np.random.default_rng(4).standard_normal((46, 5))
    fine = np.linspace(0, 1, 1001)[:, None]
    for mirrored in (False, True):
        places = 1 - x if mirrored else x
        found = Process.fit(places, table)
        best = float(fine[found.mean(fine).argmax(), 0])
        assert abs((1 - best if mirrored else best) - 0.03) < 0.012
        assert all(part.shape.axes[0].stretch and part.shape.axes[0].mirrored == mirrored for part in found.parts)


def test_draws_have_the_mean_and_the_covariance_of_the_process():
    x, table = scores(5, points=15)
    found = fixed(x, table, 0.2, (0.3,), 0.02)
    drawn = found.draws(GRID, 20_000)
    assert drawn.shape == (41, 20_000) and np.array_equal(drawn, found.draws(GRID, 20_000))
    above = drawn - drawn.mean(axis=0)
    assert np.allclose(above.mean(axis=1), found.mean(GRID) - found.mean(GRID).mean(), atol=1e-3)
    # A t distribution of so many degrees of freedom is wider by free/(free − 2).
    wider = found.free / (found.free - 2)
    assert np.allclose(np.cov(above), wider * centred(found.covariance(GRID)), atol=3e-6)


def test_one_seed_has_a_noise_too_and_one_point_no_process():
    x, table = scores(1, points=15, noise=0.01)
    found = Process.fit(x, table)
    assert abs(GRID[found.mean(GRID).argmax(), 0] - 0.4) < 0.1 and 0 < found.noise < 0.1
    assert Process.fit(x[:1], table[:1]) is None
    empty = np.full_like(table, np.nan)
    empty[3] = table[3]
    assert Process.fit(x, empty) is None


def test_points_without_a_score_do_not_count():
    x, table = scores(3)
    less = table.copy()
    less[4] = np.nan
    there = np.arange(len(x)) != 4
    assert np.array_equal(Process.fit(x, less).mean(GRID), Process.fit(x[there], table[there]).mean(GRID))


def test_scores_that_are_all_equal_give_a_flat_curve():
    x, _ = scores(3)
    found = Process.fit(x, np.full((len(x), 3), 0.5))
    assert np.allclose(found.mean(GRID), 0.5)


@pytest.mark.slow
def test_a_batch_is_worth_what_its_outcomes_add_to_the_top():
    """Against a process that is fitted anew, with the same hyperparameters, to outcomes that are drawn."""
    x, table = scores(4, points=4, noise=0.05)
    known = fixed(x, table, 0.3, (0.2,), 0.05)
    rows, gain = known.batch(GRID, np.ones(len(GRID), dtype=bool), 3, seeds=4)
    top, noise = int(known.mean(GRID).argmax()), 0.05**2 / 4 * np.eye(3)
    outcomes = known._outcomes(GRID[rows], 4) + noise
    tops = []
    for outcome in np.random.default_rng(1).multivariate_normal(known.mean(GRID[rows]), outcomes, size=1500):
        # New points of the same four seeds, whose effects are known from the others: complete rows of the table.
        more = np.concatenate([table, outcome[:, None] + (table - table.mean(axis=1, keepdims=True))[:3]])
        mean = fixed(np.concatenate([x, GRID[rows]]), more, 0.3, (0.2,), 0.05).mean(GRID)
        tops.append(mean.max() - mean[top])
    assert len(set(rows)) == 3
    assert gain == pytest.approx(np.mean(tops), abs=4 * np.std(tops) / np.sqrt(len(tops)))


def test_a_batch_has_fresh_points_alone_and_is_the_same_every_time():
    x, table = scores(4)
    known = Process.fit(x, table)
    fresh = np.zeros(len(GRID), dtype=bool)
    fresh[[3, 20]] = True
    assert sorted(known.batch(GRID, fresh, 5, seeds=4)[0]) == [3, 20]
    every = np.ones(len(GRID), dtype=bool)
    assert known.batch(GRID, every, 4, seeds=4) == Process.fit(x, table).batch(GRID, every, 4, seeds=4)
    assert known.batch(GRID, np.zeros(len(GRID), dtype=bool), 4, seeds=4) == ([], 0.0)


def apart(noise, seeds, at, count=1):
    """Gain of a batch where nothing is known yet, far from two tried places with equal scores; and how much f varies.

    A half more than far from everything: the level of the two places is not known better than f.
    """
    known = fixed(np.array([[0.0], [0.1]]), np.zeros((2, 4)), 0.3, (0.02,), noise)
    return known.batch(at, np.ones(len(at), dtype=bool), count, seeds)[1], 1.5 * 0.3**2


def test_noise_makes_a_batch_worth_less_by_just_as_much_as_it_hides():
    at = np.array([[0.5], [0.0]])  # and a known place, so that a bad outcome does not lower the top
    clear, variance = apart(1e-9, 1, at)
    assert clear == pytest.approx(np.sqrt(variance / (2 * np.pi)), rel=0.02)  # E max(0, z) = 1/√(2π)
    for noise, seeds in ((0.3, 1), (0.3, 9), (3.0, 4)):
        hidden, _ = apart(noise, seeds, at)
        of_both = 1.5 * noise**2 / seeds  # the noise of the two known places, too
        assert hidden / clear == pytest.approx(np.sqrt(variance / (variance + of_both)), rel=0.02)


def exact_gain(gaps, slopes):
    """E[max (gaps + slopes·z)] for a standard normal z: sums over the lines of their upper envelope."""
    z = np.linspace(-9, 9, 200_001)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    tops = np.full(len(z), -np.inf)
    for gap, slope in zip(gaps, slopes, strict=True):
        np.maximum(tops, gap + slope * z, out=tops)
    return np.trapezoid(tops * density, z)


@pytest.mark.parametrize("seed", range(4))
def test_the_worth_of_one_point_is_its_integral(seed):
    x, table = scores(4, points=6, noise=0.05, seed=seed)
    known = fixed(x, table, 0.3, (0.2,), 0.05)
    (row,), gain = known.batch(GRID, np.ones(len(GRID), dtype=bool), 1, seeds=4)
    # The change of the mean if the point is tried, by fitting anew with an outcome of one standard deviation.
    mean, top = known.mean(GRID), int(known.mean(GRID).argmax())
    seen = known.mean(GRID[[row]]) + table.mean(axis=0) - table.mean()
    moved = [
        fixed(np.concatenate([x, GRID[[row]]]), np.concatenate([table, seen[None] + step]), 0.3, (0.2,), 0.05).mean(
            GRID
        )
        for step in (0.0, 1.0)
    ]
    per_unit = moved[1] - moved[0]
    covariance = known._outcomes(GRID, 4)
    spread = np.sqrt(covariance[row, row] + known.noise**2 / 4)
    slopes = (per_unit - per_unit[top]) * spread
    assert gain == pytest.approx(exact_gain(mean - mean[top], slopes), rel=0.06)


ROUNDS = 60
SHAPES = (
    lambda x, top: -0.2 * (x - top) ** 2,
    lambda x, top: -0.1 * np.abs(x - top),
    lambda x, top: 0.05 * np.tanh(8 * (x - top)),
    lambda x, top: 0 * x,
)


def drawn_again(known, at, rows, seeds, draws=100_000):
    """The gain of a batch by many other draws."""
    mean, covariance = known.mean(at), known._outcomes(at, seeds)
    top, above = int(mean.argmax()), []
    for row in rows:
        spread = covariance[:, row] / np.sqrt(covariance[row, row] + known.noise**2 / seeds)
        above.append(spread - spread[top])
        covariance = covariance - np.outer(spread, spread)
    rng, gaps, parts = np.random.default_rng(99), mean - mean[top], 20
    return np.mean(
        [
            (gaps[:, None] + np.array(above).T @ rng.standard_normal((len(rows), draws // parts))).max(axis=0).mean()
            for _ in range(parts)
        ]
    )


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_stop_agrees_with_that_of_many_more_draws():
    """And no batch is worth less than nothing, on every shape, with the noise of Permuted MNIST."""
    from search_spaces.curves.kg import WORTH

    at, agrees = np.linspace(0, 1, 201)[:, None], 0
    for number in range(ROUNDS):
        rng = np.random.default_rng(number)
        x = np.linspace(0, 1, 22 if number % 3 else 11)
        f = SHAPES[number % len(SHAPES)](x, rng.uniform(0.1, 0.9))
        table = f[:, None] + 0.0115 * rng.standard_normal(5) + 0.0058 * rng.standard_normal((len(x), 5))
        known = Process.fit(x[:, None], table)
        rows, worth = known.batch(at, ~np.isin(at[:, 0].round(4), x.round(4)), 11, 5)
        assert worth >= 0
        agrees += (worth < WORTH) == (drawn_again(known, at, rows, 5) < WORTH)
    assert agrees >= 0.95 * ROUNDS


def test_no_draw_makes_a_batch_worth_less_than_nothing(monkeypatch):
    """Where all candidates lie together and fall, the present top has no difference from itself."""
    x, table = scores(4, points=6, noise=0.05)
    known = fixed(x, table, 0.3, (0.2,), 0.05)
    monkeypatch.setattr(gaussian_process, "_normals", lambda count, draws: np.full((count, draws), -1.0))
    assert known.batch(np.array([[0.95], [0.96], [0.97]]), np.ones(3, dtype=bool), 1, seeds=4)[1] >= 0


def test_the_level_that_no_score_tells_is_worth_nothing():
    """A larger variance of f adds nothing if all differences are known."""
    x = np.linspace(0, 1, 41)[:, None]
    table = -((x - 0.4) ** 2) + np.zeros((41, 4))
    for amplitude in (0.3, 3.0):
        known = fixed(x, table, amplitude, (0.2,), 1e-3)
        assert 0 <= known.batch(GRID, np.ones(len(GRID), dtype=bool), 3, seeds=4)[1] < 1e-5


def test_a_place_tried_twice_tells_what_two_seeds_tell():
    once = np.array([[0.5], [0.0]])
    twice = np.array([[0.5], [0.5], [0.0]])
    known = fixed(np.array([[0.0], [0.1]]), np.zeros((2, 4)), 0.3, (0.02,), 0.05)
    rows, gain = known.batch(twice, np.array([True, True, False]), 2, seeds=1)
    assert sorted(rows) == [0, 1]
    assert gain == pytest.approx(known.batch(once, np.array([True, False]), 1, seeds=2)[1], rel=0.02)


def test_a_second_point_is_another_place_although_the_first_one_varies_most():
    """Once the first of two equal places is known, the other copy tells nothing; elsewhere f still varies."""
    known = fixed(np.array([[0.0], [0.1]]), np.zeros((2, 4)), 0.3, (0.02,), 1e-6)
    rows, _ = known.batch(np.array([[0.5], [0.5], [0.12]]), np.ones(3, dtype=bool), 2, seeds=1)
    assert 2 in rows and len(set(rows)) == 2


@pytest.mark.slow
def test_many_points_share_places_and_the_curve_stays(monkeypatch):
    x, table = scores(3, points=120, noise=0.05)
    monkeypatch.setattr(gaussian_process, "MANY", 50)
    grouped = Process.fit(x, table)
    monkeypatch.setattr(gaussian_process, "MANY", 1000)
    each = Process.fit(x, table)
    assert len(grouped.x) <= 50 < len(each.x) == 120
    assert grouped.noise == pytest.approx(each.noise, rel=0.01)
    assert np.allclose(grouped.mean(GRID), each.mean(GRID), atol=2e-3)


def test_points_of_one_place_weigh_as_many_scores(monkeypatch):
    """Exactly, where points differ by nothing; some lack scores."""
    x, table = np.tile((np.arange(20)[:, None] + 0.5) / 20, (3, 1)), scores(3, points=60)[1]
    table[::7, 0] = np.nan
    known = fixed(x, table, 0.2, (0.3,), 0.02)
    monkeypatch.setattr(gaussian_process, "MANY", 30)
    grouped = fixed(x, table, 0.2, (0.3,), 0.02)
    assert len(grouped.x) == 20
    assert np.allclose(grouped.mean(GRID), known.mean(GRID), atol=1e-8)
    assert np.allclose(centred(grouped.covariance(GRID)), centred(known.covariance(GRID)), atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_places_are_as_fine_as_their_number_allows(axes):
    x = np.random.default_rng(axes).uniform(size=(2000, axes))
    places = fixed(x, x[:, :1] + np.zeros((2000, 2)), 1.0, (0.5,) * axes, 0.1).x
    assert 150 < len(places) <= MANY
    nearest = np.array([np.abs(places - point).max(axis=1).min() for point in x])
    assert nearest.max() <= 1.1 * MANY ** (-1 / axes)


def test_it_computes_in_one_thread_and_leaves_their_number_as_it_was():
    blas = gaussian_process._openblas()
    before = [one["num_threads"] for one in blas.info()]
    inside = gaussian_process.in_one_thread(lambda: [one["num_threads"] for one in blas.info()])
    assert inside() == [1] * len(before) and [one["num_threads"] for one in blas.info()] == before


@pytest.mark.parametrize("seed", range(4))
def test_shapes_that_are_left_to_one_interaction_would_change_nothing(seed, monkeypatch):
    """Seeds that follow the curve each in its own way: several interactions are likely."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(size=(14, 1)), axis=0)
    slopes = rng.normal(0, 1.0, 5) * (x - 0.5)
    table = 3 * np.exp(-(((x - 0.4) / 0.3) ** 2)) + rng.normal(0, 2, 5) + slopes + rng.normal(0, 0.6, (14, 5))
    at = np.linspace(0, 1, 51)[:, None]
    found = Process.fit(x, table)
    monkeypatch.setattr(gaussian_process, "UNLIKELY_SHAPE", np.inf)
    whole = Process.fit(x, table)
    np.testing.assert_allclose(found.mean(at), whole.mean(at), atol=0.02 * np.ptp(whole.mean(at)))
    monkeypatch.setattr(gaussian_process, "UNLIKELY_SHAPE", -np.inf)
    assert not np.allclose(Process.fit(x, table).mean(at), whole.mean(at), rtol=1e-6), "interactions matter here"
