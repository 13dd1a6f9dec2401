"""Rotated and split streams of pixels; what every stream promises: tests/contracts/test_streams.py."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from epsearch.testing.toy import pairs, toy
from search_spaces import definitions, load_definition
from trainers.scenarios import CLASS, DOMAIN, SCENARIOS, TASK
from trainers.streams import PIXELS, DataError, RotatedStream, SplitPixelsStream, StreamRequest
from trainers.streams.base import Examples, Images
from trainers.streams.disjoint import overlap
from trainers.streams.images.split import ReoccurringStream, SplitStream
from trainers.streams.permuted import BLANK, rotation

CV, EV = range(3), range(3, 20)


def rotated(tasks=CV, examples=None):
    return StreamRequest("rotated_digits", Path(), tasks, examples).open()


@pytest.mark.parametrize("side", [1, 2, 7, 8, 28])
@pytest.mark.parametrize("degrees", [0.0, 10.5, 45.0, 90.0, 120.7, 179.9])
def test_a_rotation_is_that_of_the_code_of_its_source(side, degrees):
    """Which rotates images by PIL and takes the nearest pixel; here each pixel has a number of its own."""
    numbers = np.arange(1, side**2 + 1, dtype=np.int32).reshape(side, side)
    turned = np.asarray(Image.fromarray(numbers).rotate(degrees)).ravel()
    assert np.array_equal(rotation(side, degrees), np.where(turned == 0, BLANK, turned - 1))


def test_a_task_turns_every_image_by_its_angle():
    stream = rotated()
    images, angle = stream.images, stream.angle(3, 2)
    order = stream.order(3, 2)[:20]
    for found, original in zip(stream.train(3, 2, order).inputs, images.train.inputs[order], strict=True):
        turned = Image.fromarray(original.reshape(8, 8)).rotate(angle)
        assert np.array_equal(found.reshape(8, 8), np.asarray(turned))
    assert np.array_equal(stream.train(3, 2, order).labels, images.train.labels[order])


def test_angles_are_uniform_over_half_a_turn_and_differ_between_seeds_and_tasks():
    stream = rotated(range(20))
    angles = np.sort([stream.angle(seed, task) for seed in range(50) for task in stream.tasks])
    assert len(set(angles.tolist())) == len(angles) and angles[0] >= 0 and angles[-1] < 180
    assert np.abs(angles / 180 - np.linspace(0, 1, len(angles))).max() < 0.05  # Kolmogorov-Smirnov, p about 0.01


@pytest.mark.slow
def test_tasks_of_a_seed_differ_on_small_images_too():
    stream = rotated(range(60))
    sources = {stream.source(0, task).tobytes() for task in stream.tasks}
    assert len(sources) == 60  # of 165 that there are
    again = rotated(range(40, 60))
    assert again.angle(0, 59) == stream.angle(0, 59)
    with pytest.raises(DataError, match="images of 8 × 8 pixels have too few rotations for"):
        stream.angle(0, 300)


def test_the_key_names_angles_and_interpolation():
    described = rotated().describe()
    assert described["interpolation"] == "nearest" and described["degrees"] == [0, 180.0]


def test_images_that_are_not_square_are_refused():
    part = Examples(np.zeros((4, 6), np.uint8), np.zeros(4, np.int64))
    with pytest.raises(DataError, match=r"^images that are rotated must be square, got 6 pixels$"):
        RotatedStream(Images(part, part, 2, 255.0), CV)


class TestProof:
    def test_it_says_how_near_angles_come(self):
        cv, ev = rotated(CV), rotated(EV)
        found = overlap(cv, ev, (0, 1), (1, 2))
        nearest = min(abs(cv.angle(1, one) - ev.angle(1, other)) for one in CV for other in EV)
        assert found.sound and found.angle == pytest.approx(nearest)  # of seed 1 alone, which both have
        assert (
            f"different rotations, none shared within a seed, angles of a seed at least {nearest:.2g}° apart"
            in found.sentence
        )

    def test_equal_angles_are_found_out(self):
        class Turned(RotatedStream):
            def source(self, seed, task):
                return super().source(seed, 2 if task == 9 else task)

        images = rotated().images
        found = overlap(Turned(images, CV), Turned(images, EV), (0,), (0,))
        assert found.shared == 1 and not found.sound
        assert "1 rotation of the former occurs in the latter too" in found.sentence

    def test_it_holds_for_many_seeds(self):
        """Though small images have hardly more rotations than seeds and tasks together."""
        seeds = range(12)
        assert overlap(rotated(CV), rotated(EV), seeds, seeds).sound


class TestSplit:
    def test_tasks_have_their_classes_in_order(self):
        for scenario in SCENARIOS:
            stream = pairs(scenario)
            for task in range(3):
                part = stream.train(0, task, stream.order(0, task))
                classes = [0, 1] if scenario == DOMAIN else [2 * task, 2 * task + 1]
                assert np.unique(part.labels).tolist() == np.unique(stream.test(0, task).labels).tolist() == classes
                assert len(part.labels) == stream.size(0, task) == sum(stream.images.train.labels // 2 == task)
        assert pairs(DOMAIN).outputs == 2 and pairs(TASK).outputs == pairs(CLASS).outputs == 6

    def test_every_image_is_in_one_task(self):
        stream = pairs(TASK)
        shown = np.concatenate([stream.train(0, task, stream.order(0, task)).inputs for task in range(3)])
        assert np.array_equal(np.unique(shown, axis=0), np.unique(stream.images.train.inputs, axis=0))

    def test_fewer_examples_and_too_many(self):
        assert [pairs(TASK, examples=20).size(0, task) for task in range(3)] == [20, 20, 20]
        with pytest.raises(DataError, match="examples-per-task must lie in 1…"):
            pairs(TASK, examples=1000)

    def test_too_few_classes(self):
        line = "4 tasks of 2 classes each need 8 classes, the images have 6"
        with pytest.raises(DataError, match=line) as error:
            pairs(TASK, range(2, 4))
        assert error.value.classes == 6

    def test_classes_without_an_image(self):
        images = toy(classes=6).images
        some = images.train.labels < 4
        left = Images(Examples(images.train.inputs[some], images.train.labels[some]), images.test, 6, 255.0)
        with pytest.raises(DataError, match="task 2 has no training image"):
            SplitPixelsStream(left, range(3), 2)

    def test_an_unknown_scenario(self):
        with pytest.raises(DataError, match="scenario of split pixels must be task or domain or class, got 'free'"):
            pairs("free")

    def test_the_key_names_the_scenario(self):
        assert {pairs(one).describe()["scenario"] for one in SCENARIOS} == set(SCENARIOS)


def test_definitions_name_the_scenarios_of_their_streams():
    kinds = {"permuted": (DOMAIN,), "rotated": (DOMAIN,), "split": SCENARIOS}
    for name in definitions():
        own = kinds[name.partition("_")[0]] if name in PIXELS else SplitStream.scenarios
        own = ReoccurringStream.scenarios if name.startswith("split_awa") else own
        assert load_definition(name).scenarios == tuple(own), name
    assert load_definition("folder:x").scenarios == SplitStream.scenarios and not load_definition("a:b").scenarios


def test_the_usual_scenario_of_images_is_not_part_of_the_key():
    """Results of before it could be chosen stay."""
    from tests.support.made_images import made_images

    images = made_images(8, train=3, size=4)
    plain, same, other = (SplitStream(images, range(2), 2, scenario=one) for one in (None, TASK, CLASS))
    assert plain.describe() == same.describe() and "scenario" not in plain.describe()
    assert other.describe() == plain.describe() | {"scenario": CLASS}
