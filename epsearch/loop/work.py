"""Work of members, in FLOP, for the order of cohorts and the remaining time."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from epsearch.loop.cohorts import Kind, kind_of
from epsearch.loop.content import measures_transfer
from epsearch.loop.jobs import Run
from epsearch.study.description import Study
from trainers.forks import Fork, steps_of
from trainers.streams import StreamRequest
from trainers.streams.base import TaskStream

if TYPE_CHECKING:
    from trainers.cost.flops import LaterSteps


class Work:
    """Work of a study's members, computed once per kind.

    request: returns the stream of a phase, in the order of a number, with so many further tasks; measure: the tests
    inside a run's tasks, as `content.measure_of`.
    """

    def __init__(
        self,
        study: Study,
        request: Callable[[str, int, int], StreamRequest],
        measure: Callable[[Run], tuple[int, int] | None],
    ) -> None:
        self._study, self._request, self._measure = study, request, measure
        self._first_alone = study.first_task_alone
        self.of = cache(self._of)  # computed for every missing member, for each cohort
        self._streams: dict[tuple[str, int, int], TaskStream] = {}
        self._tests: dict[tuple[str, int, int, int], list[int]] = {}
        self._later: dict[Kind, LaterSteps] = {}

    def stream(self, phase: str, order: int, more: int = 0) -> TaskStream:
        """Returns the stream of a phase in the order of a number, with so many further tasks, opened once."""
        if (phase, order, more) not in self._streams:
            self._streams[phase, order, more] = self._request(phase, order, more).open()
        return self._streams[phase, order, more]

    def weights(self, run: Run) -> tuple[float, ...]:
        """Returns FLOP of a step in each task, including tests; empty for plug-in trainers."""
        return () if run.learner.declared.foreign else self._later_steps(run).weights

    def _of(self, run: Run) -> float:
        """Returns FLOP of a run without a shared first task; for plug-in trainers the number of tasks.

        A run on further tasks goes on from what was kept of it, and has the work of the last one.
        """
        if run.learner.declared.foreign:
            return float(len(self._study.stream_tasks(run.phase)))
        later = self._later_steps(run)
        if run.more:
            return later.work - self._later_steps(run._replace(more=run.more - 1)).work
        if run.prefix is None and not isinstance(run.learner, Fork):
            return later.work + later.first * self._first_alone
        steps, (tasks, last) = self.steps(run), run.prefix or (len(later.weights), None)
        taken = [*steps[: tasks - 1], steps[tasks - 1] if last is None else last]
        # A fork goes on from what was kept.
        begun = run.learner.after + 1 if isinstance(run.learner, Fork) else 1 - self._first_alone
        return sum(weight * count for weight, count in list(zip(later.weights, taken, strict=False))[begun:])

    def steps(self, run: Run) -> list[int]:
        """Returns the SGD steps of each task of the whole stream of a run."""
        return steps_of(run.learner, self.stream(run.phase, run.order, run.more))

    def cost(self, run: Run, since: int | None = None) -> tuple[float, float]:
        """Returns FLOP, tests included, and SGD steps of the tasks that a run trains.

        since: position of the first one; None for the one after what it goes on from.
        """
        from trainers.cost.flops import run_flop  # brings torch along

        stream, study = self.stream(run.phase, run.order, run.more), self._study
        transfer, measure, examples = measures_transfer(run.phase), self._measure(run), self._examples_of_tests(run)
        training, tests = run_flop(run.learner, stream, study.architecture, transfer, measure, examples)
        steps = self.steps(run)
        tasks, last = run.prefix or (len(steps), None)
        if since is None:
            since = len(steps) - 1 if run.more else run.learner.after + 1 if isinstance(run.learner, Fork) else 0
        shares = [1.0] * tasks
        if last is not None:
            shares[-1] = last / steps[tasks - 1]
        parts = range(since, tasks)
        flop = sum(shares[task] * training[task] + tests[task] for task in parts)
        return flop, sum(shares[task] * steps[task] for task in parts)

    def _examples_of_tests(self, run: Run) -> list[int]:
        """Returns the number of test examples of each task of a run."""
        from trainers.cost.flops import examples_of_tests  # brings torch along

        place = run.phase, run.order, run.more
        if (*place, run.learner.seed) not in self._tests:
            self._tests[*place, run.learner.seed] = examples_of_tests(run.learner.seed, self.stream(*place))
        return self._tests[*place, run.learner.seed]

    def _later_steps(self, run: Run) -> "LaterSteps":
        """Returns the steps of a kind of run after the first task, which is shared and cheap."""
        from trainers.cost.flops import later_steps  # brings torch along

        if kind_of(run) not in self._later:
            stream, transfer = self.stream(run.phase, run.order, run.more), measures_transfer(run.phase)
            measure, architecture = self._measure(run), self._study.architecture
            self._later[kind_of(run)] = later_steps(run.learner, stream, architecture, transfer, measure)
        return self._later[kind_of(run)]
