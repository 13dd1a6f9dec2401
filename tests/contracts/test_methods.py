"""What every registered method promises, on every numeric path."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from tests.support.numeric_paths import MKL, on_compiled_paths, on_every_path, rows_equal
from tests.support.plain_run import STRENGTHS, flat, plain_run
from tests.support.toy_streams import digits, toy
from trainers import Cohort, Member, TrainConfig
from trainers.engines import make_engine
from trainers.engines.base import Learners
from trainers.methods import METHODS, Columns
from trainers.networks import MLP
from trainers.population import train_cohort
from trainers.schedule import generator
from trainers.streams import PermutedStream
from trainers.streams.base import Examples, Images

every_method = pytest.mark.parametrize("method", METHODS)
# PROGNN's network is another one; its own tests compare it with explicit columns.
one_network = pytest.mark.parametrize("method", [n for n, m in METHODS.items() if not isinstance(m.rule, Columns)])
CONFIG = TrainConfig(batch_size=4, memory=3, memory_batch=8, hidden=(24, 16), fisher_every=5)


def member(method, seed=0, epsilon=0.3, **changes):
    return Member(epsilon, seed, **{"strength": STRENGTHS.get(method)} | changes)


@on_compiled_paths
@every_method
def test_members_are_bit_identical_alone_and_together(method, path):
    members = tuple(
        member(method, seed, epsilon, learning_rate=rate)
        for seed in (0, 1)
        for epsilon in (0.0, 0.5)
        for rate in (None, 0.01)
    )
    stream, config = digits(examples=60), TrainConfig(memory=5, memory_batch=20)
    together = train_cohort(Cohort(method, members), stream, config, path)
    for row, one in enumerate(members):
        alone = train_cohort(Cohort(method, (one,)), stream, config, path)
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
    config, one = replace(CONFIG, penalty_form=form), member(method)
    accuracies, trace = plain_run(method, one, stream, config)
    assert len(trace) == 51
    net = MLP((stream.inputs, *config.hidden, stream.classes))
    engine = make_engine(method, (0,), stream, config, path)
    with torch.inference_mode():
        start = engine.start()
        rates = [config.learning_rate]
        learners = Learners.of(start, torch.tensor([0]), [0.3], rates, [one.strength], engine.state(start))
        for task in range(3):
            engine.load_task(task)
            for step in range(engine.steps):
                engine.train(learners, step, step + 1)
                found = flat(net, learners.params)
                assert torch.allclose(found, trace[17 * task + step], atol=1e-5), f"task {task}, step {step}"
            engine.finish(learners, task == 0)
            engine.remember(task)
    result = train_cohort(Cohort(method, (one,)), stream, config, path)
    lower = np.tri(3, dtype=bool)
    assert np.array_equal(result.accuracies[0][lower], accuracies[lower])


@every_method
def test_a_first_task_is_plain_sgd_where_it_must_be(method):
    """Everywhere but in ER, which replays from its second step on."""
    stream, config = toy(range(2)), replace(CONFIG, hidden=(16,))
    found = train_cohort(Cohort(method, (member(method),)), stream, config, MKL)
    plain = train_cohort(Cohort("van", (Member(0.0, 0),)), stream, config, MKL)
    same = (
        np.allclose(found.within[0, 0], plain.within[0, 0]) and found.accuracies[0, 0, 0] == plain.accuracies[0, 0, 0]
    )
    assert same == (method != "er")
    if METHODS[method].first_task_is_sgd:
        assert np.array_equal(found.accuracies[0, 0], plain.accuracies[0, 0])


OTHER_VALUES = {
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

    def trained(config=CONFIG, **changes):
        return train_cohort(Cohort(method, (member(method, **changes),)), stream, config, MKL).fingerprints[0]

    base, strength = trained(), 0.05 + (STRENGTHS.get(method) or 0.0)
    found = {name for name, value in OTHER_VALUES.items() if trained(replace(CONFIG, **{name: value})) != base}
    mine = {"epsilon": {"epsilon": 0.9}, "strength": {"strength": strength}}
    return found | {name for name, change in mine.items() if trained(**change) != base}


@every_method
def test_declared_settings_are_those_the_result_depends_on(method):
    """Content keys leave out what is not declared, so it must not change a bit; and what is declared does."""
    of_everyone = {"learning_rate", "batch_size", "hidden", "network", "pretrained"}
    assert {field.name for field in fields(TrainConfig)} == set(OTHER_VALUES) | of_everyone
    assert changing(method, tasks=3) == set(METHODS[method].names)


@pytest.mark.parametrize("tasks", [1, 2])
@every_method
def test_a_setting_acts_from_as_many_tasks_on_as_is_declared(method, tasks):
    """A search on fewer tasks is refused: it could find nothing."""
    declared = METHODS[method]
    assert changing(method, tasks) == {name for name in declared.names if declared.tasks_needed(name) <= tasks}


@every_method
def test_declared_memory_is_what_is_kept(method):
    """A method without a memory forgets its examples; one with a memory stores its quota, and no more."""
    from trainers.pool import Pool

    stream = toy(range(3), examples=60, classes=4)
    pool = Pool(stream, 0, CONFIG, METHODS[method].memory)
    for task in range(3):
        segments = pool.load_task(task)
        referenced = any(segment.reference for segment in segments)
        assert referenced == (METHODS[method].memory is not None and (task > 0 or method == "er"))
        pool.remember(task)
    assert len(pool.inputs) - stream.examples == pool.capacity
    slots = {None: 0, "sampled": 24, "per task": 24, "reservoir": 36}[METHODS[method].memory]
    assert pool.capacity == slots  # 3 a class and task; the last task's are read by a reservoir only


def black(images=60, pixels=9, classes=4):
    """Images without a pixel: every gradient of the first layer's weights is zero."""
    labels = np.arange(images) % classes
    part = Examples(np.zeros((images, pixels), dtype=np.uint8), labels.astype(np.int64))
    return PermutedStream(Images(part, part, classes, 255.0), range(3), images)


@on_every_path
@every_method
def test_zero_gradients_do_no_harm(method, path):
    stream = black()
    result = train_cohort(Cohort(method, (member(method),)), stream, CONFIG, path)
    assert result.diverged_task[0] == -1
    assert np.isfinite(result.params[0]).all()
    if not isinstance(METHODS[method].rule, Columns):  # whose columns are initialised otherwise
        net = MLP((stream.inputs, *CONFIG.hidden, stream.classes))
        start, final = (net.layers(torch.from_numpy(row)[None])[0] for row in (started(stream), result.params[0]))
        assert torch.equal(start.weight, final.weight) and not torch.equal(start.bias, final.bias)


def started(stream):
    """One row: the untrained network of seed 0."""
    net = MLP((stream.inputs, *CONFIG.hidden, stream.classes))
    return net.init(generator(0, "init", stream.tasks.start))


@every_method
def test_saturated_losses_do_no_harm(method):
    """One class, one output: the loss is zero, and so is every gradient, that of the memory too."""
    stream = toy(examples=66, classes=1)
    result = train_cohort(Cohort(method, (member(method),)), stream, CONFIG, MKL)
    assert result.diverged_task[0] == -1 and (result.accuracies[0][np.tri(3, dtype=bool)] == 1).all()
    if not isinstance(METHODS[method].rule, Columns):
        assert np.array_equal(result.params[0], started(stream))


@on_every_path
@every_method
def test_a_diverging_member_is_marked_and_disturbs_nobody(method, path):
    stream = toy()
    wild, tame = member(method, learning_rate=1e30), member(method)
    result = train_cohort(Cohort(method, (wild, tame)), stream, CONFIG, path)
    alone = train_cohort(Cohort(method, (tame,)), stream, CONFIG, path)
    assert result.diverged_task.tolist() == [0, -1] and result.diverged_step[0] >= 0
    assert np.isnan(result.accuracies[0]).all()
    if path.products == "torch":
        assert np.allclose(result.accuracies[1], alone.accuracies[0], atol=0.051, equal_nan=True)
    else:
        assert rows_equal(result, 1, alone, 0)


@pytest.mark.parametrize("method", STRENGTHS)
def test_a_penalty_without_a_strength_is_refused(method):
    with pytest.raises(ValueError, match=f"strength, the λ of {method}'s penalty, must be given .* got None"):
        train_cohort(Cohort(method, (Member(0.0, 0),)), toy(), CONFIG, MKL)
