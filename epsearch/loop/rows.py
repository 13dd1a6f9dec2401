"""The rows of a comparison: methods with their hyperparameters, as the definition or the user gives them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from epsearch.loop.jobs import Run
from epsearch.study.kinds import Comparison, MemoryStudy, Table
from epsearch.study.published import of_methods
from search_spaces.published.definition import method_grids
from trainers import methods
from trainers.cohort import Learner
from trainers.hyperparameters import Hyperparameters, Value


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
        declared = methods.method(self.method).hyperparameters
        return {one.short: vars(self.hyperparameters)[one.name] for one in declared if one.per_method}

    def candidates(self) -> list["Row"]:
        """The row with every learning rate, and λ, of A-GEM's grids (appendix G)."""
        grids = method_grids()
        strengths = [{"strength": one} for one in dict(grids.strengths).get(self.method, ())]
        return [
            replace(self, hyperparameters=self.hyperparameters.but(lr=rate, **strength))
            for rate in grids.learning_rates
            for strength in strengths or [{}]
        ]


def table_rows(study: Table) -> tuple[Row, ...]:
    """What the study compares, as it begins."""
    return ROWS[study.kind](study)


def comparison_rows(study: Comparison) -> tuple[Row, ...]:
    """One row a method, and one for each of its variants that is another one."""
    rows: list[Row] = []
    for method in study.methods:
        variants: list[dict[str, Value]] = [{}, *({name: value} for name, value in methods.method(method).variants)]
        rows += dict.fromkeys(_row(study, method, variant) for variant in variants)
    return tuple(rows)


def memory_rows(study: MemoryStudy) -> tuple[Row, ...]:
    """One row a method and size."""
    return tuple(_row(study, method, {"memory": size}) for method in study.methods for size in study.sizes)


def _row(study: Table, name: str, own: dict[str, Value]) -> Row:
    """The study's settings name what each method has a value of its own for, unless that is to be tuned."""
    method = methods.method(name)
    values = of_methods(study.dataset)[name] | vars(study.hyperparameters)
    values |= {field: value for one, field, value in study.settings if one == name}
    known = {one.name for one in method.hyperparameters}
    given = {one: value for one, value in (values | own).items() if one in known}
    told = Hyperparameters.of(method.hyperparameters, given)
    return Row(f"{method.title}{method.reading(told)}", name, told)


ROWS: dict[str, Callable[[Any], tuple[Row, ...]]] = {Comparison.kind: comparison_rows, MemoryStudy.kind: memory_rows}
