"""One protocol in one order of tasks: the open question, its trials, and the choices so far."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsearch.failures.errors import UsageError
from epsearch.loop.jobs import Prefix, Run
from epsearch.protocols.protocol import EVALUATION, TEST, Question, Trial
from epsearch.protocols.registry import protocol
from epsearch.study.kinds import ProtocolStudy
from epsearch.study.published import known_values
from results.ledger.record import RunRecord
from results.protocols import Schedule
from search_spaces.space import Value
from trainers import methods
from trainers.cohort import Learner
from trainers.forks import cut_of, fork, normal_form
from trainers.streams.base import TaskStream


class Choice(NamedTuple):
    """An answer, with what was tried for it."""

    task: int
    """Position of the task with which the value comes into force."""
    value: Value
    """The value that was chosen."""
    tried: tuple[Run, ...]
    """Runs of all trials, a seed each."""
    since: int
    """Position of the first task that these train."""


class Walk:
    """A protocol's way through the tasks of one order.

    Its state follows from the records alone. A choice is made from the means over the study's seeds, and holds for all
    of them.

    record_of: returns the record that holds what a trial measures, None where there is none yet; stream: the stream
    of a phase in the order of a number.
    """

    def __init__(
        self,
        study: ProtocolStudy,
        name: str,
        order: int,
        record_of: Callable[[Run], RunRecord | None],
        stream: Callable[[str, int], TaskStream],
    ) -> None:
        self.protocol, self.name, self.order = protocol(name), name, order
        self._study, self._record_of, self._stream = study, record_of, stream
        self.choices: list[Choice] = []
        self.failure = ""  # why there is no choice; "" where there is one, or may be
        self._trials: list[tuple[Trial, tuple[Run, ...]]] = []  # of the open question

    @property
    def question(self) -> Question | None:
        """The open question; None where the protocol has chosen, or cannot."""
        if self.failure or (self.choices and not self.protocol.per_task) or self._task >= self._tasks:
            return None
        return question_of(self._study, self._task, float(self.choices[-1].value) if self.choices else None)

    @property
    def done(self) -> bool:
        """True if nothing is left to choose."""
        return self.question is None

    @property
    def chosen(self) -> bool:
        """True if it has chosen at every task at which it is to choose."""
        return self.done and not self.failure

    @property
    def tried(self) -> list[Run]:
        """The runs of all trials, those of an open question or a failed one included."""
        return [
            run
            for runs in (*(choice.tried for choice in self.choices), *(runs for _, runs in self._trials))
            for run in runs
        ]

    @property
    def sees_tests(self) -> bool:
        """True if it chooses by test sets of the evaluation, which judge, too."""
        view = self.protocol.view
        return view is not None and view.stream == EVALUATION and view.tests == TEST

    @property
    def phase(self) -> str:
        """The phase whose members it sees."""
        view = self.protocol.view
        return "cv" if view is None else view.phase

    @property
    def seen_tasks(self) -> int | None:
        """How many first tasks of the evaluation choose, once; None for tasks of the search, and for other choices."""
        view = self.protocol.view
        once = view is not None and view.stream == EVALUATION and not self.protocol.per_task
        return self._task + 1 if once else None

    @property
    def is_whole(self) -> bool:
        """True if every candidate is trained to the end in order to choose."""
        view = self.protocol.view
        return view is not None and not self.protocol.per_task and view.tasks is None and view.share == 1

    @property
    def schedule(self) -> Schedule:
        """The values from task to task; () without a choice."""
        changes = list[tuple[int, float]]()
        for choice in self.choices:
            if not changes or changes[-1][1] != choice.value:
                changes.append((choice.task if changes else 0, float(choice.value)))
        return tuple(changes)

    def next_runs(self) -> list[Run]:
        """Returns the runs of the trials that the open question needs next."""
        question = self.question
        if question is None:
            return []
        return [run for value in self._proposals(question) for run in self._runs(value)]

    def advance(self) -> bool:
        """Takes trials whose members are stored, and chooses where these suffice; returns whether it did anything."""
        question, moved = self.question, False
        while question is not None:
            values = self._proposals(question)
            if not values:
                self._choose(question)
                question, moved = self.question, True
                continue
            trials = [self._trial(value) for value in values]
            if any(trial is None for trial in trials):
                return moved
            self._trials += [trial for trial in trials if trial is not None]
            moved = True
        return moved

    def finals(self) -> list[Run]:
        """Returns the runs that are judged, a seed each; none before the last choice, and where one is missing."""
        if not self.chosen:
            return []
        return [Run("eval", self.learner(seed), self.order) for seed in self._study.seeds]

    def learner(self, seed: int) -> Learner:
        """Returns the learner with the choices so far, of any seed."""
        first, *later = self.choices
        learner = self._study.learner((first.value,), seed)
        for choice in later:
            learner = fork(learner, choice.task - 1, **{self._study.space.names[0]: choice.value})
        return normal_form(learner)

    def later(self) -> int:
        """Returns how many members the questions after the open one train at most."""
        if not self.protocol.per_task or self.done:
            return 0
        return (self._tasks - self._task - 1) * len(self._study.candidates) * len(self._study.seeds)

    def example(self) -> Run:
        """Returns an example of such a member, at a task in the middle."""
        name, middle = self._study.space.names[0], max(self._tasks // 2, 1)
        origin = self._study.learner(self._study.example, self._study.seeds[0])
        return self._run(fork(origin, middle - 1, **{name: self._study.candidates[0]}), middle + 1)

    @property
    def _tasks(self) -> int:
        """Tasks of the phase."""
        return len(self._study.stream_tasks(self.phase))

    @property
    def _first(self) -> int:
        """Position of the first task at which a value makes a difference."""
        return methods.method(self._study.method).tasks_needed(self._study.space.names[0]) - 1

    @property
    def _task(self) -> int:
        """Position of the task that is trained next; of a choice that is made once, the last one in view."""
        if self.protocol.per_task:
            return self.choices[-1].task + 1 if self.choices else self._first
        view = self.protocol.view
        if view is not None and view.share < 1:
            return self._share(self._study.learner(self._study.example, self._study.seeds[0]))[0] - 1
        return (self._tasks if view is None or view.tasks is None else view.tasks) - 1

    def _proposals(self, question: Question) -> list[Value]:
        """Returns the values that the protocol tries next.

        Raises UsageError for one outside of the candidates, and for one that it has tried, which it would try for ever.
        """
        trials, low, high = [trial for trial, _ in self._trials], question.candidates[0], question.candidates[-1]
        values = [self._value(value) for value in self.protocol.propose(question, trials)]
        for value in values:
            if not low <= float(value) <= high:
                raise UsageError(f"protocol {self.name} must propose values in {low:g}…{high:g}, got {value:g}")
            if value in [trial.value for trial in trials]:
                raise UsageError(f"protocol {self.name} proposes {value:g} again, which it has tried")
        return values

    def _value(self, value: float) -> Value:
        """Returns a value as the hyperparameter has it."""
        return round(value) if self._study.declared.whole else value

    def _runs(self, value: Value) -> tuple[Run, ...]:
        """Returns the runs of a trial, a seed each."""
        return tuple(self._run(self._learner(value, seed), self._task + 1) for seed in self._study.seeds)

    def _learner(self, value: Value, seed: int) -> Learner:
        """Returns the learner that goes on with a value after the choices so far."""
        if not self.choices:
            return self._study.learner((value,), seed)
        return normal_form(fork(self.learner(seed), self._task - 1, **{self._study.space.names[0]: value}))

    def _run(self, learner: Learner, tasks: int) -> Run:
        """Returns the run of the first tasks; of a view that ends inside a task, up to there."""
        view = self.protocol.view
        if view is not None and view.share < 1:
            return Run(self.phase, learner, self.order, prefix=self._share(learner))
        return Run(self.phase, learner, self.order, prefix=None if tasks == self._tasks else (tasks, None))

    def _share(self, learner: Learner) -> Prefix:
        """Returns where the share of the steps ends that is in view."""
        assert self.protocol.view is not None
        return cut_of(learner, self._stream(self.phase, self.order), self.protocol.view.share)

    def _trial(self, value: Value) -> tuple[Trial, tuple[Run, ...]] | None:
        """Returns the trial of a value; None while a member is missing."""
        runs = self._runs(value)
        records = [self._record_of(run) for run in runs]
        if any(record is None for record in records):
            return None
        tasks = runs[0].prefix[0] if runs[0].prefix else self._tasks
        return Trial(float(value), matrices_of([record for record in records if record is not None], tasks)), runs

    def _choose(self, question: Question) -> None:
        """Takes the protocol's choice."""
        tried = tuple(run for _, runs in self._trials for run in runs)
        trials = [trial for trial, _ in self._trials]
        try:
            value = self._value(self.protocol.choose(question, trials))
        except ValueError as error:
            self.failure = str(error)
            return
        if self.protocol.view is not None and value not in (values := [trial.value for trial in trials]):
            raise UsageError(f"protocol {self.name} must choose a value that it has tried, {values}, got {value:g}")
        first = not self.choices
        self.choices.append(Choice(question.task, value, tried, 0 if first else question.task))
        self._trials = []


def question_of(study: ProtocolStudy, task: int, last: float | None = None) -> Question:
    """Returns the question of a study's protocols at a task; for task and last see `Question`."""
    return Question(
        candidates=tuple(map(float, study.candidates)),
        places=study.places,
        task=task,
        tasks=study.tasks - study.cv_tasks,
        last=last,
        stability=study.declared.stability,
        known=known_values(study.dataset, study.method, study.space.names[0]),
    )


def matrices_of(records: list[RunRecord], tasks: int) -> NDArray[np.float64]:
    """Returns accuracies [S, k, k] of the first tasks; NaN of members that diverged in them."""
    return np.array(
        [
            np.full((tasks, tasks), math.nan)
            if record.diverged_task is not None and record.diverged_task < tasks
            else record.accuracies[:tasks, :tasks]
            for record in records
        ]
    )
