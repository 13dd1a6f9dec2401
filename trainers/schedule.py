"""Draws every random choice of a run before its first step.

From one independent generator per (seed, purpose, task), and per epoch after the first. None of it depends on
parameters, on ε or on who else is in the cohort, so all ε of a seed see the same batches (common random numbers) and
the training loop is pure arithmetic on index arrays.
"""

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def generator(seed: int, purpose: str, task: int = 0, epoch: int = 0) -> np.random.Generator:
    """Returns the generator for one purpose: independent of every other (seed, purpose, task, epoch)."""
    # Not hash(), which is another number in every process.
    return np.random.default_rng([seed, zlib.crc32(purpose.encode()), task, *([epoch] if epoch else [])])


@dataclass(frozen=True)
class Segment:
    """Consecutive steps whose batches have the same shape.

    rows [steps, current + reference]: rows of the pool that form each step's batch, the current mini-batch first.
    parts: sizes of the reference batches; most methods have one, GEM one for each previous task.
    """

    rows: Indices
    current: int
    parts: tuple[int, ...] = ()
    read: Indices | None = None
    """[steps, reference], the memory's slots of the reference batches, where logits are stored beside examples."""
    written: Indices | None = None
    """[steps, current], the slot that each example takes after the step; −1 for none."""

    @property
    def reference(self) -> int:
        """Number of examples in all reference batches of a step."""
        return sum(self.parts)


def training_order(seed: int, task: int, available: int, count: int) -> Indices:
    """Returns the training examples that the task shows, in order: one shuffle, cut to the wanted number."""
    return generator(seed, "order", task).permutation(available)[:count]


def memory_choice(seed: int, task: int, labels: Indices, per_class: int) -> Indices:
    """Returns positions of the examples that enter the episodic memory after the task.

    Per class `per_class` examples drawn uniformly without replacement (A-GEM, §6), or all where there are fewer.
    On shuffled data this equals what a ring buffer per class holds at the end of the task, in distribution.
    """
    rng = generator(seed, "memory", task)
    parts = [np.sort(rng.permutation(np.flatnonzero(labels == label))[:per_class]) for label in np.unique(labels)]
    return np.concatenate(parts)


def reference_batches(seed: int, task: int, stored: int, batch: int | None, steps: int) -> Indices:
    """Returns the memory slots [steps, B] that form the reference batch of each step.

    All stored examples when they are no more than `batch` (or batch is None), else a fresh uniform draw without
    replacement over all previous tasks together (A-GEM, Algorithm 2).
    """
    if batch is None or stored <= batch:
        # One row seen from every step: nothing is repeated in memory.
        return np.broadcast_to(np.arange(stored), (steps, stored))
    rng = generator(seed, "reference", task)
    # Not shuffled, which takes time: a gradient does not depend on the order of its batch.
    return np.stack([rng.choice(stored, batch, replace=False, shuffle=False) for _ in range(steps)])


def mini_batches(examples: int, batch_size: int, first_row: int) -> list[Indices]:
    """Returns the task's mini-batches [steps, size] as rows of a pool; the last may be short, and then stands alone."""
    full = examples // batch_size
    rows = first_row + np.arange(examples)
    whole = rows[: full * batch_size].reshape(full, batch_size)
    return [part for part in (whole, rows[None, full * batch_size :]) if part.size]


def pass_order(seed: int, task: int, examples: int, epoch: int) -> Indices:
    """Returns positions [examples] in the task's training order, as a pass over it shows them.

    epoch: counted from 0. The first pass has the training order itself, each later one a new shuffle of it.
    """
    return np.arange(examples) if epoch == 0 else generator(seed, "epoch", task, epoch).permutation(examples)


def task_batches(seed: int, task: int, examples: int, batch_size: int, steps: int, first_row: int) -> list[Indices]:
    """Returns the task's mini-batches [steps, size] as rows of a pool, pass after pass, the last of which may be cut.

    No array has steps of two passes, as an engine may round steps otherwise that it takes beside others.
    """
    batches: list[Indices] = []
    epoch = 0
    while steps:
        order = first_row + pass_order(seed, task, examples, epoch)
        for part in mini_batches(examples, batch_size, 0):
            if steps:
                batches.append(order[part[:steps]])
                steps -= len(batches[-1])
        epoch += 1
    return batches


def task_segments(batches: list[Indices], reference: Indices, parts: tuple[int, ...]) -> tuple[Segment, ...]:
    """Returns the task's mini-batches, each with its row of `reference` [steps, B]."""
    beside = np.split(reference, np.cumsum([len(rows) for rows in batches])[:-1])
    both = zip(batches, beside, strict=True)
    return tuple(Segment(np.hstack([rows, drawn]), rows.shape[1], parts) for rows, drawn in both)
