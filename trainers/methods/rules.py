"""Declarations of methods: rule, memory and hyperparameters.

The rule makes the step from gradients. Methods are declared without torch, which is imported when they train. The rule
of most methods is a `Mixing`: the direction is a·g + b·g_ref, where a and b depend on three inner products and the
method's hyperparameters. It is written once, for one learner with plain numbers (CPU) and for many with tensors [M]
(GPU): `where` and `root` take both. The other rules are `Penalty` (penalty.py), `Losses` (losses.py), `Projection`
(gem.py), `Subspaces` (subspaces.py) and `Columns` (prognn.py).
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NamedTuple

from trainers.hyperparameters import (
    LR_FACTOR,
    MOST,
    OF_DATASET,
    OF_EVERY_METHOD,
    Hyperparameter,
    Hyperparameters,
    Value,
    anything,
)
from trainers.methods.losses import Losses
from trainers.methods.penalty import Penalty, Tensor
from trainers.methods.subspaces import Subspaces
from trainers.scenarios import SCENARIOS

Number = Any
"""A float (a bool where a condition is meant) for one learner, or a tensor [M]."""

SCALES = ("unit", "raw")

# Below this squared norm the squares of single components (about 1e-5 of it) leave float32's normal range and the
# direction g/‖g‖ is rounding noise; ‖g‖ itself is then under 1e-15.
SMALLEST_SQUARED_NORM = 1e-30
# Of the mean squared residual. A sum of examples' gradients below 2⁻¹² of their size has lost half of float32's 24 bits
# and more by cancellation: its direction is rounding, which is another one on every numeric path.
CANCELLED = 2.0**-24

# Memories. After a task, m examples of each class are stored; g_ref comes from a draw of all that is stored …
SAMPLED = "sampled"
# … or there is one g_ref for each previous task, from all that is stored of it.
PER_TASK = "per task"
# Every example is offered to the memory as it is seen, from the first step on (reservoir sampling).
RESERVOIR = "reservoir"

# Training on tasks together. At task k a new network is trained on the tasks up to k; …
JOINT = "joint"
# … or each part of the stream has examples of all tasks.
IID = "i.i.d."

# What a step takes of g_ref. Whether g·g_ref is negative: where it is not, the direction is g whatever else holds, and
# where it is, all three products are asked for, and g_ref.
SIGN = "sign"
# All three products in every step, and g_ref itself where b is not 0.
NORM = "norm"
# Of which nothing is known, so g_ref itself in every step.
ALL = "all"


class Products(NamedTuple):
    """Inner products of the two flattened gradients over all parameters."""

    gg: Number
    """‖g‖²."""
    gr: Number
    """g·g_ref."""
    rr: Number
    """‖g_ref‖²."""
    share: Number = 0.5
    """The mini-batch's share of all examples of the step, those of the reference batch included."""
    residual: Number = 0.0
    """Mean of ‖p − onehot(y)‖² over the reference batch: the size of what is summed, and may cancel, in g_ref."""
    tasks: Number = 1.0
    """Tasks so far, the current one included."""
    loss: Number = 1.0
    """Mean cross-entropy over the mini-batch."""
    reference_loss: Number = 1.0
    """Mean cross-entropy over the reference batch."""


class _Angle(NamedTuple):
    """Norms and cosine of the two gradients; harmless ones where a gradient vanishes."""

    usable: Number
    """Condition: both gradients are long enough to have a direction."""
    g_norm: Number
    """‖g‖; 1 where it vanishes."""
    r_norm: Number
    """‖g_ref‖; 1 where it vanishes."""
    cosine: Number
    """ĝ·ĝ_ref; without meaning where not `usable`."""


class Mix(NamedTuple):
    """Coefficients of the direction a·g + b·g_ref and whether it was projected."""

    a: Number
    """Of g."""
    b: Number
    """Of g_ref."""
    projected: Number
    """Condition: the constraint was violated."""


class Mixing(NamedTuple):
    """A rule without state."""

    mix: Callable[[Products, Hyperparameters], Mix]
    """mix(products, values), not asked on steps without a reference batch; values: those that are per learner are
    Numbers, as the products are.
    """
    together: bool = False
    """Both batches are to pass through the network as one, of which the gradient is the mean over all examples.
    Without batch normalisation that is the same as their mix, and need not be done.
    """
    needs: Callable[[Hyperparameters], str] = lambda values: ALL
    """needs(values) -> SIGN, NORM or ALL: what one learner's steps take of g_ref. An engine may leave out the rest."""


class Projection(NamedTuple):
    """A rule with one reference gradient for each previous task."""

    direction: Callable[[Tensor, Tensor, Hyperparameters], tuple[Tensor, Tensor]]
    """direction(g [M, D], references [M, t, D], values) -> (direction [M, D], whether it was projected [M])."""


class Columns(NamedTuple):
    """The rule of a network that grows by a column with every task: plain SGD on the newest column."""


class Foreign(NamedTuple):
    """The rule of a plug-in trainer, which takes its own steps: see `trainers.foreign`."""

    declared: bool = False
    """Whether it says what its hyperparameters are; if not, any name and any value may be one."""


RULES = (Mixing, Penalty, Losses, Projection, Subspaces, Columns, Foreign)


MEMORY = Hyperparameter(
    "memory",
    "Examples kept per class and task.",
    usual=OF_DATASET,
    default=25,
    high=MOST,
    whole=True,
    search_low=1,
    fixed=True,
    published="memory",
    aliases=("--mem-size",),
)
MEMORY_BATCH = Hyperparameter(
    "memory_batch",
    "Examples drawn from the memory at every step, or all.",
    usual=OF_DATASET,
    default=256,
    low=1,
    high=MOST,
    whole=True,
    all_for_none=True,
    published="memory_batch",
    aliases=("--eps-mem-batch",),
)
SATISFIED = Hyperparameter("satisfied", "Step taken when the constraint holds.", default="raw", choices=SCALES)


@dataclass(frozen=True)
class Method:
    """A method's declaration."""

    title: str
    """As the papers print it."""
    source: str
    """Who proposed it, and where."""
    rule: Mixing | Penalty | Losses | Projection | Subspaces | Columns | Foreign
    memory: str | None = None
    """SAMPLED, PER_TASK, RESERVOIR, or None."""
    own: tuple[Hyperparameter, ...] = ()
    """Hyperparameters on which its results depend, besides those that every method has."""
    late: tuple[str, ...] = ()
    """Names of those that need two earlier tasks to act."""
    title_suffix: Callable[[Hyperparameters], str] = lambda values: ""
    """What follows the title where a table must say with which values the method was trained."""
    variants: tuple[tuple[str, Value], ...] = ()
    """(hyperparameter, value) of further rows that a comparison of methods shows."""
    scenarios: tuple[str, ...] = SCENARIOS
    """The scenarios in which it has a purpose."""
    union: str | None = None
    """JOINT or IID where tasks are shown together, see `streams.union`; None for one after another."""
    settings_of: str = ""
    """The method whose published settings it has; "" for settings of its own."""
    at_zero: str = ""
    """The method that it is where its ε is 0; "" where ε = 0 is a value like others, or there is no ε."""
    named_only: bool = False
    """True if a comparison has it only by its name, so that rows of older comparisons and of `all` stay the same."""

    def __post_init__(self) -> None:
        if not isinstance(self.rule, RULES):
            raise ValueError(f"method {self.title!r}: rule must be {_allowed_rules(self.rule)}")
        if missing := sorted(self._requirements() - set(self.names)):
            raise ValueError(
                f"method {self.title!r} needs the hyperparameters {', '.join(missing)}; declare them in own"
            )
        if isinstance(self.rule, Losses) and self.rule.draws and self.memory != RESERVOIR:
            raise ValueError(f"method {self.title!r} draws from its memory, which must be RESERVOIR")
        if faults := [fault for hyperparameter in self.own if (fault := hyperparameter.fault(not self.foreign))]:
            raise ValueError(f"method {self.title!r}: {faults[0]}")

    def _requirements(self) -> set[str]:
        """Returns the names of the hyperparameters that its rule and its memory read."""
        needed = {"memory"} if self.memory else set()
        needed |= {"memory_batch"} if self.memory in (SAMPLED, RESERVOIR) else set()
        if isinstance(self.rule, Penalty):
            needed |= {"strength", "fisher_every"} if self.rule.refresh else {"strength"}
        needed |= {"representations"} if isinstance(self.rule, Subspaces) else set()
        needed |= {"temperature"} if isinstance(self.rule, Losses) and self.rule.taught else set()
        return needed

    @property
    def foreign(self) -> bool:
        """True if it is somebody else's trainer, and nothing of it is ours."""
        return isinstance(self.rule, Foreign)

    @property
    def for_perceptrons(self) -> bool:
        """True if it trains networks `mlp` alone."""
        return isinstance(self.rule, Subspaces)

    @property
    def takes_any(self) -> bool:
        """True if any name may be a hyperparameter's."""
        return isinstance(self.rule, Foreign) and not self.rule.declared

    @property
    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        """All declared hyperparameters."""
        return self.own if self.foreign else (*OF_EVERY_METHOD, *self.own)

    def declarations(self, names: Iterable[str]) -> tuple[Hyperparameter, ...]:
        """Returns the declarations of the hyperparameters of a learner whose values have these names.

        All that are declared; of a trainer, which may have declared others when the values were given, those named.
        """
        if not self.foreign:
            return self.hyperparameters
        by_name = {hyperparameter.name: hyperparameter for hyperparameter in self.own}
        return tuple(by_name.get(name) or anything(name) for name in names)

    def check(self, values: Hyperparameters) -> None:
        """Raises ValueError, in one line, where these are not values of its hyperparameters.

        Of a trainer every number and word may be one: what it declares now is checked where values are given.
        """
        if not self.foreign:
            values.check(self.hyperparameters)
            return
        for name, value in vars(values).items():
            if not (
                value is None or isinstance(value, str) or (isinstance(value, (int, float)) and math.isfinite(value))
            ):
                raise ValueError(f"{name} must be a finite number, a word, True, False or None, got {value!r}")

    def of(self, values: Mapping[str, Value]) -> Hyperparameters:
        """Returns the values: as given, else the declared default; of a trainer only as given.

        Raises ValueError as `check`.
        """
        usual = (
            {}
            if self.foreign
            else {hyperparameter.name: hyperparameter.default for hyperparameter in self.hyperparameters}
        )
        result = Hyperparameters(**usual | dict(values))
        self.check(result)
        return result

    @property
    def per_learner(self) -> tuple[str, ...]:
        """Names of those in which learners of a cohort may differ."""
        return tuple(hyperparameter.name for hyperparameter in self.hyperparameters if hyperparameter.per_learner)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its own hyperparameters."""
        return tuple(hyperparameter.name for hyperparameter in self.own)

    @property
    def first_task_is_sgd(self) -> bool:
        """True if the first task is plain SGD and leaves nothing but parameters, as for every other such method."""
        sgd = isinstance(self.rule, (Mixing, Projection))
        return sgd and self.memory != RESERVOIR and self.union is None

    @property
    def in_first_task(self) -> tuple[str, ...]:
        """Names of the hyperparameters per learner on which the first task depends, the learning rate first.

        Plain SGD depends on those of every method alone; λ does not matter before there is an importance, nor what
        weighs a teacher before there is one; how far spans grow at its end does.
        """
        untaught = isinstance(self.rule, Losses) and self.memory is None  # no teacher yet
        if self.first_task_is_sgd or untaught:
            return tuple(hyperparameter.name for hyperparameter in OF_EVERY_METHOD if hyperparameter.per_learner)
        return tuple(name for name in self.per_learner if name != "strength")

    def tasks_needed(self, name: str) -> int:
        """Returns the fewest tasks of a stream on which a hyperparameter can change a result.

        A step of the first task knows nothing of earlier ones: there is no reference gradient yet, no importance is
        above 0. Only a reservoir is read from the first task on. Nor does the learning rate have a factor in it.
        """
        if name == LR_FACTOR.name:
            return 2
        if name not in self.names or (self.memory == RESERVOIR and name != "temperature"):  # which is a teacher's
            return 1
        return 3 if name in self.late else 2


def _allowed_rules(rule: object) -> str:
    """Returns the types that a rule may have, in words, and how to make one of a function."""
    if isinstance(rule, FunctionType):
        return f"a Mixing or the like, got a function; wrap it: Mixing({rule.__name__})"
    *others, last = (kind.__name__ for kind in RULES if kind is not Foreign)
    return f"a {', '.join(others)} or {last}, got a {type(rule).__name__}"


def where(condition: Number, then: Number, otherwise: Number) -> Number:
    """Returns `then` where the condition holds, else `otherwise`; never branches per member on tensors."""
    if not hasattr(condition, "requires_grad"):  # of one learner, not a tensor of many
        return then if condition else otherwise
    import torch  # here, where there are tensors: declaring a method does without

    return torch.where(condition, then, otherwise)


def root(value: Number) -> Number:
    """Returns the square root."""
    return value.sqrt() if hasattr(value, "sqrt") else math.sqrt(value)


def angle(products: Products) -> _Angle:
    """Returns norms and cosine, guarded in this one place: a vanishing gradient has no direction to project on."""
    usable = (products.gg > SMALLEST_SQUARED_NORM) & (products.rr > SMALLEST_SQUARED_NORM)
    usable = usable & (products.rr > CANCELLED * products.residual)
    g_norm = root(where(usable, products.gg, 1.0))
    r_norm = root(where(usable, products.rr, 1.0))
    # Two divisions: the product of two small norms could underflow where neither norm does.
    return _Angle(usable, g_norm, r_norm, products.gr / g_norm / r_norm)


def choose(projected: Number, when_projected: tuple[Number, Number], otherwise: Number) -> Mix:
    """Returns the projected coefficients where `projected`, else `otherwise`·g."""
    a, b = when_projected
    return Mix(where(projected, a, otherwise), where(projected, b, 0.0), projected)
