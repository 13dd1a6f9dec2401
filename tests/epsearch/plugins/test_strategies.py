"""Strategies of others that fail, leave the space, or would never end."""

import math
from pathlib import Path

import pytest

from epsearch.failures.errors import UsageError
from epsearch.plugins import guards
from results.ledger.store import Store
from search_spaces.space import Parameter, Space
from tests.support import others
from tests.support.drive import fake, finish, make

OTHERS = Path(others.__file__).read_text(encoding="utf-8")
SCORES = fake(lambda one: 0.9 - 0.4 * (one.epsilon - 0.4) ** 2)


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


LISTED = "[[(low + at * (high - low),), (high - at * (high - low),)] for at in steps.tolist()]"
TAKES = "        if self._take(observations) and not self.done:\n"
NEXT = "self._begin(self._batches[len(self._rounds)])"
FAULTY = {
    "builds": ("(self._parameter,) = space.parameters", "1 / 0", "strategy mine:ENDS failed with ZeroDivisionError"),
    "outside": (LISTED, "[[(7.0,)]]", "must suggest tuples of values in epsilon=0..1, got (7.0,)"),
    "no tuple": (LISTED, "[[0.1]]", "must suggest tuples of values in epsilon=0..1, got 0.1"),
    "two values": (LISTED, "[[(0.1, 0.2)]]", "must suggest tuples of values in epsilon=0..1, got (0.1, 0.2)"),
    "a word": (LISTED, "[[('a',)]]", "must suggest tuples of values in epsilon=0..1, got ('a',)"),
    "tells": (TAKES, f"        1 / 0\n{TAKES}", "tell of strategy mine:ENDS failed with ZeroDivisionError"),
    "later outside": (NEXT, "self._begin([(7.0,)])", "must suggest tuples of values in epsilon=0..1, got (7.0,)"),
    "nothing more": (NEXT, "pass", "strategy mine:ENDS suggests nothing more, and is not done"),
    "for ever": (
        "len(self._rounds) == len(self._batches)",
        "False",
        "tell of strategy mine:ENDS failed with IndexError: list index out of range, at mine.py:",
    ),
    "the same for ever": (
        NEXT,
        "self._begin(self._batches[0])\n\n    done = False",
        "strategy mine:ENDS may make 6 suggestions, points × repeats, and makes more",
    ),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_strategy_that_fails_is_one_line(fault, tmp_path, monkeypatch, small_study, store):
    before, after, line = FAULTY[fault]
    assert before in OTHERS
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(OTHERS.replace(before, after), encoding="utf-8")
    with pytest.raises(UsageError) as refusal:
        finish(make(small_study(strategy="mine:ENDS", points=3, repeats=2), store), SCORES)
    said = str(refusal.value)
    assert line in said and "strategy mine:ENDS" in said and "\n" not in said, said


@pytest.mark.parametrize("parameter", [Parameter("lr", 0.01, 0.3, log=True), Parameter("epsilon", 0.0, 1.0)])
def test_an_end_may_be_off_by_a_rounding(parameter):
    """As one is that went through a logarithm."""
    space = Space((parameter,))
    assert guards._lies_in(space, (math.nextafter(parameter.high, 2),))
    assert not guards._lies_in(space, (parameter.high * (1 + 1e-9),))
    assert not guards._lies_in(space, (parameter.low - 1e-9,))
