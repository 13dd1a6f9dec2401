"""What is asked for: frozen descriptions of a search, a comparison of methods, and a study of the memory."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import yaml

from epsearch.cache import image_cache
from epsearch.study.hyperparameters import EPSILON, epsilon
from epsearch.study.options import OPTIONS, Option
from epsearch.study.published import published
from results.ledger.url import LedgerUrl
from results.points import SOFT_AGEM
from search_spaces.space import Point, Space
from trainers.cohort import Architecture, Learner
from trainers.methods import method
from trainers.streams import ImageOptions, StreamRequest

# Options of other commands that searches came to have later than their first ledgers.
CAME_LATER = ("epsilon", "a_agem_scale", "fisher_every", "penalty_form", "margin")
# No figure depends on it, but whether a study is finished does: a ledger keeps what the newest run asked for.
ASKED = ("certify",)


@dataclass(frozen=True)
class Study:
    """What every command that trains is told: the stream, how members are trained, and where that happens.

    Fields are options; `options.py` says what each means and allows.
    """

    kind: ClassVar[str]

    dataset: str
    seeds: tuple[int, ...]
    cv_tasks: int
    tasks: int
    classes_per_task: int | None
    image_size: int | None
    network: str
    pretrained: str | None
    skip_corrupt: bool
    memory_batch: int | None
    batch_size: int
    examples_per_task: int | None
    trigger: str
    scale: str
    satisfied: str
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

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """The options that are fields, in the order of the table."""
        names = {field.name for field in fields(cls)}
        return tuple(option for option in OPTIONS if option.name in names)

    def identity(self) -> dict[str, Any]:
        """What makes the study this one, JSON-able: everything that can change a figure, nothing that cannot."""
        shown, known = self.shown(), self.defaults()
        return {
            option.name: shown[option.name]
            for option in self.options()
            if option.identifies
            and not (self._later(option) and getattr(self, option.name) == known.get(option.name, option.default))
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
            option.name: option.show(getattr(self, option.name))
            for option in self.options()
            if option.name not in hidden
        }

    def to_yaml(self) -> str:
        """The study as a file that the same command reads back with `--config`."""
        text: str = yaml.safe_dump(self.shown(), sort_keys=False, allow_unicode=True, default_flow_style=None)
        return text

    def _later(self, option: Option) -> bool:
        return option.later

    def stream_tasks(self, phase: str) -> range:
        """Tasks of D^CV ("cv") or D^EV ("eval"), numbered in the whole stream."""
        return range(self.cv_tasks) if phase == "cv" else range(self.cv_tasks, self.tasks)

    def stream_seeds(self, phase: str) -> tuple[int, ...]:
        """Seeds that may be trained on D^CV ("cv") or D^EV ("eval")."""
        return self.seeds

    @property
    def largest_batch(self) -> int:
        """Examples of the largest SGD step that is trained."""
        return self.batch_size

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

    method: str
    strategy: str
    search: Space | None
    strategy_seed: int
    race: bool
    repeats: int
    points: int
    eval_seeds: tuple[int, ...] | None
    memory: int
    lr: float
    epsilon: float
    strength: float | None
    interval: tuple[float, float]
    score_on: str
    a_agem_scale: str
    fisher_every: int
    penalty_form: str
    margin: float
    certify: int

    def _later(self, option: Option) -> bool:
        return option.later or option.name in CAME_LATER

    def defaults(self) -> dict[str, Any]:
        return published(self.dataset, self.method)

    @property
    def space(self) -> Space:
        """What is searched. ε = 0 of ε-SOFT-GEM stands apart: it is A-GEM, another formula."""
        found = self.search or Space((epsilon(*self.interval),))
        if self.method != SOFT_AGEM:
            return found
        return Space(tuple(replace(one, apart=(0.0,)) if one.name == EPSILON else one for one in found.parameters))

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
        return max([self.batch_size, *(int(end) for row in ends for end in row if end is not None)])

    @property
    def baseline(self) -> Point:
        """What the chosen point is compared with: the study's own values, but ε = 0 (of ε-SOFT-GEM, A-GEM)."""
        return tuple(0.0 if name == EPSILON else getattr(self, name) for name in self.space.names)

    def learner(self, point: Point, seed: int) -> Learner:
        """With a point's values of what is searched, and the study's own of all else. Raises ValueError."""
        declared = method(self.method).hyperparameters
        own = {one.name: getattr(self, one.name) for one in declared if hasattr(self, one.name)}
        return Learner.of(self.method, seed, **own | dict(zip(self.space.names, point, strict=True)))


@dataclass(frozen=True)
class Comparison(Study):
    """Every method on the evaluation stream beside the printed table: `epsearch compare`."""

    kind = "compare"

    methods: tuple[str, ...]
    memory: int
    epsilon: float
    settings: tuple[tuple[str, str, float], ...]
    tune: bool
    fisher_every: int
    penalty_form: str
    margin: float


@dataclass(frozen=True)
class MemoryStudy(Study):
    """Methods with an episodic memory at several sizes of it: `epsearch memory`."""

    kind = "memory"

    methods: tuple[str, ...]
    sizes: tuple[int, ...]
    epsilon: float
    settings: tuple[tuple[str, str, float], ...]
    a_agem_scale: str


KINDS: dict[str, type[Study]] = {kind.kind: kind for kind in (Search, Comparison, MemoryStudy)}
