"""Runs the command line, or code, in a process in which some modules cannot be imported."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.limits import HANGS

ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; sys.modules |= dict.fromkeys({modules!r}); {more}\nfrom epsearch.__main__ import main; main()"


def run(modules, cache, *arguments, folder=None, more=""):
    """The finished process of a command without these modules; more: code that runs before the program is imported."""
    return code(PROGRAM.format(modules=modules, more=more), cache, *arguments, folder=folder)


def code(text, cache, *arguments, folder=None):
    clean = os.environ | {"EPSEARCH_CACHE": str(cache), "EPSEARCH_LOOKS": "none", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", text, *arguments]
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=HANGS)
