"""Makes modules by a user's factory, and checks their parameters."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from trainers.cohort import Plugged
from trainers.plugins.calls import blamed

Inputs = int | tuple[int, int, int]
"""P of pixels, or (3, H, W) of images."""

# The generators of torch, NumPy and Python belong to the process: threads may not draw from them in between.
GENERATORS = threading.RLock()
LARGEST = 2**32  # of NumPy's seeds


class NetworkError(ValueError):
    """The module of a user's factory cannot be trained; the message is one line."""


def make(plugged: Plugged, inputs: Inputs, outputs: int, seed: int) -> nn.Module:
    """Returns a new module, whose random draws follow from the seed alone; the generators are left as they were.

    seed: 0…LARGEST−1. Raises NetworkError where it cannot be trained, and ForeignError where the factory fails.
    """
    called = f"network {plugged.name}: its factory({inputs}, {outputs})"
    with blamed(f"{called} failed with", plugged.source, NetworkError), _seed_generators(seed):
        module = plugged.factory(inputs, outputs)
    if not isinstance(module, nn.Module):
        raise NetworkError(f"{called} must return a torch.nn.Module, got {type(module).__name__}")
    _check_parameters(plugged.name, module)
    return module


def buffers_of(module: nn.Module) -> dict[str, Tensor]:
    """Copies of all its buffers by name."""
    return {name: value.detach().clone() for name, value in module.named_buffers()}


def generators() -> tuple[Any, ...]:
    """Returns the states of the generators."""
    state: Any = np.random.get_state()
    values, at, *normal = state[1:]
    return torch.get_rng_state().numpy().tobytes(), values.tobytes(), at, *normal, random.getstate()


@contextmanager
def _seed_generators(seed: int) -> Iterator[None]:
    """Seeds the generators of torch, NumPy and Python within the context, and restores them.

    Not by torch.manual_seed, which would seed the GPUs' generators, too.
    """
    with GENERATORS:
        before = torch.get_rng_state(), np.random.get_state(), random.getstate()
        try:
            torch.default_generator.manual_seed(seed)
            np.random.seed(seed)
            random.seed(seed)
            with torch.inference_mode(False), torch.enable_grad():  # as users write it down, not as training calls it
                yield
        finally:
            torch.set_rng_state(before[0])
            np.random.set_state(before[1])
            random.setstate(before[2])


def _check_parameters(name: str, module: nn.Module) -> None:
    """Raises NetworkError for those that are no numbers of a row of their own."""
    places: dict[int, str] = {}
    for path, value in module.named_parameters(remove_duplicate=False):
        what = f"network {name}: parameter {path!r}"
        if nn.parameter.is_lazy(value):
            raise NetworkError(f"{what} has no shape yet; lazy layers are to be given their sizes")
        if value.dtype != torch.float32 or value.device.type != "cpu" or value.layout != torch.strided:
            kind = f"{str(value.dtype).removeprefix('torch.')} on {value.device}"
            raise NetworkError(f"{what} must be float32 on the CPU, from where it is moved; got {kind}")
        if not value.requires_grad:
            raise NetworkError(f"{what} does not require a gradient; register what is not trained as a buffer")
        if not value.numel():
            raise NetworkError(f"{what} must have values, got shape {list(value.shape)}")
        if (other := places.setdefault(value.data_ptr(), path)) != path:
            raise NetworkError(f"{what} shares its memory with {other!r}; every parameter needs its own")
    if not places:
        raise NetworkError(f"network {name} has no parameters to train")
