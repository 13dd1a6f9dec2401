"""ER's memory: who is stored, and that the pool's rows are those examples."""

import numpy as np
import pytest

from tests.support.learners import learner
from tests.support.toy_streams import toy
from trainers.pool import Pool
from trainers.reservoir import Reservoir
from trainers.schedule import mini_batches

CAPACITY, EXAMPLES = 12, 40


def stored_after(seed, tasks):
    """Which of the examples of `tasks` tasks (numbered through) are stored in the end."""
    reservoir, number = Reservoir(CAPACITY, seed), np.full(CAPACITY + EXAMPLES, -1)
    for task in range(tasks):
        number[CAPACITY:] = task * EXAMPLES + np.arange(EXAMPLES)
        reservoir.segments(task, mini_batches(EXAMPLES, 10, CAPACITY), 8)
        slots, rows = reservoir.settle()
        number[slots] = number[rows]
    return number[:CAPACITY]


@pytest.mark.slow
def test_every_example_is_stored_with_the_same_probability():
    """12 of 80, so p = 0.15. Over 3,000 seeds the standard error of a frequency is 0.0065; the largest of the 80
    deviations was 0.021 when this was written, and 0.03 is allowed."""
    counts = np.zeros(2 * EXAMPLES)
    for seed in range(3000):
        kept = stored_after(seed, 2)
        assert len(set(kept)) == CAPACITY and kept.min() >= 0
        counts[kept] += 1
    assert np.abs(counts / 3000 - CAPACITY / (2 * EXAMPLES)).max() < 0.03


def test_the_memory_is_drawn_from_the_second_step_on():
    segments = Reservoir(CAPACITY, 0).segments(0, mini_batches(EXAMPLES, 10, CAPACITY), 8)
    references = [row[segment.current :] for segment in segments for row in segment.rows]
    assert [len(reference) for reference in references] == [0, 8, 8, 8]
    assert [segment.parts for segment in segments] == [(), (8,)]
    for step, reference in enumerate(references):
        assert len(set(reference)) == len(reference)
        assert ((reference >= CAPACITY) & (reference < CAPACITY + 10 * step)).all()  # what earlier steps have shown


def test_fewer_stored_than_wanted_are_all_drawn():
    segments = Reservoir(CAPACITY, 0).segments(0, mini_batches(EXAMPLES, 5, CAPACITY), 8)
    assert [segment.reference for segment in segments for _ in segment.rows][:4] == [0, 5, 8, 8]
    everything = Reservoir(CAPACITY, 0).segments(0, mini_batches(EXAMPLES, 5, CAPACITY), None)
    assert [segment.reference for segment in everything for _ in segment.rows][:5] == [0, 5, 10, 12, 12]


def test_slots_that_are_read_and_written_are_those_of_the_rows():
    """By a second bookkeeping: what stands in each slot after every step, of two independent draws."""
    reservoir, draws = Reservoir(CAPACITY, 0, draws=2, stores=True), []
    known = np.full(CAPACITY, -1)
    for task in range(3):
        for segment in reservoir.segments(task, mini_batches(EXAMPLES, 10, CAPACITY), 8):
            for rows, read, written in zip(segment.rows, segment.read, segment.written, strict=True):
                now, drawn = rows[: segment.current], rows[segment.current :]
                # Of a task before, the slots themselves; within the task the rows behind them.
                assert (np.where(known[read] >= 0, known[read], read) == drawn).all()
                first, second = np.split(read, 2)
                draws += [set(first) == set(second)] if len(read) == 16 else []
                taken = written[written >= 0]
                assert len(set(taken)) == len(taken)
                known[taken] = now[written >= 0]
        reservoir.settle()
        known[:] = -1
    assert len(draws) > 5 and not any(draws)


def test_rows_of_the_pool_hold_what_the_schedule_means():
    """Every reference row, in every task, is an example that has been shown before, with its own label."""
    one = learner("er", memory=2, memory_batch=9)
    pool, seen = Pool(toy(range(3), examples=60), 0, one.declared, one.hyperparameters), {}
    assert pool.slots == 2 * 4 * 3
    later = 0
    for task in range(3):
        for segment in pool.load_task(task):
            for rows in segment.rows:
                for row in rows[segment.current :]:
                    assert seen[pool.inputs[row].tobytes()] == pool.labels[row]
                    later += row < pool.slots
                for row in rows[: segment.current]:
                    seen[pool.inputs[row].tobytes()] = pool.labels[row]
        pool.remember(task)
    assert later > 50
