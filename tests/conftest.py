"""What all tests share: processes, no limit that a busy machine would break, and one Ray for those that need one."""

import gc
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from epsearch.machine import usable_cores  # with epsearch itself: reports print names by its declarations
from tests.support import cases, places, scheduling
from tests.support.limits import HANGS
from tests.support.made_mnist import made_mnist
from tests.support.sizes import ROOT
from trainers.plugins import calls

MOST_PROCESSES = 8  # each takes a GiB or two; more would wait for the one that runs the tests with a Ray

os.environ |= {
    "EPSEARCH_LOOKS": "none",  # nothing that tests evaluate is a look of whoever runs them
    "EPSEARCH_RAY_SECONDS": str(HANGS),  # read when epsearch.runners.on_ray.ray_start is imported
    "RAY_AUTH_MODE": "token",  # these two by Ray, here and in every process that is to join
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}

os.environ.pop("UV_RUN_RECURSION_DEPTH", None)  # commands in answers begin alike, however the tests were started

# Each of the hundreds of processes of the tests would translate torch and all others anew, which takes it five seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

places.use_memory()

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process a core; torch and NumPy read it when they are imported

gc.disable()  # while modules are imported and tests collected, nearly all of which stays to the end

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One a core; none but this one for files and tests that are named, and for campaigns, which print as they go."""
    named = all(Path(argument.partition("::")[0]).is_file() for argument in config.args)
    return 0 if named or config.option.markexpr == "fuzz" else min(usable_cores(), MOST_PROCESSES)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return scheduling.by_file(config, log)


@pytest.hookimpl(tryfirst=True)  # marks are looked at by pytest's own hook
def pytest_collection_modifyitems(config, items):
    """Whole files with a Ray come first: they take longest, and one process runs them all."""
    cases.mark_cases(items)
    if moved := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"each process of tests gives this one another name: {moved[0]}; pass ids=")
    items.sort(key=lambda item: not scheduling.with_ray(config, item.path))


def pytest_collection_finish():
    """What is there by now is not looked at again by every collection of garbage; that took a tenth of the time."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure():
    """Libraries that look for what was not given back at the end would otherwise list what was frozen."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def ray_address():
    """HOST:PORT of a Ray of two cores on this machine, started once for all tests that join it; see `ray_head.py`."""
    command, root = [sys.executable, "-m", "tests.support.ray_head"], Path(__file__).parent.parent
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as head:
        address = head.stdout.readline().strip()
        assert address, "Ray does not start; what it said is above"
        yield address
        head.stdin.close()


@pytest.fixture(autouse=True)
def own_modules_are_forgotten(tmp_path):
    """A module of the user's that one test has imported is not there in the next."""
    # Without monkeypatch: asked for here, it would undo what tests patch only after their own fixtures have ended.
    path, imported, before = [*sys.path], calls._IMPORTED, set(sys.modules)
    calls._IMPORTED = {}
    yield
    sys.path[:], calls._IMPORTED = path, imported
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def benchmarks(monkeypatch):
    """The scripts of benchmarks/ can be imported."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture
def data_dir(tmp_path):
    """A folder of datasets with few made-up images in the place of MNIST."""
    with made_mnist(tmp_path) as folder:
        yield folder
