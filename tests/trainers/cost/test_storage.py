"""Bytes that methods keep, counted by hand."""

import pytest

from tests.support.learners import learner
from tests.support.made_images import made_images
from tests.support.toy_streams import toy
from trainers import Architecture
from trainers.cohort import Learner
from trainers.cost.storage import bytes_kept, largest_memory
from trainers.streams.images.split import SplitStream

STREAM = toy(range(4), examples=75, classes=5, pixels=20)
NETWORK = Architecture(hidden=(16, 32))
PARAMETERS = 20 * 16 + 16 + 16 * 32 + 32 + 32 * 5 + 5
EXAMPLE = STREAM.room(1).nbytes + 1


def kept(method, stream=STREAM, network=NETWORK, **values):
    return bytes_kept(learner(method, **values), stream, network)


@pytest.mark.parametrize(
    ("method", "values", "expected"),
    [
        ("van", {}, {}),
        # After three of four tasks five classes have stored two examples each; a reservoir takes in those of the last.
        ("agem", {"memory": 2}, {"examples": 3 * 5 * 2 * EXAMPLE}),
        ("gem", {"memory": 2}, {"examples": 3 * 5 * 2 * EXAMPLE}),
        ("er", {"memory": 2}, {"examples": 4 * 5 * 2 * EXAMPLE}),
        ("agem", {"memory": 1000}, {"examples": 3 * 75 * EXAMPLE}),
        ("joint", {}, {"examples": 4 * 75 * EXAMPLE}),
        ("iid", {}, {"examples": 4 * 75 * EXAMPLE}),
        # Beside each example the five logits that it had; the last task's network.
        ("derpp", {"memory": 2}, {"examples": 4 * 5 * 2 * EXAMPLE, "logits": 4 * 5 * 2 * 5 * 4}),
        ("er_ace", {"memory": 2}, {"examples": 4 * 5 * 2 * EXAMPLE}),
        ("lwf", {}, {"arrays": 4 * PARAMETERS}),
        # A square matrix for each layer: of 20 pixels, 16 and 32 units, each with the 1 of the bias.
        ("gpm", {}, {"bases": 4 * (21**2 + 17**2 + 33**2)}),
        # θ* and the importance, and one array for a path, two for a Fisher estimate; RWALK has six more.
        ("pi", {"strength": 1}, {"arrays": 3 * 4 * PARAMETERS}),
        ("ewc", {"strength": 1}, {"arrays": 4 * 4 * PARAMETERS}),
        ("rwalk", {"strength": 1}, {"arrays": 8 * 4 * PARAMETERS}),
    ],
)
def test_bytes_by_hand(method, values, expected):
    assert kept(method, **values) == expected


def test_columns_are_what_a_grown_network_has_more():
    one, four = (kept("prognn", toy(range(count), examples=75, classes=5, pixels=20)) for count in (1, 4))
    assert one == {} and set(four) == {"columns"}
    # Three more columns, each with connections from all earlier ones.
    assert four["columns"] > 3 * 4 * PARAMETERS


def test_images_are_counted_as_they_are_stored():
    """A byte a channel, and not as the network sees them."""
    stream = SplitStream(made_images(classes=8, train=5, test=[1, 6, 2, 5, 1, 7, 3, 4], size=16), range(1, 4), 2)
    found = kept("agem", stream, Architecture("reduced_resnet18"), memory=2, batch_size=4, memory_batch=5)
    assert found == {"examples": 2 * 2 * 2 * (16 * 16 * 3 + 1)}


@pytest.mark.parametrize("method", ["agem", "er", "gem", "der"])
def test_the_largest_memory_fits_and_one_more_does_not(method):
    one = learner(method)

    def of(memory):
        again = Learner(one.method, one.hyperparameters.but(memory=memory), one.seed)
        return sum(bytes_kept(again, STREAM, NETWORK).values())

    for budget in (of(1), of(2) - 1, of(7), of(7) + 1, of(15)):
        memory = largest_memory(budget, one, STREAM, NETWORK)
        assert of(memory) <= budget and (of(memory + 1) > budget or of(memory + 1) == of(memory))
    assert largest_memory(of(1) - 1, one, STREAM, NETWORK) == 0
