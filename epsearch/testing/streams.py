"""Promises of streams: `stream_checks`."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsearch.testing.promises import Check, checks_of, sure
from trainers.scenarios import DOMAIN, SCENARIOS
from trainers.streams.base import Examples
from trainers.streams.competing import scenario_of

SEEDS = (0, 1)

Factory = Callable[[range, int | None], Any]
"""(tasks, examples_per_task, None for all) -> stream."""


ROTATED = "angles that differ little leave some images alike"


@dataclass(frozen=True)
class StreamCase:
    """A factory of streams, with the tasks of cross-validation and evaluation."""

    factory: Factory
    cv: range = range(3)
    ev: range = range(3, 7)
    examples: int = 5
    """Fewer than in any task."""

    def each(self, examples: int | None = None) -> Iterator[tuple[range, Any]]:
        """Yields (tasks, stream) of both."""
        for tasks in (self.cv, self.ev):
            stream = self.factory(tasks, examples)
            sure(
                stream.tasks == tasks, f"a stream's tasks must be those that are asked for, {tasks}; got {stream.tasks}"
            )
            yield tasks, stream

    def every_task(self, examples: int | None = None) -> Iterator[tuple[Any, int, int]]:
        """Yields (stream, seed, task) of both."""
        for tasks, stream in self.each(examples):
            for seed in SEEDS:
                for task in tasks:
                    yield stream, seed, task


def stream_checks(factory: Factory, tasks: int = 7, cv_tasks: int = 3, examples: int = 5) -> list[Check]:
    """Returns checks of factory(tasks, examples_per_task) -> stream, as for `--dataset module:factory`.

    tasks, cv_tasks: of the whole stream and of the cross-validation, as in a study; examples: fewer than in a task.
    """
    return checks_of(PROMISES, StreamCase(factory, range(cv_tasks), range(cv_tasks, tasks), examples))


def shapes_and_dtypes(streams: StreamCase) -> None:
    """Labels are int64 [n], inputs as from `room`; pixels are bytes up to `largest`."""
    for stream, seed, task in streams.every_task():
        room, at = stream.room(7), _at(seed, task)
        sure(len(room) == 7 and not room.any(), f"room(7) must be seven rows of zeros, got {list(room.shape)}")
        for part in _parts(stream, seed, task):
            shape, expected = part.labels.shape, (len(part.inputs),)
            sure(part.labels.dtype == np.int64, f"labels must be int64, got {part.labels.dtype} {at}")
            sure(
                shape == expected != (0,), f"there must be one label for each of {expected[0]} inputs, got {shape} {at}"
            )
            sure(
                part.inputs.dtype == room.dtype and part.inputs.shape[1:] == room.shape[1:],
                f"inputs must be as room() has them, {room.dtype} {room.shape[1:]}, got {part.inputs.dtype} "
                f"{part.inputs.shape[1:]} {at}",
            )
            if not hasattr(stream, "pixels"):
                kind = f"{part.inputs.dtype} {part.inputs.shape[1:]}"
                fits = part.inputs.dtype == np.uint8 and part.inputs.shape[1:] == (stream.inputs,)
                sure(fits, f"rows of pixels must be uint8 ({stream.inputs},), got {kind} {at}")
                most = int(part.inputs.max())
                sure(most <= stream.largest, f"pixels must be <= largest, {stream.largest:g}, got {most} {at}")
                sure(0 < stream.density <= 1, f"density must lie in (0, 1], got {stream.density}")


def images_have_a_mean_and_attributes_that_fit(streams: StreamCase) -> None:
    """Streams of pixels are not checked."""
    for _, stream in streams.each():
        if not hasattr(stream, "pixels"):
            return
        pixels, mean = stream.pixels, stream.mean
        fits = pixels.dtype == np.uint8 and pixels.shape[3:] == (3,)
        sure(fits, f"pixels must be uint8 [n, H, W, 3], got {pixels.dtype} {list(pixels.shape)}")
        sure(mean.dtype == np.float32, f"the mean must be float32, got {mean.dtype}")
        fits = np.broadcast_shapes(mean.shape, pixels.shape[1:]) == pixels.shape[1:]
        sure(fits, f"the mean must fit images {list(pixels.shape[1:])}, got {list(mean.shape)}")
        sure(isinstance(stream.balanced, bool), f"balanced must be True or False, got {stream.balanced!r}")
        if stream.attributes is not None:
            attributes = stream.attributes
            fits = attributes.dtype == np.float32 and len(attributes) == stream.outputs
            sure(
                fits,
                f"attributes must be float32 with a row for each of {stream.outputs} outputs, got "
                f"{attributes.dtype} {list(attributes.shape)}",
            )


def labels_are_outputs_of_the_tasks_classes(streams: StreamCase) -> None:
    """Labels lie in 0…outputs−1, and a task has `classes` of them, in training and test."""
    for stream, seed, task in streams.every_task():
        train, test = _parts(stream, seed, task)
        for labels in (train.labels, test.labels):
            low, high = int(labels.min()), int(labels.max())
            sure(
                low >= 0 and high < stream.outputs,
                f"labels must lie in 0…{stream.outputs - 1}, got {low}…{high} {_at(seed, task)}",
            )
        count = len(np.unique(train.labels))
        sure(count == stream.classes, f"a task must have {stream.classes} classes, got {count} {_at(seed, task)}")
        same = set(train.labels.tolist()) == set(test.labels.tolist())
        sure(same, f"training and test must have the same classes {_at(seed, task)}")


def heads_are_those_of_the_labels(streams: StreamCase) -> None:
    """Labels are outputs of their task, where outputs have tasks; the scenario is a known one."""
    for stream, seed, task in streams.every_task():
        scenario = scenario_of(stream)
        sure(scenario in SCENARIOS, f"scenario must be one of {', '.join(SCENARIOS)}, got {scenario!r}")
        sure(scenario == DOMAIN or hasattr(stream, "heads"), f"a stream of scenario {scenario} must have heads")
        if scenario == DOMAIN:
            return
        heads = stream.heads(seed)
        fits = heads.shape == (stream.outputs,) and set(heads.tolist()) <= {-1, *stream.tasks}
        sure(fits, f"heads must have a task of the stream, or −1, for each of {stream.outputs} outputs")
        count = np.count_nonzero(heads == task)
        sure(count == stream.classes, f"a task must have {stream.classes} outputs, got {count} {_at(seed, task)}")
        for part in _parts(stream, seed, task):
            sure((heads[part.labels] == task).all(), f"labels must be outputs of their task {_at(seed, task)}")


def an_order_names_each_example_once(streams: StreamCase) -> None:
    """It is a sequence of different int64, as many as the task shows; training follows it."""
    for examples in (None, streams.examples):
        for stream, seed, task in streams.every_task(examples):
            order, at = stream.order(seed, task), _at(seed, task)
            sure(order.dtype == np.int64, f"an order must be int64, got {order.dtype} {at}")
            sure(len(set(order.tolist())) == len(order), f"an order must name each example once {at}")
            size = stream.size(seed, task)
            sure(len(order) == size, f"size must be that of the order, {len(order)}, got {size} {at}")
            count = len(order) + (len(stream.held(seed, task)) if hasattr(stream, "held") else 0)
            sure(examples in (None, count), f"a task must show {examples} examples, got {count} {at}")
            backwards = [part[::-1] for part in stream.train(seed, task, order[::-1])]
            sure(_same(backwards, stream.train(seed, task, order)), f"training must follow the order given {at}")


def no_image_is_both_trained_on_and_tested_on(streams: StreamCase) -> None:
    """This holds for any task of a stream."""
    for stream, seed, task in streams.every_task():
        tested = set(_contents(stream, stream.test(seed, task)))
        for other in stream.tasks:
            shared = tested.intersection(_contents(stream, _parts(stream, seed, other)[0]))
            sure(not shared, f"{len(shared)} test images of task {task} are trained on in task {other}, seed {seed}")


def no_image_is_shown_in_two_tasks(streams: StreamCase) -> str | None:
    """This holds for one stream and seed."""
    for tasks, stream in streams.each():
        if hasattr(stream, "angle"):
            return ROTATED
        for seed in SEEDS:
            contents = [set(_contents(stream, _parts(stream, seed, task)[0])) for task in tasks]
            twice = sum(map(len, contents)) - len(set().union(*contents))
            sure(not twice, f"{twice} images are shown in more than one of the tasks {tasks}, seed {seed}")
    return None


def cross_validation_and_evaluation_share_no_image(streams: StreamCase) -> str | None:
    """A choice on one must not be evaluated on known images."""
    for seed in SEEDS:
        if any(hasattr(stream, "angle") for _, stream in streams.each()):
            return ROTATED
        first, second = (
            {example for task in tasks for part in _parts(stream, seed, task) for example in _contents(stream, part)}
            for tasks, stream in streams.each()
        )
        shared = len(first & second)
        sure(not shared, f"cross-validation and evaluation must share no image, they share {shared}, seed {seed}")
    return None


def a_seed_fixes_everything(streams: StreamCase) -> None:
    """Two streams of the same factory are the same."""
    for (stream, seed, task), (again, _, _) in zip(streams.every_task(), streams.every_task(), strict=True):
        sure(stream is not again, "a factory must make a new stream at every call")
        for part, twin in zip(_parts(stream, seed, task), _parts(again, seed, task), strict=True):
            sure(_same(part, twin), f"the same seed must give the same data, made anew it does not {_at(seed, task)}")


def what_was_asked_before_changes_nothing(streams: StreamCase) -> None:
    """Workers ask for seeds and tasks in any order."""
    for (tasks, forwards), (_, backwards) in zip(streams.each(), streams.each(), strict=True):
        keys = [(seed, task) for seed in SEEDS for task in tasks]
        parts = {key: _parts(forwards, *key)[0] for key in keys}
        for key in reversed(keys):
            same = _same(_parts(backwards, *key)[0], parts[key])
            sure(same, f"a task must be the same whatever was asked for before, it is not {_at(*key)}")


def seeds_and_tasks_have_orders_of_their_own(streams: StreamCase) -> None:
    """They also have other examples, or other images of them."""
    for tasks, stream in streams.each():
        contents = {tuple(_contents(stream, _parts(stream, seed, task)[0])) for seed in SEEDS for task in tasks}
        orders = {tuple(stream.order(seed, task)) for seed in SEEDS for task in tasks}
        expected = len(SEEDS) * len(tasks)
        sure(
            len(contents) == expected, f"each seed and task must show data of its own, {len(contents)} of {expected} do"
        )
        sure(
            len(orders) == expected, f"each seed and task must have an order of its own, {len(orders)} of {expected} do"
        )


def the_description_tells_streams_apart(streams: StreamCase) -> None:
    """It is JSON, the same at every call, and part of every result's key."""
    examples = (None, streams.examples)
    described = [stream.describe() for number in examples for _, stream in streams.each(number)]
    texts = [json.dumps(facts, sort_keys=True, allow_nan=False) for facts in described]
    sure(len(set(texts)) == len(texts), "descriptions must differ between tasks and between examples_per_task")
    again = json.dumps(streams.factory(streams.cv, None).describe(), sort_keys=True)
    sure(again == texts[0], "a description must be the same at every call")
    for facts in described:
        fits = type(facts.get("examples_per_task")) is int and isinstance(facts.get("kind"), str)
        sure(fits, "a description must have kind, a text, and examples_per_task, a whole number")


PROMISES = (
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


def _at(seed: int, task: int) -> str:
    return f"(seed {seed}, task {task})"


def _contents(stream: Any, examples: Examples) -> list[bytes]:
    """Returns the images, hashable."""
    inputs = stream.pixels[examples.inputs] if hasattr(stream, "pixels") else examples.inputs
    return [row.tobytes() for row in np.ascontiguousarray(inputs)]


def _parts(stream: Any, seed: int, task: int) -> tuple[Examples, Examples]:
    """(all that the task shows, its test set)."""
    return stream.train(seed, task, stream.order(seed, task)), stream.test(seed, task)


def _same(first: Any, second: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
