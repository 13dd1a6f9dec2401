"""What is asked for: frozen descriptions of a search, a comparison of methods, and a study of the memory."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import yaml

from epsearch.cache import image_cache
from epsearch.study.hyperparameters import EPSILON, epsilon
from epsearch.study.options import Option, options
from epsearch.study.parsers import of_sampled_memory
from epsearch.study.published import published
from results.ledger.url import LedgerUrl
from search_spaces.space import Point, Space
from trainers.cohort import Architecture, Learner
from trainers.hyperparameters import Hyperparameters, Value
from trainers.methods import METHODS, hyperparameters, method
from trainers.streams import ImageOptions, StreamRequest

# Hyperparameters of the first ledgers, whose studies name them whatever their value.
OF_FIRST_LEDGERS = ("memory", "memory_batch", "batch_size", "trigger", "scale", "satisfied")
# No figure depends on it, but whether a study is finished does: a ledger keeps what the newest run asked for.
ASKED = ("certify",)


@dataclass(frozen=True)
class Study:
    """What every command that trains is told: the stream, how members are trained, and where that happens.

    Fields are options; `options.py` says what each means and allows. So are all hyperparameters that the kind takes.
    """

    kind: ClassVar[str]
    named: ClassVar[tuple[str, ...]] = OF_FIRST_LEDGERS
    """Hyperparameters that identify the study even where they have their neutral values."""

    dataset: str
    seeds: tuple[int, ...]
    cv_tasks: int
    tasks: int
    classes_per_task: int | None
    image_size: int | None
    network: str
    pretrained: str | None
    skip_corrupt: bool
    examples_per_task: int | None
    device: str
    precision: str
    numeric_path: str | None
    runner: str
    workers: int | None
    address: str
    name: str
    out: Path
    storage: LedgerUrl
    data_dir: Path
    hyperparameters: Hyperparameters
    """Values for all methods that have them, where they are not searched or given for one method."""

    @classmethod
    def takes(cls) -> tuple[str, ...]:
        """Names of the hyperparameters that are options."""
        return tuple(hyperparameters())

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """From a value of every option."""
        taken = set(cls.takes())
        others = {name: value for name, value in values.items() if name not in taken}
        return cls(**others, hyperparameters=Hyperparameters(**{name: values[name] for name in cls.takes()}))

    def but(self, **values: Any) -> Self:
        """The same with other values of some options."""
        return self.of({option.name: self.value(option.name) for option in self.options()} | values)

    def value(self, name: str) -> Any:
        """Of an option."""
        return vars(self.hyperparameters)[name] if name in vars(self.hyperparameters) else getattr(self, name)

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """The options that are fields, in the order of the table."""
        names = {*(field.name for field in fields(cls)), *cls.takes()}
        return tuple(option for option in options() if option.name in names)

    def identity(self) -> dict[str, Any]:
        """What makes the study this one, JSON-able: everything that can change a figure, nothing that cannot."""
        shown, known = self.shown(), self.defaults()
        return {
            option.name: shown[option.name]
            for option in self.options()
            if option.identifies
            and (
                not option.later
                or option.name in self.named
                or self.value(option.name) != known.get(option.name, option.default)
            )
        }

    def defaults(self) -> dict[str, Any]:
        """What the dataset's definition says, under the names of the options."""
        return published(self.dataset)

    def digest(self) -> str:
        """A short hash of the identity."""
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()[:6]

    def shown(self) -> dict[str, Any]:
        """Every option as YAML and JSON write it; not the ledger's place where the environment says that."""
        hidden = {"storage"} if self.storage.from_environment else set()
        return {
            option.name: option.show(self.value(option.name)) for option in self.options() if option.name not in hidden
        }

    def to_yaml(self) -> str:
        """The study as a file that the same command reads back with `--config`."""
        text: str = yaml.safe_dump(self.shown(), sort_keys=False, allow_unicode=True, default_flow_style=None)
        return text

    def stream_tasks(self, phase: str) -> range:
        """Tasks of D^CV ("cv") or D^EV ("eval"), numbered in the whole stream."""
        return range(self.cv_tasks) if phase == "cv" else range(self.cv_tasks, self.tasks)

    def stream_seeds(self, phase: str) -> tuple[int, ...]:
        """Seeds that may be trained on D^CV ("cv") or D^EV ("eval")."""
        return self.seeds

    @property
    def largest_batch(self) -> int:
        """Examples of the largest SGD step that is trained."""
        return int(self.hyperparameters.batch_size)

    def request(self, phase: str, source: Mapping[str, str] | None = None) -> StreamRequest:
        """The stream of D^CV or D^EV; source: as in StreamRequest."""
        options = None
        if self.classes_per_task is not None and self.image_size is not None:
            options = ImageOptions(self.classes_per_task, self.image_size, self.skip_corrupt, image_cache())
        tasks, data_dir = self.stream_tasks(phase), self.data_dir.absolute()
        return StreamRequest(self.dataset, data_dir, tasks, self.examples_per_task, options, Path.cwd(), source)

    @property
    def architecture(self) -> Architecture:
        """What is trained."""
        return Architecture(self.network, pretrained=self.pretrained)

    @property
    def folder(self) -> Path:
        """Where the report and the tables lie."""
        return self.out / self.name


@dataclass(frozen=True)
class Search(Study):
    """A search: `epsearch run`."""

    kind = "run"
    named = (*OF_FIRST_LEDGERS, "lr")

    method: str
    strategy: str
    search: Space | None
    strategy_seed: int
    race: bool
    repeats: int
    points: int
    eval_seeds: tuple[int, ...] | None
    interval: tuple[float, float]
    score_on: str
    certify: int

    def defaults(self) -> dict[str, Any]:
        return published(self.dataset, self.method)

    @property
    def space(self) -> Space:
        """What is searched. ε = 0 of ε-SOFT-GEM stands apart: it is A-GEM, another formula."""
        asked = self.search or Space((epsilon(*self.interval),))
        if self.method not in METHODS or not METHODS[self.method].at_zero:
            return asked
        return Space(tuple(replace(one, apart=(0.0,)) if one.name == EPSILON else one for one in asked.parameters))

    @property
    def final_seeds(self) -> tuple[int, ...]:
        """Seeds of the evaluation."""
        return self.seeds if self.eval_seeds is None else self.eval_seeds

    def stream_seeds(self, phase: str) -> tuple[int, ...]:
        if phase == "cv":
            return self.seeds
        searched = self.seeds if self.score_on == "eval" else ()
        return tuple(dict.fromkeys((*searched, *self.final_seeds)))

    @property
    def largest_batch(self) -> int:
        ends = [(one.high, *one.choices) for one in self.space.parameters if one.name == "batch_size"]
        return max([super().largest_batch, *(int(end) for row in ends for end in row if end is not None)])

    @property
    def baseline(self) -> Point:
        """What the chosen point is compared with: the study's own values, but ε = 0 (of ε-SOFT-GEM, A-GEM)."""
        return tuple(0.0 if name == EPSILON else self.value(name) for name in self.space.names)

    def learner(self, point: Point, seed: int) -> Learner:
        """With a point's values of what is searched, and the study's own of all else. Raises ValueError."""
        declared = method(self.method).hyperparameters
        own = {one.name: self.value(one.name) for one in declared}
        return Learner.of(self.method, seed, **own | dict(zip(self.space.names, point, strict=True)))


@dataclass(frozen=True)
class Comparison(Study):
    """Every method on the evaluation stream beside the printed table: `epsearch compare`."""

    kind = "compare"
    named = (*OF_FIRST_LEDGERS, "epsilon", "fisher_every", "penalty_form", "margin")

    methods: tuple[str, ...]
    settings: tuple[tuple[str, str, Value], ...]
    tune: bool

    @classmethod
    def takes(cls) -> tuple[str, ...]:
        """Not what each method has a value of its own for, nor what all methods that have it show in several rows."""
        compared = {name for one in METHODS.values() for name, _ in one.variants}
        kept = {name for one in METHODS.values() for name in one.names if name not in dict(one.variants)}
        known = hyperparameters()
        return tuple(name for name in known if not known[name].per_method and name not in compared - kept)


@dataclass(frozen=True)
class MemoryStudy(Study):
    """Methods with an episodic memory at several sizes of it: `epsearch memory`."""

    kind = "memory"
    named = (*OF_FIRST_LEDGERS, "epsilon", "a_agem_scale")

    methods: tuple[str, ...]
    sizes: tuple[int, ...]
    settings: tuple[tuple[str, str, Value], ...]

    @classmethod
    def takes(cls) -> tuple[str, ...]:
        """Those of its methods; not what each has a value of its own for, nor the memory, which is compared."""
        own = {one.name for method in of_sampled_memory() for one in METHODS[method].hyperparameters}
        known = hyperparameters()
        return tuple(name for name in known if name in own and not known[name].per_method and name != "memory")


KINDS: dict[str, type[Study]] = {kind.kind: kind for kind in (Search, Comparison, MemoryStudy)}
