"""`epsearch doctor`: everything that commonly goes wrong, checked."""

import os
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from epsearch.machine import PACKAGES, gpu, installed, processor, usable_cores
from epsearch.preparation.arithmetic import fastest_here
from epsearch.runners.on_ray.cleanup import run_folder
from epsearch.runners.on_ray.private import PrivateRay
from trainers.notes import first_line

LEAST_FREE_GIB = 1.0
"""Free on the disk of a folder that is written to; less is a fault."""


class Check(NamedTuple):
    """One line of `epsearch doctor`."""

    subject: str
    """What was looked at."""
    ok: bool | None
    """False is a fault, None is merely worth knowing."""
    detail: str
    """What was found, in words."""


def diagnose(out: Path, data_dir: Path) -> list[Check]:
    """Everything that commonly goes wrong, checked, in the order in which it is shown.

    out, data_dir: folders on whose disks there must be space; neither need exist. Nothing is raised: what fails is a
    check that is not well.
    """
    versions = {name: installed(name) for name in PACKAGES}
    cuda = gpu()
    return [
        Check("Python", True, f"{platform.python_version()} on {processor()}, {usable_cores()} cores"),
        *(
            Check(name, version is not None, version or f"not installed; pip install {name}")
            for name, version in versions.items()
        ),
        # Not a fault: everything but downloads does without it.
        _tried(
            "torchvision import",
            _torchvision,
            None,
            "fails ({}); only downloads need it; install a build that fits torch",
        ),
        Check("GPU", True if cuda else None, cuda or "none that torch can use; members are trained on the CPU"),
        *([_tried("GPU self-check", _self_check, False, "{}; a study on this GPU would stop")] if cuda else []),
        _tried("CPU arithmetic", _arithmetic, False, "cannot be measured ({})"),
        _tried("Ray", _ray, False, "does not start ({}); use --runner local"),
        _space("out folder", out),
        _space("data folder", data_dir),
    ]


def _tried(subject: str, act: Callable[[], str], failed: bool | None, words: str) -> Check:
    """What comes of an act, whose result is in words; `failed` and the `words` about its error where it fails."""
    try:
        return Check(subject, True, act())
    except Exception as error:  # noqa: BLE001  whatever it is, it is what doctor is asked for
        return Check(subject, failed, words.format(first_line(error)))


def _self_check() -> str:
    """Every method on a perceptron like that of MNIST, in float32; a study checks before it begins what it trains."""
    from epsearch.testing.toy import toy
    from trainers import Architecture, Learner
    from trainers.engines.self_check import check
    from trainers.methods import METHODS
    from trainers.numeric_path import NumericPath

    stream, found = toy(pixels=784, classes=10), {}
    for name, method in METHODS.items():
        values = {"strength": 0.1} if "strength" in method.names else {}  # which has no default, and is not used
        found[name] = check(Learner.of(name, 0, **values), stream, Architecture(), NumericPath("cuda"))
    worst = max(max(one.plain, one.projected) for one in found.values())
    without = [name for name, one in found.items() if one.graphs is False]
    graphs = f"CUDA graphs do not for {', '.join(without)}, and are not used there" if without else "so do CUDA graphs"
    return f"steps of {len(found)} methods agree with float64 (by {worst:.0e} of a step), {graphs}"


def _torchvision() -> str:
    """Whether it fits the torch that is installed, which only its import tells."""
    import torchvision

    return f"{torchvision.__version__} can be imported"


def _arithmetic() -> str:
    """The numeric path that Permuted MNIST would take here."""
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


def _space(subject: str, folder: Path) -> Check:
    """There must be a GiB for what is written; a folder that does not exist yet lies where its parent does."""
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free / 2**30
    writable = os.access(existing, os.W_OK)
    return Check(
        subject,
        writable and free > LEAST_FREE_GIB,
        f"{folder}: {free:.1f} GiB free{'' if writable else '; not writable'}",
    )
