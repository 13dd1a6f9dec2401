"""What every kind of study is told: the stream, how learners are trained, and where that happens."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import yaml

from epsearch.cache import image_cache
from epsearch.study import filling
from epsearch.study.option import Option
from epsearch.study.options import CURVE, PAIRS, options
from epsearch.study.published import published
from results.labels import A_T
from results.ledger.url import LedgerUrl
from trainers.cohort import Architecture
from trainers.hyperparameters import Hyperparameters
from trainers.methods import METHODS, PLUGGED, hyperparameters

if TYPE_CHECKING:
    from trainers.foreign.process import Limits
    from trainers.streams import StreamRequest

# Values that names of studies do not depend on, although identities have them.
NOT_IN_NAMES = {"choose": CURVE, "race_rule": PAIRS}


class Disjointness(NamedTuple):
    """Whether search and evaluation share nothing, as it was proved before the training began."""

    sound: bool = True
    """Whether it was proved, or nothing is chosen on one stream and measured on the other."""
    sentence: str = ""
    """About it; "" where there is nothing to prove."""
    warning: str = ""
    """About near-duplicates; "" where there are none."""


@dataclass(frozen=True, init=False)
class Study:
    """What every command that trains is told: the stream, how members are trained, and where that happens.

    Fields are options; `options.py` says what each means and allows. So are all hyperparameters that the kind takes.
    """

    def __init__(self, **given: Any) -> None:
        """Takes options by their names; those that are left out get their values as on the command line.

        Values may be written as there, too. Raises UsageError, one line, for what cannot be. With every field, which is
        what `of` and `dataclasses.replace` give, nothing is filled in or checked.
        """
        complete = given.keys() == {field.name for field in fields(self)}
        for name, value in (given if complete else vars(filling.filled(type(self), given))).items():
            object.__setattr__(self, name, value)

    kind: ClassVar[str]
    """The command that trains it."""
    named: ClassVar[tuple[str, ...]] = ("memory", "memory_batch", "batch_size", "trigger", "scale", "satisfied")
    """Hyperparameters that identify the study even where they have their neutral values."""
    names_its_kind: ClassVar[bool] = True
    """Whether ledgers and names that nobody chose say which kind it is: not of searches, which were there first."""
    grows: ClassVar[bool] = False
    """Whether a stored one may become another one that has all of its runs."""

    dataset: str
    """A definition's name, folder:/path or module:factory."""
    seeds: tuple[int, ...]
    """Of the members; a race begins with the first ones."""
    cv_tasks: int
    """Tasks of D^CV: the first of the stream."""
    tasks: int
    """Tasks of the whole stream; those after D^CV are D^EV."""
    classes_per_task: int | None
    """None for streams of pixels, each of whose tasks has all classes."""
    image_size: int | None
    """Pixels a side; None for streams of pixels, which are not resized."""
    network: str
    """One of `trainers.cohort.NETWORKS`."""
    pretrained: str | None
    """The path of a file of weights, or "imagenet"; None begins with random ones."""
    skip_corrupt: bool
    """Whether images that cannot be decoded are left out."""
    examples_per_task: int | None
    """None for all of each task's training set."""
    device: str
    """Either "cpu" or "cuda": what was asked for as "auto" is decided when a study is built."""
    precision: str
    """Of matrix products on a GPU: "float32" or "tf32"."""
    numeric_path: str | None
    """The name of a `NumericPath`; None until the training begins, which measures or remembers it."""
    runner: str
    """One of "auto", "tune" and "local"; the results are the same."""
    workers: int | None
    """Cohorts at a time; None for one a core, or fewer where so many do not fit into memory."""
    time_budget: float | None
    """Seconds after which a run begins no other cohort; None for as many as it takes."""
    address: str
    """Of a Ray cluster to join; "local" starts one for this study alone."""
    niceness: int
    """Of the threads and processes that train on this machine, beside that of this process: 0 … 19."""
    task_timeout: int | None
    """Seconds without news after which a worker of Ray is taken to hang; None for a measured number."""
    name: str
    """Under which a ledger keeps it, unique there, and that of its folder."""
    out: Path
    """Folder of the reports, and of the ledger where no other place is given."""
    storage: LedgerUrl
    """Where the ledger is."""
    data_dir: Path
    """Folder of the datasets."""
    checkpoints: str | None
    """Absolute path of a folder, or a URL without credentials; None for the cache folder."""
    add_metrics: tuple[str, ...]
    """Metrics of others, module:attribute, that tables show behind ours."""
    add_figures: tuple[str, ...]
    """Figures of others, module:attribute, that reports show."""
    hyperparameters: Hyperparameters
    """Values of what `takes` names, for all methods that have it, where it is not searched or given for one method."""

    @classmethod
    def takes(cls) -> tuple[str, ...]:
        """Names of the hyperparameters that are options."""
        return tuple(hyperparameters())

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Returns the study that has these values of all of its options, which are not checked: see `build`."""
        # Apart from the fields: which hyperparameters there are depends on the methods that are registered.
        own = Hyperparameters(**{name: values[name] for name in cls.takes()})
        return cls(**{name: value for name, value in values.items() if name not in vars(own)}, hyperparameters=own)

    def but(self, **values: Any) -> Self:
        """The same with other values of some options."""
        return self.of({name: self.value(name) for name in self.options()} | values)

    def value(self, name: str) -> Any:
        """Returns the value of an option. Raises AttributeError for a name that is none."""
        return vars(self.hyperparameters)[name] if name in vars(self.hyperparameters) else getattr(self, name)

    @property
    def searches(self) -> bool:
        """Whether anything is chosen by what members score on D^CV, of which the evaluation must know nothing."""
        return False

    @property
    def tried(self) -> int:
        """Values that are tried, at most; 1 where nothing is searched."""
        return 1

    @classmethod
    def options(cls) -> dict[str, Option]:
        """The options that are fields, by name in the order of the table."""
        names = {*(field.name for field in fields(cls)), *cls.takes()}
        return {name: option for name, option in options().items() if name in names}

    @classmethod
    def trainable(cls) -> tuple[str, ...]:
        """Names of the methods that it may train, of others those that are loaded."""
        return (*METHODS, *PLUGGED)

    def identity(self) -> dict[str, Any]:
        """What makes the study this one, JSON-able: everything that can change a figure, nothing that cannot.

        A ledger compares and keeps it, so that its names and values can never change for a study that is stored.
        """
        shown, known = self.shown(), self.defaults()
        return {
            name: shown[name]
            for name, option in self.options().items()
            if option.identifies
            and self.applies(name)
            and (not option.later or name in self.named or self.value(name) != known.get(name, option.default))
        }

    @classmethod
    def options_of(cls, identity: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the options of a stored identity, as they are written. Raises UsageError."""
        return dict(identity)

    def defaults(self) -> dict[str, Any]:
        """What the dataset's definition says, under the names of the options: for the method, where there is one.

        Raises ValueError where the sources give no values for the method.
        """
        return published(self.dataset, vars(self).get("method"))

    def digest(self) -> str:
        """Returns a hash of the identity, 6 hexadecimal digits: it tells studies of a dataset apart by their names."""
        content = {name: value for name, value in self.identity().items() if (name, value) not in NOT_IN_NAMES.items()}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:6]

    def shown(self) -> dict[str, Any]:
        """Every option as YAML and JSON write it; not the ledger's place where the environment says that."""
        # What the environment says may hold a password, and is to be said by it again.
        hidden = "storage" if self.storage.from_environment else ""
        return {
            name: option.show(self.value(name))
            for name, option in self.options().items()
            if name != hidden and self.applies(name)
        }

    def to_yaml(self) -> str:
        """The study as a file that the same command reads back with `--config`."""
        return str(yaml.safe_dump(self.shown(), sort_keys=False, allow_unicode=True, default_flow_style=None))

    def applies(self, name: str) -> bool:
        """Whether an option of that name has any part in the study."""
        return True

    @property
    def foreign(self) -> bool:
        """Whether somebody else's trainer trains it, and no method of ours."""
        return False

    @property
    def limits(self) -> "Limits | None":
        """What a member of a trainer may take; None where no trainer trains it."""
        return None

    def code(self) -> dict[str, str]:
        """What its figures depend on besides the stream that may be a plug-in: name -> kind of plug-in."""
        return {self.network: "network"}

    def plugged(self) -> dict[str, str]:
        """That of it which is: module:attribute -> kind."""
        return {name: kind for name, kind in self.code().items() if ":" in name}

    def stream_tasks(self, phase: str) -> range:
        """Tasks of D^CV ("cv") or D^EV ("eval"), numbered in the whole stream."""
        return range(self.cv_tasks) if phase == "cv" else range(self.cv_tasks, self.tasks)

    def stream_seeds(self, phase: str) -> tuple[int, ...]:
        """Seeds that may be trained on D^CV ("cv") or D^EV ("eval")."""
        return self.seeds

    def idle(self, name: str) -> str:
        """Why an option of that name changes no result of this study, whatever its value; "" where it may."""
        return ""

    @property
    def first_task_alone(self) -> bool:
        """Whether every member trains a first task of its own, which others of its seed cannot share."""
        return False

    @property
    def maximised(self) -> str:
        """What values are compared by, as tables call it."""
        return A_T

    @property
    def compared_on(self) -> tuple[int, ...]:
        """With how many seeds values are compared: of each stage, where they differ."""
        return (len(self.seeds),)

    @property
    def all_seeds(self) -> set[int]:
        """Seeds that may be trained on either."""
        return {seed for phase in ("cv", "eval") for seed in self.stream_seeds(phase)}

    @property
    def largest_batch(self) -> int:
        """Examples of the largest SGD step that is trained."""
        return int(self.hyperparameters.batch_size)

    def request(self, phase: str, source: Mapping[str, str] | None = None) -> "StreamRequest":
        """The stream of D^CV ("cv") or D^EV ("eval"), not opened yet.

        source: hashes of the files that a user's own stream must be made of, where a study has begun with some.
        """
        from trainers.streams import ImageOptions, StreamRequest  # late: `--help` and `list` open no stream

        images = (
            None
            if self.classes_per_task is None or self.image_size is None
            else ImageOptions(self.classes_per_task, self.image_size, self.skip_corrupt, image_cache())
        )
        # Both paths absolute: a worker of Ray has another working directory.
        return StreamRequest(
            self.dataset,
            self.data_dir.absolute(),
            self.stream_tasks(phase),
            self.examples_per_task,
            images,
            Path.cwd(),
            source,
        )

    @property
    def architecture(self) -> Architecture:
        """What is trained."""
        return Architecture(self.network, pretrained=self.pretrained)

    @property
    def folder(self) -> Path:
        """Where the report and the tables lie: OUT/NAME."""
        return self.out / self.name
