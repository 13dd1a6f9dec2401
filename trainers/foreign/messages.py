"""Messages between epsearch and the process of a plug-in trainer.

A JSON header and raw arrays, never a pickle. On the pipe: the lengths of header and body, the header, the bytes of all
arrays one after another. The other side is not trusted: lengths are looked at before anything is kept, types and shapes
before an array is made.
"""

import json
import math
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PREFIX = struct.Struct("<IQ")  # bytes of the header, of the body
MOST_HEADER = 2**22  # bytes; hashes of thousands of files fit
MOST_BODY = 2**26
MOST_AXES = 8
TYPES = ("uint8", "int64", "float32", "float64")
ARRAYS = "arrays"  # in the header: [type, shape] of each
AT_ONCE = 2**20  # bytes to read from a pipe


class Malformed(Exception):
    """Received bytes are no message, or not the expected one; the message says why."""


class Message(NamedTuple):
    """A message of either side."""

    header: dict[str, Any]
    """JSON-able; `kind` says what it is."""
    arrays: list[NDArray[Any]]
    """What it holds besides."""

    @property
    def kind(self) -> str:
        """The type of the message; "" where its header has none."""
        value = self.header.get("kind")
        return value if isinstance(value, str) else ""

    def whole(self, name: str) -> int:
        """Returns a whole number of the header. Raises Malformed."""
        value = self.header.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise Malformed(f"its {name} is no whole number")
        return value

    def text(self, name: str) -> str:
        """Returns a text of the header. Raises Malformed."""
        value = self.header.get(name)
        if not isinstance(value, str):
            raise Malformed(f"its {name} is no text")
        return value

    def array(self, kind: str) -> NDArray[Any]:
        """Returns the only array, of this type and one dimension. Raises Malformed."""
        if len(self.arrays) != 1 or self.arrays[0].dtype.name != kind or self.arrays[0].ndim != 1:
            raise Malformed(f"it does not hold one array [n] of {kind}")
        return self.arrays[0]


def pack(header: Mapping[str, Any], *arrays: NDArray[Any]) -> bytes:
    """Returns a message as it goes over a pipe; arrays of TYPES.

    >>> take_message(bytearray(pack({"kind": "labels"}, np.array([3, 1]))))
    Message(header={'kind': 'labels'}, arrays=[array([3, 1])])
    """
    native = [array.astype(array.dtype.newbyteorder("="), copy=False) for array in arrays]
    kinds = [[array.dtype.name, list(array.shape)] for array in native]
    described = json.dumps({**header, ARRAYS: kinds}).encode()
    body = b"".join(array.tobytes() for array in native)
    if len(described) > MOST_HEADER or len(body) > MOST_BODY:
        raise Malformed(f"a message of {len(described)} + {len(body)} bytes is too long")
    return PREFIX.pack(len(described), len(body)) + described + body


def take_message(received: bytearray) -> Message | None:
    """Removes the next message from the received bytes; None while it is incomplete. Raises Malformed."""
    if len(received) < PREFIX.size:
        return None
    header, body = PREFIX.unpack_from(received)
    if header > MOST_HEADER or body > MOST_BODY:
        raise Malformed(f"it announces {header} + {body} bytes")
    ends = PREFIX.size + header, PREFIX.size + header + body
    if len(received) < ends[1]:
        return None
    described, content = bytes(received[PREFIX.size : ends[0]]), bytes(received[ends[0] : ends[1]])
    del received[: ends[1]]
    return _open(described, content)


def _open(described: bytes, content: bytes) -> Message:
    try:
        header = json.loads(described)
        kinds = [(str(name), [int(size) for size in shape]) for name, shape in header.pop(ARRAYS)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise Malformed("its header is no description") from error
    arrays, at = [], 0
    for name, shape in kinds:
        if name not in TYPES or len(shape) > MOST_AXES or not all(0 <= size <= MOST_BODY for size in shape):
            raise Malformed(f"it has an array of {name} {shape}")
        size = math.prod(shape) * np.dtype(name).itemsize
        if size > len(content) - at:
            raise Malformed("it is shorter than its arrays")
        arrays.append(np.frombuffer(content, name, math.prod(shape), at).reshape(shape))
        at += size
    if at != len(content):
        raise Malformed("it is longer than its arrays")
    return Message(header, arrays)


def plain(text: str, most: int = 1000) -> str:
    r"""Returns a text from outside as a part of one line: control characters are escaped, long texts cut to their end.

    >>> plain("a\x1b[2J\nb"), plain("0123456789", 4)
    ('a\\x1b[2J\\nb', '…6789')
    """
    printable = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    return printable if len(printable) <= most else f"…{printable[-most:]}"
