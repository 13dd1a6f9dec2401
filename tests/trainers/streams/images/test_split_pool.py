"""Split streams in the pool: quotas of the memory, uneven tasks, and that rows stay with their labels."""

import numpy as np
import pytest

from tests.support.learners import learner
from tests.support.made_images import made_images
from tests.support.shaped import AWA
from trainers.pool import Pool
from trainers.streams.images.split import ReoccurringStream, SplitStream

TASKS = range(3, 9)
UNEVEN = made_images(27, train=[2 + label % 9 for label in range(27)], test=2, size=4)  # some have fewer than 4


STREAMS = {
    "split": SplitStream(UNEVEN, TASKS, 3),
    "split, cut": SplitStream(UNEVEN, TASKS, 3, 12),
    "again": ReoccurringStream(AWA, TASKS, 5),
    "again, cut": ReoccurringStream(AWA, TASKS, 5, 30),
}
every_stream = pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)


def made_pool(stream, method):
    one = learner(method, memory=4, memory_batch=16)
    return Pool(stream, 1, one.declared, one.hyperparameters)


def check_rows(stream, pool, rows, place):
    """Rows hold images with the label of their own class, in a task no later than `place`."""
    heads = stream.heads(1)
    labels, positions = pool.labels[rows], pool.inputs[rows]
    assert (labels % len(stream._images.classes) == stream._images.labels[positions]).all()
    assert set(heads[labels]) <= set(stream.tasks[: place + 1])


@every_stream
@pytest.mark.parametrize("method", ["agem", "gem"])
def test_every_class_of_every_task_has_its_quota(stream, method):
    pool, kept = made_pool(stream, method), {}
    assert pool.slots == 4 * stream.classes * 5 and pool.inputs.shape == pool.labels.shape
    for place, task in enumerate(TASKS):
        segments = pool.load_task(place)
        assert pool.shown == stream.size(1, task)
        shown = slice(pool.slots, pool.slots + pool.shown)
        train = stream.train(1, task, stream.order(1, task))
        assert (pool.inputs[shown] == train.inputs).all() and (pool.labels[shown] == train.labels).all()
        current = np.concatenate([segment.rows[:, : segment.current].ravel() for segment in segments])
        assert list(current) == list(range(shown.start, shown.stop))
        for segment in segments:
            check_rows(stream, pool, segment.rows[:, segment.current :].ravel(), place - 1)
        pool.remember(place)
        if place < len(TASKS) - 1:
            kept |= {
                unit: min(4, count) for unit, count in zip(*np.unique(train.labels, return_counts=True), strict=True)
            }
        stored = np.unique(pool.labels[: pool.stored], return_counts=True)
        assert dict(zip(*stored, strict=True)) == kept
        assert len(set(pool.inputs[: pool.stored])) == pool.stored
    assert len({stream.size(1, task) for task in TASKS}) > 1 or stream.describe()["at_most"]


@every_stream
def test_a_reservoir_keeps_rows_with_their_labels(stream):
    pool = made_pool(stream, "er")
    for place in range(len(TASKS)):
        for segment in pool.load_task(place):
            rows = segment.rows[:, segment.current :].ravel()
            check_rows(stream, pool, rows, place)
        shown = pool.slots + np.arange(pool.shown)
        assert (stream.heads(1)[pool.labels[shown]] == TASKS[place]).all()
        pool.remember(place)
