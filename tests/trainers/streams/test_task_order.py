"""Orders of tasks and classes: what a task shows stays what it is, wherever it stands."""

import pickle
from itertools import permutations

import numpy as np
import pytest

from tests.support.learners import SMALL, few, train
from tests.support.made_images import made_images
from tests.support.numeric_paths import MKL, on_every_path, rows_equal
from tests.support.plain_run import plain_run
from tests.support.toy_streams import toy
from trainers.scenarios import SCENARIOS
from trainers.streams import SplitPixelsStream
from trainers.streams.images.split import ReoccurringStream, SplitStream
from trainers.streams.task_order import drawn_classes, drawn_order, in_order
from trainers.streams.validation import hold_out

IMAGES = made_images(classes=12, train=5, test=[1, 6, 2, 5, 1, 7, 3, 4, 2, 2, 3, 1], size=4)


def shown(stream, task, seed=0):
    return [*stream.train(seed, task, stream.order(seed, task)), *stream.test(seed, task)]


def split(scenario="task", tasks=range(2, 5)):
    return SplitPixelsStream(toy(classes=12, pixels=20).images, tasks, 2, scenario=scenario)


def test_numbers_draw_every_order_once_and_the_first_is_the_streams_own():
    drawn = [drawn_order(number, 3, 4) for number in range(24)]
    assert drawn[0] == (0, 1, 2, 3) and sorted(drawn) == sorted(permutations(range(4)))
    assert [drawn_order(number, 4, 4) for number in range(24)] != drawn, "D^CV and D^EV draw apart"
    with pytest.raises(ValueError, match="orders must be <= 6, as 3 tasks have no more, got 7"):
        drawn_order(6, 0, 3)


def test_orders_of_classes_give_tasks_other_classes():
    drawn = [drawn_classes(number, 2, 2, 2) for number in range(6)]
    assert drawn[0] == (0, 1, 2, 3) and len({(frozenset(one[:2]), frozenset(one[2:])) for one in drawn}) == 6
    with pytest.raises(ValueError, match="orders must be <= 6, as 4 classes in 2 tasks have no more, got 7"):
        drawn_classes(6, 2, 2, 2)


def test_orders_are_drawn_uniformly():
    firsts = np.bincount([drawn_order(number, 0, 17)[0] for number in range(1, 400)], minlength=17)
    assert firsts.min() > 8 and firsts.max() < 44, "about 23.5 each"


@pytest.mark.parametrize("order", [1, (2, 0, 1)])
def test_a_task_keeps_its_examples_wherever_it_stands(order):
    stream = toy()
    moved = in_order(stream, order)
    assert sorted(moved.tasks) == [*stream.tasks] and list(moved.tasks) != [*stream.tasks]
    for task in stream.tasks:
        for one, other in zip(shown(stream, task), shown(moved, task), strict=True):
            np.testing.assert_array_equal(one, other)
    facts = moved.describe()
    assert facts.pop("order") == list(moved.tasks) and facts == stream.describe()
    again = pickle.loads(pickle.dumps(moved))
    assert again.tasks == moved.tasks and again.classes == moved.classes


@pytest.mark.parametrize("order", [0, (0, 1, 2)])
def test_its_own_order_is_the_stream_itself(order):
    stream = toy()
    assert in_order(stream, order) is stream


@on_every_path
@pytest.mark.parametrize("method", ["agem", "er", "ewc", "gem"])
def test_members_see_the_tasks_in_their_order(method, path):
    """A whole run against the plain loop, which asks for the tasks one after another."""
    stream, one = in_order(toy(), (2, 0, 1)), few(method)
    result, lower = train([one], stream, path), np.tri(3, dtype=bool)
    accuracies, _ = plain_run(one, stream, SMALL.hidden)
    assert np.array_equal(result.accuracies[0][lower], accuracies[lower])
    assert not np.array_equal(accuracies[lower], plain_run(one, toy(), SMALL.hidden)[0][lower])


def test_columns_belong_to_tasks():
    """PROGNN draws the first column as all other networks are drawn, and later ones by their tasks' numbers."""
    one, other = (train([few("prognn")], in_order(toy(), order), MKL) for order in ((2, 0, 1), (2, 1, 0)))
    assert one.accuracies[0, 0, 0] == other.accuracies[0, 0, 0]
    assert not np.array_equal(one.accuracies[0], other.accuracies[0], equal_nan=True)


@pytest.mark.slow
def test_first_tasks_are_shared_where_they_are_the_same(tmp_path):
    runs = {}
    for transfer in (False, True):
        for order in ((0, 1, 2), (0, 2, 1), (2, 0, 1), (2, 1, 0)):
            stream = in_order(toy(), order)
            runs[order] = train([few("agem")], stream, MKL, folder=tmp_path / str(transfer), transfer=transfer)
            assert rows_equal(runs[order], 0, train([few("agem")], stream, MKL, transfer=transfer), 0)
        files = len([*(tmp_path / str(transfer)).iterdir()])
        assert files == (4 if transfer else 2), "tests of later tasks make a first task another one"
        assert runs[0, 2, 1].saved == (0 if transfer else 6) and runs[2, 1, 0].saved == runs[0, 2, 1].saved


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_classes_of_pixels_are_shuffled_among_the_tasks_of_the_stream(scenario):
    stream, moved = split(scenario), in_order(split(scenario), 1)
    images, seen = stream.images, []
    assert [*moved.tasks] == [*stream.tasks] and moved.describe() == stream.describe() | {"class_order": 1}
    assert moved.outputs == stream.outputs
    for task in moved.tasks:
        inputs, units = moved.test(0, task)
        rows = [next(i for i, one in enumerate(images.test.inputs) if np.array_equal(one, x)) for x in inputs]
        labels = images.test.labels[rows]
        seen += [*np.unique(labels)]
        if scenario == "domain":
            assert sorted(np.unique(units)) == [0, 1] and len(set(zip(labels, units, strict=True))) == 2
        else:
            np.testing.assert_array_equal(units, labels)
            assert (moved.heads(0)[np.unique(labels)] == task).all()
    assert sorted(seen) == [*range(4, 10)] and seen != [*range(4, 10)], "and of no other stream"
    assert (
        in_order(split(scenario), 2).test(0, 2).labels.tolist() != moved.test(0, 2).labels.tolist()
        or scenario == "domain"
    )


@pytest.mark.parametrize("tasks", [range(3), range(3, 6)])
def test_classes_of_images_are_shuffled_whatever_the_seed(tasks):
    stream = SplitStream(IMAGES, tasks, 2)
    moved = in_order(stream, 1)
    for seed in (0, 1):
        one, other = stream.heads(seed), moved.heads(seed)
        assert (one >= 0).tolist() == (other >= 0).tolist() and one.tolist() != other.tolist()
    places = [[np.flatnonzero(s.heads(seed) == task) for task in tasks] for s in (stream, moved) for seed in (0, 1)]
    assert all(len(group) == 2 for groups in places for group in groups)


def test_classes_that_come_back_keep_their_tasks():
    stream = ReoccurringStream(IMAGES, range(1, 4), 3)
    moved = in_order(stream, 1)
    assert sorted(moved.tasks) == [1, 2, 3] and list(moved.tasks) != [1, 2, 3]
    for task in moved.tasks:
        for one, other in zip(shown(stream, task), shown(moved, task), strict=True):
            np.testing.assert_array_equal(one, other)


def test_what_is_held_out_of_a_task_does_not_depend_on_its_place():
    stream = toy()
    one, other = hold_out(stream, 0.25, True), hold_out(in_order(stream, (2, 0, 1)), 0.25, True)
    assert list(other.tasks) == [2, 0, 1]
    for task in stream.tasks:
        np.testing.assert_array_equal(one.order(0, task), other.order(0, task))
        np.testing.assert_array_equal(one.test(0, task).labels, other.test(0, task).labels)
