"""Strategies of the real Avalanche, in an environment of its own that has the extra `avalanche`."""

import pytest

from tests.support.installed import answer, installed
from tests.support.places import on_disk

TINY = "--tasks 4 --cv-tasks 2 --examples-per-task 100 --seeds 1 --repeats 1 --points 3 --runner local --device cpu"
STRATEGIES = {
    "AGEM": "patterns_per_exp=20 train_mb_size=10",
    "GEM": "patterns_per_exp=20 train_mb_size=10",
    "EWC": "ewc_lambda=1 train_mb_size=10",
    "Replay": "mem_size=40 train_mb_size=10",
    "DER": "mem_size=40 batch_size_mem=10 train_mb_size=10",
}

pytestmark = pytest.mark.install


@pytest.fixture(scope="module")
def environment():
    with on_disk() as folder:
        yield installed(folder, "avalanche")


@pytest.mark.parametrize(
    "strategy", ["AGEM", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in STRATEGIES if name != "AGEM")]
)
def test_a_strategy_is_searched_and_repeats_itself(strategy, environment, tmp_path):
    named = [
        "--trainer",
        f"avalanche:{strategy}",
        "--search",
        "lr=log:0.03..0.3",
        "--set",
        *STRATEGIES[strategy].split(),
    ]
    found = answer(environment, tmp_path, "run", *TINY.split(), *named, "--certify", "1")
    assert found["effort"]["trained"] == 4
    (row,) = found["evaluation"]
    assert row["A_T_mean"] > 15, "chance is 10"
    assert "every prediction was the same" in (tmp_path / found["report"]).read_text(encoding="utf-8")
    again = answer(environment, tmp_path, "run", *TINY.split(), *named, "--certify", "1")
    assert again["effort"]["trained"] == 0
