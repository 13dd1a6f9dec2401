"""Examples that are held out to choose by: which ones, that nothing trains on them, and how they are measured."""

from itertools import pairwise

import numpy as np
import pytest

from epsearch.testing.streams import PROMISES, StreamCase
from tests.support.learners import few, train
from tests.support.made_images import made_images
from tests.support.stream_kinds import KINDS
from tests.support.toy_streams import digits
from trainers import Architecture
from trainers.pool import Pool
from trainers.streams import DataError, SplitPixelsStream, StreamRequest
from trainers.streams.base import Examples
from trainers.streams.images.split import SplitStream
from trainers.streams.validation import hold_out

STREAMS = {
    "permuted digits": lambda: digits(range(3), 300),
    "split digits": lambda: SplitPixelsStream(digits().images, range(3), 2),
    "images": lambda: SplitStream(made_images(9, train=[9 + label % 5 for label in range(9)], test=3), range(3), 3),
}


def rows(stream, examples):
    inputs = stream.pixels[examples.inputs] if hasattr(stream, "pixels") else examples.inputs
    return [one.tobytes() for one in np.ascontiguousarray(inputs)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("validates", [False, True], ids=["test sets", "validation"])
def test_it_keeps_the_promises_of_streams(promise, kind, validates):
    # Enough examples for two of a class in every task, fewer than any task has.
    count = 40 if kind in ("permuted", "rotated") else 5
    case = StreamCase(lambda tasks, examples: hold_out(KINDS[kind](tasks, examples), 0.5, validates), examples=count)
    promise(case)


@pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_each_class_gives_its_share_once_per_seed_and_task(make, share):
    whole, forwards, backwards = make(), hold_out(make(), share, True), hold_out(make(), share, False)
    keys = [(seed, task) for seed in (0, 1) for task in whole.tasks]
    for key in reversed(keys):
        backwards.held(*key)
    for key in keys:
        order, held = whole.order(*key), forwards.held(*key)
        assert np.array_equal(held, backwards.held(*key))
        assert np.array_equal(forwards.order(*key), [one for one in order if one not in set(held)])
        assert forwards.size(*key) == len(order) - len(held)
        labels, chosen = whole.train(*key, order).labels, whole.train(*key, held).labels
        for label, count in zip(*np.unique(labels, return_counts=True), strict=True):
            assert np.floor(share * count) <= np.count_nonzero(chosen == label) <= np.ceil(share * count)
        assert len(held) == int(share * len(order) + 0.5)
        tested, whole_test = forwards.test(*key), whole.test(*key)
        assert all(map(np.array_equal, tested, whole.train(*key, held)))
        assert all(map(np.array_equal, backwards.test(*key), whole_test))
    assert len({tuple(forwards.held(*key)) for key in keys}) == len(keys)


@pytest.mark.parametrize("method", ["agem", "gem", "er"])
@pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS)
def test_nothing_that_is_held_out_is_in_a_batch_or_a_memory(method, make):
    whole, stream = make(), hold_out(make(), 0.2, True)
    one = few(method, batch_size=5, epochs=2)
    pool = Pool(stream, 1, one.declared, one.hyperparameters)
    held = {row for task in whole.tasks for row in rows(whole, stream.test(1, task))}
    left = {row for task in whole.tasks for row in rows(whole, whole.train(1, task, whole.order(1, task)))} - held
    seen = set()
    for place in range(len(stream.tasks)):
        for segment in pool.load_task(place):
            inputs = pool.inputs[segment.rows.ravel()]
            seen |= set(rows(whole, Examples(inputs, inputs)))
        pool.remember(place)
        slots = pool.inputs[: pool.stored]
        assert not held & set(rows(whole, Examples(slots, slots)))
    assert seen == left and held


def test_accuracies_are_those_of_a_plain_forward_pass_on_what_is_held_out():
    whole = digits(range(2), 400)
    stream = StreamRequest("permuted_digits", None, range(2), 400, validation=0.2, validates=True).open()
    result = train([few("agem", seed=1)], stream, architecture=Architecture(hidden=(16, 16)))
    params, sizes, at, layers = result.params[0], (64, 16, 16, 16), 0, []  # ten outputs, padded to 16
    for inputs, outputs in pairwise(sizes):
        weights = params[at : at + inputs * outputs].reshape(inputs, outputs)
        at += inputs * outputs
        layers.append((weights, params[at : at + outputs]))
        at += outputs
    for task in range(2):
        held = np.setdiff1d(whole.order(1, task), stream.order(1, task))
        inputs, labels = whole.train(1, task, held)
        x = inputs.astype(np.float32) / np.float32(whole.largest)
        for place, (weights, bias) in enumerate(layers):
            x = x @ weights + bias
            x = np.maximum(x, 0) if place < 2 else x
        assert len(labels) == 80
        assert result.accuracies[0, 1, task] == pytest.approx(np.mean(x[:, :10].argmax(axis=1) == labels), abs=1e-9)


def test_the_classes_with_the_largest_remainders_have_one_more():
    stream = SplitPixelsStream(digits().images, range(3), 2)
    for task in stream.tasks:
        labels = stream.train(0, task, stream.order(0, task)).labels
        parts = 0.1 * np.bincount(labels)[2 * task :]
        held = stream.train(0, task, hold_out(stream, 0.1, True).held(0, task)).labels
        more = int(0.1 * len(labels) + 0.5) - np.floor(parts).sum()
        expected = np.floor(parts) + (np.argsort(np.argsort(np.floor(parts) - parts, kind="stable")) < more)
        assert np.bincount(held)[2 * task :].tolist() == expected.tolist()


def test_seeds_leave_tasks_of_one_size_to_train_together():
    stream = hold_out(digits(range(2), 66), 0.2, True)
    assert len({tuple(np.bincount(stream.train(seed, 0, stream.held(seed, 0)).labels)) for seed in range(5)}) > 1
    assert {stream.size(seed, task) for seed in range(5) for task in range(2)} == {66 - 13}


def test_a_task_of_which_nothing_would_be_held_out_is_refused():
    with pytest.raises(DataError, match=r"hold out an example of every task; of task 0 0.1 of 1 is none$"):
        hold_out(digits(range(2), 1), 0.1, True).size(0, 0)


def test_descriptions_tell_share_and_tests_apart():
    plain = StreamRequest("permuted_digits", None, range(2)).open().describe()
    both = [
        StreamRequest("permuted_digits", None, range(2), validation=0.1, validates=one).open().describe()
        for one in (False, True)
    ]
    assert both == [plain | {"validation": 0.1}, plain | {"validation": 0.1, "tests": "validation"}]
