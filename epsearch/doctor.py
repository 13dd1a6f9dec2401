"""Checks of the installation, for `epsearch doctor`."""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from epsearch.machine import (
    PACKAGES,
    VISIBLE,
    gpu,
    installed_version,
    mps_present,
    processor,
    usable_cores,
    visible_gpus,
)
from epsearch.preparation.arithmetic import fastest_here
from epsearch.runners.on_ray.cleanup import run_folder
from epsearch.runners.on_ray.private import PrivateRay
from epsearch.runners.registry import ray_installed
from trainers.notes import first_line

LEAST_FREE_GIB = 1.0
"""Required free space on the disk of a folder."""
UNUSABLE = "{}; no study can use this GPU"
"""Of the self-check: where there are other GPUs, a study leaves this one out, else it stops."""

Row = dict[str, Any]
"""A line of `epsearch doctor`: subject; ok, False for a fault, None for a note; detail, in words."""


def diagnose(out: Path, data_dir: Path) -> list[Row]:
    """Returns the checks of versions, GPU, arithmetic, Ray and disks.

    out, data_dir: folders on whose disks there must be space; neither need exist. Errors become failed checks.
    """
    versions = {name: installed_version(name) for name in PACKAGES if name != "ray" or ray_installed()}
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
        *_gpus(),
        *(
            [_check("Apple's GPU, with --device mps", partial(_self_check, "mps"), False, UNUSABLE)]
            if mps_present()
            else []
        ),
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


def _gpus() -> list[Row]:
    """Returns the lines of all GPUs of NVIDIA's: of several from a process each, as studies are trained."""
    if len(tokens := visible_gpus()) < 2:
        return _of_gpu()
    with ThreadPoolExecutor(len(tokens)) as pool:
        return [row for rows in pool.map(_of_another, tokens) for row in rows]


def _of_another(token: str) -> list[Row]:
    """Returns the lines of the GPU that CUDA_VISIBLE_DEVICES names so."""
    command = [sys.executable, "-P", "-m", "epsearch.doctor"]
    done = subprocess.run(command, env=os.environ | {VISIBLE: token}, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        why = first_line(RuntimeError((done.stderr.strip() or f"status {done.returncode}").splitlines()[-1]))
        return [_row(f"GPU {token}", False, f"cannot be used ({why}); studies leave it out")]
    rows: list[Row] = json.loads(done.stdout.splitlines()[-1])
    return [row | {"subject": row["subject"].replace("GPU", f"GPU {token}", 1)} for row in rows]


def _of_gpu() -> list[Row]:
    """Returns the lines of the GPU that this process uses, or one that there is none."""
    if not (cuda := gpu()):
        return [_row("GPU", None, "none that torch can use; members are trained on the CPU")]
    return [_row("GPU", True, cuda + _free_memory()), _check("GPU self-check", _self_check, False, UNUSABLE)]


def _free_memory() -> str:
    """Returns the memory of this process's GPU in words."""
    import torch

    free, total = torch.cuda.mem_get_info()
    return f", {free / 2**30:.1f} of {total / 2**30:.1f} GiB free"


def _self_check(device: str = "cuda") -> str:
    """Checks every method on a perceptron like that of MNIST, in float32."""
    from epsearch.testing.toy import toy
    from trainers import Architecture, Learner
    from trainers.engines.self_check import check
    from trainers.methods import METHODS
    from trainers.numeric_path import NumericPath

    stream, outcomes = toy(pixels=784, classes=10), {}
    for name, method in METHODS.items():
        values = {"strength": 0.1} if "strength" in method.names else {}  # which has no default, and is not used
        outcomes[name] = check(Learner.of(name, 0, **values), stream, Architecture(), NumericPath(device))
    worst = max(max(outcome.plain, outcome.projected) for outcome in outcomes.values())
    without = [name for name, outcome in outcomes.items() if outcome.graphs is False]
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


if __name__ == "__main__":  # of one GPU among several, see `_of_another`
    print(json.dumps(_of_gpu()))
