"""Learners that do not fit into memory together are trained in halves."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

Part = TypeVar("Part")
Group = tuple[int, list[int]]
"""(the last task that is done, rows of learners)."""

GIB = 2**30
# How RuntimeErrors of torch say it.
OUT_OF_MEMORY = ("not enough memory", "out of memory", "can't allocate memory", "alloc_failed")


def split_to_fit(
    groups: Sequence[Group],
    train: Callable[[int, list[int]], Part],
    needed: Callable[[list[int]], int],
    bytes_free: int | None,
) -> Iterator[tuple[list[int], Part, str]]:
    """Yields (rows, what `train` made of them, a line where they were cut) of every group, cut in halves where need be.

    needed(rows): bytes that they are expected to take; bytes_free: None where only trying tells.
    Raises MemoryError when a member does not fit alone.
    """
    waiting = [(done, rows, "") for done, rows in groups]
    while waiting:
        done, rows, note = waiting.pop(0)
        bytes_ = needed(rows)
        too_large = bytes_free is not None and bytes_ > bytes_free and len(rows) > 1
        part = None if too_large else _try(train, done, rows)
        if part is not None:
            yield rows, part, note
            continue
        if len(rows) == 1:
            raise MemoryError(
                f"one member needs about {bytes_ / GIB:.1f} GiB, which do not fit; "
                "a smaller memory, memory-batch, batch-size, examples-per-task or image-size takes less, "
                "and so do fewer tasks"
            )
        half = len(rows) // 2
        note = f"{len(rows)} members need about {bytes_ / GIB:.1f} GiB, which do not fit: they are trained in halves"
        waiting[:0] = [(done, rows[:half], note), (done, rows[half:], note)]


def _try(train: Callable[[int, list[int]], Part], done: int, rows: list[int]) -> Part | None:
    """Returns None where the memory did not suffice."""
    try:
        return train(done, rows)
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
    for present, device in ((torch.cuda.is_available(), torch.cuda), (torch.backends.mps.is_available(), torch.mps)):
        if present:
            device.empty_cache()  # outside of the handler: the traceback would keep what is to be freed
    return None


def out_of_memory(error: BaseException | None) -> bool:
    """Returns True if an error, or one in its context, says that memory is exhausted.

    The end of a graph's recording raises an error of its own.
    """
    while error is not None:
        if isinstance(error, MemoryError) or any(words in str(error).lower() for words in OUT_OF_MEMORY):
            return True
        error = error.__context__
    return False
