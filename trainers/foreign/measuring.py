"""Checks and measures the reports of a plug-in trainer.

Nothing of a report counts before it is complete.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.cohort import LEARNING_CURVE_BATCHES, CohortResult
from trainers.foreign.inputs import StreamView
from trainers.persistence.array_store import Arrays
from trainers.streams.scores import accuracies

SELF_REPORTED = "self-reported"  # in the note of a result, accuracies of which the trainer has given itself
MEASURED = ("accuracies", "initial", "within", "diverged_task", "diverged_step")


class Refused(Exception):
    """A request or a report of a trainer is not allowed; the message says why."""


class _Report:
    """A report in progress: its task, the tests that it needs, and their accuracies so far."""

    def __init__(self, task: int, batches: int | None, tests: Sequence[int]) -> None:
        self.task, self.batches, self.tests = task, batches, list(tests)
        self.accuracies: dict[int, float] = {}
        self.digest = hashlib.sha256(repr((task, batches)).encode())
        self.hits: dict[int, list[NDArray[np.bool_]]] = {test: [] for test in tests}


class Measuring:
    """Measurements of a learner. `done`: the last reported task, −1 before the first."""

    def __init__(self, view: StreamView, balanced: bool, transfer: bool) -> None:
        self._view, self._balanced, self._transfer = view, balanced, transfer
        self._tasks = len(view)
        self._result = CohortResult.empty(1, self._tasks)
        self.done, self._resumed = -1, False
        self._read = self._first = False  # whether training examples were asked for, the untrained learner reported
        self._curve = 0  # mini-batches after which the next task was reported last
        self._digest, self._self_reported = "", False
        self._open: _Report | None = None
        self.read_ahead: list[str] = []  # refusals of tasks before their turn

    @property
    def where(self) -> str:
        """The task that is being trained, for messages."""
        return f"in task {self.done + 1}" if self.done + 1 < self._tasks else "after its last task"

    def read(self, task: int) -> None:
        """Records that training examples are asked for. Raises Refused where that would be reading ahead."""
        if not 0 <= task < self._tasks:
            raise Refused(f"there is no task {task}; the stream has tasks 0…{self._tasks - 1}")
        if task > self.done + 1:
            self.read_ahead.append(
                f"task {task} cannot be read before task {task - 1} has been reported; "
                f"{f'task {self.done} was the last one reported' if self.done >= 0 else 'none has been reported yet'}"
            )
            raise Refused(self.read_ahead[-1])
        self._read = True

    def begin(self, task: int, batches: int | None) -> list[tuple[int, int]]:
        """Begins a report, instead of any that was not ended; returns (task, rows) of the tests to take.

        There are none if the report is ignored. Raises Refused where it is not this report's turn.
        """
        self._open = None
        if batches is not None:
            self._check_curve(task, batches)
            tests = [task + 1]
        elif task == -1 and self._resumed:
            tests = []
        elif task == -1:
            if self._read or self._first or self.done >= 0:
                raise Refused("report(-1, …) is of the untrained learner: once, before the first task is read")
            tests = list(range(self._tasks))
        else:
            self._check_task(task)
            tests = list(range(min(task + 1 + self._transfer, self._tasks)))
        if not self._transfer and (batches is not None or task == -1):
            tests = []
        self._open = _Report(task, batches, tests)
        return [(test, len(self._view.test_labels(test))) for test in tests]

    def check_test(self, task: int) -> None:
        """Checks a request for test inputs. Raises Refused where no report that is open needs them."""
        if self._open is None or task not in self._open.tests:
            raise Refused("test inputs are for reports alone")

    def score(self, task: int, first: int, labels: NDArray[np.int64]) -> None:
        """Scores predicted labels of a part of a test set. Raises Refused for labels that cannot be."""
        self.check_test(task)
        report = self._open_report()
        (_, examples), hits = self._view.test(task, first), report.hits[task]
        expected = examples.labels
        if first != sum(map(len, hits)) or len(labels) != len(expected):
            raise Refused(f"predict() must return one label for each of {len(expected)} inputs, got {len(labels)}")
        wrong = labels[(labels < 0) | (labels >= self._view.outputs)]
        if len(wrong):
            raise Refused(f"predict() must return labels in 0…{self._view.outputs - 1}, got {wrong[0]} for task {task}")
        hits.append(labels == expected)
        report.digest.update(labels.tobytes())
        every = self._view.test_labels(task)
        if sum(map(len, hits)) == len(every):
            report.accuracies[task] = float(accuracies(np.concatenate(hits)[None], every[None], self._balanced)[0])

    def take_accuracies(self, row: NDArray[np.float64]) -> bool:
        """Records accuracies that the trainer reports itself; returns whether all required ones are finite.

        Raises Refused for numbers that cannot be.
        """
        report, within = self._open_report(), self._open_report().batches is not None
        begin = report.task + 1 if within else 0
        least = 1 if within else self._tasks if report.task < 0 else report.task + 1
        most = 1 if within else self._tasks
        if not least <= len(row) <= most:
            expected = f"{least} to {most}" if most > least else str(least)
            raise Refused(f"a row of {len(row)} was reported after task {report.task}, where it must have {expected}")
        for task, accuracy in enumerate(row, begin):
            if np.isfinite(accuracy) and not 0 <= accuracy <= 1:
                raise Refused(f"accuracies lie in 0…1, got {accuracy:g} of task {task} after task {report.task}")
        self._self_reported = True
        if not np.isfinite(row[:least]).all():
            return False
        report.accuracies = {task: float(accuracy) for task, accuracy in enumerate(row, begin) if task in report.tests}
        report.tests = list(report.accuracies)
        report.digest.update(row.tobytes())
        return True

    def end(self) -> bool:
        """Ends the open report; returns whether it was that of a task. Raises Refused where it lacks predictions."""
        report = self._open_report()
        if lacking := [test for test in report.tests if test not in report.accuracies]:
            raise Refused(f"the report of task {report.task} lacks predictions for task {lacking[0]}")
        self._open = None
        if not report.tests:  # ignored, and perhaps because the run was resumed: it must not be seen
            return False
        self._digest = hashlib.sha256(self._digest.encode() + report.digest.digest()).hexdigest()
        result, task, measured = self._result, report.task, report.accuracies
        if report.batches is not None:
            self._curve = report.batches
            if measured:
                result.within[0, task + 1, report.batches] = measured[task + 1]
            return False
        if task == -1:
            self._first = True
            for tested, accuracy in measured.items():
                result.initial[0, tested] = accuracy
            result.within[0, 0, 0] = result.initial[0, 0]
            return False
        for tested, accuracy in measured.items():
            result.accuracies[0, task, tested] = accuracy
        if self._transfer and task + 1 < self._tasks:
            result.within[0, task + 1, 0] = result.accuracies[0, task, task + 1]
        self.done, self._curve = task, 0
        return True

    def diverge(self) -> None:
        """Records that the task in training has diverged, which ends the run."""
        self._result.diverged_task[0], self._result.diverged_step[0] = self.done + 1, 0
        self._digest = hashlib.sha256(f"{self._digest} diverged".encode()).hexdigest()

    @property
    def lacks(self) -> str:
        """The missing tasks, in words; "" where none is missing."""
        return f"{self.done + 1} of {self._tasks}" if self.done + 1 < self._tasks else ""

    def result(self) -> CohortResult:
        """Returns the result so far."""
        self._result.fingerprints[0] = self._digest[:16]
        return replace(self._result, note=SELF_REPORTED if self._self_reported else "")

    def arrays(self) -> Arrays:
        """Returns the state that a resumed run needs."""
        arrays: dict[str, Any] = {name: getattr(self._result, name)[0] for name in MEASURED}
        return arrays | {"digest": np.array(self._digest), "self_reported": np.array(self._self_reported)}

    def resume(self, task: int, arrays: Arrays) -> None:
        """Restores the measurements after a task, from the arrays that `arrays` returned then."""
        for name in MEASURED:
            getattr(self._result, name)[0] = arrays[name]
        self._digest, self._self_reported = str(arrays["digest"]), bool(arrays["self_reported"])
        self.done, self._resumed = task, True

    def _open_report(self) -> _Report:
        if self._open is None:
            raise Refused("no report has begun")
        return self._open

    def _check_task(self, task: int) -> None:
        """Raises Refused where it is not this task's turn."""
        due = self.done + 1
        if task == due < self._tasks:
            return
        if task < due:
            more = "; a resumed run trains stream.tasks alone" if self._resumed else ""
            raise Refused(f"task {task} has been reported already{more}")
        raise Refused(
            f"report({task}, …) came before task {due} was reported"
            if due < self._tasks
            else f"there is no task {task}; the stream has tasks 0…{self._tasks - 1}"
        )

    def _check_curve(self, task: int, batches: int) -> None:
        """Raises Refused where the learning curve of the next task is not at this point."""
        if not 1 <= batches <= LEARNING_CURVE_BATCHES:
            raise Refused(f"batches must lie in 1…{LEARNING_CURVE_BATCHES}, got {batches}")
        if task != self.done or task + 1 >= self._tasks:
            raise Refused(
                f"report({task}, …, batches={batches}) is of task {task + 1}; task {self.done + 1} is being trained"
            )
        if batches <= self._curve:
            raise Refused(f"batches must grow within a task, got {batches} after {self._curve}")
