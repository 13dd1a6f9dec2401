"""Layout of named parameters in a row of a matrix [M, D].

Each begins on a 64-byte boundary, for the reasons in `mlp.py`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import torch
from torch import Tensor

ALIGNMENT = 16  # float32 values in 64 bytes


@dataclass(frozen=True)
class Layout:
    """Names and shapes, in the order in which they lie; the gaps between them are zero."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def row(self) -> int:
        """Length of a row, with the gaps."""
        return self._starts[-1]

    def views(self, matrix: Tensor) -> dict[str, Tensor]:
        """Returns [M, *shape] of every name, into a matrix [M, row]."""
        # There is one start more than names: where the last gap ends.
        return {
            name: matrix[:, start : start + math.prod(shape)].view(-1, *shape)
            for (name, shape), start in zip(self.shapes, self._starts, strict=False)
        }

    @cached_property
    def real(self) -> Tensor:
        """[row], False in the gaps."""
        row = torch.zeros(1, self.row, dtype=torch.bool)
        for view in self.views(row).values():
            view.fill_(True)
        return row[0]

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        """Starts of the values of each name, and the end of the last gap; cached, as every step asks for views."""
        return tuple(accumulate((pad(math.prod(shape)) for _, shape in self.shapes), initial=0))


def pad(values: int) -> int:
    """Returns the length of so many values with the gap behind them.

    >>> pad(10), pad(16)
    (16, 16)
    """
    return -(-values // ALIGNMENT) * ALIGNMENT


def consecutive(lengths: Iterable[int]) -> list[slice]:
    """Returns the slices of consecutive parts of these lengths.

    >>> consecutive([2, 3])
    [slice(0, 2, None), slice(2, 5, None)]
    """
    return [slice(start, end) for start, end in pairwise(accumulate(lengths, initial=0))]
