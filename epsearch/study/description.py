"""The description of a study: options of all kinds."""

import hashlib
import json
from collections.abc import Iterable, Mapping
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
from epsearch.study.parsers import AUTO
from epsearch.study.published import published_settings
from results.labels import A_T, OF_POINTS, count_text
from results.ledger.record import Unit
from results.ledger.url import LedgerUrl
from search_spaces.published.pack import Pack
from trainers.cohort import STARTS, Architecture
from trainers.hyperparameters import Hyperparameters
from trainers.methods import METHODS, PLUGGED, hyperparameters
from trainers.numeric_path import PRECISIONS
from trainers.scenarios import SCENARIOS

if TYPE_CHECKING:
    from trainers.foreign.process import Limits
    from trainers.streams import StreamRequest
    from trainers.streams.task_order import Order

CURVE = "curve"
"""The search chooses the top of a curve."""
MEMORY_PHASE = "memory"
"""The evaluation's tasks, tested with as many held-out examples of each class as an episodic memory holds."""
PAIRS = "pairs"
"""Stored name of the rule of races: each pair of values is compared with its own noise."""
# Values of identities that do not affect names of studies.
NOT_IN_NAMES = {"choose": CURVE, "race_rule": PAIRS}


class Disjointness(NamedTuple):
    """Proof that search and evaluation share no tasks, made before the training."""

    sound: bool = True
    """Whether it was proved, or is not needed."""
    sentence: str = ""
    """The proof in words; "" if not needed."""
    warning: str = ""
    """Warning of near-duplicates; "" without any."""


def _of_hyperparameter(name: str) -> Option:
    """Returns the option of a hyperparameter, from the declaration of its method."""
    declared = hyperparameters()[name]
    return Option(
        values.hyperparameter(declared),
        declared.help,
        LEARNING,
        None if declared.published else declared.default,
        declared.usual,
        later=True,  # `Study.named` has the exceptions
        part=METHOD,
        aliases=declared.aliases,
        name=name,
    )


@cache
def _field_options(kind: Any) -> dict[str, Option | None]:
    """Returns the options that are fields of a kind of study, in order, with None for hyperparameters."""
    options = {each.name: each.metadata.get("option") for each in fields(kind)}
    names: list[str] = []
    place = 0
    for name, entry in options.items():
        place = names.index(entry.after) + 1 if entry is not None and entry.after else place
        names.insert(place, name)
        place += 1
    return {name: None if (each := options[name]) is None else replace(each, name=name) for name in names}


@dataclass(frozen=True, init=False, kw_only=True)
class Study:
    """Base of the kinds of study: stream, training, and machine.

    Fields are options, see `option`; so are all hyperparameters that the kind takes.
    """

    def __init__(self, **options: Any) -> None:
        """Takes options by name, with defaults and text values as on the command line.

        Raises UsageError, one line, for invalid values. With all fields, as from `of` and `dataclasses.replace`,
        nothing is checked.
        """
        complete = options.keys() == {field.name for field in fields(self)}
        for name, value in (options if complete else vars(filling.fill_study(type(self), options))).items():
            object.__setattr__(self, name, value)

    kind: ClassVar[str]
    """Command that trains the study."""
    named: ClassVar[tuple[str, ...]] = ("memory", "memory_batch", "batch_size", "trigger", "scale", "satisfied")
    """Hyperparameters of the identity even with their neutral values."""
    names_its_kind: ClassVar[bool] = True
    """Whether ledgers and default names have the kind: all but searches, the first kind."""
    extendable: ClassVar[bool] = False
    """Whether a stored study of this kind can be extended."""
    has_latex: ClassVar[bool] = False
    """Whether its report has a LaTeX table of metrics."""

    # fmt: off
    dataset: str = option(
        values.DATASET,
        "Stream of tasks: a name of `epsearch datasets`; folder:PATH, class folders or a zip of them; module:factory.",
        STREAM, "permuted_digits", level=BASIC,
    )
    seeds: tuple[int, ...] = option(
        values.SEED_NUMBERS, "A count, a list 0,1,2 or a range 0..4.", SEEDS, usual=DATASETS, level=BASIC,
        extendable=True,
    )
    """A race begins with the first two."""
    scenario: str | None = option(
        values.words(*SCENARIOS),
        "Outputs that compete on an example: those of its task, all (domain), or of all classes seen so far (class).",
        STREAM, usual=DATASETS, later=True, after="dataset",
    )
    """None for the stream of a plug-in, which has its own."""
    orders: int = option(
        values.whole(1, limits.ORDERS),
        "Orders of tasks with which every seed is trained, or of classes that are split into tasks; the first is the "
        "stream's own.", SEEDS, 1, later=True, extendable=True, after="seeds",
    )
    order: tuple[int, ...] | None = option(
        values.TASK_ORDER, "One order of all tasks, like 3,0,1,2.", STREAM, usual="the stream's own", later=True,
        after="scenario",
    )
    """None for the stream's own."""
    cv_tasks: int = option(
        values.whole(0, limits.TASKS), "Tasks of the search, the first of the stream.", STREAM, usual=DATASETS,
    )
    tasks: int = option(
        values.whole(2, limits.TASKS), "Tasks of the whole stream; the rest is for evaluation.", STREAM, usual=DATASETS,
    )
    classes_per_task: int | None = option(
        values.whole(1, limits.CLASSES), "Classes of each task of a stream of images.", STREAM,
        usual=f"{DATASETS}; 5 for folder:PATH",
    )
    """None for streams of pixels, whose tasks have all classes."""
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
    hidden: tuple[int, ...] = option(
        values.WIDTHS, "Units of each hidden layer of an mlp.", LEARNING, Architecture.hidden, later=True, part=METHOD,
    )
    start: str = option(
        values.words(*STARTS),
        "Initial weights of an mlp: normal with σ = 0.1, biases of 0.1, as in A-GEM's code (agem); uniform within "
        "√(6 / (inputs + outputs)), biases 0 (xavier); weights and biases within 1 / √inputs, as of nn.Linear (torch).",
        LEARNING, Architecture.start, later=True, part=METHOD,
    )
    skip_corrupt: bool = option(
        values.FLAG, "Leave out images that cannot be decoded, instead of refusing to start.", STREAM, False,
    )
    examples_per_task: int | None = option(
        values.EXAMPLES, "Training examples of each task, or all.", STREAM, usual="all", level=BASIC,
    )
    """None for all."""
    validation: float = option(
        values.SHARE,
        "Share of each task's training examples to choose by, which is held out of training; 0: test sets choose.",
        STREAM, 0.0, later=True,
    )
    measure_every: int | str | None = option(
        values.DISTANCE,
        "Steps between tests of all tasks so far, inside tasks; auto: as often as takes at most 15 % of a run.",
        STREAM, usual="none; auto for objectives that need it", later=True, part=METHOD,
    )
    """AUTO for a number that `plan` prints; None for tests at the ends of tasks alone."""
    measure_images: int = option(
        values.whole(1), "Test images of each task that are tested inside tasks.", STREAM, 250, later=True, part=METHOD,
    )
    hyperparameters: Hyperparameters
    """Values of the hyperparameters that `takes` names, for all methods."""
    device: str = option(
        values.words("auto", "cpu", "cuda", "mps"),
        "Where members are trained: auto, cpu, cuda, or mps, Apple's GPU, by request alone.", RUNS, "auto", level=BASIC,
    )
    """Never "auto" in a built study."""
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
        "tune is Ray Tune, on one machine or a cluster (epsearch[ray]); local is threads of this process, or a process "
        "on each of several GPUs; auto begins "
        "with threads, and Ray Tune takes over where its start pays, in long studies with several workers. The "
        "results are the same.", RUNS,
        "auto", scope=RESUME,
    )
    workers: int | None = option(
        values.whole(1, limits.WORKERS), "Cohorts trained at a time.", RUNS, usual="every core", level=BASIC,
        scope=RESUME,
    )
    """None for one per core, or fewer where memory is short."""
    time_budget: float | None = option(
        values.DURATION, "Time after which no other cohort begins, like 90s, 30m or 2h; the same command goes on.",
        RUNS, usual="none", scope=RESUME,
    )
    """Seconds."""
    time_left: str | None = option(
        values.TIME_LEFT,
        "Time until this machine is taken away, like 2h; slurm for what Slurm leaves the job, slurm-2m for two minutes "
        "less. No cohort begins that would not end by then; running ones end there, and the same command goes on.",
        RUNS, usual="none", scope=RESUME,
    )
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
        scope=PLACE,
    )
    data_dir: Path = option(
        values.FOLDER, "Folder of datasets; what is missing is downloaded there; $EPSEARCH_CACHE moves its default.",
        STREAM, cache_folder(), level=BASIC, scope=PLACE,
    )
    from_pack: Pack | None = option(
        values.PACK,
        "A pack of `epsearch reproduce`, whose values are defaults; what the command has no option for is left out.",
        OUTPUT, usual="none", scope=REQUEST,
    )
    """A printed row, which the study's answer is held against."""
    add_metrics: tuple[str, ...] = option(
        values.plugins("metric"),
        "Metrics of others that tables show behind ours: aia, bwt-libcontinual and others of the glossary; "
        "or module:attribute.", OUTPUT, (), usual="none", scope=REQUEST,
    )
    add_figures: tuple[str, ...] = option(
        values.plugins("figure"), "Figures of others that the report shows, as module:attribute.", OUTPUT, (),
        usual="none", scope=REQUEST,
    )
    checkpoints: str | None = option(
        values.PLACE, "Folder or URL, like s3://BUCKET/PATH, that keeps runs which are killed.", RUNS,
        usual="the cache folder", scope=PLACE,
    )
    """An absolute path, or a URL without credentials; None for the cache folder."""
    # fmt: on

    @classmethod
    def takes(cls) -> tuple[str, ...]:
        """Returns the hyperparameters that are options."""
        return tuple(hyperparameters())

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Returns the study with values of all options, which are not checked: see `build`."""
        # Hyperparameters are no fields, as they depend on the registered methods.
        own = Hyperparameters(**{name: values[name] for name in cls.takes()})
        return cls(**{name: value for name, value in values.items() if name not in vars(own)}, hyperparameters=own)

    def but(self, **values: Any) -> Self:
        """Returns the study with other values of some options."""
        return self.of({name: self.value(name) for name in self.options()} | values)

    def value(self, name: str) -> Any:
        """Returns the value of an option. Raises AttributeError for an unknown name."""
        return vars(self.hyperparameters)[name] if name in vars(self.hyperparameters) else getattr(self, name)

    @property
    def measure(self) -> tuple[int | str, int] | None:
        """Tests inside tasks: (every so many steps, or AUTO; images of each task); None without them."""
        every = self.measure_every or (AUTO if self.maximised in OF_POINTS else None)
        return None if every is None or self.foreign else (every, self.measure_images)

    @property
    def held_out(self) -> str:
        """The share that is held out of training to choose by, in words; "" without one."""
        return f"; {100 * self.validation:g} % of each task's examples held out to choose by" if self.validation else ""

    @property
    def searches(self) -> bool:
        """True if anything is chosen by scores on D^CV."""
        return False

    @property
    def chooses(self) -> bool:
        """True if anything is chosen by scores."""
        return self.searches

    @property
    def tried(self) -> int:
        """Largest number of tried values; 1 without a search."""
        return 1

    @classmethod
    def options(cls) -> dict[str, Option]:
        """Returns all options by name, hyperparameters included, in the order of help and files."""
        table: dict[str, Option] = {}
        for name, entry in _field_options(cast(Any, cls)).items():
            table |= {name: entry} if entry else {taken: _of_hyperparameter(taken) for taken in cls.takes()}
        return table

    @classmethod
    def trainable(cls) -> tuple[str, ...]:
        """Returns the methods that it can train, loaded plug-ins included."""
        return (*METHODS, *PLUGGED)

    def identity(self) -> dict[str, Any]:
        """Returns the options that can change results, JSON-able.

        Ledgers store and compare them: their names and values must not change.
        """
        every, defaults = self.to_dict(), self.defaults()
        return {
            name: every[name]
            for name, option in self.options().items()
            if option.identifies
            and self.applies(option)
            and (not option.later or name in self.named or self.value(name) != defaults.get(name, option.default))
        }

    @classmethod
    def options_of(cls, identity: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the options of a stored identity. Raises UsageError."""
        return dict(identity)

    def defaults(self) -> dict[str, Any]:
        """Returns the options that the dataset's definition sets.

        Raises ValueError where it has no values for the method.
        """
        return published_settings(self.dataset, vars(self).get("method"))

    def digest(self) -> str:
        """Returns a hash of the identity, 6 hexadecimal digits, for the default name."""
        content = {name: value for name, value in self.identity().items() if (name, value) not in NOT_IN_NAMES.items()}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:6]

    def to_dict(self) -> dict[str, Any]:
        """Returns every option as in YAML and JSON, without a ledger URL from the environment."""
        # It may have a password.
        hidden = "storage" if self.storage.from_environment else ""
        return {
            name: option.show(self.value(name))
            for name, option in self.options().items()
            if name != hidden and self.applies(option)
        }

    def to_yaml(self, places: bool = True) -> str:
        """Returns the study as a YAML file for `--config`; places: with the folders and addresses of this machine."""
        options = self.options()
        every = {name: value for name, value in self.to_dict().items() if places or options[name].scope != PLACE}
        return str(yaml.safe_dump(every, sort_keys=False, allow_unicode=True, default_flow_style=None))

    def applies(self, option: Option) -> bool:
        """Returns whether an option applies to the study."""
        return True

    @property
    def foreign(self) -> bool:
        """True if a plug-in trainer trains its members."""
        return False

    @property
    def limits(self) -> "Limits | None":
        """Time and memory of a member; None without a plug-in trainer."""
        return None

    def code(self) -> dict[str, str]:
        """Returns possible plug-ins besides the stream: name -> kind of plug-in."""
        return {self.network: "network"}

    def plugins(self) -> dict[str, str]:
        """Returns the plug-ins besides the stream: module:attribute -> kind."""
        return {name: kind for name, kind in self.code().items() if ":" in name}

    def stream_tasks(self, phase: str) -> range:
        """Returns the tasks of D^CV ("cv") or D^EV ("eval", "validation"), numbered in the whole stream."""
        return range(self.cv_tasks) if phase == "cv" else range(self.cv_tasks, self.tasks)

    def holds_tests(self, phase: str) -> bool:
        """Returns whether a phase is tested by the examples that are held out, in the place of the test sets."""
        return self.validation > 0 and phase != "eval"

    def order_of(self, phase: str, number: int) -> "Order":
        """Returns the order of the tasks of D^CV ("cv") or D^EV: the one of that number, or the part of `order`."""
        tasks = self.stream_tasks(phase)
        return number if self.order is None else self.order[tasks.start : tasks.stop]

    @property
    def extrapolates(self) -> bool:
        """True if predicted scores choose."""
        return False

    @property
    def extendable_options(self) -> tuple[str, ...]:
        """Options that may change when the stored study is extended; none where it cannot be."""
        return ()

    @property
    def further_tasks(self) -> int:
        """The most tasks of the search behind those of the whole stream, which the evaluation does not have."""
        return 0

    @property
    def order_numbers(self) -> tuple[int, ...]:
        """The numbers of the orders of tasks, 0 for the stream's own."""
        return tuple(range(self.orders))

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units of statistics: every seed in every order of tasks."""
        return self.units_of(self.seeds)

    def units_of(self, seeds: Iterable[int]) -> tuple[Unit, ...]:
        """Returns each seed in every order; the orders of a seed stand together, so that later seeds come last."""
        return tuple(Unit(order, seed) for seed in seeds for order in range(self.orders))

    def units_text(self, seeds: int) -> str:
        """Returns the numbers of orders, where there are several, and seeds in words."""
        orders = f"{count_text(self.orders, 'order')} × " if self.orders > 1 else ""
        return f"{orders}{count_text(seeds, 'seed')}"

    def stream_seeds(self, phase: str) -> tuple[int, ...]:
        """Returns the seeds on D^CV ("cv") or D^EV ("eval")."""
        return self.seeds

    def idle(self, name: str) -> str:
        """Returns why an option has no effect in this study; "" if it may have one."""
        return ""

    @property
    def first_task_alone(self) -> bool:
        """True if members of a seed cannot share the first task."""
        return False

    @property
    def maximised(self) -> str:
        """The objective, as in tables."""
        return A_T

    @property
    def compared_on(self) -> tuple[int, ...]:
        """Numbers of units of each stage, once if equal."""
        return (len(self.units),)

    @property
    def compared_unit(self) -> str:
        """The unit of the numbers of `compared_on`."""
        return "seed"

    @property
    def all_seeds(self) -> set[int]:
        """Seeds of both streams."""
        return {seed for phase in ("cv", "eval") for seed in self.stream_seeds(phase)}

    @property
    def largest_batch(self) -> int:
        """Examples of the largest SGD step."""
        return int(self.hyperparameters.batch_size)

    def request(
        self, phase: str, source: Mapping[str, str] | None = None, order: int = 0, more: int = 0
    ) -> "StreamRequest":
        """Returns a request for the stream of D^CV ("cv") or D^EV ("eval"; "validation" with what is held out).

        order: the number of the order of its tasks; source: required hashes of the files of a plug-in stream, of a
        stored study; more: further tasks of D^CV after its own, numbered behind the whole stream.
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
            range(self.tasks + more) if more else self.stream_tasks(phase),
            self.examples_per_task,
            images,
            Path.cwd(),
            self.scenario,
            source,
            self.validation,
            self.holds_tests(phase),
            (*self._in_order(phase, order), *range(self.tasks, self.tasks + more))
            if more
            else self.order_of(phase, order),
            int(self.hyperparameters.memory) if phase == MEMORY_PHASE else None,
        )

    def _in_order(self, phase: str, number: int) -> tuple[int, ...]:
        """Returns the tasks of a stream that does not split classes, in the order of that number."""
        from trainers.streams.task_order import drawn_order

        tasks, order = self.stream_tasks(phase), self.order_of(phase, number)
        return order if isinstance(order, tuple) else drawn_order(order, tasks.start, len(tasks))

    @property
    def architecture(self) -> Architecture:
        """The network."""
        return Architecture(self.network, self.hidden, self.pretrained, self.start)

    @property
    def folder(self) -> Path:
        """Folder of the report and the tables: OUT/NAME."""
        return self.out / self.name
