"""The loop of a comparison or a memory study: rows -> members -> cohorts -> records."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from epsearch.loop.base import Loop
from epsearch.loop.candidates import quasi_random, tunable
from epsearch.loop.content import CANDIDATES, MEMORIES
from epsearch.loop.estimates import MemberCounts
from epsearch.loop.jobs import Run
from epsearch.study.kinds import Comparison, MemoryStudy, Search, Table
from epsearch.study.published import of_methods
from results.labels import count_text, settings_text
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
    """A method with values of all its hyperparameters."""

    label: str
    """The method's title, with its variant if it has several."""
    method: str
    """Name of the method."""
    hyperparameters: Hyperparameters
    """Values of all hyperparameters that the method declares."""
    candidate_count: int = 0
    """Candidates of a tuning with a budget; 0 for those of A-GEM's grids."""
    set_by_bytes: tuple[str, ...] = ()
    """Names of the hyperparameters that a budget of bytes sets."""

    def learner(self, seed: int) -> Learner:
        """Returns the learner of a seed."""
        return Learner(self.method, self.hyperparameters, seed)

    def short_values(self) -> dict[str, Any]:
        """Returns the hyperparameters for tables, by short names."""
        tuned = tunable(self.method, self.hyperparameters) if self.candidate_count else ()
        names = {*self.set_by_bytes, *(parameter.name for parameter in tuned)}
        return {
            hyperparameter.short: vars(self.hyperparameters)[hyperparameter.name]
            for hyperparameter in methods.method(self.method).hyperparameters
            if hyperparameter.per_method or hyperparameter.name in names
        }

    def candidates(self) -> list["Row"]:
        """Returns the row with the values of A-GEM's grids (appendix G), or as many as a budget allows."""
        if self.candidate_count:
            points = quasi_random(tunable(self.method, self.hyperparameters), self.candidate_count - 1)
            tried = (self.hyperparameters.but(**point) for point in points)
            return [
                self,
                *(replace(self, label=row_label(self.method, values), hyperparameters=values) for values in tried),
            ]
        alike = methods.method(self.method).settings_of or self.method
        strengths = [{"strength": strength} for strength in strength_grids().get(alike, ())]
        return [
            replace(self, hyperparameters=self.hyperparameters.but(lr=rate, **strength))
            for rate in learning_rate_grid()
            for strength in strengths or [{}]
        ]


# Kind of study -> values that make each row of a method different.
OWN: dict[str, Callable[[Any, str], list[dict[str, Value]]]] = {
    Comparison.kind: lambda study, name: [
        {},
        # A pack prints one row a method.
        *({field: value} for field, value in methods.method(name).variants if study.from_pack is None),
    ],
    MemoryStudy.kind: lambda study, name: [{"memory": size} for size in study.sizes],
}


def table_rows(study: Table, images: Mapping[str, Any] = MappingProxyType({})) -> tuple[Row, ...]:
    """Returns the rows before tuning: per method and variant, or per method and memory size.

    A variant with the study's own values is no additional row. images: the stream's description, which has the memories
    and numbers of candidates that are computed from budgets.
    """
    memories, counts = images.get(MEMORIES, {}), images.get(CANDIDATES, {})
    by_bytes = {name: {"memory": memories[name]} if name in memories else {} for name in study.methods}
    rows = (
        _row(study, name, changes | by_bytes[name])
        for name in study.methods
        for changes in OWN[study.kind](study, name)
    )
    budgeted = (
        replace(row, candidate_count=counts.get(row.method, 0), set_by_bytes=tuple(by_bytes[row.method]))
        for row in rows
    )
    return tuple(dict.fromkeys(budgeted))


def _row(study: Table, name: str, changes: dict[str, Value]) -> Row:
    """Returns the row of a method; changes: the values that make it different."""
    method = methods.method(name)
    values = of_methods(study.dataset).get(name, {}) | vars(study.hyperparameters)
    values |= {field: value for method_name, field, value in study.settings if method_name == name}
    values |= changes
    valued = {
        hyperparameter.name: values[hyperparameter.name]
        for hyperparameter in method.hyperparameters
        if hyperparameter.name in values
    }
    complete = Hyperparameters.of(method.hyperparameters, valued)
    return Row(row_label(name, complete), name, complete)


def row_label(name: str, values: Hyperparameters) -> str:
    """Returns the title of a method with these values."""
    method = methods.method(name)
    return f"{method.title}{method.title_suffix(values)}"


class TableLoop(Loop):
    """Trains every row with every seed on the evaluation stream, after tuning on the cross-validation stream.

    For the arguments see `Loop`. Attributes:

    rows       the rows; until the end of tuning, with the definition's values
    tuning     whether the candidates are being trained
    untuned    labels of rows whose candidates all diverged, which keep the definition's values
    """

    study: Table

    def __init__(self, study: Table, images: Mapping[str, Any], store: "Store") -> None:
        super().__init__(study, images, store)
        self.rows = table_rows(study, images)
        self.tuning = study.searches
        self.untuned: list[str] = []

    @property
    def done(self) -> bool:
        """True if all rows are tuned, if required, and evaluated."""
        return not self.tuning and not self.missing()

    @property
    def stage(self) -> str:
        """The tuning or the evaluation, in words."""
        return "tuning" if self.tuning else "evaluation"

    def headline(self) -> str:
        """Returns the numbers of evaluated and of all rows in words, and the answer against print, if any."""
        rows = f"{sum(not self._unstored_runs(self.runs(row)) for row in self.rows)}/{len(self.rows)} rows"
        return rows if (answer := self.choice()) is None else f"{rows}; {settings_text(answer)}"

    def against_print(self) -> dict[str, Any] | None:
        """Returns the answer of the row that a pack prints, as `answer_of` has it; None without a pack, or its method.

        A memory study has several rows of the method, none of which is the printed one.
        """
        pack, row = self.study.from_pack if self.study.kind == Comparison.kind else None, None
        if pack is not None:
            row = next((row for row in self.rows if row.method == pack.method), None)
        if pack is None or row is None:
            return None
        from results.verdict.reproduction import answer_of  # late: a list of studies needs no numbers

        return answer_of(pack.as_data(), self.records_of(self.runs(row)))

    def choice(self) -> dict[str, Any] | None:
        """Returns the answer by the name of the pack; None before there is one."""
        answer = self.against_print()
        if answer is None or not answer["n"]:
            return None
        others = f", other {', '.join(answer['changed'])}" if answer["changed"] else ""
        return {answer["name"]: f"{answer['answer']}{others}"}

    def heading(self) -> str:
        """Returns the numbers of rows, seeds and tasks, in words."""
        study = self.study
        tried = (
            f" with {count_text(most, 'candidate')} a row"
            if (most := max(row.candidate_count for row in self.rows))
            else ""
        )
        tuned = f"tuned on {count_text(study.cv_tasks, 'task')}{tried}, then " if self.tuning else ""
        size = f"{count_text(len(self.rows), 'row')} × {study.units_text(len(study.seeds))}"
        return f"{size}, {tuned}{count_text(study.tasks - study.cv_tasks, 'task')}{study.held_out}"

    def counts(self) -> MemberCounts:
        """Returns the numbers of stored and remaining members, which do not depend on results."""
        return MemberCounts(len(self.records), len(self.missing()), 0, 0, 0, len(self._behind()), 0)

    def remaining(self) -> list[tuple[int, list[Run]]]:
        """Returns missing members of this stage, and of the evaluation after tuning."""
        return [(len(runs), runs) for runs in (self.missing(), self._behind()) if runs]

    def work_of(self, counts: MemberCounts) -> tuple[float, float, float]:
        """Returns the remaining work three times, in FLOP, as it does not depend on results."""
        work = sum(self._work(run) for run in [*self.missing(), *self._behind()])
        return work, work, work

    def scores(self) -> "NDArray[np.float64]":
        """Returns the scores of the rows, on the evaluation stream."""
        import numpy as np

        scores = [[self._score_of(run) for run in self.runs(row)] for row in self.rows]
        return np.array(scores, dtype=np.float64).reshape(len(self.rows), -1)

    def _behind(self) -> list[Run]:
        """Returns missing members of the evaluation during tuning."""
        return self._unstored_runs(self._runs_of(self.rows)) if self.tuning else []

    def _score_of(self, run: Run) -> float:
        """Returns A_T of a run in [0, 1]; NaN if it is unknown or diverged."""
        record = next(iter(self.records_of([run])), None)
        return math.nan if record is None or record.status != "ok" else float(average_accuracy(record.accuracies))

    def claimable(self) -> dict[str, list[Run]]:
        """Returns the runs of the first row of each method; none during a tuning."""
        rows = () if self.tuning else reversed(self.rows)
        return {row.method: self.runs(row) for row in rows}

    def runs(self, row: Row, phase: str = "eval") -> list[Run]:
        """Returns the runs of a row, with every seed in every order."""
        return [Run(phase, row.learner(unit.seed), unit.order) for unit in self.study.units]

    def _runs_of(self, rows: Iterable[Row], phase: str = "eval") -> list[Run]:
        """Returns the runs of rows, with every seed."""
        return [run for row in rows for run in self.runs(row, phase)]

    def _stage_runs(self) -> list[Run]:
        if not self.tuning:
            return self._runs_of(self.rows)
        # Rows of one method may share candidates: each is trained once.
        return self._runs_of(dict.fromkeys(candidate for row in self.rows for candidate in row.candidates()), "cv")

    def _advance(self) -> None:
        if self._jobs:  # the stage is open
            return
        self._read(self._stage_runs())
        if self.tuning and not self.missing():
            self.rows = tuple(self._best_candidate(row) for row in self.rows)
            self.tuning = False
            self._read(self._stage_runs())

    def _best_candidate(self, row: Row) -> Row:
        """Returns the candidate with the highest mean A_T on the cross-validation stream.

        Candidates that lose a seed are out; of equal ones, the first counts. Without any, returns the row, and adds its
        label to `untuned`.
        """
        scores = {candidate: _score(self.records_of(self.runs(candidate, "cv"))) for candidate in row.candidates()}
        best = max(scores, key=lambda candidate: scores[candidate])
        if scores[best] < 0:
            self.untuned.append(row.label)
            return row
        return best


def open_table(study: Table, images: Mapping[str, Any], store: "Store", earlier: Sequence[Search] = ()) -> TableLoop:
    """Returns the loop of a comparison or a memory study, caught up with the ledger.

    earlier: as in `open_search`; empty, as tables are not extended.
    """
    return TableLoop(study, images, store).catch_up()


def _score(records: tuple[RunRecord, ...]) -> float:
    """Returns the mean A_T over the seeds; −1 if one diverged."""
    if any(record.status != "ok" for record in records):
        return -1.0
    return sum(float(average_accuracy(record.accuracies)) for record in records) / len(records)
