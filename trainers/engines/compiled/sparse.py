"""Products of the first layer with sparse inputs, compiled by Numba.

Four in five pixels of an MNIST image are zero. The first layer, three quarters of a step's arithmetic, goes over the
others alone: its sums are the same but for the zeros that are left out. Examples are held as lists of non-zero pixels
(`Sparse`); a batch's examples are turned into lists by pixel (`ByPixel`) once for all members.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainers.engines.compiled.kernels import ZERO, Floats, bias_products, compiled, dot, squared_norm, update_bias
from trainers.numeric_path import LISTABLE
from trainers.schedule import Indices

PIXEL_BLOCKS = 4  # a quarter of the first layer's weights stays in the second-level cache while all rows pass by


class Sparse(NamedTuple):
    """Rows without their zeros: those of row r in block k of the pixels are at starts[r, k] … starts[r, k + 1]."""

    starts: Indices  # [rows, PIXEL_BLOCKS + 1]
    pixel: NDArray[np.uint16]
    value: Floats


class ByPixel(NamedTuple):
    """A batch by pixel: those of the examples where pixel p is not zero are at start[p] … start[p + 1]."""

    start: NDArray[np.int32]
    example: NDArray[np.int32]
    value: Floats

    @classmethod
    def empty(cls, pixels: int, most: int) -> "ByPixel":
        """Returns buffers for a batch with at most so many non-zero pixels."""
        start = np.zeros(pixels + 1, dtype=np.int32)
        return cls(start, np.empty(most, dtype=np.int32), np.empty(most, dtype=np.float32))


def without_zeros(rows: NDArray[np.uint8], scale: Floats) -> Sparse:
    """Returns rows of bytes [rows, P] without their zeros; scale[byte] is the network's input.

    A pixel's number takes two bytes. Raises ValueError where there are more than these can tell apart.
    """
    if rows.shape[1] > LISTABLE:
        raise ValueError(f"lists of pixels are for images of at most {LISTABLE:,} of them, got {rows.shape[1]:,}")
    count = int(np.count_nonzero(rows))
    starts = np.empty((len(rows), PIXEL_BLOCKS + 1), dtype=np.int64)
    lists = Sparse(starts, np.empty(count, dtype=np.uint16), np.empty(count, dtype=np.float32))
    _fill(rows, scale, *lists)
    return lists


@compiled
def _fill(rows, scale, starts, pixel, value):  # type: ignore[no-untyped-def]
    pixels, at = rows.shape[1], 0
    blocks = starts.shape[1] - 1
    for r in range(rows.shape[0]):
        for block in range(blocks):
            starts[r, block] = at
            for p in range(pixels * block // blocks, pixels * (block + 1) // blocks):
                if rows[r, p]:
                    pixel[at], value[at] = p, scale[rows[r, p]]
                    at += 1
        starts[r, blocks] = at


@compiled
def sort_by_pixel(rows, examples, start, example, value):  # type: ignore[no-untyped-def]
    """Writes the examples `rows` of a `Sparse` as `ByPixel` into the last three."""
    starts, pixel, numbers = examples
    last = starts.shape[1] - 1
    # A counting sort. First, how many examples each pixel is not zero in, one place further on …
    start[:] = 0
    for row in rows:
        for at in range(starts[row, 0], starts[row, last]):
            start[pixel[at] + 1] += 1
    # … then where each pixel begins …
    for p in range(1, start.shape[0]):
        start[p] += start[p - 1]
    for i in range(rows.shape[0]):
        for at in range(starts[rows[i], 0], starts[rows[i], last]):
            p = pixel[at]
            # … then each example into the next free place of its pixel, in the order of the batch …
            example[start[p]], value[start[p]] = i, numbers[at]
            start[p] += 1
    # … which has moved every beginning to its end, the beginning of the next one: back by one place.
    for p in range(start.shape[0] - 1, 0, -1):
        start[p] = start[p - 1]
    start[0] = 0


@compiled
def _add_rows(into, source, index, factor, at, end):  # type: ignore[no-untyped-def]
    """Adds Σ factor[i] · source[index[i]], i in at … end−1, to `into`; four rows at a time to spare reads of it."""
    width = into.shape[0]
    while at + 4 <= end:
        f0, f1, f2, f3 = factor[at], factor[at + 1], factor[at + 2], factor[at + 3]
        s0, s1, s2, s3 = source[index[at]], source[index[at + 1]], source[index[at + 2]], source[index[at + 3]]
        for j in range(width):
            into[j] += f0 * s0[j] + f1 * s1[j] + f2 * s2[j] + f3 * s3[j]
        at += 4
    while at < end:
        f0, s0 = factor[at], source[index[at]]
        for j in range(width):
            into[j] += f0 * s0[j]
        at += 1


@compiled
def forward(rows, examples, weight, bias, out):  # type: ignore[no-untyped-def]
    """Writes ReLU(x·weight + bias) for the examples `rows` of a `Sparse` into out [B, N].

    Goes over the pixels block by block.
    """
    starts, pixel, value = examples
    blocks = starts.shape[1] - 1
    for block in range(blocks):
        for i in range(rows.shape[0]):
            o = out[i]
            if block == 0:
                o[:] = bias
            _add_rows(o, weight, pixel, value, starts[rows[i], block], starts[rows[i], block + 1])
            if block == blocks - 1:
                for j in range(o.shape[0]):
                    # NaN is not below zero and passes on, so that a diverged learner has a loss of NaN.
                    o[j] = ZERO if o[j] < ZERO else o[j]


@compiled
def gram(start, example, value, count):  # type: ignore[no-untyped-def]
    """Returns all inner products of a few examples by pixel, [count, count]."""
    out = np.zeros((count, count), dtype=np.float32)
    for p in range(start.shape[0] - 1):
        for a in range(start[p], start[p + 1]):
            for b in range(start[p], start[p + 1]):
                out[example[a], example[b]] += value[a] * value[b]
    return out


@compiled
def layer_products(now, now_gram, ref, delta, current, g_ref, bias):  # type: ignore[no-untyped-def]
    """Returns the sums of `kernels.layer_products`, with the examples of g and g_ref by pixel.

    Writes g_ref of the weights, too. A row of g_ref is used while it is in the first-level cache.
    """
    gr, rr = bias_products(delta, current, bias)
    start, example, value = now
    ref_start, ref_example, ref_value = ref
    ref_delta = delta[current:]
    for p in range(g_ref.shape[0]):
        row = g_ref[p]
        row[:] = ZERO
        _add_rows(row, ref_delta, ref_example, ref_value, ref_start[p], ref_start[p + 1])
        rr += float(dot(row, row))
        for at in range(start[p], start[p + 1]):
            gr += value[at] * dot(delta[example[at]], row)
    return squared_norm(now_gram, delta, current), gr, rr


@compiled
def update_layer(layer, reference, b, now, delta, a):  # type: ignore[no-untyped-def]
    """Updates a layer as `kernels.update_layer`, with the examples of g by pixel."""
    weight, bias = layer
    g_ref, g_ref_bias = reference
    update_bias(bias, g_ref_bias, b, delta, a)
    start, example, value = now
    for p in range(weight.shape[0]):
        row = weight[p]
        if b != ZERO:
            for j in range(row.shape[0]):
                row[j] += b * g_ref[p, j]
        for at in range(start[p], start[p + 1]):
            v, d = a * value[at], delta[example[at]]
            for j in range(row.shape[0]):
                row[j] += v * d[j]
