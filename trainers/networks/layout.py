"""How named parameters lie in a row of a matrix [M, D]: each on a 64-byte boundary, for the reasons in `mlp.py`."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

ALIGNMENT = 16  # float32 values in 64 bytes


@dataclass(frozen=True)
class Layout:
    """Names and shapes, in the order in which they lie; the gaps between them are zero."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def parameters(self) -> int:
        """Values without the gaps."""
        return sum(math.prod(shape) for _, shape in self.shapes)

    @cached_property
    def row(self) -> int:
        """Length of a row, with the gaps."""
        return sum(_padded(shape) for _, shape in self.shapes)

    def views(self, matrix: Tensor) -> dict[str, Tensor]:
        """[M, *shape] of every name, into a matrix [M, row]."""
        return {name: matrix[:, a:b].view(-1, *shape) for name, shape, a, b in self._places()}

    @cached_property
    def real(self) -> Tensor:
        """[row], False in the gaps."""
        row = torch.zeros(self.row, dtype=torch.bool)
        for _, _, a, b in self._places():
            row[a:b] = True
        return row

    def _places(self) -> Iterator[tuple[str, tuple[int, ...], int, int]]:
        start = 0
        for name, shape in self.shapes:
            yield name, shape, start, start + math.prod(shape)
            start += _padded(shape)


def _padded(shape: tuple[int, ...]) -> int:
    return -(-math.prod(shape) // ALIGNMENT) * ALIGNMENT
