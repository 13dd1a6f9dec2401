"""Counts steps and examples of the passes over a task.

`epochs` passes over all of its training examples, or, where `steps` is a number, exactly so many steps: pass after
pass, the last of which is cut. values: hyperparameters of one learner; examples: training examples of the task.
"""

from trainers.hyperparameters import Hyperparameters


def steps_of_pass(examples: int, values: Hyperparameters) -> int:
    """Returns the SGD steps of one whole pass."""
    # Rounded up: a last mini-batch that is short is a step, too.
    return -(-examples // int(values.batch_size))


def steps_of_task(examples: int, values: Hyperparameters) -> int:
    """Returns the SGD steps of the task; none without examples.

    >>> from trainers.cohort import Learner
    >>> [steps_of_task(25, Learner.of("van", 0, **own).hyperparameters) for own in ({}, {"epochs": 2}, {"steps": 4})]
    [3, 6, 4]
    """
    if examples == 0:
        return 0
    return int(values.epochs) * steps_of_pass(examples, values) if values.steps is None else int(values.steps)


def steps_of_first(examples: int, values: Hyperparameters) -> int:
    """Returns the SGD steps of the first pass, which `steps` may cut."""
    return min(steps_of_pass(examples, values), steps_of_task(examples, values))


def examples_of_first(examples: int, values: Hyperparameters) -> int:
    """Returns the different examples that the task's steps show: those of the first pass."""
    return min(examples, steps_of_first(examples, values) * int(values.batch_size))


def examples_of_task(examples: int, values: Hyperparameters) -> int:
    """Returns the examples that all steps of the task show, each as often as it is shown.

    >>> from trainers.cohort import Learner
    >>> examples_of_task(25, Learner.of("van", 0, steps=4).hyperparameters)
    35
    """
    whole, rest = divmod(steps_of_task(examples, values), steps_of_pass(examples, values) or 1)
    return whole * examples + min(examples, rest * int(values.batch_size))
