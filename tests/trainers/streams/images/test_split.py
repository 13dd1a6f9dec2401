"""Split streams: which classes, which images, how many, as PROTOCOL's datasets have them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.made_images import made_images
from tests.support.shaped import AWA, CIFAR, CUB, CV, EV, SHORT, classes, shown, sizes
from trainers.streams.images.split import ReoccurringStream, SplitStream

BOTH = pytest.mark.parametrize("kind", [SplitStream, ReoccurringStream])


@BOTH
@pytest.mark.parametrize("seed", [0, 5])
def test_cross_validation_takes_the_first_classes_in_order(kind, seed):
    stream = kind(CIFAR, CV, 5)
    assert [classes(stream, seed, task) for task in CV] == [set(range(5 * k, 5 * k + 5)) for k in CV]
    for task in CV:
        every = np.concatenate([CIFAR.train_of[label] for label in classes(stream, seed, task)])
        assert sorted(shown(stream, seed, task)) == sorted(every)


@pytest.mark.parametrize("seed", range(5))
def test_split_evaluation_deals_out_all_other_classes(seed):
    stream = SplitStream(CIFAR, EV, 5)
    drawn = [classes(stream, seed, task) for task in EV]
    assert all(len(one) == 5 for one in drawn) and set().union(*drawn) == set(range(15, 100))
    assert drawn != [classes(stream, seed + 1, task) for task in EV]
    assert drawn[:2] == [classes(SplitStream(CIFAR, range(3, 5), 5), seed, task) for task in (3, 4)]


@pytest.mark.slow
def test_every_split_of_the_classes_is_possible():
    """Class 15 + i is in each of the 17 tasks with p = 1/17: over 2,000 seeds the standard error of a frequency is
    0.0053, and the largest deviation of the 17 was 0.009 when this was written."""
    stream = SplitStream(CIFAR, EV, 5)
    counts = np.bincount([stream.heads(seed)[99] for seed in range(2000)], minlength=20)[3:]
    assert np.abs(counts / 2000 - 1 / 17).max() < 0.025


def test_sizes_of_split_tasks():
    """5 images a class, for the 500 of CIFAR-100; 3 for the 30 of CUB, of which six classes lack one."""
    for seed in range(3):
        for tasks in (CV, EV):
            stream = SplitStream(CIFAR, tasks, 5)
            assert sizes(stream, seed) == [25] * len(tasks)
            assert all(len(stream.test(seed, task).labels) == 5 for task in tasks)
        assert sizes(SplitStream(CUB, CV, 10), seed) == [30] * 3
        birds = SplitStream(CUB, EV, 10)
        assert sum(sizes(birds, seed)) == 17 * 30 - len(SHORT)
        lacking = [len(classes(birds, seed, task).intersection(SHORT)) for task in EV]
        assert sizes(birds, seed) == [30 - lack for lack in lacking]


def test_output_units():
    split, again = SplitStream(CUB, EV, 10), ReoccurringStream(AWA, EV, 5)
    assert (split.outputs, again.outputs, ReoccurringStream(AWA, CV, 5).outputs) == (200, 850, 150)
    assert (split.balanced, again.balanced) == (False, True)
    assert (split.heads(0)[:30] == -1).all() and (split.heads(0)[30:] >= 3).all()
    for task in EV:
        part = split.test(2, task)
        assert (part.labels == CUB.labels[part.inputs]).all()
        for part in (again.test(2, task), again.train(2, task, again.order(2, task))):
            assert (part.labels == (task - 3) * 50 + AWA.labels[part.inputs]).all()


@BOTH
def test_attributes_are_those_of_the_units_class(kind):
    stream = kind(AWA, range(3, 6), 5, embedding=True)
    assert stream.attributes.shape == (stream.outputs, 5)
    for task in stream.tasks:
        part = stream.test(0, task)
        assert (stream.attributes[part.labels] == AWA.attributes[AWA.labels[part.inputs]]).all()
    assert kind(AWA, range(3, 6), 5).attributes is None


@pytest.mark.parametrize("seed", range(5))
def test_classes_come_back_with_new_images(seed):
    stream = ReoccurringStream(AWA, EV, 5)
    drawn = [classes(stream, seed, task) for task in EV]
    assert all(len(one) == 5 and min(one) >= 15 for one in drawn)
    occurs = {label: [task for task, one in zip(EV, drawn, strict=True) if label in one] for label in range(15, 50)}
    assert max(map(len, occurs.values())) >= 3
    for label, tasks in occurs.items():
        chunk = len(AWA.train_of[label]) // max(1, len(tasks))
        for k, task in enumerate(tasks):
            positions = shown(stream, seed, task)
            expected = AWA.train_of[label][k * chunk : (k + 1) * chunk]
            assert sorted(positions[AWA.labels[positions] == label]) == list(expected)
            tested = stream.test(seed, task).inputs
            assert sorted(tested[AWA.labels[tested] == label]) == list(AWA.test_of[label])
    everything = np.concatenate([shown(stream, seed, task) for task in EV])
    assert len(set(everything)) == len(everything)


def test_how_often_classes_come_back():
    """17 draws of 5 from 35: 35·(1 − (6/7)^17) = 32.5 classes occur, each in 17·5/35 = 2.43 tasks, with a standard
    error of 0.2 over 50 seeds (largest deviation 0.57 when this was written); the most frequent one in 5 to 8."""
    stream = ReoccurringStream(AWA, EV, 5)
    counts = np.array([np.bincount(np.flatnonzero(stream.heads(seed) >= 0) % 50, minlength=50) for seed in range(50)])
    assert not counts[:, :15].any() and (counts.sum(axis=1) == 85).all()
    assert 32 < np.count_nonzero(counts, axis=1).mean() < 33
    assert 5 <= np.median(counts.max(axis=1)) <= 8
    assert np.abs(counts[:, 15:].mean(axis=0) - 85 / 35).max() < 0.9


@pytest.mark.slow
@given(
    st.lists(st.integers(8, 20), min_size=12, max_size=16),
    st.integers(1, 8),
    st.integers(0, 2**31),
    st.sampled_from([SplitStream, ReoccurringStream]),
)
@settings(max_examples=40, deadline=None)
def test_any_counts_are_cut_without_overlap(counts, at_most, seed, kind):
    images = made_images(len(counts), train=counts, test=1, size=2)
    stream, whole = (kind(images, range(2, 6), 2, limit) for limit in (at_most, None))
    pieces = [shown(whole, seed, task) for task in whole.tasks]
    together = np.concatenate(pieces)
    assert len(set(together)) == len(together) and not images.test[together].any()
    assert set(images.labels[together]) <= set(range(4, len(counts)))
    for task, piece in zip(stream.tasks, pieces, strict=True):
        assert list(shown(stream, seed, task)) == list(piece[:at_most])
        assert stream.size(seed, task) == min(at_most, len(piece))
    occurs = np.count_nonzero([[label in images.labels[piece] for label in range(len(counts))] for piece in pieces], 0)
    dropped = [have % times for have, times in zip(counts, occurs, strict=True) if times]
    assert len(together) == sum(have for have, times in zip(counts, occurs, strict=True) if times) - sum(dropped)


def test_the_description_says_what_is_shown():
    described = ReoccurringStream(AWA, EV, 5, 40, embedding=True).describe()
    assert described["kind"] == "re-occurring classes" and described["images"] == AWA.fingerprint
    assert (described["tasks"], described["classes_per_task"], described["pixels"]) == ([3, 20], 5, [4, 4, 3])
    assert (described["at_most"], described["joint_embedding"]) == (40, True)
    birds = SplitStream(CUB, EV, 10)
    assert birds.describe()["examples_per_task"] == round(np.mean(sizes(birds, 0))) == 30
    assert (birds.describe()["at_most"], birds.describe()["attributes"]) == (None, None)
    others = [SplitStream(CUB, EV, 10, 30), SplitStream(CUB, EV, 5), ReoccurringStream(AWA, EV, 5)]
    assert len({str(one.describe()) for one in [birds, *others]}) == 4
