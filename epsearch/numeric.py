"""The numeric path of a study: given, or the one it began with, or the fastest on this machine, measured once."""

import json
from contextlib import suppress
from pathlib import Path

from epsearch.cache import cache_folder
from epsearch.errors import UsageError
from epsearch.machine import installed, processor
from epsearch.study import Setup
from results.files import write_atomically
from trainers.cohort import TrainConfig
from trainers.streams.base import TaskStream


def numeric_path(study: Setup, stream: TaskStream, begun_with: str | None = None) -> str:
    """The path's name. Raises UsageError where a given one does not fit the device.

    A study that goes on, on this machine or another, keeps the path it began with, so that its results stay its own.
    """
    if study.numeric_path is not None:
        device, precision = study.numeric_path.split("-")[:2]
        if (device, precision) != (study.device, study.precision):
            raise UsageError(
                f"numeric-path {study.numeric_path!r} does not fit device {study.device!r} with precision "
                f"{study.precision!r}"
            )
        return study.numeric_path
    if begun_with is not None:
        return begun_with
    if study.device == "cuda":
        return f"{study.device}-{study.precision}"
    return fastest_here(stream.inputs, TrainConfig().hidden[0], stream.density)


def fastest_here(inputs: int, width: int, density: float) -> str:
    """The fastest path of this machine's CPU for such images, from the cache folder or a short measurement."""
    path = cache_folder() / "numeric-paths.json"
    known = _read(path)
    share = round(density, 1)
    subject = f"{processor()}, torch {installed('torch')}, numba {installed('numba')}: {inputs} x {width}, {share:.1f}"
    if subject not in known:
        from trainers.engines.choice import fastest_path

        known = _read(path) | {subject: str(fastest_path(inputs, width, share))}
        with suppress(OSError):  # nothing is lost but the time of measuring again
            write_atomically(path, json.dumps(known, indent=1).encode())
    return known[subject]


def _read(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
