"""The training loop on every numeric path: independence of the cohort, agreement with a plain loop, divergence."""

from collections import Counter

import numpy as np
import pytest
import torch

from tests.support.learners import engine_of, few, learner, train, untrained
from tests.support.numeric_paths import MKL, TWIN, on_compiled_paths, on_every_path, rows_equal
from tests.support.plain_run import flat, plain_run
from tests.support.toy_streams import digits, toy
from trainers import Architecture, Cohort, Hyperparameters, Learner
from trainers.cohort import LARGEST_SEED
from trainers.networks import MLP
from trainers.numeric_path import NumericPath
from trainers.pool import Pool
from trainers.schedule import generator

WIDE = Architecture()


SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 32, 33, 55)  # around those at which vectors and tiles are full


@pytest.mark.few(2)
@on_compiled_paths
@pytest.mark.parametrize("sizes", [SIZES, pytest.param(range(1, 56), marks=pytest.mark.slow)], ids=["some", "all"])
def test_a_learner_is_bit_identical_in_any_cohort_of_1_to_55_in_any_order(path, sizes):
    """A round of the paper's search: 11 ε × 5 seeds. Accuracies, and every bit of the final parameters."""
    learners = [few("soft_agem", seed, epsilon=k / 10) for seed in range(5) for k in range(11)]
    stream = toy(examples=30)
    alone = {one: train([one], stream, path, transfer=False) for one in learners}
    assert len({str(result.fingerprints[0]) for result in alone.values()}) == 55
    rng = np.random.default_rng(0)
    for size in sizes:
        chosen = [learners[i] for i in rng.permutation(55)[:size]]
        together = train(chosen, stream, path, transfer=False)
        for row, one in enumerate(chosen):
            assert rows_equal(together, row, alone[one], 0)
            assert np.array_equal(together.params[row], alone[one].params[0])


@pytest.mark.slow
def test_epsilon_and_seed_change_the_result():
    chosen = [learner("soft_agem", seed, epsilon=value, memory=5) for value, seed in ((0.0, 0), (0.9, 0), (0.9, 1))]
    result = train(chosen, digits(examples=200), architecture=WIDE)
    first, second, third = result.accuracies
    assert first[0, 0] == second[0, 0]  # no memory in the first task: ε plays no part
    assert not np.array_equal(first[1:], second[1:], equal_nan=True)
    assert not np.array_equal(second, third, equal_nan=True)


@pytest.mark.slow
def test_epsilon_zero_is_agem():
    stream = digits(examples=200)
    soft = train([learner("soft_agem", epsilon=0.0)], stream, architecture=WIDE)
    hard = train([learner("agem")], stream, architecture=WIDE)
    assert rows_equal(soft, 0, hard, 0)


@on_every_path
def test_what_transfer_needs_is_measured_on_demand_only(path):
    learners = [few("soft_agem", epsilon=epsilon) for epsilon in (0.0, 0.5)]
    full, bare = (train(learners, toy(), path, transfer=transfer) for transfer in (True, False))
    lower = np.tri(3, dtype=bool)
    assert np.array_equal(full.accuracies[:, lower], bare.accuracies[:, lower])
    assert list(full.fingerprints) == list(bare.fingerprints)
    assert np.isnan(bare.accuracies[:, ~lower]).all()
    assert np.isnan(bare.initial).all() and np.isnan(bare.within).all()


@pytest.mark.slow
def test_measurements_are_where_they_belong():
    stream = digits(examples=100)
    result = train([learner("agem", seed, memory=5) for seed in (0, 3)], stream, architecture=WIDE)
    a = result.accuracies
    assert a.shape == (2, 3, 3) and result.within.shape == (2, 3, 11)
    measured = np.tri(3, k=1, dtype=bool)
    assert (np.isnan(a) == ~measured).all()
    assert np.array_equal(result.within[:, 0, 0], result.initial[:, 0])
    for task in (1, 2):
        assert np.array_equal(result.within[:, task, 0], a[:, task - 1, task])
    assert np.array_equal(result.within[:, :, 10], a[:, range(3), range(3)])  # 10 steps a task
    assert (result.initial < 0.35).all() and (a[:, range(3), range(3)] > 0.2).all()
    assert np.isnan(result.violations[:, 0]).all() and not np.isnan(result.violations[:, 1:]).any()
    assert result.steps.tolist() == [30, 30]


def test_a_short_task_leaves_the_rest_of_the_learning_curve_empty():
    result = train([learner("van")], toy(examples=25), architecture=Architecture(hidden=(8,)))
    assert np.isnan(result.within[0, :, 4:]).all() and not np.isnan(result.within[0, :, :4]).any()
    assert np.isnan(result.violations).all()
    assert result.steps.tolist() == [9]  # 3 tasks × (2 full batches + 1 short)


def test_cv_and_evaluation_streams_share_nothing():
    cv, evaluation = digits(range(3)), digits(range(3, 20))
    permutations = {tuple(stream.permutation(0, task)) for stream in (cv, evaluation) for task in stream.tasks}
    assert len(permutations) == 20
    assert tuple(cv.permutation(1, 0)) not in permutations
    net = MLP((64, 16, 10))
    assert not (net.init(generator(0, "init", 0)) == net.init(generator(0, "init", 3))).all()


class TestDivergence:
    """A learner whose loss overflows is marked, and nobody else notices."""

    wild = learner("soft_agem", lr=1e30, memory=2, memory_batch=4)
    network = Architecture(hidden=(8,))

    def test_task_and_step_are_recorded(self):
        result = train([self.wild], toy(), architecture=self.network)
        assert result.diverged_task.tolist() == [0]
        assert 0 < result.diverged_step[0] < 6
        assert np.isnan(result.accuracies).all()
        assert not np.isnan(result.initial).any()

    @on_every_path
    def test_others_are_not_disturbed(self, path):
        """One of three learners has an ε that makes its first projected step NaN; the engine is told so directly."""
        epsilon = (0.2, float("nan"), 0.6)
        finals = []
        for chosen in ([0, 1, 2], [0], [2]):
            engine = engine_of(few("soft_agem"), toy(), path)
            with torch.inference_mode():
                learners = untrained(engine, [few("soft_agem")] * len(chosen))
                learners.own["epsilon"].copy_(torch.tensor([epsilon[i] for i in chosen]))
                for task in range(2):
                    engine.load_task(task)
                    learners.reset()
                    engine.train(learners, 0, engine.steps)
                    engine.remember(task)
            finals.append(learners)
        together, first, third = finals
        assert (together.first_bad >= 0).tolist() == [False, True, False]
        assert torch.isnan(together.params[1]).any()
        same = torch.equal if path.products != "torch" else lambda one, other: torch.allclose(one, other, atol=1e-5)
        assert same(together.params[0], first.params[0]) and same(together.params[2], third.params[0])

    @on_every_path
    def test_what_was_measured_before_stays(self, path):
        """A learning rate at which some learners get through the first task and are lost in the second."""
        one = learner("soft_agem", lr=1e30, memory=2, memory_batch=4, trigger="epsilon")
        result = train([one], toy(), path, self.network)
        assert result.diverged_task[0] == 0
        assert not np.isnan(result.within[0, 0, 0]) and np.isnan(result.within[0, 0, 6])


@on_compiled_paths
def test_the_twin_of_the_gpu_engine_agrees(path):
    """A GPU trains all learners of all seeds in one matrix; on the CPU that engine differs by rounding only."""
    learners = [few("soft_agem", seed, epsilon=epsilon) for seed in (1, 0) for epsilon in (0.0, 0.3, 0.8)]
    single, batched = (train(learners, toy(), one) for one in (path, TWIN))
    assert np.allclose(single.accuracies, batched.accuracies, atol=0.051, equal_nan=True)  # two of 40 test images
    assert np.allclose(single.violations, batched.violations, atol=0.34, equal_nan=True)


def test_seeds_of_one_matrix_may_have_stored_different_numbers():
    """Batched seeds whose classes are unequally frequent in their cut of the data store unequal numbers of examples."""
    stream, network = toy(examples=14), Architecture(hidden=(16,))
    learners = [learner("soft_agem", k, epsilon=0.2, memory=3, memory_batch=None, batch_size=7) for k in range(8)]
    pools = [Pool(stream, one.seed, one.declared, one.hyperparameters) for one in learners]
    for pool in pools:
        pool.load_task(0)
        pool.remember(0)
    seeds = [min(range(8), key=lambda s: pools[s].stored), max(range(8), key=lambda s: pools[s].stored)]
    assert pools[seeds[0]].stored < pools[seeds[1]].stored
    engine = engine_of(learners[0], stream, TWIN, network, tuple(seeds))
    with torch.inference_mode():
        both = untrained(engine, [learners[seed] for seed in seeds], [0, 1])
        for task in range(2):
            engine.load_task(task)
            engine.train(both, 0, engine.steps)
            engine.remember(task)
    for row, seed in enumerate(seeds):
        _, trace = plain_run(learners[seed], stream, network.hidden)
        net = MLP((stream.inputs, *network.hidden, stream.classes))
        assert torch.allclose(flat(net, both.params[row : row + 1]), trace[3], atol=1e-5)


def test_progress_counts_every_step_and_may_stop():
    counted = Counter()
    train([few("agem", 0), few("agem", 1)], toy(), progress=counted.update)
    assert counted == {task: 2 * 6 for task in range(3)}  # nothing to share: two seeds
    counted.clear()
    result = train([few("soft_agem", epsilon=e) for e in (0.0, 0.1, 0.2)], toy(), progress=counted.update)
    assert counted == {0: 6, 1: 3 * 6, 2: 3 * 6} and counted.total() + result.saved == 3 * 18

    class Stop(Exception):
        pass

    def stop(steps):
        raise Stop

    with pytest.raises(Stop):
        train([few("agem")], toy(), progress=stop)


def test_who_asks_for_progress_may_stop_a_long_row_of_tests(monkeypatch):
    """Before the first step an untrained network is tested on every task; that takes minutes for many tasks."""

    class Stop(Exception):
        pass

    def stop(steps):
        assert not steps.total()
        raise Stop

    def never(*what):
        raise AssertionError("no step was to be taken")

    monkeypatch.setattr("trainers.population.REPORT_SECONDS", 0.0)
    monkeypatch.setattr("trainers.engines.compiled.engine.CompiledEngine.train", never)
    with pytest.raises(Stop):
        train([few("agem")], toy(), MKL, progress=stop)


def test_the_largest_seed_is_one_like_others():
    largest, other = (train([few("agem", seed)], toy()) for seed in (LARGEST_SEED, 0))
    assert largest.accuracies[0, -1, 0] > 0 and largest.fingerprints[0] != other.fingerprints[0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Learner.of("soft_agem", 0, epsilon=1.5), r"epsilon must be in \[0, 1\], got 1.5"),
        (lambda: Learner.of("soft_agem", 0, epsilon=float("nan")), "epsilon must be"),
        (lambda: Learner.of("van", -1), "seed must lie in 0…9223372036854775807, got -1"),
        (lambda: Learner.of("van", 0, lr=-0.1), "lr must be > 0, got -0.1"),
        (lambda: Learner.of("soft_agem", 0, trigger="one"), "trigger must be one of zero, epsilon, got 'one'"),
        (lambda: Learner.of("agem", 0, memory_batch=0), "memory_batch must be >= 1"),
        (lambda: Learner.of("van", 0, memory=3), "no such hyperparameter: memory; known: lr, batch_size"),
        (lambda: Learner("van", Hyperparameters(lr=0.1), 0), "no value of the hyperparameter: batch_size"),
        (lambda: Learner.of("agemm", 0), "no method 'agemm'; known: agem, .*; did you mean 'agem'?"),
        (lambda: Cohort(()), "a cohort needs a learner, got none"),
        (lambda: Cohort((few("van"), few("agem"))), "learners of a cohort have one method, got 'van' and 'agem'"),
        (
            lambda: Cohort((few("er"), few("er", memory=9))),
            "learners of a cohort may differ in lr alone, got .*memory=3",
        ),
        (lambda: Architecture(hidden=()), r"hidden must be one or more widths >= 1, got \(\)"),
        (lambda: Architecture("rnn"), "network must be one of mlp, reduced_resnet18, resnet18, got 'rnn'"),
        (lambda: NumericPath.parse("gpu"), "no numeric path 'gpu'; one is cpu-float32-mkl-sparse"),
    ],
)
def test_values_out_of_range_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
