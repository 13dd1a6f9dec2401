"""Tables of methods: a comparison, and a study of the memory."""

from collections.abc import Iterable
from dataclasses import dataclass

from epsearch.study import values
from epsearch.study.description import Study
from epsearch.study.kinds.options import allow_shared_option, claim_option
from epsearch.study.option import BASIC, DATASETS, LEARNING, SEEDS, option
from results.ledger.record import Unit
from trainers.hyperparameters import Value
from trainers.methods import METHODS, hyperparameters, method
from trainers.methods.rules import SAMPLED


@dataclass(frozen=True, init=False, kw_only=True)
class Table(Study):
    """Base of tables: methods on the evaluation stream, beside the paper's table."""

    has_latex = True

    # fmt: off
    methods: tuple[str, ...] = option(
        values.METHOD_NAMES, "Methods with commas between, or all.", LEARNING,
        usual="all that have published settings on the dataset", level=BASIC, after="dataset",
    )
    """In the order of the rows."""
    settings: tuple[tuple[str, str, Value], ...] = option(
        values.SETTINGS, "Learning rates and λ of methods, like ewc.lr=0.01,ewc.strength=100.", LEARNING, (),
        usual=DATASETS, after="hyperparameters",
    )
    """(method, hyperparameter, value)."""
    order_by_seed: bool = option(
        values.FLAG,
        "Give every seed an order of its own, of tasks or of the classes that are split into them: seed 3 order 3 of "
        "--orders, seed 0 the stream's.", SEEDS, False, later=True, after="orders",
    )
    # fmt: on

    @property
    def order_numbers(self) -> tuple[int, ...]:
        """The numbers of the orders of tasks."""
        return self.seeds if self.order_by_seed else super().order_numbers

    def units_of(self, seeds: Iterable[int]) -> tuple[Unit, ...]:
        """Returns each seed in its own order, or in every order."""
        return tuple(Unit(seed, seed) for seed in seeds) if self.order_by_seed else super().units_of(seeds)

    @property
    def compared_on(self) -> tuple[int, ...]:
        """Numbers of units in which rows are compared; none for the row of a pack, which is held against print."""
        alone = self.from_pack is not None and len(self.methods) == 1 and self.kind == Comparison.kind
        return () if alone else super().compared_on

    def code(self) -> dict[str, str]:
        """Returns possible plug-ins: network and methods."""
        return super().code() | dict.fromkeys(self.methods, "method")


@dataclass(frozen=True, init=False, kw_only=True)
class Comparison(Table):
    """Every method, with memories of one size: `epsearch compare`."""

    kind = "compare"
    named = (*Study.named, "epsilon", "fisher_every", "penalty_form", "margin")

    # fmt: off
    tune: bool = option(
        values.FLAG,
        "First choose each method's learning rate, and λ, from A-GEM's grids on the cross-validation tasks.", LEARNING,
        False, after="settings",
    )
    """The grids are those of appendix G."""
    budget: int | None = option(
        values.whole(1),
        "Member-steps with which each row is tuned on the cross-validation tasks: as many quasi-random candidates for "
        "every row.", LEARNING, usual="none", later=True, after="tune",
    )
    """None without such a tuning."""
    memory_bytes: int | None = option(
        values.SIZE_OF_MEMORY,
        "Bytes that each method with a memory may keep in all, like 2MB; it stores as many examples as fit.", LEARNING,
        usual="as --memory has it", later=True, after="budget",
    )
    """None for `memory` examples per class and task of every method."""
    # fmt: on
    claim: str | None = claim_option()
    allow_shared: bool = allow_shared_option()

    @classmethod
    def takes(cls) -> tuple[str, ...]:
        """Returns shared hyperparameters, without those of a method alone and those that vary between rows."""
        shared = {
            hyperparameter.name
            for declared in METHODS.values()
            for hyperparameter in declared.hyperparameters
            if hyperparameter.name not in dict(declared.variants)
        }
        return tuple(
            name
            for name, hyperparameter in hyperparameters().items()
            if not hyperparameter.per_method and name in shared
        )

    @property
    def searches(self) -> bool:
        """True if the methods are tuned on D^CV first."""
        return self.tune or self.budget is not None

    @property
    def claimable(self) -> tuple[str, ...]:
        """Names of what a claim may compare."""
        return self.methods

    def idle(self, name: str) -> str:
        """Returns why an option has no effect in this study; "" if it may have one."""
        return "memory-bytes sets it" if name == "memory" and self.memory_bytes is not None else ""


@dataclass(frozen=True, init=False, kw_only=True)
class MemoryStudy(Table):
    """Methods with an episodic memory, at several sizes of it: `epsearch memory`."""

    kind = "memory"
    named = (*Study.named, "epsilon", "a_agem_scale")

    # fmt: off
    sizes: tuple[int, ...] = option(
        values.SIZES, "Memory sizes to compare, examples per class and task.", LEARNING,
        usual="the dataset's, like 25,50,100", level=BASIC, after="methods",
    )
    """Ascending."""
    # fmt: on

    @classmethod
    def takes(cls) -> tuple[str, ...]:
        """Returns shared hyperparameters of its methods, without the memory, which varies between rows."""
        shared = {
            hyperparameter.name
            for name in cls.trainable()
            for hyperparameter in method(name).hyperparameters
            if not hyperparameter.per_method
        }
        return tuple(name for name in hyperparameters() if name in shared - {"memory"})

    @classmethod
    def trainable(cls) -> tuple[str, ...]:
        """Returns methods with a memory of examples per class and task, as in the paper's memory study."""
        return tuple(name for name in super().trainable() if method(name).memory == SAMPLED)
