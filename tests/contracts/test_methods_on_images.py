"""What every method promises on streams of images, with both kinds of stream and of head."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from tests.support.image_run import flat_row, plain_image_run
from tests.support.killing import train_until_kept
from tests.support.learners import ON_ANY_NETWORK, engine_of, learner, train, untrained
from tests.support.made_images import made_images
from tests.support.numeric_paths import rows_equal
from trainers import Architecture
from trainers.forks import fork
from trainers.methods import METHODS, Columns
from trainers.networks import make_resnet
from trainers.networks.weights import start_rows
from trainers.numeric_path import NumericPath
from trainers.scenarios import CLASS
from trainers.streams.images.split import ReoccurringStream, SplitStream
from trainers.streams.union import union_of

IN_TURN, TOGETHER = NumericPath(products="onednn"), NumericPath()
ONE_NETWORK = [name for name in ON_ANY_NETWORK if not isinstance(METHODS[name].rule, Columns)]
FEW = ("ewc", "er", "soft_agem")  # a penalty, a reservoir and a projection
of_each_kind = pytest.mark.parametrize(
    "method", [pytest.param(name, marks=[] if name in FEW else [pytest.mark.slow]) for name in ONE_NETWORK]
)
"""What perceptrons show of every method, in the default suite of a few: networks of images differ in other things."""
REDUCED = Architecture("reduced_resnet18")
VALUES = {"epsilon": 0.3, "lr": 0.03, "batch_size": 4, "memory": 2, "memory_batch": 5, "fisher_every": 2}
# Test sets of different sizes: accuracy on a task is then another number when classes count alike.
IMAGES = made_images(classes=8, train=5, test=[1, 6, 2, 5, 1, 7, 3, 4], size=16, attributes=4)
DOUBLES = replace(IMAGES, mean=IMAGES.mean.astype(np.float64), attributes=IMAGES.attributes.astype(np.float64))
KINDS = {
    "split": lambda images: SplitStream(images, range(1, 4), 2),
    "class-incremental": lambda images: SplitStream(images, range(1, 4), 2, scenario="class"),
    "joint embedding": lambda images: SplitStream(images, range(1, 4), 2, embedding=True),
    "re-occurring": lambda images: ReoccurringStream(images, range(1, 4), 3),
}
STREAMS = {kind: make(IMAGES) for kind, make in KINDS.items()}


@pytest.fixture(autouse=True)
def small_networks(monkeypatch):
    monkeypatch.setattr("trainers.networks.REDUCED", (8, 16, 24, 32))


def small(method, seed=0, **changes):
    return learner(method, seed, **VALUES | changes)


def trained(learners, stream, path, **options):
    return train(learners, stream, path, REDUCED, **options)


def runs():
    """Every method on every kind of stream, in turn and together; in the default suite every method once or twice."""
    for method, kind, path in product((*ONE_NETWORK, "joint", "iid"), KINDS, (IN_TURN, TOGETHER)):
        if (kind == "class-incremental") < (METHODS[method].scenarios[0] == CLASS):
            continue
        few = (kind, path) == ("split", IN_TURN)
        few |= method in FEW and (kind, path) in (
            ("class-incremental", IN_TURN),
            ("joint embedding", IN_TURN),
            ("re-occurring", TOGETHER),
        )
        name = f"{method}, {kind}, {path}"
        yield pytest.param(method, kind, path, marks=[] if few else [pytest.mark.slow], id=name)


@pytest.mark.slow
@pytest.mark.few(12)
@pytest.mark.parametrize(("method", "kind", "path"), [*runs()])
def test_a_whole_run_agrees_with_a_plain_loop(method, kind, path, monkeypatch):
    """Parameters after every step, and accuracies: masks, heads, order of the passes, statistics, the rules.

    In float64: in float32 a unit near zero may fall on the other side of its ReLU, once in some hundred steps.
    """
    monkeypatch.setattr("trainers.engines.base.start_rows", lambda *told: start_rows(*told).double())
    one, original = small(method), KINDS[kind](DOUBLES)
    stream = union_of(one.declared, one.hyperparameters, original)  # itself, of all but the reference rows
    accuracies, trace = plain_image_run(one, stream, REDUCED)
    net, taken = make_resnet(REDUCED, stream), 0
    engine = engine_of(one, stream, path, REDUCED)
    with torch.no_grad():
        learners = untrained(engine, [one])
        for task in (at for at, number in enumerate(stream.tasks) if stream.size(0, number)):
            engine.load_task(task)
            for step in range(engine.steps):
                engine.train(learners, step, step + 1)
                found = flat_row(net, learners.params)
                assert torch.allclose(found, trace[taken], atol=1e-7), f"task {task}, step {step}"
                taken += 1
            engine.finish(learners, task == 0)
            engine.remember(task)
    assert taken == len(trace)
    result = trained([one], original, path)
    lower = np.tri(3, dtype=bool)
    if method == "joint":
        lower[:2] = False  # of the last task alone, unless asked
    assert np.allclose(result.accuracies[0][lower], accuracies[lower], atol=1e-9)
    assert result.steps.tolist() == [len(trace)]


@pytest.mark.slow
@pytest.mark.few(2)
@of_each_kind
def test_learners_in_turn_are_bit_identical_alone_and_together(method):
    learners = [small(method, seed, epsilon=epsilon) for seed in (0, 1) for epsilon in (0.0, 0.5)]
    stream = STREAMS["re-occurring"]
    together = trained(learners, stream, IN_TURN)
    for row in (1, 2):  # between them: both seeds, both values
        alone = trained([learners[row]], stream, IN_TURN)
        assert rows_equal(together, row, alone, 0)
        assert np.array_equal(together.params[row], alone.params[0])


@pytest.mark.slow
def test_learners_together_agree_with_learners_in_turn():
    """The stated tolerance between the two ways: rounding alone, as steps are few."""
    learners = [small("soft_agem", epsilon=epsilon) for epsilon in (0.0, 0.3, 0.9)]
    found = [trained(learners, STREAMS["split"], path) for path in (IN_TURN, TOGETHER)]
    for one, other in zip(*(result.params for result in found), strict=True):
        assert np.allclose(one, other, atol=1e-4)


@pytest.mark.slow
@pytest.mark.few(2)
@of_each_kind
def test_a_killed_run_goes_on(method, tmp_path, monkeypatch):
    """Statistics of batch normalisation are kept with the parameters."""
    monkeypatch.setattr("trainers.checkpoints.AT_MOST_EVERY", 0.0)
    learners, stream = [small(method), small(method, epsilon=0.9)], STREAMS["split"]
    whole = trained(learners, stream, IN_TURN)
    train_until_kept(monkeypatch, 1, learners, stream, IN_TURN, REDUCED, folder=tmp_path)
    again = trained(learners, stream, IN_TURN, folder=tmp_path)
    assert again.saved > 0
    for row in range(2):
        assert rows_equal(again, row, whole, row)


@pytest.mark.few(1)
@pytest.mark.parametrize("path", [IN_TURN, pytest.param(TOGETHER, marks=pytest.mark.slow)], ids=str)
@of_each_kind
def test_a_fork_with_the_same_values_is_the_same_run(method, path, tmp_path):
    learners, stream = [small(method), small(method, epsilon=0.9)], STREAMS["split"]
    whole = trained(learners, stream, path, store=tmp_path, keep="all")
    again = trained([fork(one, 1) for one in learners], stream, path, store=tmp_path)
    assert again.saved > 0
    for row in range(2):
        assert rows_equal(again, row, whole, row)


@pytest.mark.slow
def test_a_network_learns_what_can_be_learnt():
    """Colour patterns: after a task its accuracy is far above chance, by moving averages of few steps."""
    images = made_images(classes=4, train=150, test=10, size=16)
    result = trained([small("agem", lr=0.05, batch_size=10)], SplitStream(images, range(2), 2), IN_TURN)
    assert result.accuracies[0, 0, 0] >= 0.9 and result.accuracies[0, 1, 1] >= 0.9
