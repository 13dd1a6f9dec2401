"""Facts about this machine: processor, GPU, versions."""

import ctypes
import hashlib
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from trainers.operating_system import usable_cores as usable_cores

VISIBLE = "CUDA_VISIBLE_DEVICES"
PACKAGES = ("numpy", "torch", "numba", "ray", "torchvision", "scikit-learn", "pandas", "plotly", "sqlalchemy")
_SUPPOSED = ContextVar("supposed GPU", default=False)


def describe_machine() -> dict[str, str]:
    """Returns processor, cores, GPU and versions, for the report."""
    facts = {"machine": f"{processor()}, {usable_cores()} cores, {platform.system()}"}
    if device := gpu():
        facts["GPU"] = device
    versions = ", ".join(f"{name} {known}" for name in PACKAGES[:4] if (known := installed_version(name)))
    return facts | {"versions": f"Python {platform.python_version()}, {versions}"}


def installed_version(package: str) -> str | None:
    """Returns the version of an installed package; None where it is not there. Nothing is imported."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def processor() -> str:
    """Returns the processor's name, as the operating system gives it; its kind where it gives none."""
    # `platform.processor` knows no more than "x86_64" on Linux.
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@cache  # used by every job
def rounding_hash(device: str, capability: str = "") -> str:
    """Returns a hash of processor or GPU, and versions: machines with the same hash round alike.

    device: "cpu", "cuda" or "mps". capability: the instructions of a processor that torch uses, as a process with torch
    has said; "" to import torch for it. The hash has 8 hexadecimal digits.
    """
    if not capability:
        import torch

        capability = torch.backends.cpu.get_cpu_capability()
    system = f", macOS {platform.mac_ver()[0]}" if device == "mps" else ""
    unit = gpu() if device == "cuda" else f"{processor()}, {capability}{system}"
    versions = [f"{name} {installed_version(name)}" for name in ("torch", "numba")]
    return hashlib.sha256("; ".join([device, str(unit), *versions]).encode()).hexdigest()[:8]


@contextmanager
def suppose_gpu() -> Iterator[None]:
    """Within the context, this machine passes for one with a GPU: what is checked here will be trained elsewhere."""
    before = _SUPPOSED.set(True)
    try:
        yield
    finally:
        _SUPPOSED.reset(before)


def cuda_present() -> bool:
    """Returns whether torch finds a CUDA GPU.

    Without NVIDIA's driver library it cannot, and need not be imported to say so, which takes seconds. Within
    `suppose_gpu` there is one.
    """
    if _SUPPOSED.get():
        return True
    try:
        ctypes.CDLL("nvcuda.dll" if platform.system() == "Windows" else "libcuda.so.1")
    except OSError:
        return False
    import torch

    return bool(torch.cuda.is_available())


def mps_present() -> bool:
    """Returns whether torch finds a GPU of Apple's; torch is imported on macOS alone."""
    if sys.platform != "darwin":
        return False
    import torch

    return bool(torch.backends.mps.is_available())


def visible_gpus() -> list[str]:
    """Returns, of each GPU that this process may use, the CUDA_VISIBLE_DEVICES of a process with that GPU alone.

    A number, or the UUID by which that variable names it. A process sees one instance of a GPU in parts (MIG) at most:
    of several that are named, each is one.
    """
    if not cuda_present():
        return []
    import torch

    named = [name for part in os.environ.get(VISIBLE, "").split(",") if (name := part.strip())]
    instances = [name for name in named if name.startswith("MIG-")]
    if instances and instances == named:
        return list(dict.fromkeys(instances))
    count = torch.cuda.device_count()  # as the driver reads the list: up to the first name that is no GPU's
    return named[:count] or [str(number) for number in range(count)]


def gpu_kind(device: str) -> dict[str, str]:
    """Returns name, UUID, driver, torch, CUDA and cuDNN of this process's GPU, which must exist.

    device: "cuda"; or "mps", of which it is processor, macOS and torch.
    """
    import torch

    if device == "mps":
        return {"GPU": processor(), "macOS": platform.mac_ver()[0], "torch": torch.__version__}
    driver = ""
    with suppress(OSError):  # there is no such file but on Linux
        driver = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8").partition("\n")[0]
    cudnn = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    versions = {"torch": torch.__version__, "CUDA": torch.version.cuda, "cuDNN": cudnn}
    # Two GPUs of a kind are two: one of them may be faulty.
    of_one = {"GPU": torch.cuda.get_device_name(), "UUID": getattr(torch.cuda.get_device_properties(), "uuid", "")}
    return {name: str(fact) for name, fact in (of_one | {"driver": driver} | versions).items()}


def gpu() -> str | None:
    """Returns the name of the GPU that torch uses, with the version of CUDA; None where it finds none."""
    if not cuda_present():
        return None
    import torch

    return f"{torch.cuda.get_device_name()} (CUDA {torch.version.cuda})"
