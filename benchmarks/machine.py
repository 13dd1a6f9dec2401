"""What a result was measured on: machine, versions, commit."""

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
Figures = dict[str, Any]
"""The content of a file of results, or a part of it."""


def facts() -> dict[str, Any]:
    """Processor with its vector width, versions, commit and time."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line for line in lines if line.startswith("flags")), "")
    vectors = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "unknown"
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": len(names),
        "vectors": vectors,
        "gpu": gpu,
        "python": platform.python_version(),
        **{package: number for package in ("torch", "numpy", "numba", "ray") if (number := _version(package))},
        "commit": _commit(),
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def surroundings(cache: Path | str, **more: str) -> dict[str, str]:
    """The environment of a command as its user has it, but for a cache of its own; what it evaluates is no look."""
    # Where Python may not write its bytecode, every start translates torch and all others anew.
    mine = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return mine | {"EPSEARCH_CACHE": str(cache), "EPSEARCH_LOOKS": "none"} | more


def save(name: str, figures: dict[str, Any], path: Path | None = None) -> Path:
    """Writes figures with the facts to results/NAME.json, or to `path`, and prints where."""
    path = path or RESULTS / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"facts": facts(), **figures}, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path}", file=sys.stderr)
    return path


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str:
    """The commit, with "+" behind it where files other than results differ from it."""
    git = ["git", "-C", str(Path(__file__).parent)]
    code = [":(top)", ":(top,exclude)benchmarks/results"]  # what a benchmark writes as it goes on changes no figure
    try:
        answer = subprocess.run([*git, "describe", "--always", "--abbrev=10"], capture_output=True, text=True).stdout
        differs = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", *code], capture_output=True).returncode
    except FileNotFoundError:  # a bare machine without git
        return "unknown"
    return f"{answer.strip()}{'+' * bool(differs)}" if answer.strip() else "unknown"
