"""What workers on other machines are handed of this one, as they share no folder with it.

The images and weights that a study reads lie once on each node, in Ray's object store, from which processes map them.
A user's own module travels with all that belongs to it, in one folder, as part of Ray's runtime environment.
"""

import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trainers.foreign.declaration import PROVIDED
from trainers.plugins.source import source_of
from trainers.streams import Images, StreamRequest
from trainers.streams.images.image_set import ImageSet

if TYPE_CHECKING:
    from torch import Tensor

    from epsearch.study.description import Study

MODULES = "epsearch_modules"  # of workers: the package whose folder holds what the user's own module is made of
NO_PART = shutil.ignore_patterns("__pycache__", ".*")


class Carried(NamedTuple):
    """What a study reads, as this machine has read it."""

    images: Images | ImageSet | None
    """Of its streams; None where they are a user's own, which finds its data itself."""
    weights: "dict[str, Tensor] | None"
    """Those that networks start from; None for random ones."""


def carried(study: "Study") -> Carried:
    """Everything that workers would read from disk. Raises DataError."""
    from trainers.networks.weights import load

    images = study.request("cv").load()
    if isinstance(images, ImageSet):
        # A map of a file would be copied by each process; an array is mapped from the store.
        images = replace(images, pixels=np.asarray(images.pixels), hashed=None)
    return Carried(images, None if study.pretrained is None else load(study.pretrained))


def received(carried: Carried, pretrained: str | None) -> None:
    """Keeps, in a worker, what does not go with the job: the weights, under the name that the study has for them."""
    if pretrained is not None and carried.weights is not None:
        from trainers.networks.weights import keep

        keep(pretrained, carried.weights)


def runtime_env(study: "Study", folder: Path) -> dict[str, Any]:
    """Ray's runtime environment of workers; a user's own module is put together in `folder`. Raises OSError."""
    named = [name for name in (study.dataset, *study.plugged()) if ":" in name and not name.startswith("folder:")]
    modules = [name.partition(":")[0] for name in named]
    # What stands for a trainer of ours is there, as are the libraries that it uses.
    places = dict.fromkeys(place for one in modules if one not in PROVIDED for place in _places(one))
    for place in places:
        target = folder / MODULES / place.name
        if place.is_dir():
            shutil.copytree(place, target, ignore=NO_PART, dirs_exist_ok=True)  # of a package in several folders all
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(place, target)
    return {"py_modules": [str(folder / MODULES)]} if places else {}


def beside(request: StreamRequest) -> StreamRequest:
    """The request as a worker opens it: a user's own module is looked for where Ray has put it, too."""
    found = find_spec(MODULES)
    if found is None or not found.submodule_search_locations:
        return request
    return replace(request, beside=Path(next(iter(found.submodule_search_locations))))


def _places(module: str) -> list[Path]:
    """Files and folders that belong to a module, packages as a whole, with the data in them."""
    tops = {}
    for path, name in source_of(module).paths.items():
        above = len(Path(name).parts) - 1
        top = Path(path).parents[above - 1] if above else Path(path)
        tops[str(top)] = top
    return list(tops.values())
