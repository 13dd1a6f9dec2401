"""What every kind of study is told: the stream, how learners are trained, and where that happens."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

import yaml

from epsearch.cache import cache_folder, image_cache
from epsearch.study import filling, limits, values
from epsearch.study.option import (
    BASIC,
    DATASETS,
    LEARNING,
    METHOD,
    OUTPUT,
    PLACE,
    REQUEST,
    RESUME,
    RUN,
    RUNS,
    SEEDS,
    STREAM,
    Option,
    option,
)
from epsearch.study.published import published
from results.labels import A_T
from results.ledger.url import LedgerUrl
from trainers.cohort import Architecture
from trainers.hyperparameters import Hyperparameters
from trainers.methods import METHODS, PLUGGED, hyperparameters
from trainers.numeric_path import PRECISIONS

if TYPE_CHECKING:
    from trainers.foreign.process import Limits
    from trainers.streams import StreamRequest

CURVE = "curve"
"""Choice of a search at the top of a curve."""
PAIRS = "pairs"
"""The rule of races that ledgers name: each pair of values is compared on its own noise."""
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


def _of_hyperparameter(name: str) -> Option:
    """Returns the option of a hyperparameter, which its method declares."""
    one = hyperparameters()[name]
    return Option(
        values.hyperparameter(one),
        one.help,
        LEARNING,
        None if one.published else one.default,
        one.usual,
        later=True,  # of the first ledgers' hyperparameters, the descriptions of the kinds say so
        part=METHOD,
        aliases=one.aliases,
        name=name,
    )


@cache
def _declared(kind: Any) -> dict[str, Option | None]:
    """Options that are fields of a kind of study, in their order; None in the place of the hyperparameters."""
    options = {one.name: one.metadata.get("option") for one in fields(kind)}
    names: list[str] = []
    place = 0
    for name, one in options.items():
        place = names.index(one.after) + 1 if one is not None and one.after else place
        names.insert(place, name)
        place += 1
    return {name: None if (one := options[name]) is None else replace(one, name=name) for name in names}


@dataclass(frozen=True, init=False, kw_only=True)
class Study:
    """What every command that trains is told: the stream, how members are trained, and where that happens.

    Fields are options, which `option` describes; so are all hyperparameters that the kind takes.
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

    # fmt: off
    dataset: str = option(
        values.DATASET,
        "Stream of tasks: a name of `epsearch datasets`; folder:PATH, class folders or a zip of them; module:factory.",
        STREAM, "permuted_digits", level=BASIC,
    )
    seeds: tuple[int, ...] = option(
        values.SEED_NUMBERS, "A count, a list 0,1,2 or a range 0..4.", SEEDS, usual=DATASETS, level=BASIC, grows=True,
    )
    """A race begins with the first ones."""
    cv_tasks: int = option(
        values.whole(1, limits.TASKS), "Tasks of the search, the first of the stream.", STREAM, usual=DATASETS,
    )
    tasks: int = option(
        values.whole(2, limits.TASKS), "Tasks of the whole stream; the rest is for evaluation.", STREAM, usual=DATASETS,
    )
    classes_per_task: int | None = option(
        values.whole(1, limits.CLASSES), "Classes of each task of a stream of images.", STREAM,
        usual=f"{DATASETS}; 5 for folder:PATH",
    )
    """None for streams of pixels, each of whose tasks has all classes."""
    image_size: int | None = option(
        values.whole(1, limits.SIDE), "Side in pixels to which images are resized.", STREAM,
        usual=f"{DATASETS}; 32 for folder:PATH",
    )
    """None for streams of pixels."""
    network: str = option(
        values.NETWORK, "mlp for pixels; reduced_resnet18 or resnet18 for images; or module:attribute.", LEARNING,
        usual=DATASETS, part=METHOD,
    )
    pretrained: str | None = option(
        values.PRETRAINED, "Weights that resnet18 starts from: imagenet, a file's path, or none.", LEARNING,
        usual=DATASETS, part=METHOD,
    )
    """None for random weights."""
    skip_corrupt: bool = option(
        values.FLAG, "Leave out images that cannot be decoded, instead of refusing to start.", STREAM, False,
    )
    examples_per_task: int | None = option(
        values.EXAMPLES, "Training examples of each task, or all.", STREAM, usual="all",
    )
    """None for all."""
    hyperparameters: Hyperparameters
    """Values of what `takes` names, for all methods that have it, where it is not searched or given for one method."""
    device: str = option(values.words("auto", "cpu", "cuda"), "Where members are trained.", RUNS, "auto", level=BASIC)
    """Never "auto" in a study, which says where its members were trained."""
    precision: str = option(
        values.words(*PRECISIONS), "Matrix products of a GPU: float32 or tf32.", RUNS, "float32", part=METHOD,
    )
    numeric_path: str | None = option(
        values.NUMERIC_PATH, "Arithmetic, like cpu-float32-mkl.", RUNS,
        usual="the fastest in a measurement here; a study keeps its first one", scope=RUN, part=METHOD,
    )
    """The name of a `NumericPath`; None until the training begins."""
    runner: str = option(
        values.words("auto", "tune", "local"),
        "tune is Ray Tune, on one machine or a cluster; local is threads of this process; auto begins with threads, "
        "and Ray Tune takes over where its start pays, in long studies. The results are the same.", RUNS, "auto",
        level=BASIC, scope=RESUME,
    )
    workers: int | None = option(
        values.whole(1, limits.WORKERS), "Cohorts trained at a time.", RUNS, usual="every core", level=BASIC,
        scope=RESUME,
    )
    """None for one a core, or fewer where memory is short."""
    time_budget: float | None = option(
        values.DURATION, "Time after which no other cohort begins, like 90s, 30m or 2h; the same command goes on.",
        RUNS, usual="none", level=BASIC, scope=RESUME,
    )
    """Seconds."""
    address: str = option(
        values.ADDRESS, "Ray cluster to join, HOST:PORT or auto; local starts a private Ray.", RUNS, "local",
        scope=PLACE,
    )
    niceness: int = option(
        values.whole(0, limits.NICENESS), "Scheduling priority of training (nice value): 0 normal … 19 lowest.", RUNS,
        0, scope=RESUME,
    )
    """Added to the nice value of this process."""
    task_timeout: int | None = option(
        values.whole(1, limits.SECONDS),
        "Seconds without news from a worker of Ray after which its cohort begins anew.", RUNS,
        usual="20 times the longest pause so far, at least 600", scope=RUN,
    )
    name: str = option(
        values.STUDY_NAME, "Name of the study.", OUTPUT, usual="the dataset and a hash of the options", level=BASIC,
        scope=RUN,
    )
    """Unique in a ledger."""
    out: Path = option(
        values.FOLDER, "Folder for the ledger and the reports.", OUTPUT, Path("runs"), level=BASIC, scope=PLACE,
    )
    storage: LedgerUrl = option(
        values.LEDGER, "SQLAlchemy URL of the ledger.", OUTPUT, usual="$EPSEARCH_STORAGE, or SQLite in --out",
        level=BASIC, scope=PLACE,
    )
    data_dir: Path = option(
        values.FOLDER, "Folder of datasets; what is missing is downloaded there; $EPSEARCH_CACHE moves its default.",
        STREAM, cache_folder(), level=BASIC, scope=PLACE,
    )
    add_metrics: tuple[str, ...] = option(
        values.plugins("metric"),
        "Metrics of others that tables show behind ours: module:attribute, with commas between.", OUTPUT, (),
        usual="none", scope=REQUEST,
    )
    add_figures: tuple[str, ...] = option(
        values.plugins("figure"), "Figures of others that the report shows: module:attribute, with commas between.",
        OUTPUT, (), usual="none", scope=REQUEST,
    )
    checkpoints: str | None = option(
        values.PLACE, "Folder or URL, like s3://BUCKET/PATH, that keeps runs which are killed.", RUNS,
        usual="the cache folder", scope=PLACE,
    )
    """An absolute path, or a URL without credentials; None for the cache folder."""
    # fmt: on

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
        """Options by name, in the order of help and files: of the fields, and of the hyperparameters that it takes."""
        table: dict[str, Option] = {}
        for name, one in _declared(cast(Any, cls)).items():
            table |= {name: one} if one else {taken: _of_hyperparameter(taken) for taken in cls.takes()}
        return table

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
            and self.applies(option)
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
            if name != hidden and self.applies(option)
        }

    def to_yaml(self) -> str:
        """The study as a file that the same command reads back with `--config`."""
        return str(yaml.safe_dump(self.shown(), sort_keys=False, allow_unicode=True, default_flow_style=None))

    def applies(self, option: Option) -> bool:
        """Whether an option has any part in the study."""
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
