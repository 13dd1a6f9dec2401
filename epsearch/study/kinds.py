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
from trainers.cohort import Member, TrainConfig
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
    """The command that trains it."""
    grows: ClassVar[bool] = False
    """Whether a stored one may become another one that has all of its runs."""

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

    @property
    def prefix(self) -> str:
        """What a name that nobody chose begins with."""
        return f"{self.kind}-"

    @property
    def stored_kind(self) -> dict[str, str]:
        """How a ledger says which kind it is."""
        return {"kind": self.kind}

    @property
    def searches(self) -> bool:
        """Whether anything is chosen by what members score on D^CV, of which the evaluation must know nothing."""
        return False

    @property
    def scored(self) -> str:
        """The phase whose scores choose, where anything is chosen."""
        return "cv"

    @property
    def tried(self) -> int:
        """Values that are tried, at most; 1 where nothing is searched."""
        return 1

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
    def folder(self) -> Path:
        """Where the report and the tables lie."""
        return self.out / self.name


@dataclass(frozen=True)
class Search(Study):
    """A search: `epsearch run`."""

    kind = "run"
    grows = True
    prefix = ""
    searches = True
    stored_kind: ClassVar[dict[str, str]] = {}  # as they were stored before there were other kinds

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

    @property
    def scored(self) -> str:
        return self.score_on

    @property
    def tried(self) -> int:
        return self.points * self.repeats

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

    def train_config(self) -> TrainConfig:
        """Of what is not searched."""
        named = {field.name for field in fields(TrainConfig)} & {field.name for field in fields(self)}
        return TrainConfig(learning_rate=self.lr, **{name: getattr(self, name) for name in named})

    def member(self, seed: int) -> Member:
        """Of what is not searched."""
        return Member(self.epsilon, seed, strength=self.strength)


@dataclass(frozen=True)
class Table(Study):
    """Methods × sizes of the episodic memory on the evaluation stream, beside a printed table."""

    methods: tuple[str, ...]
    epsilon: float
    settings: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True)
class Comparison(Table):
    """Every method, with memories of one size: `epsearch compare`."""

    kind = "compare"

    memory: int
    tune: bool
    fisher_every: int
    penalty_form: str
    margin: float

    @property
    def searches(self) -> bool:
        return self.tune


@dataclass(frozen=True)
class MemoryStudy(Table):
    """Methods with an episodic memory, at several sizes of it: `epsearch memory`."""

    kind = "memory"

    sizes: tuple[int, ...]
    a_agem_scale: str


KINDS: dict[str, type[Study]] = {kind.kind: kind for kind in (Search, Comparison, MemoryStudy)}
