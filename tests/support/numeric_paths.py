"""The numeric paths that tests run on, and how results are compared."""

import numpy as np
import pytest

from trainers.numeric_path import NumericPath

LAZY = NumericPath(products="mkl", lazy=True)
COMPILED = (*(NumericPath(products=p, sparse=s) for p in ("mkl", "onednn") for s in (False, True)), LAZY)
TWIN = NumericPath()  # the GPU's engine, on the CPU
MKL = COMPILED[0]
OFTEN = (MKL, LAZY, TWIN)
"""One of each kind: dense products, skipped zeros, tensors. The others are slow where all have the same promise."""


def on(paths, often=(*COMPILED, TWIN)):
    return pytest.mark.parametrize(
        "path", [pytest.param(one, marks=() if one in often else pytest.mark.slow) for one in paths], ids=str
    )


on_every_path, on_compiled_paths = on((*COMPILED, TWIN)), on(COMPILED)
on_paths_by_kind, on_compiled_paths_by_kind = on((*COMPILED, TWIN), OFTEN), on(COMPILED, OFTEN)

FIELDS = ("accuracies", "initial", "within", "violations", "diverged_task", "diverged_step", "fingerprints")


def rows_equal(result, row, other, other_row):
    """Bit for bit: np.testing takes NaN for equal, and text too."""
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(result, field)[row], getattr(other, field)[other_row])
    return True
