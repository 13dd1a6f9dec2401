"""What a step takes beside other steps: its FLOP, and what does not grow with them. For the order of jobs and the ETA.

What is not in `flops.py` was measured on CPUs and is told in examples: the FLOP of so many examples' way through the
network and back.
"""

from typing import NamedTuple

from trainers.cohort import Architecture, Learner
from trainers.cost.flops import steps_of, training_flop, works_of
from trainers.methods import Penalty
from trainers.streams.base import TaskStream

OVERHEAD = 20  # a step's fixed work, in examples: about what one of ten examples was measured to take besides them
WHOLE, ARRAY = 40, 6.5  # a penalty's whole gradient, and each array beside it


class LaterSteps(NamedTuple):
    """The steps after the first task, which learners of a seed share; of a single task, its own."""

    steps: int
    """Of one learner."""
    each: float
    """What one takes, in FLOP, on average."""


def later_steps(learner: Learner, stream: TaskStream, architecture: Architecture) -> LaterSteps:
    """Of a learner on a stream."""
    works, later = works_of(learner, stream, architecture), slice(min(1, len(stream.tasks) - 1), None)
    steps = sum(steps_of(learner, stream)[later])
    rule, fixed = learner.declared.rule, float(OVERHEAD)
    if isinstance(rule, Penalty):
        fixed += WHOLE + ARRAY * rule.kept
    return LaterSteps(steps, sum(training_flop(learner, stream, works)[later]) / steps + works[0].trained(fixed, 0))
