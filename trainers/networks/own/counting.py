"""FLOP of a pass, and the bytes that it keeps, as torch shows them: for networks of which the shapes are not known."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry


class Count:
    """Of a forward and a backward pass of so many rows.

    Not by torch's FlopCounterMode: that hooks into the modules of all threads.
    """

    MEASURED: ClassVar = ("forward", "backward", "kept")

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.forward = self.backward = 0.0
        """FLOP."""
        self.kept = 0.0
        """Bytes of all that waits for the backward pass."""

    @contextmanager
    def forward_pass(self) -> Iterator[None]:
        """Counts what is done meanwhile; what is kept has the parameters, too."""
        sizes = dict[int, int]()
        held: list[Tensor] = []  # so that no address is used again

        def pack(saved: Tensor) -> Tensor:
            storage = saved.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
            held.append(saved)
            return saved

        with _Operations() as seen, torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
            yield
        self.forward, self.kept = seen.flop, float(sum(sizes.values()))

    @contextmanager
    def backward_pass(self) -> Iterator[None]:
        """Counts what is done meanwhile."""
        with _Operations() as seen:
            yield
        self.backward = seen.flop


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operation of this thread."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flop = 0.0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # asking for that would import torch's compiler, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out, named = func(*args, **(kwargs or {})), kwargs or {}
        if (formula := flop_registry.get(getattr(func, "_overloadpacket", None))) is not None:
            self.flop += formula(*args, **named, out_val=out)
        return out
