"""What this machine is: for reports, and for `epsearch doctor`."""

import ctypes
import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from trainers.notes import first_line

PACKAGES = ("numpy", "torch", "numba", "ray", "torchvision", "scikit-learn", "pandas", "plotly", "sqlalchemy")


class Check(NamedTuple):
    """One line of `epsearch doctor`: ok False is a fault, None is merely worth knowing."""

    subject: str
    ok: bool | None
    detail: str


def describe_machine() -> dict[str, str]:
    """Processor, cores, GPU and versions, for the report's small print."""
    facts = {"machine": f"{processor()}, {usable_cores()} cores, {platform.system()}"}
    if gpu := _gpu():
        facts["GPU"] = gpu
    versions = ", ".join(f"{name} {found}" for name in PACKAGES[:4] if (found := installed(name)))
    return facts | {"versions": f"Python {platform.python_version()}, {versions}"}


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def diagnose(out: Path, data_dir: Path) -> list[Check]:
    """Everything that commonly goes wrong, checked."""
    checks = [Check("Python", True, f"{platform.python_version()} on {processor()}, {usable_cores()} cores")]
    for name in PACKAGES:
        found = installed(name)
        checks.append(Check(name, found is not None, found or f"not installed; pip install {name}"))
    checks.append(_torchvision())
    gpu = _gpu()
    checks.append(Check("GPU", True if gpu else None, gpu or "none that torch can use; members are trained on the CPU"))
    checks.append(_arithmetic())
    checks.append(_ray())
    checks += [_space("out folder", out), _space("data folder", data_dir)]
    return checks


def installed(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def processor() -> str:
    """The processor's name, as the operating system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def cuda_present() -> bool:
    """Whether torch finds a CUDA GPU. Without NVIDIA's driver library it cannot, and need not be imported to say so."""
    try:
        ctypes.CDLL("nvcuda.dll" if platform.system() == "Windows" else "libcuda.so.1")
    except OSError:
        return False
    import torch

    return bool(torch.cuda.is_available())


def _gpu() -> str | None:
    if not cuda_present():
        return None
    import torch

    return f"{torch.cuda.get_device_name()} (CUDA {torch.version.cuda})"


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
    from epsearch.numeric import fastest_here

    inputs, width, density = 784, 256, 0.2
    try:
        name = fastest_here(inputs, width, density)
    except Exception as error:
        return Check("CPU arithmetic", False, f"cannot be measured ({first_line(error)})")
    return Check("CPU arithmetic", True, f"{name} is the fastest here on {inputs} inputs, one in five not zero")


def _ray() -> Check:
    """Starts a private Ray and runs one task on it."""
    from epsearch.runners.patience import shut_down
    from epsearch.runners.tune import start_private_ray

    try:
        start_private_ray(1)
        import ray

        try:
            answer = ray.get(ray.remote(_process).remote())
        finally:
            shut_down()
    except Exception as error:
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
