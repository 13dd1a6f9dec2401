"""The numeric paths that tests run on, and how results are compared."""

import numpy as np
import pytest

from trainers.numeric_path import NumericPath

LAZY = NumericPath(products="mkl", lazy=True)
COMPILED = (*(NumericPath(products=p, sparse=s) for p in ("mkl", "onednn") for s in (False, True)), LAZY)
TWIN = NumericPath()  # the GPU's engine, on the CPU
MKL = COMPILED[0]
on_every_path = pytest.mark.parametrize("path", (*COMPILED, TWIN), ids=str)
on_paths_by_kind = pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=() if p in (MKL, LAZY, TWIN) else pytest.mark.slow) for p in (*COMPILED, TWIN)],
    ids=str,
)
"""Often one of each kind: dense products, skipped zeros, tensors."""
on_compiled_paths = pytest.mark.parametrize("path", COMPILED, ids=str)

FIELDS = ("accuracies", "initial", "within", "violations", "diverged_task", "diverged_step", "fingerprints")


def rows_equal(result, row, other, other_row):
    """Bit for bit: np.testing takes NaN for equal, and text too."""
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(result, field)[row], getattr(other, field)[other_row])
    return True
