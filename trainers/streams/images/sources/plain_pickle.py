"""Reads pickles of plain values and arrays, and runs nothing.

NumPy's own classes would do for honest files, but a made-up dtype lets them read memory that is not theirs. So the
stand-ins below are what a pickle may call, and arrays are made here, from their bytes.
"""

import io
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMBERS = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8")


def load(content: bytes) -> dict[Any, Any]:
    """Returns a dict of lists, text, numbers and arrays of whole numbers; empty where it is no dict.

    Raises whatever a damaged or foreign pickle leads to.
    """
    read = _Plain(io.BytesIO(content), encoding="latin1").load()  # CIFAR-100 was written by Python 2
    members = read.items() if isinstance(read, dict) else ()
    return {name: value.array if isinstance(value, _Array) else value for name, value in members}


class _Dtype:
    """Stands in for numpy.dtype."""

    def __init__(self, spec: str, *_: object) -> None:
        if spec.lstrip("|<>") not in NUMBERS:
            raise pickle.UnpicklingError(f"it wants an array of {str(spec)[:20]!r}")
        self.numpy = np.dtype(spec)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] not in ("<", ">", "|", "="):
            raise pickle.UnpicklingError(f"it wants the byte order {str(state[1])[:20]!r}")
        self.numpy = self.numpy.newbyteorder(state[1])


class _Array:
    """Stands in for numpy.ndarray, empty until its state is set."""

    def __init__(self, *_: object) -> None:
        self.array: NDArray[Any] = np.empty(0, np.uint8)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, raw = state
        content = raw.encode("latin1") if isinstance(raw, str) else bytes(raw)
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.numpy.itemsize != len(content):
            raise pickle.UnpicklingError(f"{len(content):,} bytes are no array of the shape that it says")
        self.array = np.frombuffer(content, dtype.numpy).reshape(shape, order="F" if fortran else "C")


def _array(raw: Any, dtype: _Dtype, shape: tuple[int, ...], order: str) -> _Array:
    """Stands in for numpy.core.numeric._frombuffer, which pickles of protocol 5 call."""
    made = _Array()
    made.__setstate__((None, shape, dtype, order == "F", raw))
    return made


def _scalar(dtype: _Dtype, raw: Any) -> int:
    """Stands in for numpy.core.multiarray.scalar."""
    return int(_array(raw, dtype, (1,), "C").array[0])


def _encoded(text: str, encoding: str) -> bytes:
    """Stands in for codecs.encode, which protocols 0 to 2 call for bytes."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"it wants the encoding {str(encoding)[:20]!r}")
    return text.encode("latin1")


STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): _Array,  # until NumPy 2, which has it in numpy._core
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy._core.multiarray", "scalar"): _scalar,
    ("numpy.core.numeric", "_frombuffer"): _array,
    ("numpy._core.numeric", "_frombuffer"): _array,
    ("_codecs", "encode"): _encoded,
}


class _Plain(pickle._Unpickler):
    """Python's unpickler: that in C reserves as much memory as a damaged number says."""

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        """Returns the stand-in for what the pickle names; raises UnpicklingError where there is none."""
        if (module, name) not in STAND_INS:
            raise pickle.UnpicklingError(f"it wants {module}.{name}")
        return STAND_INS[module, name]
