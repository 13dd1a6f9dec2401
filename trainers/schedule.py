"""Every random choice of a run, drawn before the first step from one independent generator per (seed, purpose, task).

None of it depends on parameters, on ε or on who else is in the cohort, so all ε of a seed see the same batches
(common random numbers) and the training loop is pure arithmetic on index arrays.
"""

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def generator(seed: int, purpose: str, task: int = 0) -> np.random.Generator:
    """The generator for one purpose: independent of every other (seed, purpose, task)."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode()), task])


@dataclass(frozen=True)
class Segment:
    """Consecutive steps whose batches have the same shape.

    rows [steps, current + reference]: rows of the pool that form each step's batch, the current mini-batch first.
    """

    rows: Indices
    current: int

    @property
    def reference(self) -> int:
        return int(self.rows.shape[1]) - self.current


def training_order(seed: int, task: int, available: int, wanted: int) -> Indices:
    """Which training examples the task shows, in order: one shuffle, cut to the wanted number."""
    return generator(seed, "order", task).permutation(available)[:wanted]


def memory_choice(seed: int, task: int, labels: Indices, per_class: int) -> Indices:
    """Positions of the examples that enter the episodic memory after the task.

    Per class `per_class` examples drawn uniformly without replacement (A-GEM, §6), or all where there are fewer.
    On shuffled data this equals what a ring buffer per class holds at the end of the task, in distribution.
    """
    rng = generator(seed, "memory", task)
    kept = [np.sort(rng.permutation(np.flatnonzero(labels == label))[:per_class]) for label in np.unique(labels)]
    return np.concatenate(kept)


def reference_batches(seed: int, task: int, stored: int, batch: int | None, steps: int) -> Indices:
    """Memory slots [steps, B] that form the reference batch of each step.

    All stored examples when they are no more than `batch` (or batch is None), else a fresh uniform draw without
    replacement over all previous tasks together (A-GEM, Algorithm 2).
    """
    if batch is None or stored <= batch:
        return np.broadcast_to(np.arange(stored), (steps, stored))
    rng = generator(seed, "reference", task)
    draws = np.empty((steps, batch), dtype=np.int64)
    for step in range(steps):
        draws[step] = rng.choice(stored, batch, replace=False, shuffle=False)
    return draws


def task_segments(
    seed: int, task: int, examples: int, batch_size: int, capacity: int, stored: int, memory_batch: int | None
) -> tuple[Segment, ...]:
    """All batches of a task as rows of a pool: memory slots in rows [0, capacity), the task's examples behind them.

    The last mini-batch may be short; it forms a segment of its own.
    """
    steps = -(-examples // batch_size)
    reference = reference_batches(seed, task, stored, memory_batch, steps)
    full = examples // batch_size
    rows = capacity + np.arange(full * batch_size).reshape(full, batch_size)
    segments = [Segment(np.hstack([rows, reference[:full]]), batch_size)] if full else []
    if rest := examples - full * batch_size:
        last = capacity + np.arange(full * batch_size, examples)[None]
        segments.append(Segment(np.hstack([last, reference[full:]]), rest))
    return tuple(segments)
