"""What every stream promises. A check takes factory(tasks, examples_per_task) and asserts; CHECKS has them all."""

import json

import numpy as np

CV, EV, SEEDS = range(3), range(3, 7), (0, 1)
EXAMPLES = 5  # fewer than any task has


def contents(stream, examples):
    """The images themselves, hashable."""
    inputs = stream.pixels[examples.inputs] if hasattr(stream, "pixels") else examples.inputs
    return [one.tobytes() for one in np.ascontiguousarray(inputs)]


def parts(stream, seed, task):
    """(all that the task shows, its test set)."""
    return stream.train(seed, task, stream.order(seed, task)), stream.test(seed, task)


def same(first, second):
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def every_task(factory, examples=None):
    """(stream, seed, task) of both streams."""
    for tasks in (CV, EV):
        stream = factory(tasks, examples)
        assert stream.tasks == tasks
        for seed in SEEDS:
            for task in tasks:
                yield stream, seed, task


def shapes_and_dtypes(factory):
    for stream, seed, task in every_task(factory):
        room = stream.room(7)
        assert len(room) == 7 and not room.any()
        for part in parts(stream, seed, task):
            assert part.labels.dtype == np.int64 and part.labels.shape == (len(part.inputs),) != (0,)
            assert part.inputs.dtype == room.dtype and part.inputs.shape[1:] == room.shape[1:]
        if not hasattr(stream, "pixels"):
            assert part.inputs.dtype == np.uint8 and part.inputs.shape[1:] == (stream.inputs,)
            assert part.inputs.max() <= stream.largest and 0 < stream.density <= 1


def images_have_a_mean_and_attributes_that_fit(factory):
    for tasks in (CV, EV):
        stream = factory(tasks, None)
        if not hasattr(stream, "pixels"):
            return
        assert stream.pixels.dtype == np.uint8 and stream.pixels.shape[3:] == (3,)
        assert stream.mean.dtype == np.float32
        assert np.broadcast_shapes(stream.mean.shape, stream.pixels.shape[1:]) == stream.pixels.shape[1:]
        assert isinstance(stream.balanced, bool)
        if stream.attributes is not None:
            assert stream.attributes.dtype == np.float32 and len(stream.attributes) == stream.outputs


def labels_are_outputs_of_the_tasks_classes(factory):
    for stream, seed, task in every_task(factory):
        train, test = parts(stream, seed, task)
        for labels in (train.labels, test.labels):
            assert labels.min() >= 0 and labels.max() < stream.outputs
        assert len(np.unique(train.labels)) == stream.classes
        assert set(train.labels) == set(test.labels)


def heads_are_those_of_the_labels(factory):
    for stream, seed, task in every_task(factory):
        if not hasattr(stream, "heads"):
            return
        heads = stream.heads(seed)
        assert heads.shape == (stream.outputs,) and set(heads) <= {-1, *stream.tasks}
        assert np.count_nonzero(heads == task) == stream.classes
        for part in parts(stream, seed, task):
            assert (heads[part.labels] == task).all()


def an_order_names_each_example_once(factory):
    for examples in (None, EXAMPLES):
        for stream, seed, task in every_task(factory, examples):
            order = stream.order(seed, task)
            assert order.dtype == np.int64 and len(set(order)) == len(order) == stream.size(seed, task)
            assert examples in (None, len(order))
            backwards = stream.train(seed, task, order[::-1])
            assert same((part[::-1] for part in backwards), stream.train(seed, task, order))


def no_image_is_both_trained_on_and_tested_on(factory):
    for stream, seed, task in every_task(factory):
        tested = set(contents(stream, stream.test(seed, task)))
        for other in stream.tasks:
            assert tested.isdisjoint(contents(stream, parts(stream, seed, other)[0]))


def no_image_is_shown_in_two_tasks(factory):
    for tasks in (CV, EV):
        stream = factory(tasks, None)
        for seed in SEEDS:
            shown = [set(contents(stream, parts(stream, seed, task)[0])) for task in tasks]
            assert sum(map(len, shown)) == len(set().union(*shown))


def cross_validation_and_evaluation_share_no_image(factory):
    for seed in SEEDS:
        first, second = (
            {image for task in tasks for part in parts(stream, seed, task) for image in contents(stream, part)}
            for tasks in (CV, EV)
            for stream in [factory(tasks, None)]
        )
        assert first.isdisjoint(second)


def a_seed_fixes_everything(factory):
    for (stream, seed, task), (again, _, _) in zip(every_task(factory), every_task(factory), strict=True):
        assert stream is not again
        for part, twin in zip(parts(stream, seed, task), parts(again, seed, task), strict=True):
            assert same(part, twin)


def what_was_asked_before_changes_nothing(factory):
    """Workers ask for seeds and tasks in any order."""
    for tasks in (CV, EV):
        forwards, backwards = factory(tasks, None), factory(tasks, None)
        asked = [(seed, task) for seed in SEEDS for task in tasks]
        found = {key: parts(forwards, *key)[0] for key in asked}
        assert all(same(parts(backwards, *key)[0], found[key]) for key in reversed(asked))


def seeds_and_tasks_have_orders_of_their_own(factory):
    for tasks in (CV, EV):
        stream = factory(tasks, None)
        shown = {tuple(contents(stream, parts(stream, seed, task)[0])) for seed in SEEDS for task in tasks}
        assert len(shown) == len(SEEDS) * len(tasks)
        orders = {tuple(stream.order(seed, task)) for seed in SEEDS for task in tasks}
        assert len(orders) == len(SEEDS) * len(tasks)


def the_description_tells_streams_apart(factory):
    described = [factory(tasks, examples).describe() for tasks in (CV, EV) for examples in (None, EXAMPLES)]
    texts = [json.dumps(one, sort_keys=True, allow_nan=False) for one in described]
    assert len(set(texts)) == 4
    assert texts[0] == json.dumps(factory(CV, None).describe(), sort_keys=True)
    assert all(type(one["examples_per_task"]) is int and isinstance(one["kind"], str) for one in described)


CHECKS = (
    shapes_and_dtypes,
    images_have_a_mean_and_attributes_that_fit,
    labels_are_outputs_of_the_tasks_classes,
    heads_are_those_of_the_labels,
    an_order_names_each_example_once,
    no_image_is_both_trained_on_and_tested_on,
    no_image_is_shown_in_two_tasks,
    cross_validation_and_evaluation_share_no_image,
    a_seed_fixes_everything,
    what_was_asked_before_changes_nothing,
    seeds_and_tasks_have_orders_of_their_own,
    the_description_tells_streams_apart,
)
