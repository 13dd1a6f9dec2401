"""Reservoir sampling (Vitter, 1985, algorithm R).

Every example so far is stored with the same probability.
"""

from itertools import groupby

import numpy as np

from trainers.schedule import Indices, Segment, generator


class Reservoir:
    """The row of the pool behind each slot, while examples arrive one after another.

    Rows [0, slots) of the pool are the slots; the current task's examples stand behind them. Within a task a slot
    may point there; `settle` says what has to be copied into the slots when the task ends. draws: independent ones in
    each step; stores: whether segments say which slots are read and written, as for logits.
    """

    def __init__(self, slots: int, seed: int, draws: int = 1, stores: bool = False) -> None:
        self._slots, self._seed, self._draws, self._stores = slots, seed, draws, stores
        self._rows = np.arange(slots)
        self._stored = self._seen = 0

    def segments(
        self, task: int, batches: list[Indices], draw: int | None, first_pass: int | None = None
    ) -> tuple[Segment, ...]:
        """Returns the task's steps: each draws stored examples, then offers its own to the memory.

        draw: the largest number of stored examples that a step draws, None for all. first_pass: steps of the first pass
        over the task, None for all. Later ones offer nothing: copies of the same images would fill the memory, where
        every example is to be stored with the same probability.
        """
        replay_rng, memory_rng = generator(self._seed, "replay", task), generator(self._seed, "reservoir", task)
        steps = []
        for step, rows in enumerate(row for batch in batches for row in batch):
            count = self._stored if draw is None else min(draw, self._stored)
            # Of nothing, nothing is drawn: no number of the generator is used up.
            slots = np.concatenate([self._draw(replay_rng, count) for _ in range(self._draws)])
            before, offers = self._rows[slots], first_pass is None or step < first_pass
            taken = np.array([self._offer(row, memory_rng) if offers else -1 for row in rows])
            steps.append((np.concatenate([rows, before]), slots, _last(taken), count))
        return tuple(
            self._segment(list(group)) for _, group in groupby(steps, key=lambda step: (len(step[2]), step[3]))
        )

    def _draw(self, rng: np.random.Generator, count: int) -> Indices:
        return rng.choice(self._stored, count, replace=False, shuffle=False) if count else np.arange(0)

    def _segment(self, steps: list[tuple[Indices, Indices, Indices, int]]) -> Segment:
        """Returns the segment of steps alike, each (rows, slots that are read, slots that are written, of one draw)."""
        *_, taken, count = steps[0]
        read, written = (np.stack([step[at] for step in steps]) if self._stores else None for at in (1, 2))
        parts = (count,) * self._draws if count else ()
        return Segment(np.stack([step[0] for step in steps]), len(taken), parts, read, written)

    def settle(self) -> tuple[Indices, Indices]:
        """Returns (slots whose example has changed, the rows where the new ones are).

        From now on the new examples count as being in the slots.
        """
        # Such slots point behind the memory, never at each other, so that they can be copied in any order.
        changed = np.flatnonzero(self._rows != np.arange(self._slots))
        rows = self._rows[changed]
        self._rows[changed] = changed
        return changed, rows

    def _offer(self, row: int, rng: np.random.Generator) -> int:
        """Returns the slot that the example takes; −1 for none."""
        self._seen += 1
        if self._stored < self._slots:
            self._stored += 1
            slot = self._stored - 1
        # Of n examples seen, the newest is stored with probability slots/n, in a slot drawn at once.
        elif (slot := int(rng.integers(self._seen))) >= self._slots:
            return -1
        self._rows[slot] = row
        return slot


def _last(taken: Indices) -> Indices:
    """Returns the slots [B] that a step's examples take, −1 where none, or where a later one takes it over.

    >>> _last(np.array([3, -1, 0, 3]))
    array([-1, -1,  0,  3])
    """
    last = {slot: at for at, slot in enumerate(taken.tolist())}
    return np.array([slot if last[slot] == at else -1 for at, slot in enumerate(taken.tolist())])
