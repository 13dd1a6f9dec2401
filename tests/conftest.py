"""What all tests share: no limit that a busy machine would break, and one Ray for those that need one."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import epsearch  # noqa: F401  reports print names by what the declarations say
from tests.support.limits import HANGS

os.environ |= {
    "EPSEARCH_RAY_SECONDS": str(HANGS),  # read when epsearch.runners.ray_start is imported
    "RAY_worker_niceness": "0",  # Ray's 15 leaves its workers next to nothing of a machine that is busy
    "RAY_AUTH_MODE": "token",  # these two by Ray, here and in every process that is to join
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def ray_address():
    """HOST:PORT of a Ray of two cores on this machine, started once for all tests that join it; see `ray_head.py`."""
    command, root = [sys.executable, "-m", "tests.support.ray_head"], Path(__file__).parent.parent
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as head:
        address = head.stdout.readline().strip()
        assert address, "Ray does not start; what it said is above"
        yield address
        head.stdin.close()
