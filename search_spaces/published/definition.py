"""The published settings of a dataset: what its search for ε looks like, and how its methods are trained.

The values live in `definitions/*.yaml`, each beside a comment that names its source table: ε-SOFT-GEM for the
search and the new methods, A-GEM (arXiv 1812.00420, appendix G) for the others. A new dataset is a new file
there.
"""

import difflib
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from search_spaces.interval import Interval
from search_spaces.published.fields import Fields, read_yaml

_FOLDER, _OWN, _GRIDS = "definitions", "own", "grids.yaml"


class UnknownDataset(ValueError):
    """No definition has this name; the message is one line with the known names and the nearest one."""


@dataclass(frozen=True)
class MethodSettings:
    """Values of the hyperparameters that a dataset's definition gives for one method, under the names written there."""

    name: str
    values: tuple[tuple[str, float | str], ...]

    @property
    def learning_rate(self) -> float:
        """Of SGD."""
        return float(dict(self.values)["learning_rate"])

    @property
    def strength(self) -> float | None:
        """λ of the penalty; None for methods without one."""
        found = dict(self.values).get("strength")
        return None if found is None else float(found)


@dataclass(frozen=True)
class Definition:
    """The settings of one dataset.

    points, repeats, seeds  N values of ε a grid, M grids, R runs for each ε (ε-SOFT-GEM, exploration of ε)
    reported_epsilon        the ε that the paper found; None where it gives none
    tasks, cv_tasks         length of the whole stream, and of its first part, on which ε is chosen
    classes                 classes per task
    network                 mlp, reduced_resnet18 or resnet18
    image_size              side of the images in pixels; None where a task's inputs are taken as they are
    pretrained              weights that the network starts from; None for random ones
    memory                  examples kept per class and task
    memory_batch            examples of a reference batch
    memory_sizes            values of `memory` that a memory study compares
    learning_rate           of the new methods; `method(name)` knows that of every method
    fisher_every            SGD steps between updates of a Fisher estimate
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    interval: Interval
    points: int
    repeats: int
    seeds: int
    reported_epsilon: float | None
    tasks: int
    cv_tasks: int
    classes: int
    network: str
    image_size: int | None
    pretrained: str | None
    learning_rate: float
    batch_size: int
    memory: int
    memory_batch: int
    memory_sizes: tuple[int, ...]
    fisher_every: int
    methods: tuple[MethodSettings, ...]

    def method(self, name: str) -> MethodSettings:
        """The settings of a method. Raises ValueError when the sources give none for this dataset."""
        for settings in self.methods:
            if settings.name == name:
                return settings
        known = ", ".join(settings.name for settings in self.methods)
        raise ValueError(f"no settings for method {name!r} on {self.name}; known: {known}")


@dataclass(frozen=True)
class MethodGrids:
    """Values tried in A-GEM's appendix G: learning rates for every method, λ for those with a penalty."""

    learning_rates: tuple[float, ...]
    strengths: tuple[tuple[str, tuple[float, ...]], ...]


def definitions() -> tuple[str, ...]:
    """Names of all datasets, sorted."""
    return tuple(sorted(_all()))


def load_definition(name: str) -> Definition:
    """The definition of a dataset by name or alias; '-' and '_', upper and lower case are the same.

    folder:/path and module:factory, a user's own, have definitions for their kind. Raises UnknownDataset.

    >>> load_definition("seq-cifar100").reported_epsilon
    0.5
    """
    kind, colon, _ = name.strip().partition(":")
    if colon:
        own = _read(f"{_OWN}/{kind if kind == 'folder' else 'module'}")
        return replace(own, name=name.strip(), title=name.strip())
    wanted = name.strip().lower().replace("-", "_")
    for definition in _all().values():
        if wanted == definition.name or wanted in definition.aliases:
            return definition
    spellings = {alias: one.name for one in _all().values() for alias in (one.name, *one.aliases)}
    near = difflib.get_close_matches(wanted, spellings, n=1)
    hint = f"; did you mean {spellings[near[0]]!r}?" if near else ""
    raise UnknownDataset(f"no dataset {name!r}; known: {', '.join(definitions())}{hint}")


@cache
def method_grids() -> MethodGrids:
    """The grids from which A-GEM's values were selected."""
    text = (resources.files("search_spaces.published") / _FOLDER / _GRIDS).read_text("utf-8")
    fields = Fields(_GRIDS, read_yaml(_GRIDS, text))
    strengths = fields.section("strengths")
    pairs = tuple((method, strengths.numbers(method)) for method in strengths.names)
    return MethodGrids(fields.numbers("learning_rates"), pairs)


@cache
def _all() -> dict[str, Definition]:
    folder = resources.files("search_spaces.published") / _FOLDER
    names = [one.name for one in folder.iterdir() if one.name.endswith(".yaml") and one.name != _GRIDS]
    stems = [name.removesuffix(".yaml") for name in names]
    return {stem: _read(stem) for stem in stems}


@cache
def _read(stem: str) -> Definition:
    text = (resources.files("search_spaces.published") / _FOLDER / f"{stem}.yaml").read_text("utf-8")
    return parse_definition(stem, text)


def parse_definition(name: str, text: str) -> Definition:
    """A definition from its YAML text. Raises ValueError naming what is missing, unknown or malformed."""
    fields = Fields(name, read_yaml(name, text))
    fields.must_be(frozenset(Definition.__annotations__) - {"name"})
    ends = fields.numbers("interval")
    if len(ends) != 2:
        raise ValueError(f"{name}: interval must be [low, high], got {list(ends)}")
    methods = fields.section("methods")
    return Definition(
        name=name,
        title=fields.text("title"),
        aliases=fields.texts("aliases"),
        interval=Interval(*ends),
        points=fields.count("points"),
        repeats=fields.count("repeats"),
        seeds=fields.count("seeds"),
        reported_epsilon=fields.number_or_none("reported_epsilon"),
        tasks=fields.count("tasks"),
        cv_tasks=fields.count("cv_tasks"),
        classes=fields.count("classes"),
        network=fields.text("network"),
        image_size=fields.count_or_none("image_size"),
        pretrained=fields.text_or_none("pretrained"),
        learning_rate=fields.number("learning_rate"),
        batch_size=fields.count("batch_size"),
        memory=fields.count("memory"),
        memory_batch=fields.count("memory_batch"),
        memory_sizes=fields.counts("memory_sizes"),
        fisher_every=fields.count("fisher_every"),
        methods=tuple(_method(one, methods.section(one)) for one in methods.names),
    )


def _method(name: str, fields: Fields) -> MethodSettings:
    fields.number("learning_rate")
    return MethodSettings(name, tuple((one, fields.number_or_text(one)) for one in fields.names))
