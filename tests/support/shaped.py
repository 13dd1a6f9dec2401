"""Small sets with the classes and the uneven counts of the real datasets, and what a stream shows of one."""

from tests.support.made_images import made_images

CV, EV = range(3), range(3, 20)
SHORT = (106, 125, 134, 140, 189, 195)  # classes of CUB that lack an image
CIFAR = made_images(100, train=5, test=1, size=4)
CUB = made_images(200, train=[2 if label in SHORT else 3 for label in range(200)], test=1, size=4, attributes=7)
AWA_COUNTS = [15 + label * 7 % 26 for label in range(50)]
AWA = made_images(
    50,
    train=[max(17, count) for count in AWA_COUNTS],
    test=[1 + count % 4 for count in AWA_COUNTS],
    size=4,
    attributes=5,
)


def classes(stream, seed, task):
    """Those of the task, by the images that it shows."""
    return set(stream._images.labels[shown(stream, seed, task)])


def shown(stream, seed, task):
    return stream.train(seed, task, stream.order(seed, task)).inputs


def sizes(stream, seed):
    return [stream.size(seed, task) for task in stream.tasks]
