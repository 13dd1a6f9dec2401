"""Lines about names that nobody knows."""

import difflib

import pytest

from trainers.methods import METHODS
from trainers.spelling import unknown


def test_of_few_names_all_are_listed_in_their_order():
    names = [f"study {number}" for number in range(14)]
    assert f"; known: {', '.join(names)}; " in unknown("study", "study 3x", names)


@pytest.mark.parametrize("names", [list(METHODS), [f"n{n}" for n in range(4000)]])
def test_of_many_the_nearest_are_listed_within_25_words(names):
    wrong = names[20] + "x"
    line = unknown("option", wrong, names)
    known = line.partition("; known: ")[2].partition(f" and {len(names) - 8} more; ")[0].split(", ")
    likeness = [difflib.SequenceMatcher(None, one, wrong).ratio() for one in names]
    assert known[0] == names[20] and len({*known} & {*names}) == 8
    assert len(line.split()) <= 23, "before it stands the program's name, behind it `or module:attribute`"
    least = min(likeness[names.index(one)] for one in known)
    assert sum(one > least + 0.05 for one in likeness) <= 8, "none that is clearly nearer is left out"
