"""What every kind of study is told: the stream, how learners are trained, and where that happens."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import yaml

from epsearch.cache import image_cache
from epsearch.study.options import Option, options
from epsearch.study.published import published
from results.ledger.url import LedgerUrl
from trainers.cohort import Architecture
from trainers.hyperparameters import Hyperparameters
from trainers.methods import hyperparameters
from trainers.streams import ImageOptions, StreamRequest

# Hyperparameters of the first ledgers, whose studies name them whatever their value.
OF_FIRST_LEDGERS = ("memory", "memory_batch", "batch_size", "trigger", "scale", "satisfied")


@dataclass(frozen=True)
class Study:
    """What every command that trains is told: the stream, how members are trained, and where that happens.

    Fields are options; `options.py` says what each means and allows. So are all hyperparameters that the kind takes.
    """

    kind: ClassVar[str]
    """The command that trains it."""
    named: ClassVar[tuple[str, ...]] = OF_FIRST_LEDGERS
    """Hyperparameters that identify the study even where they have their neutral values."""
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
