from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from results.statistics.order_effect import best_values, order_effect_p, sentence, smallest_p

VALUES = np.linspace(0, 1, 6)


def curves(rng: np.random.Generator, orders: int, seeds: int, moves: float = 0.0) -> np.ndarray:
    """Scores whose top moves by `moves` from the first order to the last.

    Levels of orders and seeds, and a slope of each seed, are no effect of the order on the curve.
    """
    tops = 0.5 + moves * np.linspace(-0.5, 0.5, orders)
    curve = 90 - 8 * (VALUES[:, None, None] - tops[:, None]) ** 2
    level = rng.normal(size=(1, orders, 1)) + rng.normal(size=(1, 1, seeds)) + rng.normal(size=(1, orders, seeds))
    slopes = VALUES[:, None, None] * rng.normal(size=(1, 1, seeds))
    return np.asarray(curve + 3 * level + 2 * slopes + 0.4 * rng.standard_t(3, (len(VALUES), orders, seeds)))


def by_hand(scores: np.ndarray, fixed: int = 0) -> float:
    """The test as it is described: every permutation, each with a sum of squares of its own.

    fixed: 1 leaves the first seed as it is, which only names the orders.
    """
    _, orders, seeds = scores.shape
    left = scores - scores.mean(axis=0)
    left = left - left.mean(axis=(1, 2), keepdims=True)

    def square(one: tuple[tuple[int, ...], ...]) -> float:
        moved = np.stack([left[:, one[s], s] for s in range(seeds)], axis=2)
        return seeds * float((moved.mean(axis=2) ** 2).sum())

    as_they_are = (tuple(range(orders)),) * seeds
    every = [square((*as_they_are[:fixed], *one)) for one in product(permutations(range(orders)), repeat=seeds - fixed)]
    measured = square(as_they_are)
    return float(np.mean([one >= measured - 1e-9 for one in every]))


def test_a_case_by_hand() -> None:
    # Two orders, three seeds, two values: the second value is better by d. Without noise within an order d is 1 and 3;
    # of the 4 exchanges but for names only the measured one keeps all of 1 on one side: p = 1/4.
    scores = np.zeros((2, 2, 3))
    scores[1, 0], scores[1, 1] = 1, 3
    assert order_effect_p(scores + np.array([5.0, 7.0, 1.0])) == 0.25
    assert order_effect_p(np.zeros((2, 2, 3))) == 1
    # d = 1, 3, 1 and 3, 1, 3: exchanging the second seed has a larger sum of squares, others are as the measured one.
    mixed = scores.copy()
    mixed[1] = [[1, 3, 1], [3, 1, 3]]
    assert order_effect_p(mixed) == 1


@pytest.mark.parametrize("shape", [(2, 4), (3, 3), (4, 2)])
def test_all_permutations_against_a_plain_loop(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    for moves in (0.0, 0.3, 1.0):
        scores = curves(rng, *shape, moves)
        assert order_effect_p(scores) == pytest.approx(by_hand(scores))
    assert smallest_p(*shape) == 1 / math.factorial(shape[0]) ** (shape[1] - 1)


@pytest.mark.slow
def test_drawn_permutations_come_close_to_all() -> None:
    scores = curves(np.random.default_rng(4), 4, 4, 0.15)
    drawn, exact = order_effect_p(scores), by_hand(scores, fixed=1)
    assert smallest_p(4, 4) == 1e-4 and 0.02 < exact < 0.98
    assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 9999))
    assert drawn == order_effect_p(scores)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 4), (10, 5)])
def test_it_keeps_its_level_and_has_power(shape: tuple[int, int]) -> None:
    rng, tables = np.random.default_rng(7), 120
    null = np.array([order_effect_p(curves(rng, *shape)) for _ in range(tables)], dtype=float)
    assert (null <= 0.05).sum() <= stats.binom.ppf(0.975, tables, 0.05)
    assert (null <= 0.5).sum() >= stats.binom.ppf(0.025, tables, 0.45), "not because it never rejects"
    moved = np.array([order_effect_p(curves(rng, *shape, 0.8)) for _ in range(50)], dtype=float)
    assert (moved <= 0.05).mean() >= 0.9


def test_the_best_value_of_each_order() -> None:
    scores = np.zeros((3, 3, 2))
    scores[:, 0] = [[1, 1], [2, 4], [3, 2]]
    scores[:, 1] = [[9, 9], [1, 1], [9, 9]]
    found = best_values(np.array([0.1, 0.2, 0.4]), scores)
    assert found[:2].tolist() == [0.2, 0.1] and math.isnan(found[2]), "equal values have no best one"
    text = sentence(np.array([0.1, 0.2, 0.4]), scores)
    assert text == (
        "The best ε lies between 0.1 and 0.2 in 2 orders; that it moves with the order is not shown "
        f"(p = {order_effect_p(scores):.2g}; 2 seeds cannot reach 0.05)."
    )


def test_sentences() -> None:
    moving = curves(np.random.default_rng(1), 10, 5, 1.0)
    text = sentence(VALUES, moving, "λ")
    assert text is not None and "The best λ lies between " in text and "in 10 orders" in text
    assert text.endswith("; the curve over λ depends on the order (p = 0.0001).")
    few = np.zeros((2, 2, 3))
    few[1] = [[1, 2, 1], [3, 2, 3]]
    assert sentence(np.array([0.0, 0.5]), few) == (
        "The best ε is 0.5 in all 2 orders; that it moves with the order is not shown "
        "(p = 0.5; 3 seeds cannot reach 0.05)."
    )
    assert str(sentence(VALUES, moving[:, :, :1])).endswith("cannot be tested with one seed.")


def test_fewer_than_two_orders() -> None:
    one = curves(np.random.default_rng(1), 1, 5)
    assert order_effect_p(one) is None and sentence(VALUES, one) is None
    assert sentence(VALUES, np.zeros((6, 3, 2))) is None
    nothing = np.full((6, 3, 2), math.nan)
    assert sentence(VALUES, nothing) is None and order_effect_p(nothing) is None


def test_missing_cells() -> None:
    scores = curves(np.random.default_rng(3), 4, 3, 0.5)
    holes = scores.copy()
    holes[2, 1, 1] = math.nan
    # A cell of 6 × 4 × 3: the seed has 1 of 24 missing, the order 1 of 18, the value 1 of 12.
    assert order_effect_p(holes) == order_effect_p(np.delete(scores, 2, axis=0))
    best = best_values(VALUES, holes)
    assert best.tolist() == best_values(np.delete(VALUES, 2), np.delete(scores, 2, axis=0)).tolist()
    holes[:, 3] = math.nan
    assert order_effect_p(holes) == order_effect_p(np.delete(scores, 2, axis=0)[:, :3])
    assert math.isnan(best_values(VALUES, holes)[3])
