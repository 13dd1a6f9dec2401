"""Trains forks together with what they begin with, where that is not kept."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from trainers.checkpoints import Checkpoints
from trainers.cohort import Cohort, CohortResult, Learner
from trainers.forks import Fork, line_of
from trainers.persistence.array_store import Arrays
from trainers.population import Progress, Training, check_forks, train_rest

States = dict[Learner, dict[int, Arrays]]
"""What is known of learners after tasks, by the position of the task."""


def train_path(cohort: Cohort, training: Training, progress: Progress | None = None) -> CohortResult:
    """Trains every learner as `train_cohort` does; forks also where nothing of their origins is kept.

    Then these are trained first: each once, from its last task that is kept, to the last one that a fork goes on from.
    A fork's result is bit for bit the same in either case, as far as `train_cohort` says so of cohorts. Steps of
    origins are in `progress`, and not in `CohortResult.saved`. Their states are handed over in memory, and kept as the
    training says. Raises MemoryError, and ValueError where a fork has no task to train.
    """
    checkpoints = training.checkpoints(cohort)
    check_forks(cohort, training)
    until, states = training.of(cohort).whole_tasks, States()
    plan = _plan_paths(cohort, until, checkpoints, states)
    taken, notes = 0, []
    for part in _cohorts(plan):
        tasks = {learner: plan[learner] for learner in part.learners}
        part_training = replace(training, until=max(map(max, tasks.values())) + 1, last_steps=None)
        places = part_training.checkpoints(part)
        # Another process may have kept some since they were looked for.
        places.states = {
            (learner, task): {} for learner in tasks for task in tasks[learner] - states.get(learner, {}).keys()
        }
        starts = {learner: start for learner in tasks if (start := _start(learner, min(tasks[learner]) + 1, states))}
        result = train_rest(part, part_training, places, starts, progress)
        for (learner, task), arrays in places.states.items():
            states.setdefault(learner, {})[task] = arrays
        taken += int(result.steps.sum()) - result.saved
        notes.append(result.note)
    starts = {learner: start for learner in cohort.learners if (start := _start(learner, until, states))}
    result = train_rest(cohort, training, checkpoints, starts, progress)
    note = next((note for note in (result.note, *notes) if note), "")
    return replace(result, saved=result.saved - taken, note=note)


def _start(learner: Learner, before: int, states: States) -> tuple[int, Arrays] | None:
    """Returns (the last known task before this one, what is known after it); of a fork at least its origin's."""
    of_learner = states.get(learner, {})
    if tasks := [task for task in of_learner if task < before]:
        return max(tasks), of_learner[max(tasks)]
    if isinstance(learner, Fork) and learner.after in (of_origin := states.get(learner.origin, {})):
        return learner.after, of_origin[learner.after]
    return None


def _plan_paths(cohort: Cohort, until: int, checkpoints: Checkpoints, states: States) -> Mapping[Learner, set[int]]:
    """Returns the origins to train, and the tasks after which forks go on from each; puts what is kept into `states`.

    until: how many tasks the cohort is trained to their ends.
    """
    plan: dict[Learner, set[int]] = {}

    def want(learner: Learner, before: int) -> None:
        """Looks for what a learner begins with, before a task."""
        if _start(learner, before, states):
            return
        if checkpoint := checkpoints.last(learner, before):
            task, arrays = checkpoint
            owner = learner.origin if isinstance(learner, Fork) and task == learner.after else learner
            states.setdefault(owner, {})[task] = arrays
        elif isinstance(learner, Fork):
            tasks = plan.setdefault(learner.origin, set())
            tasks.add(learner.after)
            want(learner.origin, min(tasks) + 1)

    for learner in cohort.learners:
        want(learner, until)
    return plan


def _cohorts(plan: Mapping[Learner, set[int]]) -> Iterator[Cohort]:
    """Yields cohorts of learners that are trained equally far, origins of others before these."""
    groups: dict[tuple[int, int, object], list[Learner]] = {}
    for learner, tasks in plan.items():
        groups.setdefault((_depth(learner), max(tasks), learner.shared), []).append(learner)
    for _, learners in sorted(groups.items(), key=lambda item: item[0][:2]):
        yield Cohort(tuple(learners))


def _depth(learner: Learner) -> int:
    """Returns the number of forks on a learner's way."""
    return len(line_of(learner)) - 1
