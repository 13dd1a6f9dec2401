"""Checks print what passed, and what does not apply."""

from unittest.mock import patch

import pytest

from epsearch.testing import failures, method_checks
from epsearch.testing.promises import checks_of
from trainers.methods import PLUGGED
from trainers.methods.penalty import STRENGTH, Penalty
from trainers.methods.rules import MEMORY, MEMORY_BATCH, RESERVOIR, Method, Mix, Mixing


def kept(case):
    """A promise that is kept."""


def elsewhere(case):
    return "there is none of these"


def broken(case):
    raise AssertionError("it must be kept")


def test_what_passed_is_printed(capsys):
    assert failures(checks_of([kept, elsewhere, broken], "a case")) == {"broken": "it must be kept"}
    shown = capsys.readouterr()
    assert shown.err.splitlines() == ["passed kept", "does not apply: elsewhere, as there is none of these"]
    assert shown.out == "", "which is the caller's"


REPLAY = Mixing(lambda products, values: Mix(products.share, 1 - products.share, products.share < 0))
OTHERS = {
    "reservoir": (Method("REPLAY", "nobody", REPLAY, RESERVOIR, (MEMORY, MEMORY_BATCH)), {"a_first_task", "what_is"}),
    "penalty": (
        Method("L2", "nobody", Penalty((), lambda state, end: state["importance"].copy_(end.real)), own=(STRENGTH,)),
        {"numbers_and", "what_is"},
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_promises_of_other_kinds_of_methods_do_not_apply(name, capsys):
    method, others = OTHERS[name]
    with patch.dict(PLUGGED):
        checks = [(each, check) for each, check in method_checks(method) if each.startswith(tuple(others))]
        assert len(checks) == len(others) and failures(checks) == {}
    assert all(line.startswith("does not apply: ") for line in capsys.readouterr().err.splitlines())
