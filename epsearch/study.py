"""What is asked for: frozen descriptions of a search, a comparison of methods, and a study of the memory."""

import hashlib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import yaml

from epsearch.cache import image_cache
from epsearch.options import OPTIONS, Option
from trainers.cohort import TrainConfig
from trainers.streams import ImageOptions, StreamRequest


@dataclass(frozen=True)
class Setup:
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
    storage: str
    data_dir: Path

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """The options that are fields, in the order of the table."""
        names = {field.name for field in fields(cls)}
        return tuple(option for option in OPTIONS if option.name in names)

    def identity(self) -> dict[str, Any]:
        """What makes the study this one, JSON-able: everything that can change a figure, nothing that cannot."""
        identifying = {option.name for option in self.options() if option.identifies}
        return {name: value for name, value in self.shown().items() if name in identifying}

    def digest(self) -> str:
        """A short hash of the identity."""
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()[:6]

    def shown(self) -> dict[str, Any]:
        """Every option as YAML and JSON write it."""
        return {option.name: option.show(getattr(self, option.name)) for option in self.options()}

    def to_yaml(self) -> str:
        """The study as a file that the same command reads back with `--config`."""
        text: str = yaml.safe_dump(self.shown(), sort_keys=False, allow_unicode=True, default_flow_style=None)
        return text

    def stream_tasks(self, phase: str) -> range:
        """Tasks of D^CV ("cv") or D^EV ("eval"), numbered in the whole stream."""
        return range(self.cv_tasks) if phase == "cv" else range(self.cv_tasks, self.tasks)

    def request(self, phase: str) -> StreamRequest:
        """The stream of D^CV or D^EV."""
        options = None
        if self.classes_per_task is not None and self.image_size is not None:
            options = ImageOptions(self.classes_per_task, self.image_size, self.skip_corrupt, image_cache())
        tasks, data_dir = self.stream_tasks(phase), self.data_dir.absolute()
        return StreamRequest(self.dataset, data_dir, tasks, self.examples_per_task, options, Path.cwd())

    @property
    def folder(self) -> Path:
        """Where the report and the tables lie."""
        return self.out / self.name


@dataclass(frozen=True)
class Study(Setup):
    """A search for ε: `epsearch run`."""

    kind = "run"

    method: str
    repeats: int
    points: int
    memory: int
    lr: float
    interval: tuple[float, float]
    score_on: str
    certify: int

    def train_config(self) -> TrainConfig:
        return TrainConfig(
            learning_rate=self.lr,
            batch_size=self.batch_size,
            memory=self.memory,
            memory_batch=self.memory_batch,
            trigger=self.trigger,
            scale=self.scale,
            satisfied=self.satisfied,
            network=self.network,
            pretrained=self.pretrained,
        )


@dataclass(frozen=True)
class Comparison(Setup):
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
class MemoryStudy(Setup):
    """Methods with an episodic memory at several sizes of it: `epsearch memory`."""

    kind = "memory"

    methods: tuple[str, ...]
    sizes: tuple[int, ...]
    epsilon: float
    settings: tuple[tuple[str, str, float], ...]
    a_agem_scale: str


KINDS: dict[str, type[Setup]] = {kind.kind: kind for kind in (Study, Comparison, MemoryStudy)}
