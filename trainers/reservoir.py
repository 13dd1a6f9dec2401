"""Reservoir sampling (Vitter, 1985, algorithm R).

Every example so far is stored with the same probability.
"""

from itertools import groupby

import numpy as np

from trainers.schedule import Indices, Segment, generator


class Reservoir:
    """The row of the pool behind each slot, while examples arrive one after another.

    Rows [0, slots) of the pool are the slots; the current task's examples stand behind them. Within a task a slot
    may point there; `settle` says what has to be copied into the slots when the task ends.
    """

    def __init__(self, slots: int, seed: int) -> None:
        self._slots, self._seed = slots, seed
        self._rows = np.arange(slots)
        self._stored = self._seen = 0

    def segments(
        self, task: int, batches: list[Indices], draw: int | None, first_pass: int | None = None
    ) -> tuple[Segment, ...]:
        """The task's steps: each draws up to `draw` stored examples (None: all), then offers its own to the memory.

        first_pass: steps of the first pass over the task, None for all. Later ones offer nothing: copies of the same
        images would fill the memory, where every example is to be stored with the same probability.
        """
        drawn, kept = generator(self._seed, "replay", task), generator(self._seed, "reservoir", task)
        steps = []
        for step, rows in enumerate(row for batch in batches for row in batch):
            wanted = self._stored if draw is None else min(draw, self._stored)
            slots = drawn.choice(self._stored, wanted, replace=False, shuffle=False) if wanted else np.arange(0)
            steps.append((len(rows), np.concatenate([rows, self._rows[slots]])))
            for row in rows if first_pass is None or step < first_pass else ():
                self._offer(row, kept)
        return tuple(
            Segment(np.stack([rows for _, rows in group]), current, (size - current,) if size > current else ())
            for (current, size), group in groupby(steps, key=lambda step: (step[0], len(step[1])))
        )

    def settle(self) -> tuple[Indices, Indices]:
        """(slots whose example has changed, the rows where the new ones stand); from now on they stand in the slots."""
        # Such slots point behind the memory, never at each other, so that they can be copied in any order.
        changed = np.flatnonzero(self._rows != np.arange(self._slots))
        rows = self._rows[changed]
        self._rows[changed] = changed
        return changed, rows

    def _offer(self, row: int, rng: np.random.Generator) -> None:
        self._seen += 1
        if self._stored < self._slots:
            self._rows[self._stored] = row
            self._stored += 1
        # Of n examples seen, the newest is stored with probability slots/n, in a slot drawn at once.
        elif (slot := int(rng.integers(self._seen))) < self._slots:
            self._rows[slot] = row
