"""What split streams refuse when they are made."""

import pytest

from tests.support.made_images import made_images
from tests.support.shaped import AWA, CIFAR, EV, classes, sizes
from trainers.streams.base import DataError
from trainers.streams.images.split import ReoccurringStream, SplitStream

BOTH = pytest.mark.parametrize("kind", [SplitStream, ReoccurringStream])


class TestRefusals:
    """One line each, with the figures."""

    @pytest.mark.parametrize("examples", [0, 26])
    def test_more_examples_than_any_task_has(self, examples):
        with pytest.raises(DataError, match=rf"^examples-per-task must lie in 1…25, .*, got {examples}$"):
            SplitStream(CIFAR, EV, 5, examples)

    def test_as_many_as_the_largest_task_has(self):
        whole = ReoccurringStream(AWA, EV, 5)
        largest = max(sizes(whole, 0))
        assert sizes(ReoccurringStream(AWA, EV, 5, largest), 0) == sizes(whole, 0)
        with pytest.raises(DataError, match=f"1…{largest}, .*got {largest + 1}$"):
            ReoccurringStream(AWA, EV, 5, largest + 1)

    @pytest.mark.parametrize(("kind", "need"), [(SplitStream, 120), (ReoccurringStream, 112)])
    def test_too_few_classes(self, kind, need):
        tasks, each = (range(3, 20), 6) if kind is SplitStream else (range(3, 5), 28)
        with pytest.raises(DataError, match=rf"^\d+ tasks of {each} classes each need {need} classes, .* have 100$"):
            kind(CIFAR, tasks, each)

    def test_the_last_class_is_enough(self):
        assert (SplitStream(CIFAR, EV, 5).heads(0)[15:] >= 3).all()
        assert classes(ReoccurringStream(AWA, range(1, 3), 25), 0, 2) == set(range(25, 50))

    @BOTH
    def test_no_attributes_for_an_embedding(self, kind):
        with pytest.raises(DataError, match=r"^a joint embedding needs attributes"):
            kind(CIFAR, range(3, 5), 5, embedding=True)

    def test_a_class_that_may_run_out_of_images(self):
        images = made_images(12, train=[4] * 11 + [3], test=1, size=2)
        assert ReoccurringStream(images, range(2, 5), 2).size(0, 2) > 0
        with pytest.raises(DataError, match=r"^classes that re-occur in up to 4 tasks .* class 11 has 3$"):
            ReoccurringStream(images, range(2, 6), 2)
