"""Passes of a member without the zeros, compiled by Numba.

Left out are zero pixels, units that a ReLU has shut, and gradients by those. Two in three hidden units are shut. What a
layer sees of a batch is a list of its non-zero inputs for each example: of pixels a `Sparse`; of units, an `Output` of
the layer below. Sums stay in registers (`vectors`). Members come one at a time, and every row of a product is made by
itself, so a result depends on nothing else.

layers, hidden, deltas and outputs are tuples with one entry a layer: (weight [K, N], bias [N]), its outputs [B, N], the
gradient by them [B, N], and an `Output` of lists.py; g_ref is of the kind of layers. pixels: the examples of which a
gradient is asked for, as a `ByPixel`.
"""

import numpy as np

from trainers.engines.compiled.kernels import ZERO, close_outputs, compiled, dot, in_order, output_delta
from trainers.engines.compiled.sparse import sort_by_pixel
from trainers.engines.compiled.vectors import (
    COMPRESSES,
    LANES,
    REGISTERS,
    TOGETHER,
    add_16,
    add_32,
    add_64,
    add_128,
    add_256,
    dots,
    lowest,
    relu_bits,
    relu_lanes,
)

CACHED = 8192  # floats of a matrix that stay in the first-level cache while all rows of a batch pass by
WORD = 64  # bits


@in_order
def _add_rows(into, i, source, index, factor, at, end):  # type: ignore[no-untyped-def]
    """Adds Σ factor[t] · source[index[t]], t in at … end−1, to into[i]; the width is a multiple of 16."""
    width, column = into.shape[1], 0
    if REGISTERS >= 256:
        while width - column >= 256:
            add_256(into, i, column, source, index, factor, at, end)
            column += 256
        if width - column >= 128:
            add_128(into, i, column, source, index, factor, at, end)
            column += 128
    while width - column >= 64:
        add_64(into, i, column, source, index, factor, at, end)
        column += 64
    if width - column >= 32:
        add_32(into, i, column, source, index, factor, at, end)
        column += 32
    if width - column >= 16:
        add_16(into, i, column, source, index, factor, at, end)


@in_order
def activate_by_lanes(hidden, output):  # type: ignore[no-untyped-def]
    """Applies ReLU in place, and lists the units that pass.

    NaN passes, too, so that a diverged learner has a loss of NaN.
    """
    starts, unit, value, _ = output
    for i in range(hidden.shape[0]):
        at = starts[i, 0]
        for column in range(0, hidden.shape[1], LANES):
            at += relu_lanes(hidden, i, column, unit, value, at)
        starts[i, 1] = at


@in_order
def activate_by_bits(hidden, output):  # type: ignore[no-untyped-def]
    """Does as `activate_by_lanes` where the processor cannot compress vectors."""
    starts, unit, value, _ = output
    for i in range(hidden.shape[0]):
        at = starts[i, 0]
        for begin in range(0, hidden.shape[1], WORD):
            bits = 0
            for column in range(begin, min(begin + WORD, hidden.shape[1]), LANES):
                bits |= relu_bits(hidden, i, column) << (column - begin)
            while bits:
                j = begin + lowest(bits)
                unit[at], value[at] = j, hidden[i, j]
                at += 1
                bits &= bits - 1
        starts[i, 1] = at


_activate = activate_by_lanes if COMPRESSES else activate_by_bits


@in_order
def forward(rows, examples, layers, hidden, outputs):  # type: ignore[no-untyped-def]
    """Fills hidden and the active units of all layers but the last, from the examples `rows` of a `Sparse`."""
    starts, index, factor = examples
    last = len(layers) - 1
    for number in range(last + 1):
        weight, bias = layers[number]
        out = hidden[number]
        if number:
            starts, index, factor, _ = outputs[number - 1]
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = bias[j]
            row = i if number else rows[i]
            _add_rows(out, i, weight, index, factor, starts[row, 0], starts[row, starts.shape[1] - 1])
        if number < last:
            _activate(out, outputs[number])


@in_order
def both_ways(rows, examples, layers, hidden, deltas, outputs, loss):  # type: ignore[no-untyped-def]
    """Runs `forward`, `kernels.output_delta` and `backward`; returns both losses.

    loss: (labels, classes, current, subtracted) of `output_delta`, then `competing` of `close_outputs`.
    """
    forward(rows, examples, layers, hidden, outputs)
    labels, classes, current, subtracted, competing = loss
    last = len(layers) - 1
    close_outputs(hidden[last], labels, competing)
    losses = output_delta(hidden[last], labels, classes, current, deltas[last], subtracted)
    backward(layers, deltas, outputs)
    return losses


@in_order
def backward(layers, deltas, outputs):  # type: ignore[no-untyped-def]
    """Fills deltas below the last, and the gradients by active units; they are zero for the others."""
    for number in range(len(layers) - 1, 0, -1):
        _pass_back(layers[number][0], deltas[number], outputs[number - 1], deltas[number - 1])


@in_order
def _pass_back(weight, above, output, into):  # type: ignore[no-untyped-def]
    """Fills a layer's delta from the one above, a few rows of the weights at a time.

    These stay in the first-level cache.
    """
    starts, unit, _, passed_back = output
    at = np.empty(above.shape[0], dtype=np.int64)
    for i in range(above.shape[0]):
        into[i, :] = ZERO
        at[i], end = starts[i, 0], starts[i, 1]
        if end > at[i]:
            # The last of them is made several times, so that there are always TOGETHER.
            unit[end : end + TOGETHER] = unit[end - 1]
    block = max(CACHED // weight.shape[1], TOGETHER)
    for end in range(block, weight.shape[0] + block, block):
        for i in range(above.shape[0]):
            while at[i] < starts[i, 1] and unit[at[i]] < end:
                dots(into, passed_back, i, above, weight, unit, at[i])
                at[i] += TOGETHER


@in_order
def gram(lists, rows, begin, count, turned):  # type: ignore[no-untyped-def]
    """Returns the inner products of rows of lists, from row `begin` on, with the first `count` of them.

    lists: (starts, index, value). The result is [rows, at least count]. turned [K, at least count] is zero before and
    after.
    """
    starts, index, value = lists
    last = starts.shape[1] - 1
    for i in range(count):
        for at in range(starts[rows[i], 0], starts[rows[i], last]):
            turned[index[at], i] = value[at]
    out = np.zeros((rows.shape[0], turned.shape[1]), dtype=np.float32)
    for i in range(begin, rows.shape[0]):
        _add_rows(out, i, turned, index, value, starts[rows[i], 0], starts[rows[i], last])
    for i in range(count):
        for at in range(starts[rows[i], 0], starts[rows[i], last]):
            turned[index[at], i] = ZERO
    return out


@in_order
def inner(of_images, outputs, widths, rows, sizes):  # type: ignore[no-untyped-def]
    """Returns (‖g‖², g·g_ref, ‖g_ref‖²), as far as some rows' inner products with the first ones give them.

    of_images: the inner products of the images with the first ones; widths: of the outputs; rows: (begin, end); sizes:
    (number of the first ones, number of g's rows).
    """
    gg, gr, rr = 0.0, 0.0, 0.0
    count, current = sizes
    begin, everything = rows[0], np.arange(rows[1])
    below = of_images
    for number in range(len(outputs)):
        starts, unit, value, passed_back = outputs[number]
        turned = np.zeros((widths[number], of_images.shape[1]), dtype=np.float32)
        above = gram((starts, unit, passed_back), everything, begin, count, turned)
        a, b, c = _sums(below, above, begin, count, current)
        gg, gr, rr = gg + a, gr + b, rr + c
        if number < len(outputs) - 1:
            below = gram((starts, unit, value), everything, begin, count, turned)
    return gg, gr, rr


@compiled
def _sums(below, above, begin, count, current):  # type: ignore[no-untyped-def]
    """Returns Σ (xᵢ·xⱼ + 1) (δᵢ·δⱼ) over a layer: of g's rows, between, and of g_ref's.

    The 1 stands for the bias.
    """
    gg, gr, rr = 0.0, 0.0, 0.0
    for i in range(begin, above.shape[0]):
        now = 0.0
        for j in range(min(current, count)):
            now += float((below[i, j] + np.float32(1)) * above[i, j])
        if i < current:
            gg += now
            continue
        gr += now
        for j in range(current, count):
            rr += float((below[i, j] + np.float32(1)) * above[i, j])
    return gg, gr, rr


@in_order
def _by_unit(output, begin, end, units):  # type: ignore[no-untyped-def]
    """Returns the rows begin … end−1 of an output as a `ByPixel`, whose rows begin at 0."""
    starts, unit, value, _ = output
    start, most = np.zeros(units + 1, dtype=np.int32), starts[end - 1, 1] - starts[begin, 0]
    row, values = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.float32)
    sort_by_pixel(np.arange(begin, end), (starts, unit, value), start, row, values)
    return start, row, values


@in_order
def reference(pixels, deltas, outputs, current, g_ref):  # type: ignore[no-untyped-def]
    """Writes the gradient of the rows behind `current` into the layers of g_ref; returns ‖g_ref‖²."""
    total = 0.0
    start, row, factor = pixels
    for number in range(len(g_ref)):
        weight, bias = g_ref[number]
        delta = deltas[number]
        if number:
            start, row, factor = _by_unit(outputs[number - 1], current, delta.shape[0], weight.shape[0])
        source = delta[current:]
        for k in range(weight.shape[0]):
            weight[k, :] = ZERO
            _add_rows(weight, k, source, row, factor, start[k], start[k + 1])
            total += float(dot(weight[k], weight[k]))
        bias[:] = ZERO
        _add_all(source, bias)
        total += float(dot(bias, bias))
    return total


@in_order
def with_reference(pixels, deltas, outputs, current, g_ref):  # type: ignore[no-untyped-def]
    """Returns g·g_ref, with g_ref at hand; g is that of the first `current` rows, whose pixels are given."""
    total = 0.0
    start, row, factor = pixels
    for number in range(len(g_ref)):
        weight, bias = g_ref[number]
        delta = deltas[number]
        if number:
            start, row, factor = _by_unit(outputs[number - 1], 0, current, weight.shape[0])
        for k in range(weight.shape[0]):
            for at in range(start[k], start[k + 1]):
                total += float(factor[at] * dot(delta[row[at]], weight[k]))
        for i in range(current):
            total += float(dot(delta[i], bias))
    return total


@in_order
def update(pixels, deltas, outputs, factors, layers, made):  # type: ignore[no-untyped-def]
    """Adds Σ factorᵢ·∇ᵢ over the first rows, one factor each, and b·g_ref to the layers; made: (b, g_ref).

    g_ref is not read where b is zero.
    """
    b, g_ref = made
    start, row, factor = pixels
    rows = factors.shape[0]
    for number in range(len(layers)):
        weight, bias = layers[number]
        delta = deltas[number]
        if b != ZERO:
            _add_times(b, g_ref[number], layers[number])
        if number:
            start, row, factor = _by_unit(outputs[number - 1], 0, rows, weight.shape[0])
        scaled = np.empty((rows, delta.shape[1]), dtype=np.float32)
        for i in range(rows):
            for j in range(delta.shape[1]):
                scaled[i, j] = factors[i] * delta[i, j]
        for k in range(weight.shape[0]):
            if start[k + 1] > start[k]:
                _add_rows(weight, k, scaled, row, factor, start[k], start[k + 1])
        _add_all(scaled, bias)


@in_order
def _add_times(b, g_ref, layer):  # type: ignore[no-untyped-def]
    for k in range(layer[0].shape[0]):
        for j in range(layer[0].shape[1]):
            layer[0][k, j] += b * g_ref[0][k, j]
    for j in range(layer[1].shape[0]):
        layer[1][j] += b * g_ref[1][j]


@in_order
def _add_all(rows, into):  # type: ignore[no-untyped-def]
    """Adds all rows to one."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            into[j] += rows[i, j]
