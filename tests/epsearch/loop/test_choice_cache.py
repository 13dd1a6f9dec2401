"""A choice among many points is computed once on a machine, and is the same from the cache."""

import numpy as np
import pytest

from epsearch.loop.strategy_driver import choice_cache
from epsearch.loop.strategy_driver.choice import choose
from search_spaces.space import Parameter, Space

SPACE = Space((Parameter("epsilon", 0.0, 1.0),))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path))
    return tmp_path / "choices"


def made(count, seed=0, noise=0.01):
    """Points of a parabola, and its scores by four seeds."""
    at = np.linspace(0.01, 1, count)
    normal = np.random.default_rng(seed).normal(0, noise, (count, 4))
    return [(float(one),) for one in at], 0.8 - (at[:, None] - 0.3) ** 2 / 10 + normal


@pytest.fixture
def computed(monkeypatch):
    """How often a curve has been fitted."""
    calls = []
    monkeypatch.setattr(choice_cache, "choose", lambda *given: calls.append(1) or choose(*given))
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("flat", [False, True])
def test_it_is_computed_once(computed, cache, flat):
    points, scores = made(120)
    scores = np.ones_like(scores) if flat else scores  # without a curve: nothing is named, and the gain is NaN
    first, again = (choice_cache.choose_once(SPACE, points, scores) for _ in range(2))
    assert repr(first) == repr(again) == repr(choose(SPACE, points, scores)) and len(computed) == 1
    assert len(list(cache.iterdir())) == 1


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["score", "point", "space", "version", "damage"])
def test_anything_else_is_computed_anew(computed, cache, monkeypatch, changed):
    points, scores = made(120)
    choice_cache.choose_once(SPACE, points, scores)
    space = SPACE
    if changed == "score":
        scores[5, 1] += 1e-12
    elif changed == "point":
        points[5] = (points[5][0] + 1e-6,)
    elif changed == "space":
        space = Space((Parameter("epsilon", 0.0, 2.0),))
    elif changed == "version":
        monkeypatch.setattr(choice_cache, "VERSION", choice_cache.VERSION + 1)
    else:
        (file,) = cache.iterdir()
        file.write_bytes(file.read_bytes()[:-1])
    assert repr(choice_cache.choose_once(space, points, scores)) == repr(choose(space, points, scores))
    assert len(computed) == 2


def test_few_points_are_not_kept(computed, cache):
    points, scores = made(20)
    for _ in range(2):
        choice_cache.choose_once(SPACE, points, scores)
    assert len(computed) == 2 and not cache.exists()


@pytest.mark.slow
def test_a_cache_that_takes_nothing_costs_nothing_but_time(computed, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EPSEARCH_CACHE", str(tmp_path / "file"))
    points, scores = made(120)
    assert choice_cache.choose_once(SPACE, points, scores).point == choose(SPACE, points, scores).point
