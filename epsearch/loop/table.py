"""rows -> members -> cohorts -> records: the loop of a comparison or a memory study."""

from collections.abc import Iterable, Mapping
from typing import Any

from epsearch.loop.base import NOTHING, Known, Loop
from epsearch.loop.jobs import Job, Run
from epsearch.loop.rows import Row, table_rows
from epsearch.study.kinds import Table
from results.ledger.record import RunRecord
from results.ledger.store import Store
from results.metrics import average_accuracy


class TableLoop(Loop):
    """Trains every row with every seed on the evaluation stream; to tune, first all candidates on the other one.

    rows: as they are evaluated; before the tuning has ended, as the definition gives them. untuned: labels of rows all
    of whose candidates diverged, which therefore keep the definition's values.
    """

    study: Table

    def __init__(
        self, study: Table, images: Mapping[str, Any], store: Store, workers: int = 1, known: Known = NOTHING
    ) -> None:
        super().__init__(study, images, store, workers, known)
        self.rows = table_rows(study)
        self.tuning = study.searches
        self.untuned: list[str] = []

    @property
    def done(self) -> bool:
        """Whether the rows are tuned, where they are to be, and all evaluated."""
        return not self.tuning and not self._unknown(self._wanted())

    @property
    def stage(self) -> str:
        """The tuning or the evaluation, in words."""
        return "tuning" if self.tuning else "evaluation"

    def headline(self) -> str:
        """How many rows are evaluated, and of how many."""
        finished = sum(not self._unknown(self.runs(row)) for row in self.rows)
        return f"{finished}/{len(self.rows)} rows"

    def heading(self) -> str:
        """The number of rows, of seeds, and of the tasks that they are trained on, in words."""
        study = self.study
        tasks = f"{study.tasks - study.cv_tasks} tasks"
        tuned = f"tuned on {study.cv_tasks} tasks, then " if self.tuning else ""
        return f"{len(self.rows)} rows × {len(study.seeds)} seeds, {tuned}{tasks}"

    def ask(self) -> list[Job]:
        """The open jobs of the present stage, the same ones until they are told."""
        if not self._jobs:
            self._open(self._jobs, self._cohorts(self._unknown(self._wanted()), self.workers))
        return list(self._jobs.values())

    def remaining_work(self) -> float:
        """An estimate of what is still to be done, in FLOP; while it tunes, that of the evaluation included."""
        later = [one for row in self.rows for one in self.runs(row)] if self.tuning else []
        return sum(self._work(one) for one in [*self._unknown(self._wanted()), *self._unknown(later)])

    def runs(self, row: Row, phase: str = "eval") -> list[Run]:
        """Every seed's run of a row."""
        return row.runs(phase, self.study.seeds)

    def _wanted(self) -> list[Run]:
        if self.tuning:
            # Rows of one method may share candidates: each is trained once.
            rows: Iterable[Row] = dict.fromkeys(one for row in self.rows for one in row.candidates())
            return [one for row in rows for one in self.runs(row, "cv")]
        return [one for row in self.rows for one in self.runs(row)]

    def _advance(self) -> None:
        if self._jobs:  # of this stage, which goes on until all of them are told
            return
        self._look_up(self._wanted())
        if self.tuning and not self._unknown(self._wanted()):
            self.rows = tuple(self._tuned(row) for row in self.rows)
            self.tuning = False
            self._look_up(self._wanted())

    def _tuned(self, row: Row) -> Row:
        """The candidate with the highest mean A_T on the cross-validation stream, of those that lose no seed."""
        scores = {one: _score(self.found(self.runs(one, "cv"))) for one in row.candidates()}
        best = max(scores, key=lambda one: scores[one])
        if scores[best] < 0:
            self.untuned.append(row.label)
            return row
        return best


def open_table(study: Table, images: Mapping[str, Any], store: Store, workers: int = 1) -> TableLoop:
    """The loop of a comparison or a memory study, as far as the ledger knows it."""
    loop = TableLoop(study, images, store, workers)
    loop.catch_up()
    return loop


def _score(records: tuple[RunRecord, ...]) -> float:
    """Mean A_T over the seeds; −1 where one diverged."""
    if any(record.status != "ok" for record in records):
        return -1.0
    return sum(float(average_accuracy(record.accuracies)) for record in records) / len(records)
