"""The training loop: independence of the cohort, agreement with a plain loop, measurements, divergence."""

import numpy as np
import pytest
import torch

from tests.trainers.reference import PlainLearner, step_direction
from tests.trainers.streams import digits, toy
from trainers import Cohort, Member, TrainConfig
from trainers.methods import METHODS
from trainers.networks import MLP
from trainers.pool import Pool
from trainers.population import train_cohort
from trainers.schedule import generator

FIELDS = ("accuracies", "initial", "within", "violations", "diverged_task", "diverged_step")
SMALL = TrainConfig(memory=3, memory_batch=8, hidden=(16, 16))


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def rows_equal(result, row, other, other_row):
    return all(np.array_equal(getattr(result, f)[row], getattr(other, f)[other_row], equal_nan=True) for f in FIELDS)


@pytest.mark.parametrize("method", METHODS)
def test_a_member_is_bit_identical_alone_and_anywhere(method):
    members = [Member(epsilon, seed) for seed in (0, 1) for epsilon in (0.0, 0.1, 0.5, 1.0)]
    stream, config = digits(examples=100), TrainConfig(memory=5, memory_batch=20)
    alone = {member: train_cohort(Cohort(method, (member,)), stream, config) for member in members}
    rng = np.random.default_rng(0)
    for size in (2, 3, 5, 8):
        chosen = tuple(members[i] for i in rng.permutation(8)[:size])
        together = train_cohort(Cohort(method, chosen), stream, config)
        assert all(rows_equal(together, row, alone[member], 0) for row, member in enumerate(chosen))


def test_epsilon_and_seed_change_the_result():
    members = (Member(0.0, 0), Member(0.9, 0), Member(0.9, 1))
    result = train_cohort(Cohort("soft_agem", members), digits(examples=200), TrainConfig(memory=5))
    first, second, third = result.accuracies
    assert first[0, 0] == second[0, 0]  # no memory in the first task: ε plays no part
    assert not np.array_equal(first[1:], second[1:], equal_nan=True)
    assert not np.array_equal(second, third, equal_nan=True)


def test_epsilon_zero_is_agem():
    stream = digits(examples=200)
    soft = train_cohort(Cohort("soft_agem", (Member(0.0, 0),)), stream, TrainConfig())
    hard = train_cohort(Cohort("agem", (Member(0.0, 0),)), stream, TrainConfig())
    assert rows_equal(soft, 0, hard, 0)


def plain_run(method, epsilon, seed, stream, config, limit=None):
    """The same run by a plain per-member loop on the same batches; returns accuracies [T, T] and a parameter trace."""
    net = MLP((stream.inputs, *config.hidden, stream.classes))
    start = torch.from_numpy(net.init(generator(seed, "init", stream.tasks.start)))[None]
    learner = PlainLearner(net.sizes, [(weight[0], bias[0]) for weight, bias in net.layers(start)])
    pool = Pool(stream, seed, config, METHODS[method].uses_memory, "cpu")
    tasks = len(stream.tasks)
    accuracies, trace, _projected = np.full((tasks, tasks), np.nan), [], []
    for task in range(tasks):
        for batch in pool.load_task(task):
            for rows in batch.rows:
                x, target = pool.gather(rows)
                y, now = target.argmax(1), slice(0, batch.current)
                g = learner.gradient(x[now], y[now])
                if batch.reference:
                    r = learner.gradient(x[batch.current :], y[batch.current :])
                    direction = step_direction(method, g.double().numpy(), r.double().numpy(), epsilon)
                    g = torch.from_numpy(direction).float()
                learner.step(g, config.learning_rate)
                trace.append(learner.flat())
        pool.remember(task)
        for tested in range(task + 1):
            inputs, labels = stream.test(seed, stream.tasks[tested])
            scaled = torch.from_numpy(inputs).float() / stream.largest
            accuracies[task, tested] = learner.accuracy(scaled, torch.from_numpy(labels))
    return accuracies, trace


@pytest.mark.parametrize("method", METHODS)
def test_a_whole_run_agrees_with_a_plain_loop(method):
    """Three tasks of 17 steps = 51 steps, parameters and accuracies; float32 against float32 in another order."""
    stream, epsilon = toy(examples=68, classes=4), 0.3
    config = TrainConfig(batch_size=4, memory=3, memory_batch=8, hidden=(16, 16))
    captured = []

    class Spying(MLP):
        def gradients(self, layers, *rest):
            captured.append(torch.cat([torch.cat([w[0].reshape(-1), b[0]]) for w, b in layers]))
            return super().gradients(layers, *rest)

    import trainers.population as population

    original, population.MLP = population.MLP, Spying
    try:
        result = train_cohort(Cohort(method, (Member(epsilon, 0),)), stream, config)
    finally:
        population.MLP = original
    accuracies, trace = plain_run(method, epsilon, 0, stream, config)
    assert len(captured) == len(trace) == 51
    for step in range(50):  # parameters before step + 1 are those after `step`
        assert torch.allclose(captured[step + 1], trace[step], atol=1e-5), f"step {step}"
    lower = np.tri(3, dtype=bool)
    assert np.array_equal(result.accuracies[0][lower], accuracies[lower])
    if METHODS[method].uses_memory:
        assert 0 < np.nanmax(result.violations) < 1  # both branches were taken


def test_measurements_are_where_they_belong():
    stream = digits(examples=100)
    result = train_cohort(Cohort("agem", (Member(0.0, 0), Member(0.0, 3))), stream, TrainConfig(memory=5))
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
    assert result.steps == 30


def test_a_short_task_leaves_the_rest_of_the_learning_curve_empty():
    result = train_cohort(Cohort("van", (Member(0.0, 0),)), toy(examples=25), TrainConfig(hidden=(8,)))
    assert np.isnan(result.within[0, :, 4:]).all() and not np.isnan(result.within[0, :, :4]).any()
    assert np.isnan(result.violations).all()
    assert result.steps == 9  # 3 tasks × (2 full batches + 1 short)


def test_cv_and_evaluation_streams_share_nothing():
    cv, evaluation = digits(range(3)), digits(range(3, 20))
    permutations = {tuple(stream.permutation(0, task)) for stream in (cv, evaluation) for task in stream.tasks}
    assert len(permutations) == 20
    assert tuple(cv.permutation(1, 0)) not in permutations
    net = MLP((64, 16, 10))
    assert not (net.init(generator(0, "init", 0)) == net.init(generator(0, "init", 3))).all()


class TestDivergence:
    """A member whose loss overflows is marked, and nobody else notices."""

    config = TrainConfig(learning_rate=1e30, hidden=(8,), memory=2, memory_batch=4)

    def test_task_and_step_are_recorded(self):
        result = train_cohort(Cohort("soft_agem", (Member(0.5, 0),)), toy(), self.config)
        assert result.diverged_task.tolist() == [0]
        assert 0 < result.diverged_step[0] < 6
        assert np.isnan(result.accuracies).all()
        assert not np.isnan(result.initial).any()

    def test_others_are_not_disturbed(self, monkeypatch):
        """Poisons one member's ε after the first task, so that its next steps are NaN."""
        import trainers.population as population

        members = (Member(0.2, 0), Member(0.4, 0), Member(0.6, 0))
        alone = [train_cohort(Cohort("soft_agem", (member,)), toy(), SMALL) for member in members]
        original = population._SeedRun.train

        def poisoned(run):
            run._epsilon[torch.isclose(run._epsilon, torch.tensor(0.4))] = float("nan")
            return original(run)

        monkeypatch.setattr(population._SeedRun, "train", poisoned)
        together = train_cohort(Cohort("soft_agem", members), toy(), SMALL)
        assert together.diverged_task.tolist() == [-1, 1, -1]
        assert not np.isnan(together.accuracies[1, 0, 0])  # what was measured before stays
        assert np.isnan(together.accuracies[1, 1:]).all()
        assert rows_equal(together, 0, alone[0], 0) and rows_equal(together, 2, alone[2], 0)


def test_batched_rows_agree_with_single_rows(monkeypatch):
    """A GPU trains all members of a seed in one matrix; on the CPU that path differs by rounding only."""
    import trainers.population as population

    members = tuple(Member(epsilon, 0) for epsilon in (0.0, 0.3, 0.8))
    single = train_cohort(Cohort("soft_agem", members), toy(), SMALL)
    monkeypatch.setattr(population, "_block_size", lambda device, members: members)
    batched = train_cohort(Cohort("soft_agem", members), toy(), SMALL)
    assert np.allclose(single.accuracies, batched.accuracies, atol=0.051, equal_nan=True)  # two of 40 test images
    assert np.allclose(single.violations, batched.violations, atol=0.34, equal_nan=True)


def test_progress_counts_every_step_and_may_stop():
    counted = []
    train_cohort(Cohort("agem", (Member(0.0, 0), Member(0.0, 1))), toy(), SMALL, progress=counted.append)
    assert sum(counted) == 2 * 18

    class Stop(Exception):
        pass

    def stop(steps):
        raise Stop

    with pytest.raises(Stop):
        train_cohort(Cohort("agem", (Member(0.0, 0),)), toy(), SMALL, progress=stop)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_cuda_agrees_with_cpu():
    members = tuple(Member(epsilon, 0) for epsilon in (0.0, 0.3))
    cpu = train_cohort(Cohort("soft_agem", members), digits(examples=200), TrainConfig(memory=5))
    gpu = train_cohort(Cohort("soft_agem", members), digits(examples=200), TrainConfig(memory=5), device="cuda")
    assert np.allclose(cpu.accuracies, gpu.accuracies, atol=0.03, equal_nan=True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Member(1.5, 0), r"epsilon must be in \[0, 1\], got 1.5"),
        (lambda: Member(float("nan"), 0), "epsilon must be"),
        (lambda: Member(0.5, -1), "seed must be >= 0, got -1"),
        (lambda: TrainConfig(learning_rate=-0.1), "learning_rate must be > 0, got -0.1"),
        (lambda: TrainConfig(trigger="one"), "trigger must be one of zero, epsilon, got 'one'"),
        (lambda: TrainConfig(memory_batch=0), "memory_batch must be >= 1"),
    ],
)
def test_values_out_of_range_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
