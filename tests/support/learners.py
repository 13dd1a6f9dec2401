"""Learners for tests, of any method, and how they are trained."""

import torch

from epsearch.testing.toy import suit_stream
from trainers import Architecture, Cohort, Learner
from trainers.engines import make_engine
from trainers.engines.base import Learners
from trainers.methods import METHODS
from trainers.population import Training, train_cohort

IN_SEQUENCE = tuple(name for name, one in METHODS.items() if one.union is None)
"""The methods that are trained on one task after another: all but the reference rows."""

ON_ANY_NETWORK = [name for name in IN_SEQUENCE if not METHODS[name].for_perceptrons]
"""Those of them that train other networks than perceptrons, too."""

STRENGTHS = {"ewc": 10.0, "pi": 0.1, "mas": 0.1, "rwalk": 1.0, "si": 0.1}
OTHER_VALUES = {
    "epsilon": 0.9,
    "strength": 0.05,
    "memory": 2,
    "memory_batch": 5,
    "trigger": "epsilon",
    "scale": "raw",
    "satisfied": "unit",
    "a_agem_scale": "raw",
    "fisher_every": 4,
    "penalty_form": "paper",
    "margin": 0.1,
    "sensitivity": 3.0,
    "damping": 0.02,
    "alpha": 1.5,
    "beta": 1.5,
    "distillation": 0.3,
    "temperature": 5.0,
    "input_threshold": 0.6,
    "hidden_threshold": 0.7,
    "threshold_growth": 0.04,
    "representations": 5,
}
"""Of each hyperparameter of a method's own another value than tests have."""
SMALL = Architecture(hidden=(16, 16))
OPTIMIZERS = ({"momentum": 0.9, "lr": 0.02}, {"optimizer": "adam", "lr": 0.003})
FEW = {"memory": 3, "memory_batch": 8}


def learner(method, seed=0, **values):
    """With these hyperparameters, as far as its method has them, and a λ where it needs one."""
    given = {"strength": STRENGTHS.get(method)} | values
    names = {one.name for one in METHODS[method].hyperparameters}
    return Learner.of(method, seed, **{name: value for name, value in given.items() if name in names})


def few(method, seed=0, **values):
    """With a small memory."""
    return learner(method, seed, **FEW | values)


def engine_of(one, stream, path, architecture=SMALL, seeds=(0,)):
    """The engine that trains learners like this one."""
    return make_engine(Cohort((one,)), seeds, suit_stream(one.declared, stream), architecture, path)


def untrained(engine, learners, seeds=None):
    """These learners on the way, as the training loop has them: of the engine's first seed, or those at `seeds`."""
    start = engine.start()
    chosen = torch.tensor(seeds or [0] * len(learners), device=start.device)
    own = {name: [one.hyperparameters.get(name) for one in learners] for name in learners[0].declared.per_learner}
    params = start[chosen]
    return Learners.of(params, chosen, own, engine.state(params))


def train(learners, stream, path=None, architecture=SMALL, progress=None, **options):
    """The result of a cohort; options: those of `Training`."""
    stream = suit_stream(learners[0].declared, stream)
    return train_cohort(Cohort(tuple(learners)), Training(stream, architecture, path, **options), progress)
