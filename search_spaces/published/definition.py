"""The published settings of a dataset, for its search and methods.

The values are in `definitions/*.yaml`, where a comment beside each names its source table: the ε-SOFT-GEM paper for the
search and the new methods, A-GEM (arXiv 1812.00420, appendix G) for the others. A new dataset is a new file there.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, get_type_hints

from search_spaces.interval import Interval
from search_spaces.published.fields import Fields, read_yaml

FOLDER = resources.files("search_spaces.published") / "definitions"
_GRIDS = "grids.yaml"


class UnknownDataset(ValueError):
    """No definition has this name; the message is one line with the known names and the nearest one."""


@dataclass(frozen=True)
class Definition:
    """The published settings of one dataset, the defaults of its studies."""

    name: str
    """As after --dataset."""
    title: str
    """As in the paper: "Permuted MNIST"."""
    aliases: tuple[str, ...]
    """Other spellings of the name that are understood."""
    interval: Interval
    """Where ε is searched."""
    points: int
    """N values of ε a grid (ε-SOFT-GEM paper, exploration of ε)."""
    repeats: int
    """M grids."""
    seeds: int
    """R runs for each ε."""
    reported_epsilon: float | None
    """The ε that the paper found; None where it gives none."""
    tasks: int
    """Tasks of the whole stream."""
    cv_tasks: int | None
    """Tasks of its first part, on which ε is chosen; None for a stream that is too short for such a part."""
    classes: int
    """Classes per task."""
    scenarios: tuple[str, ...]
    """Scenarios that the stream can have, the usual one first; empty where the stream itself has one."""
    network: str
    """One of mlp, reduced_resnet18 and resnet18."""
    image_size: int | None
    """Side of the images in pixels; None where the inputs of a task are not resized."""
    pretrained: str | None
    """Weights that the network starts from; None for random ones."""
    learning_rate: float
    """Learning rate of the new methods; `method(name)` has that of every method."""
    batch_size: int
    """Examples of one SGD step."""
    memory: int
    """Examples kept in the episodic memory per class and task."""
    memory_batch: int
    """Examples of a reference batch."""
    memory_sizes: tuple[int, ...]
    """Values of `memory` that a memory study compares."""
    fisher_every: int
    """SGD steps between updates of a Fisher estimate."""
    methods: Mapping[str, Mapping[str, float | str]]
    """Method ("ewc", "agem", …) -> hyperparameter, as the definition names it -> value, where the sources give some."""

    def method(self, name: str) -> Mapping[str, float | str]:
        """Returns the settings of a method. Raises ValueError when the sources give none for this dataset."""
        if name not in self.methods:
            raise ValueError(f"no settings for method {name!r} on {self.name}; known: {', '.join(self.methods)}")
        return self.methods[name]


def definitions() -> tuple[str, ...]:
    """Returns the names of all datasets, sorted."""
    return tuple(sorted(_all()))


def load_definition(name: str) -> Definition:
    """Returns the definition of a dataset by name or alias; '-' and '_', upper and lower case are the same.

    A user's own dataset, folder:/path or module:factory, has the definition of its kind. Raises UnknownDataset.

    >>> load_definition("seq-cifar100").reported_epsilon
    0.5
    """
    kind, colon, _ = name.strip().partition(":")
    if colon:
        return replace(_read(f"own/{kind if kind == 'folder' else 'module'}"), name=name.strip(), title=name.strip())
    spelling = name.strip().lower().replace("-", "_")
    spellings = {
        alias: definition for definition in _all().values() for alias in (definition.name, *definition.aliases)
    }
    if spelling in spellings:
        return spellings[spelling]
    near = difflib.get_close_matches(spelling, spellings, n=1)  # aliases, too: they are what people misspell
    hint = f"; did you mean {spellings[near[0]].name!r}?" if near else ""
    raise UnknownDataset(f"no dataset {name!r}; known: {', '.join(definitions())}{hint}")


@cache
def learning_rate_grid() -> tuple[float, ...]:
    """Returns the learning rates that A-GEM's appendix G tried for every method."""
    rates: tuple[float, ...] = _grids().read("learning_rates", tuple[float, ...])
    return rates


@cache
def strength_grids() -> Mapping[str, tuple[float, ...]]:
    """Returns method -> the λ that A-GEM's appendix G tried, of the methods with a penalty."""
    strengths = _grids().section("strengths")
    return {method: strengths.read(method, tuple[float, ...]) for method in strengths.names}


def _grids() -> Fields:
    return Fields(_GRIDS, read_yaml(_GRIDS, (FOLDER / _GRIDS).read_text("utf-8")))


@cache  # the files are part of the package, and every option of a command asks for one
def _all() -> dict[str, Definition]:
    """Returns name -> definition of every dataset that has a file."""
    names = [file.name for file in FOLDER.iterdir() if file.name.endswith(".yaml") and file.name != _GRIDS]
    return {stem: _read(stem) for stem in (name.removesuffix(".yaml") for name in names)}


@cache
def _read(stem: str) -> Definition:
    return parse_definition(stem, (FOLDER / f"{stem}.yaml").read_text("utf-8"))


def parse_definition(name: str, text: str) -> Definition:
    """Returns a definition from its YAML text. Raises ValueError that names a missing, unknown or malformed field."""
    # A field's annotation says how it is read, so that the two cannot differ.
    fields, kinds = Fields(name, read_yaml(name, text)), get_type_hints(Definition)
    # Exactly the fields of the class, so that a misspelled one is an error and not ignored.
    fields.must_be(frozenset(kinds) - {"name"})
    ends, methods = fields.read("interval", tuple[float, ...]), fields.section("methods")
    if len(ends) != 2:
        raise ValueError(f"{name}: interval must be [low, high], got {list(ends)}")
    settings = {method: _method(methods.section(method)) for method in methods.names}
    built: dict[str, Any] = {"name": name, "interval": Interval(*ends), "methods": settings}
    return Definition(**built, **{field: fields.read(field, kinds[field]) for field in kinds if field not in built})


def _method(fields: Fields) -> dict[str, float | str]:
    fields.read("learning_rate", float)  # every method has one
    return {name: fields.read(name, float | str) for name in fields.names}
