"""epsearch with a method, a stream, a strategy and a metric of somebody else; command lines come as JSON.

Each is what a file of its own would hold, and the line that would register it. Nothing else of epsearch is touched.
"""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import numpy as np

from epsearch.failures.lines import answered
from results.metrics import METRICS, Metric
from search_spaces.published import definition
from search_spaces.rounds import InRounds
from search_spaces.strategies import STRATEGIES, StrategyKind
from trainers.hyperparameters import Hyperparameter
from trainers.methods import METHODS
from trainers.methods.rules import MEMORY, MEMORY_BATCH, SAMPLED, Method, Mixing, angle, choose
from trainers.streams import PERMUTED, StreamSource
from trainers.streams.base import Images
from trainers.streams.pixels import digits

PULL = Hyperparameter("pull", "Weight of the memory's gradient.", default=0.5, high=1, per_learner=True, label="κ")
WHEN = Hyperparameter("pull_when", "At every step, or where it disagrees.", default="always", choices=("always", "odd"))


def mix(products, values):
    """g̃ = (1 − κ)·g + κ·g_ref, at every step or where the two disagree."""
    between = angle(products)
    condition = between.usable if values.pull_when == "always" else between.usable & (between.cosine < 0)
    return choose(condition, (1.0 - values.pull, values.pull), 1.0)


PULLED = Method("PULLED", "nobody, nowhere", Mixing(mix), SAMPLED, (MEMORY, MEMORY_BATCH, PULL, WHEN))

DEFINITION = (Path(definition.__file__).parent / "definitions" / "permuted_digits.yaml").read_text(encoding="utf-8")
OF_METHOD = "  pulled: {learning_rate: 0.02, pull: 0.25}\n"


def upside_down(data_dir):
    """The digits with their pixels in the opposite order."""
    known = digits.load()
    train, test = (
        part._replace(inputs=np.ascontiguousarray(part.inputs[:, ::-1])) for part in (known.train, known.test)
    )
    return Images(train, test, known.classes, known.largest)


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


def worst(record):
    """The lowest accuracy on any task after the last one."""
    return record.accuracies[-1].min()


def register():
    """The lines of the registries."""
    METHODS["pulled"] = PULLED
    PERMUTED["upside_down"] = StreamSource(upside_down, digits.present)
    STRATEGIES["from-the-ends"] = StrategyKind("search from the ends", FromTheEnds)
    METRICS["worst"] = Metric(worst, 1, "%")
    own = DEFINITION.replace("title: Permuted Digits", "title: Digits upside down").replace(
        "[perm_digits, digits]", "[]"
    )
    known = definition._all()
    known["permuted_digits"] = definition.parse_definition("permuted_digits", DEFINITION + OF_METHOD)
    known["upside_down"] = definition.parse_definition("upside_down", own + OF_METHOD)


def answers(commands):
    """What each command line printed on both streams, and its exit status."""
    from epsearch import cli  # whose commands have the options of what is registered by now

    for arguments in commands:
        out, err = io.StringIO(), io.StringIO()
        with patch("sys.argv", ["epsearch", *arguments]), redirect_stdout(out), redirect_stderr(err):
            status = answered(cli.run)
        yield status, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    register()
    json.dump(list(answers(json.load(sys.stdin))), sys.stdout)
