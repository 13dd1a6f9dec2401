"""Sets torch's switches of float32 arithmetic for a numeric path.

Products in fewer bits would bear its name.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from trainers.numeric_path import NumericPath

EXACT = "ieee"


class PrecisionError(RuntimeError):
    """torch does not compute as the numeric path asks for; the message is one line."""


def set_precision(path: NumericPath) -> None:
    """Sets the switches of this process, and reads them back. Raises PrecisionError where one does not hold.

    They belong to the process and any module may turn them, so engines call this before every stretch of training or
    testing. They are not set back: other threads may be training by them. First the older switches, which torch
    compares with the newer ones; they do not reach convolutions that inherit `torch.backends.fp32_precision`.
    """
    torch.set_float32_matmul_precision("high" if path.precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = path.precision == "tf32"
    # Otherwise cuDNN may add gradients up in another order each time.
    torch.backends.cudnn.deterministic = True
    for name, switch, mode in _switches(path):
        if switch.fp32_precision != mode:
            switch.fp32_precision = mode
        if switch.fp32_precision != mode:
            raise PrecisionError(
                f"numeric path {path} asks for {mode!r} in {name}, and torch keeps {switch.fp32_precision!r}; remove "
                "what sets torch.backends.fp32_precision"
            )


@contextmanager
def one_thread() -> Iterator[None]:
    """Sets torch to one thread within the context, as the rounding of a product may depend on the number.

    The number belongs to the calling thread, and others that train at the same time keep theirs.
    """
    before = torch.get_num_threads()
    if before != 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if before != 1:
            torch.set_num_threads(before)


def _switches(path: NumericPath) -> Iterator[tuple[str, Any, str]]:
    """Yields (name, switch, its wanted value) of each switch of this torch version; those before 2.9 have none."""
    on_gpu = path.precision if path.precision == "tf32" else EXACT
    for library, part, mode in (
        ("cuda", "matmul", on_gpu),
        ("cudnn", "conv", on_gpu),
        ("cudnn", "rnn", on_gpu),
        ("mkldnn", "matmul", EXACT),
        ("mkldnn", "conv", EXACT),
    ):
        switch = getattr(getattr(torch.backends, library), part, None)
        if hasattr(switch, "fp32_precision"):
            yield f"torch.backends.{library}.{part}", switch, mode
