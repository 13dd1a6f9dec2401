"""What every registered method promises, on every numeric path."""

import numpy as np
import pytest
import torch

from tests.support.learners import STRENGTHS, engine_of, learner, train, untrained
from tests.support.numeric_paths import MKL, on_compiled_paths, on_every_path, rows_equal
from tests.support.plain_run import flat, plain_run
from tests.support.toy_streams import digits, toy
from trainers import Architecture, Learner
from trainers.methods import METHODS, Columns, hyperparameters
from trainers.networks import MLP
from trainers.schedule import generator
from trainers.streams import PermutedStream
from trainers.streams.base import Examples, Images

every_method = pytest.mark.parametrize("method", METHODS)
# PROGNN's network is another one; its own tests compare it with explicit columns.
one_network = pytest.mark.parametrize("method", [n for n, m in METHODS.items() if not isinstance(m.rule, Columns)])
NETWORK = Architecture(hidden=(24, 16))
VALUES = {"epsilon": 0.3, "batch_size": 4, "memory": 3, "memory_batch": 8, "fisher_every": 5}


def small(method, seed=0, **changes):
    return learner(method, seed, **VALUES | changes)


def trained(learners, stream, path=MKL, **options):
    return train(learners, stream, path, **{"architecture": NETWORK} | options)


@on_compiled_paths
@every_method
def test_learners_are_bit_identical_alone_and_together(method, path):
    learners = [
        learner(method, seed, epsilon=epsilon, lr=rate, memory=5, memory_batch=20)
        for seed in (0, 1)
        for epsilon in (0.0, 0.5)
        for rate in (0.1, 0.01)
    ]
    stream = digits(examples=60)
    together = trained(learners, stream, path, architecture=Architecture())
    for row, one in enumerate(learners):
        alone = trained([one], stream, path, architecture=Architecture())
        assert rows_equal(together, row, alone, 0)
        assert np.array_equal(together.params[row], alone.params[0])


@on_every_path
@pytest.mark.parametrize("form", ["code", "paper"])
@one_network
def test_a_whole_run_agrees_with_a_plain_loop(method, form, path):
    """Three tasks of 17 steps, parameters after every step and accuracies; the rules in float64 by `reference.py`."""
    if form == "paper" and "penalty_form" not in METHODS[method].names:
        pytest.skip("one form only")
    stream = toy(examples=66, classes=4)  # 16 batches of 4 and one of 2
    one = small(method, penalty_form=form)
    accuracies, trace = plain_run(one, stream, NETWORK.hidden)
    assert len(trace) == 51
    net = MLP((stream.inputs, *NETWORK.hidden, stream.classes))
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
def test_a_first_task_is_plain_sgd_where_it_must_be(method):
    """Everywhere but in ER, which replays from its second step on."""
    found, plain = (trained([small(name)], toy(range(2))) for name in (method, "van"))
    same = (
        np.allclose(found.within[0, 0], plain.within[0, 0]) and found.accuracies[0, 0, 0] == plain.accuracies[0, 0, 0]
    )
    assert same == (method != "er")
    if METHODS[method].first_task_is_sgd:
        assert np.array_equal(found.accuracies[0, 0], plain.accuracies[0, 0])


OTHER_VALUES = {
    "epsilon": 0.9,
    "strength": 0.05,
    "memory": 2,
    "memory_batch": 5,
    "trigger": "epsilon",
    "scale": "raw",
    "satisfied": "unit",
    "a_agem_scale": "raw",
    "fisher_every": 4,
    "penalty_form": "paper",
    "margin": 0.1,
}


def changing(method, tasks):
    """Names of the hyperparameters that change a bit of the final parameters on so many tasks."""
    stream = toy(range(tasks), examples=66)

    def fingerprint(**changes):
        return trained([small(method, **changes)], stream).fingerprints[0]

    base = fingerprint()
    return {name for name in METHODS[method].names if fingerprint(**{name: OTHER_VALUES[name]}) != base}


@every_method
def test_the_result_depends_on_all_that_is_declared(method):
    """A rule is given what its method declares and nothing else; what is declared must change a bit."""
    assert set(OTHER_VALUES) | {"lr", "batch_size"} == set(hyperparameters())
    assert changing(method, tasks=3) == set(METHODS[method].names)


@pytest.mark.parametrize("tasks", [1, 2])
@every_method
def test_a_hyperparameter_acts_from_as_many_tasks_on_as_is_declared(method, tasks):
    """A search on fewer tasks is refused: it could find nothing."""
    declared = METHODS[method]
    assert changing(method, tasks) == {name for name in declared.names if declared.tasks_needed(name) <= tasks}


@every_method
def test_declared_memory_is_what_is_kept(method):
    """A method without a memory forgets its examples; one with a memory stores its quota, and no more."""
    from trainers.pool import Pool

    stream = toy(range(3), examples=60, classes=4)
    pool = Pool(stream, 0, METHODS[method], small(method).hyperparameters)
    for task in range(3):
        segments = pool.load_task(task)
        referenced = any(segment.reference for segment in segments)
        assert referenced == (METHODS[method].memory is not None and (task > 0 or method == "er"))
        pool.remember(task)
    assert len(pool.inputs) - stream.examples == pool.slots
    quota = {None: 0, "sampled": 24, "per task": 24, "reservoir": 36}[METHODS[method].memory]
    assert pool.slots == quota  # 3 a class and task; the last task's are read by a reservoir only


def black(images=60, pixels=9, classes=4):
    """Images without a pixel: every gradient of the first layer's weights is zero."""
    labels = np.arange(images) % classes
    part = Examples(np.zeros((images, pixels), dtype=np.uint8), labels.astype(np.int64))
    return PermutedStream(Images(part, part, classes, 255.0), range(3), images)


@on_every_path
@every_method
def test_zero_gradients_do_no_harm(method, path):
    stream = black()
    result = trained([small(method)], stream, path)
    assert result.diverged_task[0] == -1
    assert np.isfinite(result.params[0]).all()
    if not isinstance(METHODS[method].rule, Columns):  # whose columns are initialised otherwise
        net = MLP((stream.inputs, *NETWORK.hidden, stream.classes))
        start, final = (net.layers(torch.from_numpy(row)[None])[0] for row in (started(stream), result.params[0]))
        assert torch.equal(start.weight, final.weight) and not torch.equal(start.bias, final.bias)


def started(stream):
    """One row: the untrained network of seed 0."""
    net = MLP((stream.inputs, *NETWORK.hidden, stream.classes))
    return net.init(generator(0, "init", stream.tasks.start))


@every_method
def test_saturated_losses_do_no_harm(method):
    """One class, one output: the loss is zero, and so is every gradient, that of the memory too."""
    stream = toy(examples=66, classes=1)
    result = trained([small(method)], stream)
    assert result.diverged_task[0] == -1 and (result.accuracies[0][np.tri(3, dtype=bool)] == 1).all()
    if not isinstance(METHODS[method].rule, Columns):
        assert np.array_equal(result.params[0], started(stream))


@on_every_path
@every_method
def test_a_diverging_learner_is_marked_and_disturbs_nobody(method, path):
    stream = toy()
    wild, tame = small(method, lr=1e30), small(method)
    result, alone = trained([wild, tame], stream, path), trained([tame], stream, path)
    assert result.diverged_task.tolist() == [0, -1] and result.diverged_step[0] >= 0
    assert np.isnan(result.accuracies[0]).all()
    if path.products == "torch":
        assert np.allclose(result.accuracies[1], alone.accuracies[0], atol=0.051, equal_nan=True)
    else:
        assert rows_equal(result, 1, alone, 0)


@pytest.mark.parametrize("method", STRENGTHS)
def test_a_penalty_without_a_strength_is_refused(method):
    with pytest.raises(ValueError, match="strength must be >= 0, got None"):
        Learner.of(method, seed=0)
