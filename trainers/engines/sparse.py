"""The first layer's products with inputs most of which are zero, compiled by Numba.

Four in five pixels of an MNIST image are zero. The first layer, three quarters of a step's arithmetic, goes over the
others alone: its sums are the same but for the zeros that are left out. Examples are held as lists of non-zero pixels
(`Sparse`); a batch's examples are turned into lists by pixel (`ByPixel`) once for all members.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainers.engines.kernels import ZERO, Floats, bias_products, compiled, dot, squared_norm, update_bias

Ints = NDArray[np.int64]

PIXEL_BLOCKS = 4  # a quarter of the first layer's weights stays in the second-level cache while all rows pass by


class Sparse(NamedTuple):
    """Rows of bytes without their zeros: row r, pixels of block k are at starts[r, k] … starts[r, k + 1]."""

    starts: Ints  # [rows, PIXEL_BLOCKS + 1]
    pixel: NDArray[np.uint16]
    value: NDArray[np.uint8]


class ByPixel(NamedTuple):
    """A batch by pixel: those of the examples where pixel p is not zero are at start[p] … start[p + 1]."""

    start: NDArray[np.int32]
    example: NDArray[np.int32]
    value: Floats

    @classmethod
    def empty(cls, pixels: int, room: int) -> "ByPixel":
        """Room for a batch with that many non-zero pixels."""
        start, example = np.zeros(pixels + 1, dtype=np.int32), np.empty(room, dtype=np.int32)
        return cls(start, example, np.empty(room, dtype=np.float32))


def without_zeros(rows: NDArray[np.uint8]) -> Sparse:
    """From bytes [rows, P]."""
    count = int(np.count_nonzero(rows))
    starts = np.empty((len(rows), PIXEL_BLOCKS + 1), dtype=np.int64)
    found = Sparse(starts, np.empty(count, dtype=np.uint16), np.empty(count, dtype=np.uint8))
    _fill_sparse(rows, *found)
    return found


@compiled
def _fill_sparse(rows, starts, pixel, value):  # type: ignore[no-untyped-def]
    pixels, at = rows.shape[1], 0
    blocks = starts.shape[1] - 1
    for r in range(rows.shape[0]):
        for block in range(blocks):
            starts[r, block] = at
            for p in range(pixels * block // blocks, pixels * (block + 1) // blocks):
                if rows[r, p]:
                    pixel[at], value[at] = p, rows[r, p]
                    at += 1
        starts[r, blocks] = at


@compiled
def sort_by_pixel(rows, starts, pixel, value, scale, start, example, scaled):  # type: ignore[no-untyped-def]
    """Writes the examples `rows` of a `Sparse` as `ByPixel` into the last three; scale[byte] is its value."""
    last = starts.shape[1] - 1
    start[:] = 0
    for row in rows:
        for at in range(starts[row, 0], starts[row, last]):
            start[pixel[at] + 1] += 1
    for p in range(1, start.shape[0]):
        start[p] += start[p - 1]
    for i in range(rows.shape[0]):
        for at in range(starts[rows[i], 0], starts[rows[i], last]):
            p = pixel[at]
            example[start[p]], scaled[start[p]] = i, scale[value[at]]
            start[p] += 1
    for p in range(start.shape[0] - 1, 0, -1):
        start[p] = start[p - 1]
    start[0] = 0


@compiled
def forward(rows, starts, pixel, value, scale, weight, bias, out):  # type: ignore[no-untyped-def]
    """out [B, N] = ReLU(x·weight + bias) for the examples `rows`; goes over the pixels block by block."""
    width = out.shape[1]
    blocks = starts.shape[1] - 1
    for block in range(blocks):
        for i in range(rows.shape[0]):
            o = out[i]
            if block == 0:
                for j in range(width):
                    o[j] = bias[j]
            at, end = starts[rows[i], block], starts[rows[i], block + 1]
            while at + 4 <= end:
                v0, v1 = scale[value[at]], scale[value[at + 1]]
                v2, v3 = scale[value[at + 2]], scale[value[at + 3]]
                w0, w1 = weight[pixel[at]], weight[pixel[at + 1]]
                w2, w3 = weight[pixel[at + 2]], weight[pixel[at + 3]]
                for j in range(width):
                    o[j] += v0 * w0[j] + v1 * w1[j] + v2 * w2[j] + v3 * w3[j]
                at += 4
            while at < end:
                v0, w0 = scale[value[at]], weight[pixel[at]]
                for j in range(width):
                    o[j] += v0 * w0[j]
                at += 1
            if block == blocks - 1:
                for j in range(width):
                    o[j] = ZERO if o[j] < ZERO else o[j]


@compiled
def gram(start, example, value, count):  # type: ignore[no-untyped-def]
    """All inner products of a few examples by pixel, [count, count]."""
    out = np.zeros((count, count), dtype=np.float32)
    for p in range(start.shape[0] - 1):
        for a in range(start[p], start[p + 1]):
            for b in range(start[p], start[p + 1]):
                out[example[a], example[b]] += value[a] * value[b]
    return out


@compiled
def layer_products(now, now_gram, ref, delta, current, g_ref, bias):  # type: ignore[no-untyped-def]
    """As `kernels.layer_products`, with the examples of g and g_ref by pixel; writes g_ref of the weights, too.

    A row of g_ref is used while it is in the first-level cache.
    """
    gr, rr = bias_products(delta, current, bias)
    start, example, value = now
    ref_start, ref_example, ref_value = ref
    ref_delta, width = delta[current:], g_ref.shape[1]
    for p in range(g_ref.shape[0]):
        row = g_ref[p]
        for j in range(width):
            row[j] = ZERO
        at, end = ref_start[p], ref_start[p + 1]
        while at + 4 <= end:
            v0, v1, v2, v3 = ref_value[at], ref_value[at + 1], ref_value[at + 2], ref_value[at + 3]
            d0, d1 = ref_delta[ref_example[at]], ref_delta[ref_example[at + 1]]
            d2, d3 = ref_delta[ref_example[at + 2]], ref_delta[ref_example[at + 3]]
            for j in range(width):
                row[j] += v0 * d0[j] + v1 * d1[j] + v2 * d2[j] + v3 * d3[j]
            at += 4
        while at < end:
            v0, d0 = ref_value[at], ref_delta[ref_example[at]]
            for j in range(width):
                row[j] += v0 * d0[j]
            at += 1
        square = ZERO
        for j in range(width):
            square += row[j] * row[j]
        rr += float(square)
        for at in range(start[p], start[p + 1]):
            gr += value[at] * dot(delta[example[at]], row)
    return squared_norm(now_gram, delta, current), gr, rr


@compiled
def update_layer(weight, bias, g_ref, g_ref_bias, b, now, delta, a):  # type: ignore[no-untyped-def]
    """As `kernels.update_layer`, with the examples of g by pixel."""
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
