"""What avalanche_side_by_side.py changes of Avalanche's A-GEM: other networks, parts of it written otherwise."""

import random
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

HERE = "avalanche_changes"
PER_CLASS = 25


def torch_start(inputs: int, outputs: int) -> torch.nn.Module:
    """Ours with torch's usual start."""
    linear, relu = torch.nn.Linear, torch.nn.ReLU
    return torch.nn.Sequential(linear(inputs, 256), relu(), linear(256, 256), relu(), linear(256, outputs))


def simple_without_dropout(inputs: int, outputs: int) -> torch.nn.Module:
    """Avalanche's SimpleMLP but for its dropout."""
    from avalanche.models import SimpleMLP

    return SimpleMLP(outputs, inputs, drop_rate=0)


# Parts of Avalanche's A-GEM, written otherwise.


def by_class() -> Any:
    """As many examples of each class are kept, as ours does."""
    from avalanche.training.plugins import AGEMPlugin

    before = AGEMPlugin.update_memory

    def update(self: Any, dataset: Any, num_workers: int = 0, **others: Any) -> None:
        labels = np.array([int(one) for one in dataset.targets])
        kept: list[int] = []
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label).tolist()
            kept += random.sample(rows, min(PER_CLASS, len(rows)))
        random.shuffle(kept)
        before(self, dataset.subset(kept), num_workers)

    return patch.object(AGEMPlugin, "update_memory", update)


def from_all() -> Any:
    """Reference batches are drawn from all that is kept, anew at every step, as ours are."""
    from avalanche.training.plugins import AGEMPlugin

    def sample(self: Any) -> Any:
        if getattr(self, "_known", 0) != len(self.buffers):
            parts = [[one[i] for i in range(len(one))] for one in self.buffers]
            rows = [row for part in parts for row in part]
            self._x, self._y = torch.stack([row[0] for row in rows]), torch.tensor([int(row[1]) for row in rows])
            self._known = len(self.buffers)
        chosen = torch.randperm(len(self._y))[: self.sample_size]
        return self._x[chosen], self._y[chosen], torch.zeros(len(chosen), dtype=torch.int64)

    return patch.object(AGEMPlugin, "sample_from_memory", sample)


def both() -> Any:
    stack = ExitStack()
    for one in (by_class, from_all):
        stack.enter_context(one())
    return stack


CHANGES: dict[str, Callable[[], Any]] = {"by class": by_class, "from all": from_all, "both": both}
