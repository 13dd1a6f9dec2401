"""The compiled kernels against float64 NumPy, on batches with empty rows, empty pixels and every remainder of four."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.sizes import ROOT
from trainers.engines.compiled import kernels, sparse
from trainers.engines.compiled.inputs import DenseInputs, Layer, SparseInputs
from trainers.engines.compiled.products import PRODUCTS

SCALE = (np.arange(256) / 255).astype(np.float32)
# A kernel of one file, into which another one of another file is compiled; prints the bias that it has updated.
UPDATE = """
import numpy as np
from trainers.engines.compiled import sparse
layer, reference = ((np.zeros((2, 16), np.float32), np.zeros(16, np.float32)) for _ in range(2))
none = np.zeros(3, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32)
sparse.update_layer(layer, reference, np.float32(0), none, np.ones((3, 16), np.float32), np.float32(1))
print(layer[1][0])
"""


def batch(seed, rows, current, pixels, width, density):
    """(bytes, float64 inputs, float32 delta [rows, width], rng)."""
    rng = np.random.default_rng(seed)
    stored = rng.integers(1, 256, (rows, pixels), dtype=np.uint8) * (rng.random((rows, pixels)) < density)
    stored = stored.astype(np.uint8)
    return stored, SCALE[stored].astype(np.float64), rng.standard_normal((rows, width)).astype(np.float32), rng


def layer(weight, bias):
    """A copy that the engine can work on."""
    return Layer.of(*(torch.from_numpy(np.array(part, dtype=np.float32)) for part in (weight, bias)))


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


shapes = st.tuples(
    st.integers(0, 99),
    st.integers(2, 20),
    st.integers(1, 9),
    st.integers(1, 40),
    st.sampled_from([16, 48]),
    st.floats(0, 1),
)


@pytest.mark.slow
@given(shapes)
@settings(max_examples=60, deadline=None)
def test_both_kinds_of_inputs_do_the_same_arithmetic(shape):
    seed, rows, current, pixels, width, density = shape
    current = min(current, rows - 1)
    stored, x, delta, rng = batch(seed, rows, current, pixels, width, density)
    order = rng.permutation(rows)
    stored[order], expected_x = stored.copy(), x
    weight, bias = (rng.standard_normal(size).astype(np.float32) for size in ((pixels, width), (width,)))
    g, r = x[:current].T @ delta[:current], x[current:].T @ delta[current:]
    g_bias, r_bias = (part.sum(0, dtype=np.float64) for part in (delta[:current], delta[current:]))
    for inputs in (SparseInputs(stored, SCALE), DenseInputs(stored, SCALE, PRODUCTS["mkl"])):
        inputs.take(order)
        inputs.split(current)
        out, g_ref = torch.empty(rows, width), layer(np.full((pixels, width), 7.0), np.full(width, 7.0))
        inputs.forward(layer(weight, bias), out)
        close(out, np.maximum(expected_x @ weight + bias, 0))
        products = inputs.products(delta, g_ref)
        close(g_ref.weight, r)
        close(g_ref.bias, r_bias)
        close(products, [(a * b).sum() + (c * d).sum() for a, b, c, d in
                         ((g, g, g_bias, g_bias), (g, r, g_bias, r_bias), (r, r, r_bias, r_bias))])  # fmt: skip
        changed = layer(weight, bias)
        inputs.update(changed, g_ref, np.float32(-0.5), delta[:current], np.float32(0.25))
        close(changed.weight, weight - 0.5 * r + 0.25 * g)
        close(changed.bias, bias - 0.5 * r_bias + 0.25 * g_bias)
        changed, nothing = layer(weight, bias), layer(np.full_like(weight, np.nan), np.full_like(bias, np.nan))
        inputs.update(changed, nothing, np.float32(0), delta[:current], np.float32(0.25))
        close(changed.weight, weight + 0.25 * g)  # where b is zero, g_ref may hold anything
        close(changed.bias, bias + 0.25 * g_bias)


def test_hidden_layers_products_and_updates():
    _, _, delta, rng = batch(0, 17, 5, 1, 32, 1)
    hidden = np.maximum(rng.standard_normal((17, 48)), 0).astype(np.float32)
    now, ref = slice(0, 5), slice(5, 17)
    g, r = hidden[now].T.astype(np.float64) @ delta[now], hidden[ref].T.astype(np.float64) @ delta[ref]
    g_bias, r_bias = delta[now].sum(0, dtype=np.float64), delta[ref].sum(0, dtype=np.float64)
    r32, written = r.astype(np.float32), np.full(32, 7, dtype=np.float32)
    expected = [(g * g).sum() + (g_bias**2).sum(), (g * r).sum() + (g_bias * r_bias).sum()]
    expected.append((r * r).sum() + (r_bias**2).sum())
    close(kernels.layer_products(hidden[now], delta, 5, r32, written), expected)
    close(written, r_bias)
    weight, bias = rng.standard_normal((48, 32)).astype(np.float32), rng.standard_normal(32).astype(np.float32)
    changed, changed_bias = weight.copy(), bias.copy()
    layer, reference = (changed, changed_bias), (r32, written)
    kernels.update_layer(layer, reference, np.float32(0.3), hidden[now], delta[now], np.float32(-2))
    close(changed, weight + 0.3 * r - 2 * g)
    close(changed_bias, bias + 0.3 * r_bias - 2 * g_bias)


@pytest.mark.parametrize("spread", [1, 30, 1000])
def test_output_delta_is_the_gradient_of_both_mean_losses(spread):
    rng = np.random.default_rng(0)
    logits, labels = (spread * rng.standard_normal((12, 16))).astype(np.float32), rng.integers(0, 10, 12)
    delta = np.zeros((12, 16), dtype=np.float32)
    losses = kernels.output_delta(logits, labels, 10, 4, delta, False)
    z = torch.tensor(logits[:, :10], dtype=torch.float64, requires_grad=True)
    y = torch.from_numpy(labels)
    expected = [torch.nn.functional.cross_entropy(z[part], y[part]) for part in (slice(4), slice(4, None))]
    sum(expected).backward()
    for loss, other in zip(losses, expected, strict=True):
        close(loss, other.item())
    close(delta[:, :10], z.grad)
    assert not delta[:, 10:].any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so(bad):
    """A compiler that assumed finite numbers would let a diverged member pass for a healthy one."""
    logits, delta = np.zeros((3, 16), dtype=np.float32), np.zeros((3, 16), dtype=np.float32)
    logits[1, 2] = bad
    losses = kernels.output_delta(logits, np.array([0, 2, 1]), 10, 1, delta, False)
    assert np.isfinite(losses).tolist() == [True, False]
    hidden = np.array([[1, 0, bad, -1]], dtype=np.float32)
    out = np.array([[5, 5, 5, bad]], dtype=np.float32)
    kernels.mask(out, hidden)
    assert out[0, 0] == 5 and out[0, 1] == 0 and out[0, 3] == 0
    inputs = SparseInputs(np.array([[0, 3]], dtype=np.uint8), SCALE)
    inputs.take(np.array([0]))
    out = torch.zeros(1, 16)
    inputs.forward(layer(np.full((2, 16), np.nan), np.zeros(16)), out)
    assert torch.isnan(out).all()


def test_images_without_any_pixel():
    found = sparse.without_zeros(np.zeros((3, 5), dtype=np.uint8), SCALE)
    assert len(found.pixel) == 0 and not found.starts.any()


@pytest.mark.slow
def test_machine_code_of_other_sources_is_not_used(tmp_path):
    """Numba keeps it by the one file that has the kernel, and would not see that another one has changed."""
    shutil.copytree(ROOT / "trainers", tmp_path / "trainers", ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": ""}

    def updated():
        command = [sys.executable, "-c", UPDATE]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
        return float(done.stdout)

    assert updated() == updated() == 3
    folder = tmp_path / "trainers" / "engines" / "compiled"
    assert len([*folder.glob("__pycache__/kernels-*/*/sparse.update_layer-*.nbi")]) == 1
    other, line = folder / "kernels.py", "bias[j] += a * total"
    text = other.read_text(encoding="utf-8")
    assert text.count(line) == 1
    other.write_text(text.replace(line, "bias[j] += 2 * a * total"), encoding="utf-8")
    assert updated() == 6


def test_machine_code_lies_where_numba_is_to_keep_its_own(monkeypatch, tmp_path):
    monkeypatch.setattr(kernels.NUMBA, "CACHE_DIR", str(tmp_path))
    assert Path(kernels._folder()) == tmp_path / Path(kernels.FOLDER).name
