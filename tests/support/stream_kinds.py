"""Every kind of stream that must keep the promises of `epsearch.testing.stream_checks`: one line each."""

from functools import cache

from tests.support.made_images import made_images
from tests.support.toy_streams import digits, toy
from trainers.streams import RotatedStream, SplitPixelsStream
from trainers.streams.images.split import ReoccurringStream, SplitStream
from trainers.streams.task_order import in_order


@cache
def images():
    """25 classes with 9 to 13 training images, 3 test images and one of neither."""
    return made_images(25, train=[9 + label % 5 for label in range(25)], test=3, size=4, attributes=6, unused=1)


def cut(kind, embedding=False):
    return lambda tasks, examples: kind(images(), tasks, 3, examples, embedding)


def split_pixels(scenario):
    return lambda tasks, examples: SplitPixelsStream(toy(classes=14, pixels=20).images, tasks, 2, examples, scenario)


# Name -> factory(tasks, examples_per_task), as for `--dataset module:factory`; tasks are those of CV and EV below.
KINDS = {
    "permuted": digits,
    "rotated": lambda tasks, examples: RotatedStream(digits().images, tasks, examples),
    "split pixels": split_pixels("task"),
    "split pixels, class-incremental": split_pixels("class"),
    "split pixels, domain-incremental": split_pixels("domain"),
    "split": cut(SplitStream),
    "split, class-incremental": lambda tasks, examples: SplitStream(images(), tasks, 3, examples, scenario="class"),
    "split, embedding": cut(SplitStream, embedding=True),
    "re-occurring": cut(ReoccurringStream),
    "re-occurring, embedding": cut(ReoccurringStream, embedding=True),
    "split pixels, classes in another order": lambda tasks, examples: in_order(
        split_pixels("domain")(tasks, examples), 2
    ),
    "split, classes in another order": lambda tasks, examples: in_order(cut(SplitStream)(tasks, examples), 2),
}
