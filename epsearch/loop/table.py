"""rows -> members -> cohorts -> records: the loop of a comparison or a memory study.

A row is a method with its hyperparameters, as the definition or the user gives them.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from epsearch.loop.ahead import Outlook
from epsearch.loop.base import Loop
from epsearch.loop.jobs import Run
from epsearch.study.kinds import Comparison, MemoryStudy, Search, Table
from epsearch.study.published import of_methods
from results.labels import count_text
from results.ledger.record import RunRecord
from results.metrics import average_accuracy
from search_spaces.published.definition import learning_rate_grid, strength_grids
from trainers import methods
from trainers.cohort import Learner
from trainers.hyperparameters import Hyperparameters, Value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from results.ledger.store import Store


@dataclass(frozen=True)
class Row:
    """One method with all of its hyperparameters; every seed is a learner."""

    label: str
    """The method's title, with its reading where it has several."""
    method: str
    """Our name of it."""
    hyperparameters: Hyperparameters
    """Values of exactly those that the method declares."""

    def learner(self, seed: int) -> Learner:
        """Of one seed."""
        return Learner(self.method, self.hyperparameters, seed)

    def shown(self) -> dict[str, Any]:
        """The hyperparameters that tables name."""
        declared = methods.method(self.method).hyperparameters
        return {one.short: vars(self.hyperparameters)[one.name] for one in declared if one.per_method}

    def candidates(self) -> list["Row"]:
        """The row with every learning rate, and λ, of A-GEM's grids (appendix G)."""
        strengths = [{"strength": one} for one in strength_grids().get(self.method, ())]
        return [
            replace(self, hyperparameters=self.hyperparameters.but(lr=rate, **strength))
            for rate in learning_rate_grid()
            for strength in strengths or [{}]
        ]


# What each row of a method has of its own, by the kind of study.
OWN: dict[str, Callable[[Any, str], list[dict[str, Value]]]] = {
    Comparison.kind: lambda study, name: [{}, *({one: value} for one, value in methods.method(name).variants)],
    MemoryStudy.kind: lambda study, name: [{"memory": size} for size in study.sizes],
}


def table_rows(study: Table) -> tuple[Row, ...]:
    """What the study compares, as it begins: one row a method and variant, or one a method and size of the memory.

    A variant that the study's own values already are is no row of its own.
    """
    return tuple(
        dict.fromkeys(_row(study, name, own) for name in study.methods for own in OWN[study.kind](study, name))
    )


def _row(study: Table, name: str, own: dict[str, Value]) -> Row:
    """The study's settings name what each method has a value of its own for, unless that is to be tuned."""
    method = methods.method(name)
    values = of_methods(study.dataset).get(name, {}) | vars(study.hyperparameters)
    values |= {field: value for one, field, value in study.settings if one == name}
    values |= own  # what makes the row another one wins over all
    given = {one.name: values[one.name] for one in method.hyperparameters if one.name in values}
    told = Hyperparameters.of(method.hyperparameters, given)
    return Row(f"{method.title}{method.reading(told)}", name, told)


class TableLoop(Loop):
    """Trains every row with every seed on the evaluation stream; to tune, first all candidates on the other one.

    Arguments are those of `Loop`. Attributes:

    rows       as they are evaluated; before the tuning has ended, as the definition gives them
    tuning     whether the candidates are being trained
    untuned    labels of rows all of whose candidates diverged, which therefore keep the definition's values
    """

    study: Table

    def __init__(self, study: Table, images: Mapping[str, Any], store: "Store") -> None:
        super().__init__(study, images, store)
        self.rows = table_rows(study)
        self.tuning = study.searches
        self.untuned: list[str] = []

    @property
    def done(self) -> bool:
        """Whether the rows are tuned, where they are to be, and all evaluated."""
        return not self.tuning and not self.missing()

    @property
    def stage(self) -> str:
        """The tuning or the evaluation, in words."""
        return "tuning" if self.tuning else "evaluation"

    def headline(self) -> str:
        """How many rows are evaluated, and of how many."""
        return f"{sum(not self._unstored(self.runs(row)) for row in self.rows)}/{len(self.rows)} rows"

    def heading(self) -> str:
        """The number of rows, of seeds, and of the tasks that they are trained on, in words."""
        study = self.study
        tuned = f"tuned on {count_text(study.cv_tasks, 'task')}, then " if self.tuning else ""
        size = f"{count_text(len(self.rows), 'row')} × {count_text(len(study.seeds), 'seed')}"
        return f"{size}, {tuned}{count_text(study.tasks - study.cv_tasks, 'task')}"

    def outlook(self) -> Outlook:
        """All is known beforehand, but for the values that tuning finds."""
        return Outlook(len(self.records), len(self.missing()), 0, 0, len(self._behind()), 0)

    def ahead(self) -> list[tuple[int, list[Run]]]:
        """Of the present stage, and of the evaluation behind a tuning."""
        return [(len(runs), runs) for runs in (self.missing(), self._behind()) if runs]

    def work_of(self, ahead: Outlook) -> tuple[float, float]:
        """Fewest and most are the same here, in FLOP."""
        work = sum(self._work(run) for run in [*self.missing(), *self._behind()])
        return work, work

    def scores(self) -> "NDArray[np.float64]":
        """Of the rows, on the evaluation stream."""
        import numpy as np

        known = [[self._score_of(run) for run in self.runs(row)] for row in self.rows]
        return np.array(known, dtype=np.float64).reshape(len(self.rows), -1)

    def _behind(self) -> list[Run]:
        """Members of the evaluation that are missing while the rows are tuned."""
        return self._unstored(self._runs_of(self.rows)) if self.tuning else []

    def _score_of(self, run: Run) -> float:
        """A_T of a run in [0, 1]; NaN where it is not known or diverged."""
        record = next(iter(self.records_of([run])), None)
        return math.nan if record is None or record.status != "ok" else float(average_accuracy(record.accuracies))

    def runs(self, row: Row, phase: str = "eval") -> list[Run]:
        """Every seed's run of a row."""
        return [Run(phase, row.learner(seed)) for seed in self.study.seeds]

    def _runs_of(self, rows: Iterable[Row], phase: str = "eval") -> list[Run]:
        """Every seed's run of every row."""
        return [run for row in rows for run in self.runs(row, phase)]

    def _wanted(self) -> list[Run]:
        if not self.tuning:
            return self._runs_of(self.rows)
        # Rows of one method may share candidates: each is trained once.
        return self._runs_of(dict.fromkeys(one for row in self.rows for one in row.candidates()), "cv")

    def _advance(self) -> None:
        if self._jobs:  # of this stage, which goes on until all of them are told
            return
        self._read(self._wanted())
        if self.tuning and not self.missing():
            self.rows = tuple(self._tuned(row) for row in self.rows)
            self.tuning = False
            self._read(self._wanted())

    def _tuned(self, row: Row) -> Row:
        """The candidate with the highest mean A_T on the cross-validation stream, of those that lose no seed.

        Of equal ones the first, in the order of the grids. Where all lose a seed, the row itself, noted in `untuned`.
        """
        scores = {one: _score(self.records_of(self.runs(one, "cv"))) for one in row.candidates()}
        best = max(scores, key=lambda one: scores[one])
        if scores[best] < 0:
            self.untuned.append(row.label)
            return row
        return best


def open_table(study: Table, images: Mapping[str, Any], store: "Store", earlier: Sequence[Search] = ()) -> TableLoop:
    """The loop of a comparison or a memory study, as far as the ledger knows it.

    earlier: as in `open_search`; here there is nothing, as no table grows.
    """
    return TableLoop(study, images, store).catch_up()


def _score(records: tuple[RunRecord, ...]) -> float:
    """Mean A_T over the seeds; −1 where one diverged."""
    if any(record.status != "ok" for record in records):
        return -1.0
    return sum(float(average_accuracy(record.accuracies)) for record in records) / len(records)
