"""Data and code for workers on other machines, which share no folder with the driver.

Images and weights of a study are stored once on each node, in Ray's object store, from which processes map them. A
user's module is sent with its package, in one folder, as part of Ray's runtime environment.
"""

import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trainers.foreign.declaration import PROVIDED
from trainers.plugins.source import source_of
from trainers.streams import Images, StreamRequest
from trainers.streams.images.image_set import ImageSet

if TYPE_CHECKING:
    from torch import Tensor

    from epsearch.study.description import Study

MODULES = "epsearch_modules"  # of workers: the package whose folder contains the user's module
IGNORED = shutil.ignore_patterns("__pycache__", ".*")
Payload = tuple[Images | ImageSet | None, "dict[str, Tensor] | None"]
"""Images of a study's streams, None for a user's stream, which reads its data itself; pretrained weights, if any."""


def payload(study: "Study") -> Payload:
    """Reads the files that a study needs. Raises DataError."""
    from trainers.networks.weights import load

    images = study.request("cv").load()
    if isinstance(images, ImageSet):
        # Each process would copy the map of a file; an array is mapped from the store.
        images = replace(images, pixels=np.asarray(images.pixels), hashed=None)
    return images, None if study.pretrained is None else load(study.pretrained)


def keep_weights(weights: "dict[str, Tensor] | None", pretrained: str | None) -> None:
    """Caches pretrained weights in a worker, under the study's name of them."""
    if pretrained is not None and weights is not None:
        from trainers.networks.weights import keep

        keep(pretrained, weights)


def runtime_env(study: "Study", folder: Path) -> dict[str, Any]:
    """Returns Ray's runtime environment of workers; copies a user's module into `folder`. Raises OSError."""
    plugins = [name for name in (study.dataset, *study.plugins()) if ":" in name and not name.startswith("folder:")]
    modules = [name.partition(":")[0] for name in plugins]
    # Workers have the trainers of ours already, with their libraries.
    paths = dict.fromkeys(path for module in modules if module not in PROVIDED for path in _paths(module))
    for path in paths:
        target = folder / MODULES / path.name
        if path.is_dir():
            shutil.copytree(path, target, ignore=IGNORED, dirs_exist_ok=True)  # a package may have several folders
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    return {"py_modules": [str(folder / MODULES)]} if paths else {}


def worker_request(request: StreamRequest) -> StreamRequest:
    """Returns the request of a stream in a worker, which also searches Ray's copy of a user's module."""
    spec = find_spec(MODULES)
    if spec is None or not spec.submodule_search_locations:
        return request
    return replace(request, beside=Path(next(iter(spec.submodule_search_locations))))


def _paths(module: str) -> list[Path]:
    """Returns the files and folders of a module: whole packages, with their data."""
    tops = {}
    for path, name in source_of(module).paths.items():
        above = len(Path(name).parts) - 1
        top = Path(path).parents[above - 1] if above else Path(path)
        tops[str(top)] = top
    return list(tops.values())
