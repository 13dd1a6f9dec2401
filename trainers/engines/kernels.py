"""The parts of a training step that are not matrix products, compiled by Numba; and the products with sparse inputs.

Four in five pixels of an MNIST image are zero. The products of the first layer, three quarters of a step's arithmetic,
go over the other pixels alone: the sums are the same but for the zeros that are left out. Examples are held as lists
of non-zero pixels (`Sparse`); a batch's examples are turned into lists by pixel once for all members (`sort_by_pixel`).

Everything is float32, sums over more than a row of a matrix are float64. Each kernel works for one member on one thread
and in a fixed order, so that a result does not depend on who else is trained.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

PIXEL_BLOCKS = 4  # a quarter of the first layer's weights stays in the second-level cache while all rows pass by
ZERO = np.float32(0)

# Reassociated sums and fused multiply-adds let the compiler use vectors; NaN and infinity keep their meaning.
compiled = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")


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


def sparse(rows: NDArray[np.uint8]) -> Sparse:
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
def gather(rows, inputs, scale, out):  # type: ignore[no-untyped-def]
    """Writes the rows of bytes [., P] as numbers [B, P]."""
    for i in range(rows.shape[0]):
        for p in range(inputs.shape[1]):
            out[i, p] = scale[inputs[rows[i], p]]


@compiled
def sparse_forward(rows, starts, pixel, value, scale, weight, bias, out):  # type: ignore[no-untyped-def]
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
def output_delta(logits, labels, classes, current, delta):  # type: ignore[no-untyped-def]
    """Gradient of the mean cross-entropy over the first `current` rows, and of that over the rest, by the logits.

    Writes delta [B, padded classes]; returns the sum of both losses.
    """
    loss = 0.0
    rows = logits.shape[0]
    for i in range(rows):
        weight = np.float32(1) / np.float32(current if i < current else rows - current)
        highest = logits[i, 0]
        for c in range(1, classes):
            highest = max(highest, logits[i, c])
        total = ZERO
        for c in range(classes):
            delta[i, c] = np.exp(logits[i, c] - highest)
            total += delta[i, c]
        for c in range(classes):
            delta[i, c] *= weight / total
        delta[i, labels[i]] -= weight
        loss += weight * (np.log(total) + highest - logits[i, labels[i]])
    return loss


@compiled
def mask(delta, hidden):  # type: ignore[no-untyped-def]
    """Zeroes delta where the ReLU was shut."""
    for i in range(delta.shape[0]):
        for j in range(delta.shape[1]):
            delta[i, j] = ZERO if hidden[i, j] <= ZERO else delta[i, j]


@compiled
def gram(rows):  # type: ignore[no-untyped-def]
    """All inner products of a few rows, [B, B]."""
    out = np.empty((rows.shape[0], rows.shape[0]), dtype=np.float32)
    for i in range(rows.shape[0]):
        for k in range(i + 1):
            total = ZERO
            for j in range(rows.shape[1]):
                total += rows[i, j] * rows[k, j]
            out[i, k] = out[k, i] = total
    return out


@compiled
def sparse_gram(start, example, value, count):  # type: ignore[no-untyped-def]
    """The same for examples by pixel."""
    out = np.zeros((count, count), dtype=np.float32)
    for p in range(start.shape[0] - 1):
        for a in range(start[p], start[p + 1]):
            for b in range(start[p], start[p + 1]):
                out[example[a], example[b]] += value[a] * value[b]
    return out


@compiled
def layer_products(inputs, delta, current, g_ref, bias):  # type: ignore[no-untyped-def]
    """(‖g‖², g·g_ref, ‖g_ref‖²) over one layer, from delta [B, N] of its outputs.

    inputs [current, K] are those of g, which is not made: g = inputsᵀ·delta[:current]. g_ref [K, N] is at hand for the
    weights, and is written to `bias` for the biases.
    """
    gr, rr = _bias_products(delta, current, bias)
    for k in range(g_ref.shape[0]):
        row = g_ref[k]
        square = ZERO
        for j in range(row.shape[0]):
            square += row[j] * row[j]
        rr += float(square)
        for i in range(current):
            if inputs[i, k] != ZERO:
                gr += inputs[i, k] * _dot(delta[i], row)
    return _squared_norm(gram(inputs), delta, current), gr, rr


@compiled
def sparse_layer_products(now, now_gram, ref, delta, current, g_ref, bias):  # type: ignore[no-untyped-def]
    """The same for the first layer, with the examples of g and g_ref by pixel; writes g_ref of the weights, too.

    A row of g_ref is used while it is in the first-level cache.
    """
    gr, rr = _bias_products(delta, current, bias)
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
            gr += value[at] * _dot(delta[example[at]], row)
    return _squared_norm(now_gram, delta, current), gr, rr


@compiled
def _dot(one, other):  # type: ignore[no-untyped-def]
    product = ZERO
    for j in range(one.shape[0]):
        product += one[j] * other[j]
    return product


@compiled
def _squared_norm(inputs_gram, delta, current):  # type: ignore[no-untyped-def]
    """‖g‖² of one layer, weights and biases, from the rows that make up g: Σ (xᵢ·xₖ + 1) (δᵢ·δₖ)."""
    total = 0.0
    for i in range(current):
        for k in range(i + 1):
            total += (inputs_gram[i, k] + np.float32(1)) * _dot(delta[i], delta[k]) * (1 if i == k else 2)
    return total


@compiled
def _bias_products(delta, current, bias):  # type: ignore[no-untyped-def]
    """Writes g_ref's biases, the sum of delta's rows behind `current`; returns (g·g_ref, ‖g_ref‖²) over the biases."""
    bias[:] = ZERO
    for i in range(current, delta.shape[0]):
        for j in range(delta.shape[1]):
            bias[j] += delta[i, j]
    gr, rr = 0.0, 0.0
    for j in range(delta.shape[1]):
        now = ZERO
        for i in range(current):
            now += delta[i, j]
        gr += now * bias[j]
        rr += bias[j] * bias[j]
    return gr, rr


@compiled
def update_layer(weight, bias, g_ref, g_ref_bias, b, inputs, delta, a):  # type: ignore[no-untyped-def]
    """Adds b·g_ref + a·g to a layer's weight and bias in one pass; g_ref is not read where b is zero.

    inputs [current, K] and delta [current, N] are those of g.
    """
    _update_bias(bias, g_ref_bias, b, delta, a)
    for k in range(weight.shape[0]):
        row = weight[k]
        if b != ZERO:
            for j in range(row.shape[0]):
                row[j] += b * g_ref[k, j]
        for i in range(inputs.shape[0]):
            v = a * inputs[i, k]
            if v != ZERO:
                for j in range(row.shape[0]):
                    row[j] += v * delta[i, j]


@compiled
def sparse_update_layer(weight, bias, g_ref, g_ref_bias, b, now, delta, a):  # type: ignore[no-untyped-def]
    """The same for the first layer, with the examples of g by pixel."""
    _update_bias(bias, g_ref_bias, b, delta, a)
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


@compiled
def _update_bias(bias, g_ref, b, delta, a):  # type: ignore[no-untyped-def]
    for j in range(bias.shape[0]):
        total = ZERO
        for i in range(delta.shape[0]):
            total += delta[i, j]
        bias[j] += a * total
        if b != ZERO:
            bias[j] += b * g_ref[j]
