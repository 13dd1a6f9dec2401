"""What every method promises on networks of users: of pixels and of images, batched by torch.func and in turn."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.support.killing import train_until_kept
from tests.support.learners import ON_ANY_NETWORK, engine_of, learner, train, untrained
from tests.support.made_images import made_images
from tests.support.numeric_paths import rows_equal
from tests.support.own_networks import deciding, flat_row, normalised, own_run, perceptron
from tests.support.toy_streams import toy
from trainers import Architecture
from trainers.cohort import plug, unplug
from trainers.forks import fork
from trainers.methods import METHODS, Columns
from trainers.networks import make_network
from trainers.networks.weights import start_rows
from trainers.numeric_path import NumericPath
from trainers.scenarios import TASK
from trainers.streams.images.split import ReoccurringStream, SplitStream

pytestmark = pytest.mark.slow


IN_TURN, TOGETHER = NumericPath(products="onednn"), NumericPath()
ONE_NETWORK = [name for name in ON_ANY_NETWORK if not isinstance(METHODS[name].rule, Columns)]
one_network = pytest.mark.parametrize("method", ONE_NETWORK)
both_paths = pytest.mark.parametrize("path", [IN_TURN, TOGETHER], ids=str)
VALUES = {"epsilon": 0.3, "lr": 0.03, "batch_size": 4, "memory": 2, "memory_batch": 5, "fisher_every": 2}
IMAGES = made_images(classes=8, train=5, test=[1, 6, 2, 5, 1, 7, 3, 4], size=12)
DOUBLES = replace(IMAGES, mean=IMAGES.mean.astype(np.float64))
STREAMS = {
    "pixels": (lambda images: toy(examples=18), perceptron),
    "split": (lambda images: SplitStream(images, range(1, 4), 2), normalised),
    "re-occurring": (lambda images: ReoccurringStream(images, range(1, 4), 3), normalised),
}
every_stream = pytest.mark.parametrize("kind", STREAMS)
both_inputs = pytest.mark.parametrize("kind", ["pixels", "split"])


@pytest.fixture(autouse=True)
def plugged():
    """my:net is batched by torch.func, my:own is the same but cannot be."""
    yield
    for name in ("my:net", "my:own"):
        unplug(name)


def opened(kind, images=IMAGES):
    """(stream, network) of a kind."""
    make, factory = STREAMS[kind]
    plug("my:net", factory)
    plug("my:own", deciding)
    return make(images), Architecture("my:net")


def small(method, seed=0, **changes):
    return learner(method, seed, **VALUES | changes)


@both_paths
@every_stream
@pytest.mark.parametrize("method", [name for name in ONE_NETWORK if TASK in METHODS[name].scenarios])
def test_a_whole_run_agrees_with_a_plain_loop(method, kind, path, monkeypatch):
    """Two members' parameters after every step: masks, heads, order of the passes, statistics, the rules.

    Of images in float64: in float32 a unit near zero may fall on the other side of its ReLU.
    """
    if kind != "pixels":
        monkeypatch.setattr("trainers.engines.base.start_rows", lambda *told: start_rows(*told).double())
    (stream, network), tolerance = opened(kind, DOUBLES), 1e-5 if kind == "pixels" else 1e-9
    learners = [small(method), small(method, lr=0.02)]
    runs = [own_run(one, stream, network) for one in learners]
    net, taken = make_network(network, stream), 0
    engine = engine_of(learners[0], stream, path, network)
    with torch.no_grad():
        state = untrained(engine, learners)
        for task in range(3):
            engine.load_task(task)
            for step in range(engine.steps):
                engine.train(state, step, step + 1)
                for row, (_, trace) in enumerate(runs):
                    found = flat_row(net, state.params[row : row + 1])
                    assert torch.allclose(found, trace[taken], atol=tolerance), f"task {task}, step {step}"
                taken += 1
            engine.finish(state, task == 0)
            engine.remember(task)
    assert taken == len(runs[0][1])
    result = train(learners, stream, path, network)
    lower = np.tri(3, dtype=bool)
    for row, (accuracies, _) in enumerate(runs):
        assert np.allclose(result.accuracies[row][lower], accuracies[lower], atol=1e-9)


@both_inputs
@one_network
def test_learners_in_turn_are_bit_identical_alone_and_together(method, kind):
    stream, network = opened(kind)
    learners = [small(method, seed, epsilon=epsilon) for seed in (0, 1) for epsilon in (0.0, 0.5)]
    together = train(learners, stream, IN_TURN, network)
    for row, one in enumerate(learners):
        alone = train([one], stream, IN_TURN, network)
        assert rows_equal(together, row, alone, 0)
        assert np.array_equal(together.params[row], alone.params[0])


@both_inputs
@one_network
def test_what_cannot_be_batched_gives_the_same_numbers(method, kind, told):
    """The same module with and without a decision in it, which torch.func cannot batch."""
    stream, network = opened(kind)
    own, learners = Architecture("my:own"), [small(method), small(method, epsilon=0.9)]
    for path in (IN_TURN, TOGETHER):
        expected, found = train(learners, stream, IN_TURN, network), train(learners, stream, path, own)
        for row in range(2):
            assert rows_equal(found, row, expected, row)
    (line,) = set(told)
    assert line.startswith("network my:own: members in turn, as torch.func cannot batch them: vmap: It looks like")


@both_inputs
def test_learners_together_agree_with_learners_in_turn(kind):
    """The stated tolerance between the two ways: rounding alone, as steps are few."""
    stream, network = opened(kind)
    learners = [small("soft_agem", epsilon=epsilon) for epsilon in (0.0, 0.3, 0.9)]
    found = [train(learners, stream, path, network) for path in (IN_TURN, TOGETHER)]
    for one, other in zip(*(result.params for result in found), strict=True):
        assert np.allclose(one, other, atol=1e-4)


@one_network
def test_a_killed_run_goes_on(method, tmp_path, monkeypatch):
    """Statistics of batch normalisation are kept with the parameters."""
    monkeypatch.setattr("trainers.checkpoints.AT_MOST_EVERY", 0.0)
    stream, network = opened("split")
    learners = [small(method), small(method, epsilon=0.9)]
    whole = train(learners, stream, IN_TURN, network)
    train_until_kept(monkeypatch, 1, learners, stream, IN_TURN, network, folder=tmp_path)
    again = train(learners, stream, IN_TURN, network, folder=tmp_path)
    assert again.saved > 0
    for row in range(2):
        assert rows_equal(again, row, whole, row)


@both_paths
@one_network
def test_a_fork_with_the_same_values_is_the_same_run(method, path, tmp_path):
    stream, network = opened("split")
    learners = [small(method), small(method, epsilon=0.9)]
    whole = train(learners, stream, path, network, store=tmp_path, keep="all")
    again = train([fork(one, 1) for one in learners], stream, path, network, store=tmp_path)
    assert again.saved > 0
    for row in range(2):
        assert rows_equal(again, row, whole, row)


@both_inputs
def test_a_diverging_learner_is_marked_and_disturbs_nobody(kind):
    stream, network = opened(kind)
    wild, tame = small("agem", lr=1e30), small("agem")
    result, alone = (train(some, stream, IN_TURN, network) for some in ([wild, tame], [tame]))
    assert result.diverged_task.tolist() == [0, -1]
    assert rows_equal(result, 1, alone, 0)
