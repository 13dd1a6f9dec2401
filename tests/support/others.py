"""What somebody else's package provides: a method, a strategy, a metric and a figure. Tests copy this file."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from results.metrics import Metric
from search_spaces.rounds import InRounds
from search_spaces.strategies import StrategyKind
from trainers.hyperparameters import Hyperparameter
from trainers.methods.rules import MEMORY, MEMORY_BATCH, SAMPLED, Method, Mixing, angle, choose

PULL = Hyperparameter("pull", "Weight of the memory's gradient.", default=0.5, high=1, per_learner=True, label="κ")
WHEN = Hyperparameter("pull_when", "At every step, or where it disagrees.", default="always", choices=("always", "odd"))


def mix(products, values):
    """g̃ = (1 − κ)·g + κ·g_ref, at every step or where the two disagree."""
    between = angle(products)
    condition = between.usable if values.pull_when == "always" else between.usable & (between.cosine < 0)
    return choose(condition, (1.0 - values.pull, values.pull), 1.0)


PULLED = Method("PULLED", "nobody, nowhere", Mixing(mix), SAMPLED, (MEMORY, MEMORY_BATCH, PULL, WHEN))


class FromTheEnds(InRounds):
    """The ends of an interval, then ever closer to its middle."""

    def __init__(self, space, budget):
        (self._parameter,) = space.parameters
        low, high = self._parameter.low, self._parameter.high
        steps = np.linspace(0, 0.5, budget.points * budget.repeats // 2 + 1)[: budget.repeats]
        self._batches = [[(low + at * (high - low),), (high - at * (high - low),)] for at in steps.tolist()]
        super().__init__(self._batches[0])

    @property
    def done(self):
        return self._complete and len(self._rounds) == len(self._batches)

    def tell(self, observations):
        if self._take(observations) and not self.done:
            self._begin(self._batches[len(self._rounds)])


ENDS = StrategyKind("search from the ends", FromTheEnds)


def lowest(record):
    """The lowest accuracy on any task after the last one."""
    return record.accuracies[-1].min()


worst = Metric(lowest, 1, "%")


class FirstTask:
    """What is left of the first task in each member of the search."""

    def numbers(self, results):
        return [float(one.accuracies[-1, 0]) for one in results.search]

    def draw(self, numbers):
        return go.Figure(go.Bar(y=numbers)).update_layout(height=300)

    def caption(self, numbers):
        return "What is left of the first task, in each member of the search."

    def tables(self, numbers):
        return {"first_task": pd.DataFrame({"first": numbers})}


first_task = FirstTask()
