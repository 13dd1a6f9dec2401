"""The numeric path of a study: its option, its earlier path, or the fastest here."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import cast

from epsearch.cache import cache_folder
from epsearch.events import Listener, Note, ignore
from epsearch.failures.errors import UsageError
from epsearch.machine import installed_version, processor
from epsearch.study.description import Study
from trainers.notes import notify
from trainers.numeric_path import LISTABLE, NumericPath
from trainers.persistence import checked_files
from trainers.streams.base import ImageStream, PixelStream, TaskStream

# A residual network's members one after another, or in grouped convolutions; torch has no others than oneDNN's.
OF_IMAGES = ("cpu-float32-onednn", "cpu-float32-torch")
SUBTRACTED = "-subtracted"  # as published results were computed; each path can be given so
# Of other networks: compiled, or where there is no Numba, in tensors.
COMPILED = tuple(f"cpu-float32-{products}{kind}" for products in ("mkl", "onednn") for kind in ("", "-sparse", "-lazy"))
IN_TENSORS = ("cpu-float32-torch",)

MARK, CONSEQUENCE = "numeric paths", "the fastest arithmetic is measured again"


def numeric_path(study: Study, stream: TaskStream, begun_with: str | None = None, listener: Listener = ignore) -> str:
    """Returns the name of a study's numeric path.

    A study that goes on, on this machine or another, keeps the path it began with (`begun_with`), so that its results
    stay its own: paths round differently, and a run's key names its path. Else the fastest here is taken, which may be
    measured first, a matter of seconds. Raises UsageError where a given path does not fit the device or the network, or
    needs what is not installed here, or has lists for fewer pixels than there are.
    """
    name = _choose(study, stream, begun_with, listener)
    if study.network == "mlp" and name.removesuffix(SUBTRACTED) in COMPILED and find_spec("numba") is None:
        raise UsageError(
            f"numeric-path {name!r} needs Numba, which is not installed here; a study with {IN_TENSORS[0]} needs none"
        )
    if study.network == "mlp" and NumericPath.parse(name).products == "onednn":
        from trainers.engines.compiled.products import available  # brings torch along

        if "onednn" not in available():
            raise UsageError(
                f"numeric-path {name!r} needs oneDNN, which this build of torch lacks; {COMPILED[0]} takes torch's own"
            )
    listed = study.network == "mlp" and NumericPath.parse(name).listed
    if listed and (inputs := cast(PixelStream, stream).inputs) > LISTABLE:
        raise UsageError(
            f"numeric-path {name!r} has lists for images of at most {LISTABLE:,} pixels, got {inputs:,}; {COMPILED[0]} "
            "takes any number"
        )
    return name


def _choose(study: Study, stream: TaskStream, begun_with: str | None, listener: Listener) -> str:
    """Returns the same, without checks of installed libraries."""
    if study.foreign:  # its arithmetic is its own
        return IN_TENSORS[0] if study.device == "cpu" else f"{study.device}-float32"
    if study.architecture.own and study.numeric_path is None and begun_with is None and study.device == "cpu":
        return OF_IMAGES[0]  # members one after another: the same bits alone and in any cohort
    if study.numeric_path is not None:
        device, precision = study.numeric_path.split("-")[:2]
        if (device, precision) != (study.device, study.precision):
            raise UsageError(
                f"numeric-path {study.numeric_path!r} does not fit device {study.device!r} with precision "
                f"{study.precision!r}"
            )
        if study.network != "mlp" and device == "cpu" and study.numeric_path.removesuffix(SUBTRACTED) not in OF_IMAGES:
            raise UsageError(
                f"numeric-path must be {' or '.join(OF_IMAGES)}, perhaps with {SUBTRACTED} behind it, for network "
                f"{study.network}, got {study.numeric_path!r}"
            )
        return study.numeric_path
    if begun_with is not None:
        return begun_with
    if study.device != "cpu":
        return f"{study.device}-{study.precision}"
    if study.network == "mlp":
        pixels = cast(PixelStream, stream)
        return fastest_here(pixels.inputs, study.architecture.hidden, pixels.density, listener)
    return fastest_for_images(study.network, cast(ImageStream, stream).pixels.shape[1], listener)


def fastest_here(inputs: int, hidden: tuple[int, ...], density: float, listener: Listener = ignore) -> str:
    """Returns the fastest path of this CPU for pixels, from the cache folder or a short measurement.

    inputs: pixels of an image; hidden: units of the hidden layers; density: the share of pixels that are not zero.
    """
    share = round(density, 1)  # no finer, as each is measured once

    def measure() -> object:
        from trainers.engines.pixel_choice import fastest_path  # brings torch along

        return fastest_path(inputs, hidden, share)

    choices = COMPILED if find_spec("numba") else IN_TENSORS
    sizes = " x ".join(map(str, (inputs, *hidden)))
    return _measured_once(f"perceptron {sizes}, {share:.1f}", measure, choices, listener)


def fastest_for_images(network: str, size: int, listener: Listener = ignore) -> str:
    """Returns the same for a residual network and images of `size` × `size` pixels."""

    def measure() -> object:
        from trainers.engines.image_choice import fastest_image_path

        return fastest_image_path(network, size)

    return _measured_once(f"{network}, {size} x {size}", measure, OF_IMAGES, listener)


def _measured_once(subject: str, measure: Callable[[], object], choices: Sequence[str], listener: Listener) -> str:
    """Returns the result of a measurement, made once on this machine.

    subject: network and sizes; the processor and the versions of torch and Numba are added to it. choices: the paths
    that are measured; a cached result that is none of them comes from another version.
    """
    path = cache_folder() / "numeric-paths"
    stored = json.loads(checked_files.read(path, MARK, CONSEQUENCE) or "{}")
    here = f"{processor()}, torch {installed_version('torch')}, numba {installed_version('numba')}: {subject}"
    if (name := stored.get(here)) in choices:
        return str(name)
    if name is not None:
        notify(f"{path} names {name!r}, which cannot be used here; known: {', '.join(choices)}: {CONSEQUENCE}")
    listener(Note("measuring which arithmetic is the fastest here, once for this machine"))
    measured = str(measure())
    with suppress(OSError):  # nothing is lost but the time of measuring again
        path.parent.mkdir(parents=True, exist_ok=True)
        others = {}  # another process may have measured something else meanwhile
        with suppress(OSError):
            others = json.loads(checked_files.contents(path, MARK))
        checked_files.write(path, MARK, json.dumps(others | {here: measured}, indent=1).encode())
    return measured
