"""`epsearch doctor`: everything that commonly goes wrong, checked."""

import os
import platform
import shutil
from pathlib import Path
from typing import NamedTuple

from epsearch.machine import PACKAGES, gpu, installed, processor, usable_cores
from epsearch.preparation.arithmetic import fastest_here
from epsearch.runners.ray_start import shut_down
from epsearch.runners.tune import start_private_ray
from trainers.notes import first_line


class Check(NamedTuple):
    """One line of `epsearch doctor`."""

    subject: str
    """What was looked at."""
    ok: bool | None
    """False is a fault, None is merely worth knowing."""
    detail: str
    """What was found, in words."""


def diagnose(out: Path, data_dir: Path) -> list[Check]:
    """Everything that commonly goes wrong, checked."""
    checks = [Check("Python", True, f"{platform.python_version()} on {processor()}, {usable_cores()} cores")]
    for name in PACKAGES:
        found = installed(name)
        checks.append(Check(name, found is not None, found or f"not installed; pip install {name}"))
    checks += [_torchvision(), _gpu(), _arithmetic(), _ray()]
    return [*checks, _space("out folder", out), _space("data folder", data_dir)]


def _gpu() -> Check:
    found = gpu()
    return Check("GPU", True if found else None, found or "none that torch can use; members are trained on the CPU")


def _torchvision() -> Check:
    try:
        import torchvision

        return Check("torchvision import", True, f"{torchvision.__version__} can be imported")
    except (ImportError, RuntimeError) as error:
        first = first_line(error)
        return Check(
            "torchvision import", None, f"fails ({first}); only downloads need it; install a build that fits torch"
        )


def _arithmetic() -> Check:
    """The numeric path that Permuted MNIST would take here."""
    inputs, width, density = 784, 256, 0.2
    try:
        name = fastest_here(inputs, width, density)
    except Exception as error:  # noqa: BLE001  whatever it is, it is what doctor is asked for
        return Check("CPU arithmetic", False, f"cannot be measured ({first_line(error)})")
    return Check("CPU arithmetic", True, f"{name} is the fastest here on {inputs} inputs, one in five not zero")


def _ray() -> Check:
    """Starts a private Ray and runs one task on it."""
    try:
        start_private_ray(1)
        import ray

        try:
            answer = ray.get(ray.remote(_process).remote())
        finally:
            shut_down()
    except Exception as error:  # noqa: BLE001  whatever it is, it is what doctor is asked for
        return Check("Ray", False, f"does not start ({first_line(error)}); use --runner local")
    return Check("Ray", True, f"starts and runs a task (worker process {answer})")


def _process() -> int:
    return os.getpid()


def _space(subject: str, folder: Path) -> Check:
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free / 2**30
    writable = os.access(existing, os.W_OK)
    detail = f"{folder}: {free:.1f} GiB free" + ("" if writable else "; not writable")
    return Check(subject, writable and free > 1, detail)
