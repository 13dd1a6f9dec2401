"""Answers of rows that are held against print: words, numbers, and where nothing can be told."""

from dataclasses import replace

import numpy as np
import pytest

from results.statistics.equivalence import OPEN, OUTSIDE, WITHIN
from results.verdict.reproduction import answer_of, cells, headline, how_far, remedy
from search_spaces.published.pack import load_pack
from tests.support.synthetic import record

PACK = load_pack("er-pmnist-200").as_data() | {"name": "mine"}


def pack(mean=70.0, margin=1.0, spread=None, changed=()):
    printed = {"mean": mean, "spread": spread, "spread_is": None if spread is None else "se", "n": 10}
    return PACK | {"printed": printed, "margin": margin, "changed": list(changed)}


def members(*scores):
    """Members whose A_T is a score in percent, over two tasks."""
    rows = (np.array([[score / 100, 0.1], [score / 100, score / 100]]) for score in scores)
    return [replace(record(seed=seed, tasks=2), accuracies=row) for seed, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("scores", "answer", "line"),
    [
        ((70.1, 70.2, 70.0), WITHIN, "mine: within ±1 of the printed 70 (n = 3)"),
        ((75.1, 75.2, 75.0), OUTSIDE, "mine: outside ±1 of the printed 70 (n = 3)"),
        ((70.1, 71.2, 69.0), OPEN, "mine: cannot tell at n = 3 whether within ±1 of the printed 70"),
    ],
)
def test_answers(scores, answer, line):
    result = answer_of(pack(), members(*scores))
    assert result["answer"] == answer and headline(result) == line
    assert result["difference"] == pytest.approx(np.mean(scores) - 70) and result["n"] == 3
    assert how_far(result) == "3 seeds, ± sd; printed mean taken as exact; two one-sided tests at 5 %"
    assert ("seeds_needed" in result) == (answer == OPEN) == bool(remedy(result))
    assert len(line) <= 80 and len(remedy(result)) <= 72


def test_the_numbers_of_an_answer():
    result = answer_of(pack(spread=0.5), members(69.0, 70.0, 72.0))
    assert how_far(result) == "3 seeds, ± sd; print ± 0.5 (s.e.); two one-sided tests at 5 %"
    ours, printed, apart, span = cells(result)
    assert (ours, printed, apart) == ("70.33 ± 1.53", "70", "+0.33")
    low, high = result["interval_90"]
    assert span == f"−{-low:.2f} to +{high:.2f}" and result["interval_95"][0] < low
    assert remedy(result) == "more seeds would not tell: print too vague, or difference at the margin"


def test_one_seed_tells_nothing_and_two_are_needed():
    result = answer_of(pack(), members(70.0))
    assert result["answer"] == OPEN and result["seeds_needed"] == 2 and "p" not in result
    assert cells(result) == ("70.00", "70", "0.00", "–")
    assert answer_of(pack(), [])["difference"] is None and headline(answer_of(pack(), [])).startswith(
        "mine: cannot tell at n = 0"
    )


def test_a_diverged_seed_leaves_all_open():
    result = answer_of(pack(), [*members(70.1, 70.2, 70.0), record(seed=3, tasks=2, diverged=True)])
    assert result["answer"] == OPEN and result["diverged"] == 1 and not remedy(result)
    assert how_far(result) == "1 seed diverged, and the others alone say nothing"


def test_other_settings_are_named():
    result = answer_of(pack(changed=("tasks", "lr")), members(70.1, 70.2, 70.0))
    assert headline(result) == "mine with other tasks, lr: within ±1 of the printed 70 (n = 3)"
