"""What is drawn before training: orders, memories, reference batches."""

import numpy as np
import pytest

from trainers.schedule import (
    generator,
    memory_choice,
    mini_batches,
    reference_batches,
    task_segments,
    training_order,
)


def test_generators_differ_by_seed_purpose_and_task():
    draws = {
        tuple(generator(seed, purpose, task).integers(0, 2**40, 3))
        for seed in (0, 1)
        for purpose in ("order", "memory")
        for task in (0, 1)
    }
    assert len(draws) == 8
    assert (generator(3, "order", 2).random(5) == generator(3, "order", 2).random(5)).all()


def test_order_shows_every_example_once():
    order = training_order(0, 4, 100, 100)
    assert sorted(order) == list(range(100)) and list(order) != list(range(100))
    assert (training_order(0, 4, 100, 30) == order[:30]).all()


def test_memory_holds_the_quota_of_every_class():
    labels = np.repeat([0, 1, 2], [50, 40, 3])
    chosen = memory_choice(0, 0, labels, 5)
    assert np.bincount(labels[chosen]).tolist() == [5, 5, 3]
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) != set(memory_choice(1, 0, labels, 5))


def test_memory_is_drawn_uniformly():
    """Each of 20 examples of a class is kept with probability 1/4; 2,000 seeds give a standard error of 0.0097, and
    the largest deviation of 20 was 0.020 when this was written."""
    labels = np.zeros(20, dtype=np.int64)
    kept = np.zeros(20)
    for seed in range(2000):
        kept[memory_choice(seed, 0, labels, 5)] += 1
    assert np.abs(kept / 2000 - 0.25).max() < 0.045


def test_reference_batches_take_all_or_draw_without_replacement():
    assert (reference_batches(0, 1, 30, 40, 3) == np.arange(30)).all()
    assert reference_batches(0, 1, 30, None, 3).shape == (3, 30)
    draws = reference_batches(0, 1, 30, 10, 2000)
    assert draws.shape == (2000, 10)
    assert all(len(set(row)) == 10 for row in draws)
    counts = np.bincount(draws.ravel(), minlength=30) / 2000
    assert np.abs(counts - 1 / 3).max() < 0.05  # standard error 0.0105


@pytest.mark.parametrize(("examples", "sizes"), [(60, [10] * 6), (63, [10] * 6 + [3]), (7, [7])])
def test_segments_show_every_example_once_in_order(examples, sizes):
    batches = mini_batches(examples, 10, first_row=50)
    segments = task_segments(batches, reference_batches(0, 1, 20, 8, len(sizes)), (8,))
    shown = [row[: segment.current] for segment in segments for row in segment.rows]
    references = [row[segment.current :] for segment in segments for row in segment.rows]
    assert [len(batch) for batch in shown] == sizes
    assert np.concatenate(shown).tolist() == list(range(50, 50 + examples))
    assert all(len(reference) == 8 and reference.max() < 20 for reference in references)
    assert len({tuple(reference) for reference in references}) == len(sizes)
