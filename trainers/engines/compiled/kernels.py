"""Kernels of a training step besides matrix products, compiled by Numba.

Everything is float32, sums over more than a row of a matrix are float64. Each kernel works for one member on one thread
and in a fixed order, so that a result does not depend on who else is trained.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import config, njit
from numba.misc.appdirs import user_cache_dir
from numpy.typing import NDArray

Floats = NDArray[np.float32]
ZERO = np.float32(0)
NUMBA: Any = config  # its attributes are made at run time


def _folder() -> str:
    """Returns the folder for machine code of these sources, and of no others.

    Numba compares the one file that has a function: what was compiled into it from another file may be older.
    """
    here = Path(__file__).parent
    sources = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(here.glob("*.py"))))
    usual = here / "__pycache__" if os.access(here, os.W_OK) else user_cache_dir("numba")  # type: ignore[no-untyped-call]
    return str(Path(NUMBA.CACHE_DIR or usual, f"kernels-{sources.hexdigest()[:12]}"))


def _kernel(*fastmath: str) -> Callable[[Any], Any]:
    """Returns a decorator that compiles a function with these flags of fast math, and keeps its machine code."""

    def decorate(function: Any) -> Any:
        # Numba asks for the folder once, here.
        before, NUMBA.CACHE_DIR = NUMBA.CACHE_DIR, FOLDER
        try:
            return njit(cache=True, nogil=True, fastmath={*fastmath}, error_model="numpy")(function)
        finally:
            NUMBA.CACHE_DIR = before

    return decorate


FOLDER = _folder()
# Reassociated sums and fused multiply-adds let the compiler use vectors; NaN and infinity keep their meaning.
compiled = _kernel("reassoc", "contract", "nsz")
# Not reassociated: sums have the order in which they are written.
in_order = _kernel("contract", "nsz")


@compiled
def gather(rows, inputs, scale, out):  # type: ignore[no-untyped-def]
    """Writes the rows of bytes [., P] as numbers [B, P]."""
    for i in range(rows.shape[0]):
        for p in range(inputs.shape[1]):
            out[i, p] = scale[inputs[rows[i], p]]


@compiled
def output_delta(logits, labels, classes, current, delta, subtracted):  # type: ignore[no-untyped-def]
    """Writes the gradients by the logits of the mean cross-entropy over the first `current` rows, and over the rest.

    delta: [B, padded classes]. Returns both losses, 0 where there are no rows. subtracted: see
    `networks.losses.output_delta`.
    """
    loss = reference_loss = 0.0
    rows = logits.shape[0]
    for i in range(rows):
        weight = np.float32(1) / np.float32(current if i < current else rows - current)
        # Less the row's highest logit, so that no exponential overflows.
        highest = logits[i, 0]
        for c in range(1, classes):
            highest = max(highest, logits[i, c])
        total = ZERO
        for c in range(classes):
            delta[i, c] = np.exp(logits[i, c] - highest)
            total += delta[i, c]
        # The sum of the others is −(p_y − 1) without its rounding: see `networks.losses`.
        others = ZERO
        for c in range(classes):
            delta[i, c] *= weight / total
            if c != labels[i]:
                others += delta[i, c]
        if subtracted:
            delta[i, labels[i]] -= weight
        else:
            delta[i, labels[i]] = -others
        of_row = weight * (np.log(total) + highest - logits[i, labels[i]])
        if i < current:
            loss += of_row
        else:
            reference_loss += of_row
    return loss, reference_loss


@compiled
def close_outputs(logits, labels, competing):  # type: ignore[no-untyped-def]
    """Sets logits [B, classes] to −∞ where an output does not compete on the label's examples.

    competing [outputs, outputs]: as `streams.competing` has it; empty where all outputs compete.
    """
    if competing.shape[0]:
        for i in range(logits.shape[0]):
            for c in range(competing.shape[1]):
                if not competing[labels[i], c]:
                    logits[i, c] = -np.inf


@compiled
def add_square(logits, stored, labels, competing, weight, into):  # type: ignore[no-untyped-def]
    """Adds weight times the gradient of the mean over rows of ‖z − z_stored‖²/outputs to `into` [B, outputs].

    Returns weight times that mean. Outputs that do not compete, as `close_outputs` has it, count 0.
    """
    rows, outputs = logits.shape
    factor = np.float32(weight / (rows * outputs))
    loss = 0.0
    for i in range(rows):
        for c in range(outputs):
            if competing.shape[0] == 0 or competing[labels[i], c]:
                between = logits[i, c] - stored[i, c]
                loss += factor * between * between
                into[i, c] += 2 * factor * between
    return loss


@compiled
def add_taught(logits, teacher, groups, temperature, weight, into):  # type: ignore[no-untyped-def]
    """Adds weight times the gradient of the mean over rows of T²·KL(teacher ‖ network) to `into` [B, outputs].

    Returns weight times that mean. groups: as `networks.losses.taught_delta` has them, of one learner.
    """
    theirs, mine = groups
    rows, outputs = logits.shape
    q, p = np.empty(outputs, dtype=np.float32), np.empty(outputs, dtype=np.float32)
    t, total = np.float32(temperature), 0.0
    factor = np.float32(weight / (rows * theirs.shape[0]))
    for i in range(rows):
        for group in range(theirs.shape[0]):
            of_teacher = _softmax(teacher[i], theirs[group], t, q)
            of_network = _softmax(logits[i], mine[group], t, p)
            for c in range(outputs):
                if theirs[group, c]:
                    total += q[c] * ((teacher[i, c] - logits[i, c]) / t - of_teacher + of_network)
                if mine[group, c]:
                    into[i, c] += factor * t * (p[c] - q[c])
    return factor * t * t * total


@compiled
def _softmax(logits, group, temperature, into):  # type: ignore[no-untyped-def]
    """Writes softmax(z/T) over a group of outputs, 0 for others; returns the logarithm of Σ exp(z/T)."""
    highest = np.float32(-np.inf)
    for c in range(logits.shape[0]):
        if group[c]:
            highest = max(highest, logits[c] / temperature)
    total = ZERO
    for c in range(logits.shape[0]):
        into[c] = np.exp(logits[c] / temperature - highest) if group[c] else ZERO
        total += into[c]
    for c in range(logits.shape[0]):
        into[c] /= total
    return np.log(total) + highest


@compiled
def residual(delta, current):  # type: ignore[no-untyped-def]
    """Returns the mean of ‖p − onehot(y)‖² over the rows behind `current`; 0 where there are none.

    delta: as `output_delta` has written it.
    """
    total = 0.0
    for i in range(current, delta.shape[0]):
        total += dot(delta[i], delta[i])
    return total * (delta.shape[0] - current)


@compiled
def mask(delta, hidden):  # type: ignore[no-untyped-def]
    """Zeroes delta where the ReLU was shut."""
    for i in range(delta.shape[0]):
        for j in range(delta.shape[1]):
            # Asked this way round, a unit that is NaN lets its gradient pass.
            delta[i, j] = ZERO if hidden[i, j] <= ZERO else delta[i, j]


@compiled
def gram(rows):  # type: ignore[no-untyped-def]
    """Returns all inner products of a few rows, [B, B]."""
    out = np.empty((rows.shape[0], rows.shape[0]), dtype=np.float32)
    for i in range(rows.shape[0]):
        for k in range(i + 1):
            out[i, k] = out[k, i] = dot(rows[i], rows[k])
    return out


@compiled
def layer_products(inputs, delta, current, g_ref, bias):  # type: ignore[no-untyped-def]
    """Returns (‖g‖², g·g_ref, ‖g_ref‖²) over one layer, from delta [B, N] of its outputs.

    inputs [current, K] are those of g, which is not made: g = inputsᵀ·delta[:current]. g_ref [K, N] is at hand for the
    weights, and is written to `bias` for the biases.
    """
    gr, rr = bias_products(delta, current, bias)
    for k in range(g_ref.shape[0]):
        row = g_ref[k]
        # A row's sum is float32, for the vectors; that over the rows float64, for its rounding.
        rr += float(dot(row, row))
        for i in range(current):
            # Zeros, of pixels and of units that are shut, spare a whole row each.
            if inputs[i, k] != ZERO:
                gr += inputs[i, k] * dot(delta[i], row)
    return squared_norm(gram(inputs), delta, current), gr, rr


@compiled
def dot(one, other):  # type: ignore[no-untyped-def]
    """Returns the inner product of two rows, in float32."""
    product = ZERO
    for j in range(one.shape[0]):
        product += one[j] * other[j]
    return product


@compiled
def squared_norm(inputs_gram, delta, current):  # type: ignore[no-untyped-def]
    """Returns ‖g‖² of one layer, weights and biases, from the rows that make up g.

    It is Σ (xᵢ·xₖ + 1) (δᵢ·δₖ).
    """
    total = 0.0
    for i in range(current):
        for k in range(i + 1):
            # The matrix is symmetric: what lies off its diagonal counts twice. The 1 stands for the bias.
            total += (inputs_gram[i, k] + np.float32(1)) * dot(delta[i], delta[k]) * (1 if i == k else 2)
    return total


@compiled
def bias_products(delta, current, bias):  # type: ignore[no-untyped-def]
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
def update_layer(layer, reference, b, inputs, delta, a):  # type: ignore[no-untyped-def]
    """Adds b·g_ref + a·g to a layer in one pass; g_ref is not read where b is zero.

    layer and reference are (weight [K, N], bias [N]) of the parameters and of g_ref; inputs [current, K] and delta
    [current, N] are those of g.
    """
    weight, bias = layer
    g_ref, g_ref_bias = reference
    update_bias(bias, g_ref_bias, b, delta, a)
    for k in range(weight.shape[0]):
        row = weight[k]
        if b != ZERO:  # g_ref may be of an earlier step, and 0 · NaN is NaN
            for j in range(row.shape[0]):
                row[j] += b * g_ref[k, j]
        for i in range(inputs.shape[0]):
            v = a * inputs[i, k]
            if v != ZERO:
                for j in range(row.shape[0]):
                    row[j] += v * delta[i, j]


@compiled
def update_bias(bias, g_ref, b, delta, a):  # type: ignore[no-untyped-def]
    """Adds b·g_ref + a·g to a bias [N]; g is the sum of delta's rows, and g_ref is not read where b is zero."""
    for j in range(bias.shape[0]):
        total = ZERO
        for i in range(delta.shape[0]):
            total += delta[i, j]
        bias[j] += a * total
        if b != ZERO:
            bias[j] += b * g_ref[j]
