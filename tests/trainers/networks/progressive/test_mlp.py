"""Progressive networks: how they start and grow; nothing is forgotten, and members do not disturb each other."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

import trainers.engines.columns.mlp as engine_module
from tests.support.grown import PATHS, SMALL, learners, made, on_every_path, progressive, trained, unpadded
from tests.support.learners import engine_of, learner
from tests.support.toy_streams import digits, toy
from trainers import Architecture
from trainers.engines.columns.mlp import frozen_units, train_column
from trainers.engines.compiled.products import PRODUCTS
from trainers.networks import MLP
from trainers.networks.draws import BIAS_START
from trainers.networks.layout import ALIGNMENT
from trainers.networks.progressive.mlp import MLPColumns
from trainers.numeric_path import NumericPath
from trainers.schedule import generator

pytestmark = pytest.mark.usefixtures("without_gradients")
AFFINE = PRODUCTS["mkl"].affine


class TestStart:
    def test_the_first_column_is_that_of_plain_sgd(self):
        """Bit for bit at the start; after the first task up to rounding. The stream need not start with task 0."""
        stream = toy(range(3, 6), examples=66)
        engine = made(stream, (5, 6), PATHS[0])
        mlp = MLP((9, 24, 16, 4))
        for row, seed in zip(engine.start(), (5, 6), strict=True):
            assert np.array_equal(row[: mlp.row].numpy(), mlp.init(generator(seed, "init", 3)))
        found = trained(engine, learners(engine, (0.1,)), 1)
        plain = engine_of(learner("van", batch_size=4), stream, NumericPath(), Architecture(hidden=SMALL), (5,))
        expected = trained(plain, learners(plain, (0.1,)), 1)
        assert torch.allclose(found.params[:, : mlp.row], expected.params, atol=1e-5, rtol=0)

    def test_other_columns_are_sums_of_independent_draws(self):
        """First layer: k+1 draws, whose standard deviations add up in squares; biases: k+1 times 0.1."""
        stream = toy(range(2, 6), pixels=100)
        net = MLPColumns((100, 40, 30, 4), 4)
        engine = made(stream, (0,), PATHS[0], (40, 30), 10)
        (row,) = engine.start()
        for number, column in enumerate(net.columns(row)):
            (first, _), *_ = layers = unpadded(net, column, number)
            assert float(first[0].std()) == pytest.approx(0.0880 * (number + 1) ** 0.5, rel=0.05)
            for sources, bias in layers:
                assert torch.allclose(bias, torch.full_like(bias, (number + 1) * BIAS_START))
                assert all(not torch.equal(one, other) for one, other in itertools.combinations(sources, 2))
            for sources, _ in layers[1:]:
                assert all(0.075 < float(part.std()) < 0.1 and part.abs().max() <= 0.2 for part in sources)
        alone = MLPColumns((100, 40, 30, 4), 4).init(
            [generator(0, "init", 2), *(generator(0, "column", task) for task in (3, 4, 5))]
        )
        assert np.array_equal(row.numpy(), alone)

    def test_untrained_columns_can_be_tested(self):
        """What FWT is made of: every column with its own parameters, at the start and later."""
        stream = digits(examples=30)
        engine = made(stream, (0,), PATHS[0])
        members, net = learners(engine), MLPColumns((64, 24, 16, 10), 3)
        shares = []
        for tasks in (0, 1):
            trained(engine, members, tasks)
            explicit = progressive(net, members.params[0].clone())
            for task in range(3):
                test = stream.test(0, task)
                logits = explicit(torch.from_numpy(test.inputs).float() / stream.largest, task)
                shares.append(engine.accuracy(members, task))
                assert shares[-1] == (logits.argmax(1).numpy() == test.labels).mean()
        assert shares[1] != shares[4]  # column 1 sees the first one, which was trained in between
        members.params[0, net.slice(2)] = 0  # the answer is then class 0, always
        assert engine.accuracy(members, 2) == (stream.test(0, 2).labels == 0).mean() != shares[5]


def test_equal_networks_of_two_seeds_are_tested_on_their_own_images():
    """What was measured once is known by its seed, too: the seeds' test images are permuted differently."""
    stream = digits(examples=300)
    engine = made(stream, (0, 1), PATHS[0], (72, 56), 10)
    members = trained(engine, learners(engine, (0.1, 0.1), [0, 1]), 1)
    members.params[1] = members.params[0]
    own, other = engine.accuracy(members, 0)
    assert own > other + 0.05


def test_the_number_of_parameters_grows_as_counted():
    """Column k has W, b and k pairs U, c of every layer; the memory of its collapsed form is less."""
    small = MLPColumns((9, 24, 16, 4), 3)
    module = progressive(small, torch.zeros(small.row))
    for task, column in enumerate(module.columns):
        assert sum(part.numel() for part in column.parameters()) == (task + 1) * int(MLP(small.sizes).real.sum())
        assert small.slice(task).stop - small.slice(task).start <= (task + 1) * MLP(small.sizes).row


def test_rows_are_aligned_and_filled_without_overlap():
    net = MLPColumns((9, 24, 7, 4), 3)
    row = torch.zeros(net.row)
    for number, column in enumerate(net.columns(row)):
        for view in itertools.chain(*column):
            assert view.storage_offset() % ALIGNMENT == 0
            view += 1
        assert bool((row[net.slice(number)] == 1).all()) and not row[net.slice(number).stop :].any()
    assert bool((row == 1).all()) and net.row % ALIGNMENT == 0


@on_every_path
def test_nothing_is_forgotten(path):
    """Accuracy on earlier tasks to the last digit, in this engine and a fresh one; frozen columns to the last bit."""
    stream = digits(examples=300)
    engine, net = made(stream, (0,), path, (72, 56), 10), MLPColumns((64, 72, 56, 10), 3)
    members, kept, shares = learners(engine), [], []
    for task in range(3):
        before = members.params.clone()
        engine.load_task(task)
        engine.train(members, 0, engine.steps)
        changed = members.params != before
        assert changed[0, net.slice(task)].any()
        changed[0, net.slice(task)] = False
        assert not changed.any()  # neither frozen columns nor those to come
        kept.append(members.params[0, net.slice(task)].clone())
        shares.append(engine.accuracy(members, task))
        assert shares[task] > 0.2
        fresh = made(stream, (0,), path, (72, 56), 10)
        for earlier in range(task + 1):
            assert torch.equal(members.params[0, net.slice(earlier)], kept[earlier])
            assert engine.accuracy(members, earlier) == fresh.accuracy(members, earlier) == shares[earlier]


@on_every_path
def test_a_member_is_bit_identical_alone_and_together(path):
    """Seeds and rates in any mixture, as for the other engines; also two rates of one seed."""
    stream, rates, seeds = digits(examples=66), (0.1, 0.03, 0.1, 0.3), [1, 1, 0, 1]
    both = made(stream, (7, 8), path)
    together = trained(both, learners(both, rates, seeds), 3)
    assert len({row.numpy().tobytes() for row in together.params}) == 4
    for row, (rate, seed) in enumerate(zip(rates, seeds, strict=True)):
        single = made(stream, (7 + seed,), path)
        alone = trained(single, learners(single, (rate,)), 3)
        assert torch.equal(alone.params[0], together.params[row])
        for task in range(3):
            assert single.accuracy(alone, task)[0] == both.accuracy(together, task)[row]


@on_every_path
def test_how_the_steps_are_asked_for_changes_no_bit(path):
    """One by one, as for a learning curve, or in any portions: 71 steps, so that blocks of 64 are cut in two."""
    stream = toy(examples=71)
    engine = made(stream, (0,), path, (200, 16), 1)
    whole = trained(engine, learners(engine), 2)
    for portions in ([*range(72)], [0, 1, 2, 60, 70, 71]):
        members = learners(engine)
        for task in range(2):
            engine.load_task(task)
            for first, last in itertools.pairwise(portions):
                engine.train(members, first, last)
        assert torch.equal(members.params, whole.params)


class TestDivergence:
    def test_the_first_step_is_marked_and_nobody_else_disturbed(self):
        engine = made(toy(), (0,), PATHS[0])
        alone = trained(engine, learners(engine, (0.1,)), 2)
        pair = trained(engine, learners(engine, (1e30, 0.1)), 2)
        assert pair.first_bad.tolist() == [1, -1] and alone.first_bad.tolist() == [-1]
        assert torch.equal(pair.params[1], alone.params[0])

    @pytest.mark.parametrize("step", [0, 5, 7, 8, 16])
    def test_steps_are_numbered_within_the_task(self, step, monkeypatch):
        """In blocks of 4 steps: within one, at a border, and in the short batch at the end."""
        monkeypatch.setattr(engine_module, "BLOCK", 4)
        engine, net = made(toy(examples=66), (0,), PATHS[0]), MLPColumns((9, 24, 16, 4), 3)
        members = trained(engine, learners(engine), 1)
        engine.load_task(1)
        engine.train(members, 0, step)
        assert members.first_bad.tolist() == [-1]
        members.params[0, net.slice(1)] = float("nan")
        engine.train(members, step, 17)
        assert members.first_bad.tolist() == [step]
        engine.train(members, 0, 17)
        assert members.first_bad.tolist() == [step]  # the first one stays

    def test_a_hopeless_prediction_is_no_divergence(self):
        """A logit so far behind that its probability is 0 in float32 has a large loss, but a finite one."""
        net = MLPColumns((9, 8, 4), 1)
        row = torch.zeros(net.row)
        net.columns(row)[0][-1].bias[0] = 1000.0
        columns, x = net.columns(row), torch.zeros(1, 2, 9)
        block = x, torch.ones(1, 2).long(), frozen_units(net, columns, x, AFFINE)
        loss = train_column(net, columns, block, range(1), 0.1, AFFINE)
        assert loss.tolist() == [1000.0]


@on_every_path
def test_padding_stays_zero(path):
    stream = toy(examples=66)
    net = MLPColumns((9, 12, 7, 4), 3)
    engine = made(stream, (0,), path, (12, 7))
    members = trained(engine, learners(engine), 3)
    used = torch.zeros(net.row)
    for number, column in enumerate(net.columns(used)):
        for sources, bias in unpadded(net, column, number):
            for part in (*sources, bias):
                part.fill_(1)
    assert int(used.sum()) < net.row
    assert not members.params[0][used == 0].any()
    assert torch.isfinite(members.params).all()


def test_the_page_has_the_numbers_of_parameters():
    """Of Permuted MNIST after 17 tasks: all that the definition has, summed terms once, and with padding."""
    sizes, columns = (784, 256, 256, 10), 17
    layers = [*itertools.pairwise(sizes)]
    told = sum((number + 1) * (k + 1) * n for number in range(columns) for k, n in layers)
    once = sum((k * (number + 1 if at else 1) + 1) * n for number in range(columns) for at, (k, n) in enumerate(layers))
    text = (Path(__file__).parents[4] / "docs" / "methods.md").read_text(encoding="utf-8")
    for count in (told, once, MLPColumns(sizes, columns).row):
        assert f"{count / 1e6:.1f} million" in text
