"""Checks of the installation, for `epsearch doctor`."""

import os
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from epsearch.machine import PACKAGES, gpu, installed, processor, usable_cores
from epsearch.preparation.arithmetic import fastest_here
from epsearch.runners.on_ray.cleanup import run_folder
from epsearch.runners.on_ray.private import PrivateRay
from epsearch.runners.registry import ray_installed
from trainers.notes import first_line

LEAST_FREE_GIB = 1.0
"""Required free space on the disk of a folder."""


Row = dict[str, Any]
"""A line of `epsearch doctor`: subject; ok, False for a fault, None for a note; detail, in words."""


def diagnose(out: Path, data_dir: Path) -> list[Row]:
    """Returns the checks of versions, GPU, arithmetic, Ray and disks.

    out, data_dir: folders on whose disks there must be space; neither need exist. Errors become failed checks.
    """
    versions = {name: installed(name) for name in PACKAGES if name != "ray" or ray_installed()}
    cuda = gpu()
    return [
        _row("Python", True, f"{platform.python_version()} on {processor()}, {usable_cores()} cores"),
        *(
            _row(name, version is not None, version or f"not installed; pip install {name}")
            for name, version in versions.items()
        ),
        # Only a note, as only downloads need it.
        _check(
            "torchvision import",
            _torchvision,
            None,
            "fails ({}); only downloads need it; install a build that fits torch",
        ),
        _row("GPU", True if cuda else None, cuda or "none that torch can use; members are trained on the CPU"),
        *([_check("GPU self-check", _self_check, False, "{}; a study on this GPU would stop")] if cuda else []),
        _check("CPU arithmetic", _arithmetic, False, "cannot be measured ({})"),
        *([_check("Ray", _ray, False, "does not start ({}); use --runner local")] if ray_installed() else []),
        _space("out folder", out),
        _space("data folder", data_dir),
    ]


def _row(subject: str, ok: bool | None, detail: str) -> Row:
    return {"subject": subject, "ok": ok, "detail": detail}


def _check(subject: str, function: Callable[[], str], failed: bool | None, words: str) -> Row:
    """Returns the check of a function, which returns words; after an error, `failed` with `words` about it."""
    try:
        return _row(subject, True, function())
    except Exception as error:  # noqa: BLE001  every error is a result
        return _row(subject, failed, words.format(first_line(error)))


def _self_check() -> str:
    """Checks every method on a perceptron like that of MNIST, in float32."""
    from epsearch.testing.toy import toy
    from trainers import Architecture, Learner
    from trainers.engines.self_check import check
    from trainers.methods import METHODS
    from trainers.numeric_path import NumericPath

    stream, outcomes = toy(pixels=784, classes=10), {}
    for name, method in METHODS.items():
        values = {"strength": 0.1} if "strength" in method.names else {}  # which has no default, and is not used
        outcomes[name] = check(Learner.of(name, 0, **values), stream, Architecture(), NumericPath("cuda"))
    worst = max(max(one.plain, one.projected) for one in outcomes.values())
    without = [name for name, one in outcomes.items() if one.graphs is False]
    graphs = f"CUDA graphs do not for {', '.join(without)}, and are not used there" if without else "so do CUDA graphs"
    return f"steps of {len(outcomes)} methods agree with float64 (by {worst:.0e} of a step), {graphs}"


def _torchvision() -> str:
    """Imports torchvision, which must fit the installed torch."""
    import torchvision

    return f"{torchvision.__version__} can be imported"


def _arithmetic() -> str:
    """Returns the numeric path of Permuted MNIST on this machine."""
    path = fastest_here(inputs=784, hidden=(256, 256), density=0.2)
    return f"{path} is the fastest here on 784 inputs, one in five not zero"


def _ray() -> str:
    """Starts a private Ray and runs one task on it."""
    with run_folder() as folder:
        own = PrivateRay(1, folder)
        try:
            own.start()
            own.join()
            import ray

            return f"starts and runs a task (worker process {ray.get(ray.remote(_process).remote())})"
        finally:
            own.end()


# Ray makes no task of a function that is built in.
def _process() -> int:
    return os.getpid()


def _space(subject: str, folder: Path) -> Row:
    """Checks the free space of a folder, or of its nearest existing parent."""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free / 2**30
    writable = os.access(existing, os.W_OK)
    return _row(
        subject,
        writable and free > LEAST_FREE_GIB,
        f"{folder}: {free:.1f} GiB free{'' if writable else '; not writable'}",
    )
