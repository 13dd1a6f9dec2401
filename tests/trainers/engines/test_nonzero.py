"""The loops over what is not zero against float64 NumPy: widths of every remainder, empty rows, shut layers."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.numeric_paths import LAZY
from trainers.engines.compiled import nonzero
from trainers.engines.compiled.lazy import _arrays, make_passes
from trainers.engines.compiled.lists import Output
from trainers.engines.compiled.vectors import AVX512, COMPRESSES, FEATURES, REGISTERS
from trainers.networks import MLP

WIDTHS = (16, 32, 48, 112, 272)
WANTED = "VECTORS_OF_THIS_TEST"  # in the environment: what a processor of another kind has

shapes = st.tuples(
    st.integers(0, 99),
    st.integers(2, 20),
    st.integers(1, 9),
    st.integers(1, 40),
    st.lists(st.sampled_from(WIDTHS), min_size=1, max_size=3),
    st.floats(0, 1),
    st.sampled_from([-3.0, 0.0, 3.0]),
)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * (1e-6 + np.abs(expected).max(initial=0)))


@pytest.mark.slow
@given(shapes)
@settings(max_examples=25, deadline=None)
def test_a_step_in_parts(shape):
    seed, rows, current, pixels, hidden, density, bias = shape
    rng, current = np.random.default_rng(seed), min(current, rows - 1)
    stored = rng.integers(1, 256, (rows + 3, pixels)) * (rng.random((rows + 3, pixels)) < density)
    order, labels = rng.permutation(rows + 3)[:rows], rng.integers(0, 10, rows)
    net = MLP((pixels, *hidden, 10))
    params = torch.zeros(1, net.row)
    params[0] = torch.from_numpy(net.init(rng))
    net.layers(params)[0].bias[0] += bias  # a bias that shuts most units, or none
    passes = make_passes(net, 255, LAZY)
    member, into = passes.layers(params[0]), passes.layers(torch.full((net.row,), 7.0))
    before = [[part.astype(np.float64) for part in layer.arrays] for layer in member]
    inputs, batch = passes.examples(stored.astype(np.uint8)), passes.batch(rows, current)
    inputs.take(order)
    passes.forward(member, batch, inputs, labels)

    sees = [stored[order] / 255]
    for number, (weight, offset) in enumerate(before):
        out = sees[-1] @ weight + offset
        sees.append(np.maximum(out, 0) if number < len(before) - 1 else out)
        close(batch.hidden_array[number], sees[-1])
    delta = batch.delta_array[-1].astype(np.float64)
    of_g, of_ref = [], []
    for number in reversed(range(len(before))):
        close(batch.delta_array[number], delta)
        for part, gradient in ((slice(0, current), of_g), (slice(current, rows), of_ref)):
            gradient.insert(0, (sees[number][part].T @ delta[part], delta[part].sum(0)))
        # A unit near zero may be shut for one of the two.
        delta = (delta @ before[number][0].T) * (batch.hidden_array[number - 1] > 0) if number else delta
    exact = [sum(float((a * b).sum()) for x, y in zip(*pair, strict=True) for a, b in zip(x, y, strict=True))
             for pair in ((of_g, of_g), (of_g, of_ref), (of_ref, of_ref))]  # fmt: skip

    sizes = net.widths[1:], (0, rows), (rows, current)
    close(nonzero.inner(inputs.gram(rows), batch.outputs, *sizes), exact)
    rr = passes._reference(batch, inputs, into)
    now = inputs.by_pixel(0, current)
    gr = nonzero.with_reference(now, batch.delta_array, batch.outputs, current, _arrays(into))
    close([gr, rr], exact[1:])
    for found, expected in zip(into, of_ref, strict=True):
        close(found.weight_array, expected[0])
        close(found.bias_array, expected[1])
    for number, layer in enumerate(passes.g_ref):
        layer.weight_array[:], layer.bias_array[:] = into[number].arrays
    for small in (64, 0):  # from the rows of both batches, then with g_ref at hand
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("trainers.engines.compiled.lazy.FEW", small)
            for layer, (weight, offset) in zip(member, before, strict=True):
                layer.weight_array[:], layer.bias_array[:] = weight, offset
            passes.update(member, batch, inputs, -0.5, 0.25)
        for layer, old, g, ref in zip(member, before, of_g, of_ref, strict=True):
            for found, start, one, other in zip(layer.arrays, old, g, ref, strict=True):
                np.testing.assert_allclose(found, start - 0.5 * one + 0.25 * other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", ["activate_by_bits", *(["activate_by_lanes"] if COMPRESSES else [])])
@pytest.mark.parametrize("width", WIDTHS)
def test_what_a_relu_lets_pass_is_listed(width, form):
    """NaN, too; in the order of the units, bit for bit, and for its own example alone."""
    here = f"{REGISTERS} {COMPRESSES}"
    assert os.environ.get(WANTED, here) == here
    kinds = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, 1e-45], dtype=np.float32)
    hidden = np.random.default_rng(0).choice(kinds, (9, width))
    hidden[0], hidden[1] = 2.5, -2.5  # all and none of an example's
    before, output = hidden.copy(), Output.empty(9, width)
    getattr(nonzero, form)(hidden, output)
    for i, (begin, end) in enumerate(output.starts):
        units = np.flatnonzero(~(before[i] <= 0))
        assert output.unit[begin:end].tolist() == units.tolist()
        np.testing.assert_array_equal(output.value[begin:end], before[i, units])
        np.testing.assert_array_equal(hidden[i], np.where(before[i] <= 0, np.float32(0), before[i]))


@pytest.mark.slow
@pytest.mark.parametrize(("without", "vectors"), [("avx512", "64 True"), ("avx", "64 False")])
def test_with_the_vectors_of_other_processors(without, vectors):
    """The same tests, and decisions as in float64, without AVX-512, and without AVX2."""
    if not {"avx512": AVX512, "avx": COMPRESSES}[without]:
        pytest.skip("this processor's vectors are the shorter ones")
    features = FEATURES.replace(f"+{without}", f"-{without}")
    here = Path(__file__).parent
    files = str(here / "test_nonzero.py"), str(here / "test_lazy.py")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-n",
            "0",
            *files,
            "-k",
            "parts or two or is_made or lets_pass",
        ],
        env=os.environ | {"NUMBA_CPU_FEATURES": features, WANTED: vectors},
        capture_output=True,
        text=True,
        cwd=here.parents[2],
    )
    assert done.returncode == 0, done.stdout


def test_units_whose_numbers_take_more_than_two_bytes_are_refused():
    assert len(Output.empty(1, 2**16).unit) > 2**16
    with pytest.raises(ValueError, match="layers of at most 65,536 of them, got 65,537"):
        Output.empty(1, 2**16 + 1)
