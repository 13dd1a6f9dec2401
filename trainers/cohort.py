"""Input and result of a training run, as plain values without torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from trainers import methods
from trainers.hyperparameters import Hyperparameters, Value
from trainers.plugins.source import Source
from trainers.spelling import did_you_mean

if TYPE_CHECKING:  # options and their help need what is here without arrays
    import numpy as np
    from numpy.typing import NDArray

PROTOCOL_VERSION = 3  # part of every content key; goes up whenever a change of the trainers changes any figure
IMAGE_NETWORKS = ("reduced_resnet18", "resnet18")
NETWORKS = ("mlp", *IMAGE_NETWORKS)
STARTS = ("agem", "xavier", "torch")  # how initial weights of an mlp are drawn, the usual way first
# Smaller images leave one value of a channel in the last stage, which has no variance in a batch of one.
SMALLEST_IMAGE = {"reduced_resnet18": 16, "resnet18": 64}
LARGEST_SEED = 2**63 - 1  # of the ledger's integers
LEARNING_CURVE_BATCHES = 10  # β of LCA_β: the current task is tested after b = 0…10 mini-batches


@dataclass(frozen=True)
class Learner:
    """A method, values of its hyperparameters, and a seed.

    Raises ValueError, in one line, for a method or a hyperparameter that is not known, or a value that does not fit.
    """

    method: str
    """A name of `METHODS`."""
    hyperparameters: Hyperparameters
    """Values of exactly those that the method declares."""
    seed: int
    """0…LARGEST_SEED; fixes everything random in a run."""

    def __post_init__(self) -> None:
        self.declared.check(self.hyperparameters)
        epochs, steps = (self.hyperparameters.get(name) for name in ("epochs", "steps"))
        if not self.declared.foreign and epochs != 1 and steps is not None:
            raise ValueError(f"epochs and steps exclude each other, got {epochs} and {steps}")
        if not self.declared.foreign and (fault := methods.optimizer_fault(self.declared, self.hyperparameters)):
            raise ValueError(fault)
        if not 0 <= self.seed <= LARGEST_SEED:
            raise ValueError(f"seed must lie in 0…{LARGEST_SEED}, got {self.seed}")

    @classmethod
    def of(cls, method: str, seed: int, **values: Value) -> "Learner":
        """Returns a learner, with the defaults of the hyperparameters that are not given.

        >>> Learner.of("agem", seed=0, lr=0.03, memory_batch=None)
        Learner(method='agem', hyperparameters=Hyperparameters(lr=0.03, batch_size=10, epochs=1, steps=None, \
optimizer='sgd', momentum=0.0, weight_decay=0.0, lr_factor=1.0, memory=25, memory_batch=None), seed=0)
        """
        return cls(method, methods.method(method).of(values), seed)

    @property
    def declared(self) -> methods.Method:
        """The declaration of its method."""
        return methods.method(self.method)

    @property
    def identity(self) -> dict[str, Value]:
        """The values by which it is stored, by name: without later ones (`Hyperparameter.later`) at their defaults."""
        values = vars(self.hyperparameters)
        usual = {
            hyperparameter.name: hyperparameter.default
            for hyperparameter in self.declared.declarations(values)
            if hyperparameter.later
        }
        return {name: value for name, value in values.items() if name not in usual or value != usual[name]}

    @property
    def shared(self) -> Hyperparameters:
        """The values in which learners of a cohort must agree."""
        per_learner = self.declared.per_learner
        return self.hyperparameters.only(name for name in vars(self.hyperparameters) if name not in per_learner)


@dataclass(frozen=True)
class Cohort:
    """Learners that are trained together: of one method, and alike in all that is not per learner.

    Raises ValueError where they are not.
    """

    learners: tuple[Learner, ...]
    """At least one; the rows of a result have their order."""

    def __post_init__(self) -> None:
        if not self.learners:
            raise ValueError("a cohort needs a learner, got none")
        for learner in self.learners:
            if learner.method != self.method:
                raise ValueError(f"learners of a cohort have one method, got {self.method!r} and {learner.method!r}")
            if learner.shared != self.shared:
                raise ValueError(
                    f"learners of a cohort may differ in {', '.join(self.declared.per_learner)} alone, "
                    f"got {self.shared} and {learner.shared}"
                )

    @property
    def method(self) -> str:
        """The name of their method."""
        return self.learners[0].method

    @property
    def declared(self) -> methods.Method:
        """The declaration of their method."""
        return self.learners[0].declared

    @cached_property
    def shared(self) -> Hyperparameters:
        """The values that all have in common."""
        return self.learners[0].shared

    def part(self, rows: Sequence[int]) -> "Cohort":
        """Returns a cohort of some of the learners."""
        return Cohort(tuple(self.learners[row] for row in rows))


@dataclass(frozen=True, eq=False)
class Plugged:
    """A user's network. Networks of the same name are different objects, and not equal."""

    name: str
    """As `Architecture.network` has it: module:attribute, or a short name."""
    factory: Callable[[Any, int], Any]
    """factory(inputs, outputs) makes a new torch.nn.Module with weights at random, drawn from torch's, NumPy's or
    Python's global generator. inputs: P of pixels [B, P] in [0, 1], (3, H, W) of images [B, 3, H, W], which are
    bytes / 255 − mean; the module returns logits [B, outputs].
    """
    source: Source
    """The files that it is made of."""


_PLUGGED: dict[str, Plugged] = {}  # by this process


def plug(name: str, factory: Callable[[Any, int], Any], source: Source | None = None) -> None:
    """Registers a network as `Architecture(name)` in this process; replaces one of the same name.

    source: the files by which kept runs identify the network, and whose lines errors name. Raises ValueError for a name
    of ours.
    """
    if name in NETWORKS:
        raise ValueError(f"network {name!r} is one of the package's own; choose another name")
    _PLUGGED[name] = Plugged(name, factory, source or Source({}))


def unplug(name: str) -> None:
    """Removes a registered network, if there is one of that name."""
    _PLUGGED.pop(name, None)


def find_plugged(name: str) -> Plugged:
    """Returns the network of a name. Raises ValueError, in one line, where this process has none."""
    if name not in _PLUGGED:
        hint = did_you_mean(name, (*NETWORKS, *_PLUGGED))
        raise ValueError(f"network must be one of {', '.join(NETWORKS)}, got {name!r}{hint}")
    return _PLUGGED[name]


@dataclass(frozen=True)
class Architecture:
    """The trained network; no hyperparameter of a method. Raises ValueError for an unknown one."""

    network: str = "mlp"
    """One of NETWORKS, or what was plugged."""
    hidden: tuple[int, ...] = (256, 256)
    """The widths of an mlp."""
    pretrained: str | None = None
    """The weights that a resnet18 starts from, "imagenet" or a file's path; None for random ones."""
    start: str = STARTS[0]
    """How the initial weights of an mlp are drawn, one of STARTS."""

    def __post_init__(self) -> None:
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"hidden must be one or more widths >= 1, got {self.hidden}")
        if self.pretrained is not None and self.network != "resnet18":
            raise ValueError(f"pretrained weights are for network resnet18, got network {self.network!r}")
        if self.start not in STARTS:
            raise ValueError(f"start must be one of {', '.join(STARTS)}, got {self.start!r}")
        if self.own:
            find_plugged(self.network)

    @property
    def perceptron(self) -> bool:
        """True if it is the multilayer perceptron, which alone the compiled engine has, and several seeds as one."""
        return self.network == "mlp"

    @property
    def residual(self) -> bool:
        """True if it is a built-in residual network."""
        return self.network in IMAGE_NETWORKS

    @property
    def own(self) -> bool:
        """True if it is a network of the user's own."""
        return self.network not in NETWORKS

    def check(self, method: methods.Method) -> None:
        """Raises ValueError, in one line, where a method has no form for the network."""
        if self.own and isinstance(method.rule, methods.Columns):
            raise ValueError(
                f"{method.title} grows networks of {', '.join(NETWORKS)} alone, got network {self.network!r}"
            )
        if method.for_perceptrons and not self.perceptron:
            raise ValueError(f"{method.title} trains networks mlp alone, got network {self.network!r}")
        if self.start != STARTS[0] and isinstance(method.rule, methods.Columns):
            raise ValueError(f"{method.title} draws the weights of its columns by start {STARTS[0]}, got {self.start}")


@dataclass(frozen=True)
class CohortResult:
    """Raw measurements of M learners over T tasks, rows in the order of `cohort.learners`."""

    ARRAYS: ClassVar = (
        "accuracies",
        "initial",
        "within",
        "inside",
        "violations",
        "diverged_task",
        "diverged_step",
        "steps",
        "fingerprints",
        "params",
        "statistics",
    )
    """The fields that have a row for each learner."""

    accuracies: "NDArray[np.float64]"
    """[M, T, T], on task j after task k, in [0, 1]; measured for j <= k, and, where transfer is measured, for
    j = k + 1, the zero-shot accuracy before the next task's first step; NaN elsewhere.
    """
    initial: "NDArray[np.float64]"
    """[M, T], accuracies of the untrained network; NaN where transfer is not measured, and class-incrementally,
    where tests depend on the classes seen so far.
    """
    within: "NDArray[np.float64]"
    """[M, T, 11], accuracy on the current task after b = 0…10 mini-batches; NaN past the last batch of the first pass,
    and where transfer is not measured.
    """
    inside: "NDArray[np.float64]"
    """[M, P, 2 + T], tests inside tasks (`Training.measure`), a row a point in order of time: the task that is trained,
    steps taken in it, then the accuracy on each task, NaN on later ones. Rows of NaN fill up what a learner lacks.
    """
    violations: "NDArray[np.float64]"
    """[M, T], share of steps at which the gradient was projected; NaN without a reference gradient."""
    diverged_task: "NDArray[np.int64]"
    """[M], the task in which the loss or a parameter first was not finite; -1 where it never was."""
    diverged_step: "NDArray[np.int64]"
    """[M], the step of that task; -1 where there is none."""
    steps: "NDArray[np.int64]"
    """[M], SGD steps of the whole run."""
    fingerprints: "NDArray[np.str_]"
    """[M], hash of the final parameters."""
    params: "NDArray[np.object_]"
    """M arrays, the final parameters, with the engine's padding; None in a result from elsewhere."""
    statistics: "NDArray[np.object_]"
    """M arrays, the final moving averages of batch normalisation; None where the network has none, or as `params`."""
    saved: int = 0
    """Steps of one learner that were not taken, as learners share their first task."""
    note: str = ""
    """Lines for the user where not everything went as asked, else empty."""

    @classmethod
    def empty(cls, learners: int, tasks: int, points: int = 0) -> "CohortResult":
        """Returns a result without any measurement; points: P of `inside`."""
        import numpy as np

        return cls(
            accuracies=np.full((learners, tasks, tasks), np.nan),
            initial=np.full((learners, tasks), np.nan),
            within=np.full((learners, tasks, LEARNING_CURVE_BATCHES + 1), np.nan),
            inside=np.full((learners, points, 2 + tasks), np.nan),
            violations=np.full((learners, tasks), np.nan),
            diverged_task=np.full(learners, -1),
            diverged_step=np.full(learners, -1),
            steps=np.zeros(learners, dtype=np.int64),
            fingerprints=np.full(learners, "", dtype="U16"),  # as many characters as `fingerprint` has
            params=np.full(learners, None, dtype=object),
            statistics=np.full(learners, None, dtype=object),
        )
