"""Processes that hold leases."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from results.ledger.writers.holder import Holder, here
from tests.support.synthetic import ROOT

needs_proc = pytest.mark.skipif(not here().boot, reason="this system does not say which processes exist")
CHILD = "from results.ledger.writers.holder import here; print(here().to_json(), flush=True); input()"


@contextmanager
def another_process() -> Iterator[tuple[subprocess.Popen[str], Holder]]:
    """One that does nothing until it is ended."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        try:
            yield child, Holder.from_json(child.stdout.readline())
        finally:
            child.kill()


def killed(child: subprocess.Popen[str]) -> None:
    """Ends it, and leaves it as a process that nobody has asked for its status."""
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def dead() -> Holder:
    """A process that was there."""
    with another_process() as (_, holder):
        return holder
