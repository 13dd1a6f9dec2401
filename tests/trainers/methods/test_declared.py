"""A method with a hyperparameter of its own per learner needs nothing but its declaration."""

from unittest.mock import patch

import numpy as np
import pytest

from epsearch.testing import failures, method_checks
from tests.support.learners import SMALL, learner, train
from tests.support.numeric_paths import MKL, TWIN, rows_equal
from tests.support.toy_streams import toy
from trainers.hyperparameters import Hyperparameter
from trainers.methods import METHODS, PLUGGED, Losses, Method, Mixing, Penalty, Subspaces
from trainers.methods.gpm import threshold
from trainers.methods.losses import CROSS_ENTROPY, STORED, TEACHER, Term
from trainers.methods.lwf import TEMPERATURE
from trainers.methods.penalty import STRENGTH, column
from trainers.methods.rules import MEMORY, MEMORY_BATCH, RESERVOIR, SAMPLED, angle, choose

SHARE = Hyperparameter("share", "Of g_ref in the mean.", default=0.5, high=1, per_learner=True)
DECAY = Hyperparameter("decay", "Of what a step adds to the importance.", default=0.5, high=1, per_learner=True)


def mix(products, values):
    return choose(angle(products).usable, (1 - values.share, values.share), 1.0)


def observe(state, step, direction):
    state["seen"].mul_(column(step.values.decay)).add_(step.g.abs())


def finish(state, end):
    state["importance"].copy_(state["seen"] * column(end.values.decay))


def _with(name, default):
    """A method with a hyperparameter of this name and default."""
    return Method("A", "", Mixing(mix), own=(Hyperparameter(name, "", default=default, high=1),))


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(METHODS, "mean", Method("Mean", "", Mixing(mix), SAMPLED, (SHARE, MEMORY, MEMORY_BATCH)))
    rule = Penalty(("seen",), finish, observe)
    monkeypatch.setitem(METHODS, "fading", Method("Fading", "", rule, own=(STRENGTH, DECAY)))


@pytest.mark.parametrize(
    ("method", "values"),
    [("mean", {"share": (0.0, 0.4, 1.0)}), ("fading", {"decay": (0.0, 0.5, 0.9)})],
    ids=["mean", "fading"],
)
def test_learners_that_differ_in_it_are_trained_together(method, values):
    """Each as if it were alone; also where it has a part in the first task, which is then not shared."""
    ((name, own),) = values.items()
    learners = [learner(method, strength=0.5, memory=3, memory_batch=8, **{name: value}) for value in own]
    together, batched = train(learners, toy(), MKL), train(learners, toy(), TWIN)
    assert len(set(together.fingerprints)) == 3
    for row, one in enumerate(learners):
        assert rows_equal(together, row, train([one], toy(), MKL), 0)
        assert np.allclose(together.params[row], batched.params[row], atol=1e-4)
    assert together.saved == (2 * 6 if method == "mean" else 0)


def test_a_share_of_nothing_is_plain_sgd():
    one, plain = (train([learner(name, share=0.0, memory=3)], toy(), MKL, SMALL) for name in ("mean", "van"))
    assert np.allclose(one.params[0], plain.params[0], atol=1e-6)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            lambda: Method("A", "", Mixing(mix), SAMPLED, (SHARE,)),
            "'A' needs the hyperparameters memory, memory_batch;",
        ),
        (lambda: Method("A", "", Subspaces(threshold)), "'A' needs the hyperparameters representations; declare"),
        (lambda: Method("A", "", Penalty((), finish)), "method 'A' needs the hyperparameters strength; declare"),
        (
            lambda: Method("A", "", Mixing(mix), own=(Hyperparameter("word", "", choices=("a",), per_learner=True),)),
            "method 'A': word must be a number to be per learner",
        ),
        (lambda: Method("A", "", mix, own=(SHARE,)), r"'A': rule must be a Mixing .* function; .* Mixing\(mix\)$"),
        (lambda: Method("A", "", {}, own=(SHARE,)), "'A': rule must be a Mixing, Penalty, .* or Columns, got a dict$"),
        (lambda: _with("two words", 0.5), "'A': the name of a hyperparameter must be letters, .* got 'two words'$"),
        (lambda: _with("share", 5), r"'A': default of share must be in \[0, 1\], got 5$"),
        (lambda: _with("share", None), "'A': share needs a default$"),
    ],
)
def test_a_declaration_that_cannot_train_is_one_line(made, message):
    with pytest.raises(ValueError, match=message):
        made()


@pytest.mark.slow
def test_what_weighed_losses_need():
    now, dark, taught = Term(CROSS_ENTROPY, one), Term(STORED, one, draw=1), Term(TEACHER, one)
    with pytest.raises(ValueError, match="method 'M' draws from its memory, which must be RESERVOIR"):
        Method("M", "", Losses((now, dark)), SAMPLED, (MEMORY, MEMORY_BATCH))
    with pytest.raises(ValueError, match="method 'M' needs the hyperparameters temperature; declare them in own"):
        Method("M", "", Losses((now, taught)))
    both = Method("M", "", Losses((now, dark, taught)), RESERVOIR, (MEMORY, MEMORY_BATCH, TEMPERATURE))
    assert [both.tasks_needed(name) for name in ("memory", "temperature")] == [1, 2]
    with patch.dict(PLUGGED):
        assert failures(method_checks(both)) == {}


def one(values, tasks):
    return 1.0
