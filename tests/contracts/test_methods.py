"""What every registered method promises, on every numeric path."""

from functools import cache

import numpy as np
import pytest
import torch

from epsearch.testing.methods import (
    PROMISES,
    MethodCase,
    a_diverging_member_disturbs_nobody,
    members_are_the_same_alone_and_together,
    zero_gradients_do_no_harm,
)
from epsearch.testing.toy import suit_stream
from tests.support.learners import IN_SEQUENCE, OTHER_VALUES, STRENGTHS, engine_of, learner, train, untrained
from tests.support.numeric_paths import (
    MKL,
    TWIN,
    on_compiled_paths_by_kind,
    on_every_path,
    on_paths_by_kind,
    rows_equal,
)
from tests.support.plain_run import flat, plain_run
from tests.support.toy_streams import digits, toy
from trainers import Architecture, Learner
from trainers.methods import METHODS, RESERVOIR, Columns, hyperparameters
from trainers.networks import MLP

every_method = pytest.mark.parametrize("method", IN_SEQUENCE)
# PROGNN's network is another one; its own tests compare it with explicit columns.
one_network = pytest.mark.parametrize(
    "method", [name for name in IN_SEQUENCE if not isinstance(METHODS[name].rule, Columns)]
)
NETWORK = Architecture(hidden=(24, 16))
FEW = toy(examples=66, classes=4)  # 16 batches of 4 and one of 2
VALUES = {"epsilon": 0.3, "batch_size": 4, "memory": 3, "memory_batch": 8, "fisher_every": 5}


def small(method, seed=0, **changes):
    return learner(method, seed, **VALUES | changes)


def trained(learners, stream, path=MKL, **options):
    return train(learners, stream, path, **{"architecture": NETWORK} | options)


ON_EVERY_PATH = (zero_gradients_do_no_harm, a_diverging_member_disturbs_nobody)


def case(method, path=MKL):
    values = VALUES | ({"strength": STRENGTHS[method]} if method in STRENGTHS else {})
    return MethodCase(method, values, OTHER_VALUES, path)


@pytest.mark.few(60)
@every_method
@pytest.mark.parametrize("promise", PROMISES, ids=lambda one: one.__name__)
def test_promises(promise, method):
    promise(case(method))


@pytest.mark.few(1)
@on_paths_by_kind
@every_method
@pytest.mark.parametrize("promise", ON_EVERY_PATH, ids=lambda one: one.__name__)
def test_promises_on_every_path(promise, method, path):
    promise(case(method, path))


@pytest.mark.slow
@pytest.mark.few(8)
@every_method
def test_in_tensors_members_are_the_same_up_to_rounding(method):
    members_are_the_same_alone_and_together(case(method, TWIN))


def test_every_hyperparameter_has_another_value():
    own = {one.name for name in IN_SEQUENCE for one in METHODS[name].own}
    assert set(OTHER_VALUES) == own and own < set(hyperparameters())


def test_a_reservoir_alone_is_no_plain_sgd_in_the_first_task():
    found, plain = (trained([small(name)], toy(range(2))) for name in ("er", "van"))
    assert not np.allclose(found.within[0, 0], plain.within[0, 0])


@pytest.mark.slow
@pytest.mark.few(22)
@on_compiled_paths_by_kind
@every_method
def test_learners_are_bit_identical_alone_and_together(method, path):
    learners = [
        learner(method, seed, epsilon=epsilon, lr=rate, memory=5, memory_batch=20)
        for seed in (0, 1)
        for epsilon in (0.0, 0.5)
        for rate in (0.1, 0.01)
    ]
    stream = digits(examples=60)
    together = trained(learners, stream, path, architecture=Architecture(), transfer=False)
    for row in (0, 3, 6):  # between them: both of each
        alone = trained([learners[row]], stream, path, architecture=Architecture(), transfer=False)
        assert rows_equal(together, row, alone, 0)
        assert np.array_equal(together.params[row], alone.params[0])


@cache
def plainly_trained(method, form):
    """Accuracies and parameters after every step, by the plain loop; every numeric path is compared with them."""
    return plain_run(small(method, penalty_form=form), FEW, NETWORK.hidden)


@pytest.mark.few(70)
@on_every_path
@pytest.mark.parametrize("form", ["code", "paper"])
@one_network
def test_a_whole_run_agrees_with_a_plain_loop(method, form, path):
    """Three tasks of 17 steps, parameters after every step and accuracies; the rules in float64 by `reference.py`."""
    if form == "paper" and "penalty_form" not in METHODS[method].names:
        pytest.skip("one form only")
    stream, one = FEW, small(method, penalty_form=form)
    accuracies, trace = plainly_trained(method, form)
    assert len(trace) == 51
    net = MLP((stream.inputs, *NETWORK.hidden, suit_stream(METHODS[method], stream).outputs))
    engine = engine_of(one, stream, path, NETWORK)
    with torch.inference_mode():
        learners = untrained(engine, [one])
        for task in range(3):
            engine.load_task(task)
            for step in range(engine.steps):
                engine.train(learners, step, step + 1)
                found = flat(net, learners.params)
                assert torch.allclose(found, trace[17 * task + step], atol=1e-5), f"task {task}, step {step}"
            engine.finish(learners, task == 0)
            engine.remember(task)
    result = trained([one], stream, path)
    lower = np.tri(3, dtype=bool)
    assert np.array_equal(result.accuracies[0][lower], accuracies[lower])


@every_method
def test_declared_memory_is_what_is_kept(method):
    """A method without a memory forgets its examples; one with a memory stores its quota, and no more."""
    from trainers.pool import Pool

    stream = toy(range(3), examples=60, classes=4)
    pool = Pool(stream, 0, METHODS[method], small(method).hyperparameters)
    for task in range(3):
        segments = pool.load_task(task)
        referenced = any(segment.reference for segment in segments)
        assert referenced == (METHODS[method].memory is not None and (task > 0 or METHODS[method].memory == RESERVOIR))
        pool.remember(task)
    assert len(pool.inputs) - stream.examples == pool.slots
    quota = {None: 0, "sampled": 24, "per task": 24, "reservoir": 36}[METHODS[method].memory]
    assert pool.slots == quota  # 3 a class and task; the last task's are read by a reservoir only


@pytest.mark.parametrize("method", STRENGTHS)
def test_a_penalty_without_a_strength_is_refused(method):
    with pytest.raises(ValueError, match="strength must be >= 0, got None"):
        Learner.of(method, seed=0)
