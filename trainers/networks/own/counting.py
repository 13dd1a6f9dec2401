"""Counts FLOP and memory of passes through unknown networks, by torch."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


def count_passes(forward: Callable[[], tuple[Tensor, Iterable[Tensor]]]) -> tuple[float, float, float]:
    """Returns FLOP of the forward pass, FLOP of the backward pass, and bytes that wait for the latter.

    forward: returns outputs, and the tensors by which they are differentiated. The bytes include those tensors. Not by
    torch's FlopCounterMode: that hooks into the modules of all threads.
    """
    from torch.utils.flop_counter import flop_registry  # with Triton: a third of a second, only here

    sizes = dict[int, int]()
    held: list[Tensor] = []  # so that no address is used again

    def pack(saved: Tensor) -> Tensor:
        storage = saved.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        held.append(saved)
        return saved

    with torch.enable_grad():
        with _Operations(flop_registry) as forwards, torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            outputs, leaves = forward()
        with _Operations(flop_registry) as backwards:
            torch.autograd.grad(outputs.sum(), list(leaves), allow_unused=True)
    return forwards.flop, backwards.flop, float(sum(sizes.values()))


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sums the FLOP of all operations of this thread, by formulas for operators."""

    supports_higher_order_operators = True

    def __init__(self, formulas: Mapping[Any, Callable[..., float]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._formulas = formulas
        self.flop = 0.0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # asking for that would import torch's compiler, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out, named = func(*args, **(kwargs or {})), kwargs or {}
        if (formula := self._formulas.get(getattr(func, "_overloadpacket", None))) is not None:
            self.flop += formula(*args, **named, out_val=out)
        return out
