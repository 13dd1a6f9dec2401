"""Declarations of hyperparameters, and their values for one learner.

Plain Python: no torch. All that epsearch knows of a hyperparameter is in its declaration: options, `--search`, checks,
content keys, columns and labels are derived from it. Those that every method has are declared here, others beside the
rule that uses them.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import FrozenInstanceError, dataclass
from types import SimpleNamespace
from typing import Any

Value = float | int | str | None

LARGEST = 1e30  # learning rates and the like: float32 has twice as much, too
OF_DATASET = "the dataset's"  # default in words, where definitions give a value
MOST = 10**9  # examples or steps: beyond all data, and no sum of them leaves 64 bits

# The schedule of a task is in memory as a whole.
MOST_PASSES, MOST_STEPS = 10**4, 10**7
MOST_MOMENTUM = 0.9999  # below 1, at which no step is ever forgotten


@dataclass(frozen=True)
class Hyperparameter:
    """A declaration: a number from `low` to `high`, or one of `choices`."""

    name: str
    """As users write it, with underscores."""
    help: str
    """What it is, in a line."""
    default: Value = None
    """Where nobody gives a value; None: somebody must."""
    low: float = 0.0
    """The smallest number."""
    high: float = LARGEST
    """The largest number, itself allowed."""
    closed: bool = True
    """Whether `low` itself is allowed."""
    whole: bool = False
    """Whether it must be an integer."""
    choices: tuple[str, ...] = ()
    """The words that it may be, instead of a number; () for a number."""
    network: bool = False
    """Whether it may also be module:attribute of a network of somebody's own, whose source then belongs to results."""
    all_for_none: bool = False
    """True if None is a value; users write the word of `none`."""
    none: str = "all"
    """The word for None, where that is a value."""
    search_low: float | None = None
    """The smallest value that a search may try, where `low` switches something off."""
    per_learner: bool = False
    """Whether learners of a cohort may differ in it; rules then get a number for one, a tensor [M] for M learners."""
    fixed: bool = False
    """Whether it must stay the same throughout a run, as what is stored depends on it; others may change in a fork."""
    later: bool = False
    """True for one that older stored results lack: part of keys and names only where it is not the default."""
    published: str = ""
    """Its name in the definitions of datasets, whose values go before the default; "" where they give none."""
    per_method: bool = False
    """Whether definitions give each method a value of its own, so that no value fits all methods of a comparison."""
    label: str = ""
    """As tables and figures write it; by default the name with spaces."""
    recorded: str = ""
    """Its name in stored records, where that is another one."""
    aliases: tuple[str, ...] = ()
    """Further flags of the command line."""
    usual: str = ""
    """The default in words; "" where `default` says it."""
    stability: int = 0
    """1 if larger numbers protect earlier tasks more, −1 if smaller ones do, 0 where that cannot be said."""

    @property
    def title(self) -> str:
        """The name as people write it.

        >>> LR.title, BATCH_SIZE.title
        ('learning rate', 'batch size')
        """
        return self.label or self.name.replace("_", " ")

    @property
    def short(self) -> str:
        """The name for a narrow column: the letter by which papers know it, else `name`.

        >>> LR.short
        'lr'
        """
        return self.label if len(self.label) == 1 else self.name

    @property
    def key(self) -> str:
        """The name in stored records."""
        return self.recorded or self.name

    @property
    def smallest_searched(self) -> float:
        """The smallest number that a search may try.

        >>> LR.smallest_searched, BATCH_SIZE.smallest_searched
        (0.0, 1)
        """
        return self.low if self.search_low is None else self.search_low

    @property
    def allowed(self) -> str:
        """The allowed values, in words.

        >>> LR.allowed, BATCH_SIZE.allowed
        ('> 0', '>= 1')
        """
        if self.choices:
            return f"one of {', '.join(self.choices)}" + (" or module:attribute" if self.network else "")
        if self.high <= 1:
            return f"in [{self.low:g}, {self.high:g}]"
        return f"{'>=' if self.closed else '>'} {self.low:g}" + (f" or {self.none!r}" if self.all_for_none else "")

    def fault(self, defaults: bool) -> str:
        """Returns the reason why it cannot be declared, in one line; "" where it can.

        defaults: whether it needs one.
        """
        if not self.name.isidentifier():
            return f"the name of a hyperparameter must be letters, digits and _, got {self.name!r}"
        if self.per_learner and (self.choices or self.all_for_none):
            return f"{self.name} must be a number to be per learner"
        if not defaults or self.fits(self.default):
            return ""
        if self.default is None:
            return "" if self.published else f"{self.name} needs a default"  # or definitions give one
        return f"default of {self.name} must be {self.allowed}, got {self.default!r}"

    def fits(self, value: Any) -> bool:
        """Returns whether a learner can have the value."""
        if value is None:
            return self.all_for_none
        if self.choices:
            return value in self.choices or (self.network and is_reference(value))
        if isinstance(value, str) or not math.isfinite(value) or (self.whole and not float(value).is_integer()):
            return False
        return bool((value >= self.low if self.closed else value > self.low) and value <= self.high)


class Hyperparameters(SimpleNamespace):
    """Values of the hyperparameters of one method, as attributes; frozen, hashable, picklable."""

    __slots__ = ("_hash",)  # not one of the values: neither seen by `vars` nor pickled

    @classmethod
    def of(cls, declared: Iterable[Hyperparameter], values: Mapping[str, Value]) -> "Hyperparameters":
        """Returns exactly the declared hyperparameters: as given, else the default.

        Raises ValueError where a value is missing or wrong.
        """
        declarations = tuple(declared)
        made = cls(**{hyperparameter.name: hyperparameter.default for hyperparameter in declarations} | dict(values))
        made.check(declarations)
        return made

    def check(self, declared: Iterable[Hyperparameter]) -> None:
        """Raises ValueError, in one line, where these are not exactly the declared ones, or a value does not fit."""
        declarations = {hyperparameter.name: hyperparameter for hyperparameter in declared}
        for names, others, what in (
            (vars(self), declarations, "no such"),
            (declarations, vars(self), "no value of the"),
        ):
            if left := [name for name in names if name not in others]:
                raise ValueError(f"{what} hyperparameter: {', '.join(left)}; known: {', '.join(declarations)}")
        for name, hyperparameter in declarations.items():
            if not hyperparameter.fits(value := vars(self)[name]):
                raise ValueError(f"{name} must be {hyperparameter.allowed}, got {value!r}")

    def only(self, names: Iterable[str]) -> "Hyperparameters":
        """Returns those of these names that there are."""
        chosen = set(names)
        return Hyperparameters(**{name: value for name, value in vars(self).items() if name in chosen})

    def get(self, name: str, default: Any = None) -> Any:
        """Returns the value, or the default where the method has no such hyperparameter."""
        return vars(self).get(name, default)

    def but(self, **values: Any) -> "Hyperparameters":
        """Returns the same with other values, which are not checked: a batch of learners has tensors [M]."""
        return Hyperparameters(**{**vars(self), **values})

    def __hash__(self) -> int:  # type: ignore[override]  # a SimpleNamespace has none, as it is not frozen
        # Kept, as a loop looks up thousands of learners whenever a cohort comes back.
        try:
            return int(self._hash)
        except AttributeError:
            # Of a set, as values are equal in whatever order they were given.
            object.__setattr__(self, "_hash", hash(frozenset(vars(self).items())))
            return int(self._hash)

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to {name!r}")


def is_reference(value: Any) -> bool:
    """Returns whether a value is written as module:attribute.

    >>> is_reference("package.mine:net"), is_reference("mine"), is_reference(3)
    (True, False, False)
    """
    module, colon, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    return bool(colon) and name.isidentifier() and all(part.isidentifier() for part in module.split("."))


def anything(name: str) -> Hyperparameter:
    """Returns a hyperparameter of which only the name is declared."""
    return Hyperparameter(name, "", low=-LARGEST)


LR = Hyperparameter(
    "lr",
    "Learning rate.",
    usual=OF_DATASET,
    default=0.1,
    closed=False,
    per_learner=True,
    published="learning_rate",
    per_method=True,
    label="learning rate",
    recorded="learning_rate",
)
BATCH_SIZE = Hyperparameter(
    "batch_size",
    "Examples of one SGD step.",
    usual=OF_DATASET,
    default=10,
    low=1,
    high=MOST,
    whole=True,
    published="batch_size",
)
EPOCHS = Hyperparameter(
    "epochs",
    "Passes over the examples of each task, each in an order of its own.",
    default=1,
    low=1,
    high=MOST_PASSES,
    whole=True,
    later=True,
)
STEPS = Hyperparameter(
    "steps",
    "SGD steps of each task instead of whole passes: the last pass is cut.",
    usual="as --epochs has it",
    low=1,
    high=MOST_STEPS,
    whole=True,
    all_for_none=True,
    none="none",
    # What a reservoir was offered depends on it.
    fixed=True,
    later=True,
)

OPTIMIZER = Hyperparameter(
    "optimizer",
    "SGD, or Adam with its usual constants; what it remembers goes on from task to task.",
    default="sgd",
    choices=("sgd", "adam"),
    # Arrays of the one mean nothing to the other.
    fixed=True,
    later=True,
)
MOMENTUM = Hyperparameter(
    "momentum",
    "Momentum of SGD: the share of the last step that goes into the next.",
    default=0.0,
    high=MOST_MOMENTUM,
    fixed=True,
    later=True,
)
WEIGHT_DECAY = Hyperparameter(
    "weight_decay",
    "Factor of the parameters that is added to the gradient (L2).",
    default=0.0,
    later=True,
)
LR_FACTOR = Hyperparameter(
    "lr_factor",
    "Factor of the learning rate from each task to the next.",
    default=1.0,
    closed=False,
    later=True,
    label="learning rate factor",
)

OF_EVERY_METHOD = (LR, BATCH_SIZE, EPOCHS, STEPS, OPTIMIZER, MOMENTUM, WEIGHT_DECAY, LR_FACTOR)
