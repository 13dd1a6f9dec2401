"""The rows of a comparison: methods with their hyperparameters, as the definition or the user gives them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from epsearch.loop.jobs import Run
from epsearch.study.kinds import Comparison, MemoryStudy
from epsearch.study.published import of_methods
from results.labels import epsilon_text, method_label
from search_spaces.published.definition import method_grids
from trainers import methods
from trainers.cohort import Learner
from trainers.hyperparameters import Hyperparameters, Value

SMALL_BATCH = 10  # ER's other reference batch, that of its authors' script


@dataclass(frozen=True)
class Row:
    """One method with all of its hyperparameters; every seed is a learner."""

    label: str
    method: str
    hyperparameters: Hyperparameters

    def learner(self, seed: int) -> Learner:
        """Of one seed."""
        return Learner(self.method, self.hyperparameters, seed)

    def runs(self, phase: str, seeds: tuple[int, ...]) -> list[Run]:
        """Of all seeds."""
        return [Run(phase, self.learner(seed)) for seed in seeds]

    def shown(self) -> dict[str, Any]:
        """The hyperparameters that tables name."""
        strength = self.hyperparameters.get("strength")
        return {"lr": self.hyperparameters.lr} | ({} if strength is None else {"λ": strength})

    def candidates(self) -> list["Row"]:
        """The row with every learning rate, and λ, of A-GEM's grids (appendix G)."""
        grids = method_grids()
        strengths = [{"strength": one} for one in dict(grids.strengths).get(self.method, ())]
        return [
            replace(self, hyperparameters=self.hyperparameters.but(lr=rate, **strength))
            for rate in grids.learning_rates
            for strength in strengths or [{}]
        ]


def table_rows(study: Comparison | MemoryStudy) -> tuple[Row, ...]:
    """What the study compares, as it begins."""
    return comparison_rows(study) if isinstance(study, Comparison) else memory_rows(study)


def comparison_rows(study: Comparison) -> tuple[Row, ...]:
    """One row a method; ER with two reference batches, A-A-GEM with unit and with raw gradients."""
    return tuple(row for method in study.methods for row in _variants(study, method))


def memory_rows(study: MemoryStudy) -> tuple[Row, ...]:
    """One row a method and size."""
    rows = []
    for method in study.methods:
        label = method_label(method)
        if method == "a_agem" and study.hyperparameters.a_agem_scale == "raw":
            label += " (raw average)"
        label = _with_epsilon(label, method, study.hyperparameters.epsilon)
        rows += [_row(study, method, label, memory=size) for size in study.sizes]
    return tuple(rows)


def _variants(study: Comparison, method: str) -> Iterator[Row]:
    label = _with_epsilon(method_label(method), method, study.hyperparameters.epsilon)
    if method == "er":
        for batch in dict.fromkeys((study.hyperparameters.memory_batch, SMALL_BATCH)):
            name = "the whole memory" if batch is None else f"reference batch {batch}"
            yield _row(study, method, f"{label}, {name}", memory_batch=batch)
    elif method == "a_agem":
        yield _row(study, method, label)
        yield _row(study, method, f"{label} (raw average)", a_agem_scale="raw")
    else:
        yield _row(study, method, label)


def _row(study: Comparison | MemoryStudy, method: str, label: str, **own: Value) -> Row:
    """The study's settings name what each method has a value of its own for, unless that is to be tuned."""
    declared = methods.method(method).hyperparameters
    values = of_methods(study.dataset)[method] | vars(study.hyperparameters)
    values |= {field: value for name, field, value in study.settings if name == method}
    names = {one.name for one in declared}
    given = {name: value for name, value in (values | own).items() if name in names}
    return Row(label, method, Hyperparameters.of(declared, given))


def _with_epsilon(label: str, method: str, epsilon: float) -> str:
    return f"{label}, ε = {epsilon_text(epsilon)}" if method == "soft_agem" else label
