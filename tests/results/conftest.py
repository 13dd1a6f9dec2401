"""Makes `synthetic.py` beside this file importable under any import mode of pytest, without a package that
would shadow `results`.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

HELPER = Path(__file__).with_name("synthetic.py")
NAME = "results_synthetic"

if NAME not in sys.modules:
    spec = importlib.util.spec_from_file_location(NAME, HELPER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
