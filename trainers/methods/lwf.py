"""LwF: learning without forgetting (Li & Hoiem, 2016).

On new examples the network is to keep the softened outputs that the last task's network has for them.
"""

from trainers.hyperparameters import Hyperparameter
from trainers.methods.losses import CROSS_ENTROPY, TEACHER, Losses, Term
from trainers.methods.rules import Method

DISTILLATION = Hyperparameter(
    "distillation",
    "Weight of LwF's distillation, beside its share of the tasks.",
    default=1.0,
    per_learner=True,
    per_method=True,
    stability=1,
)
TEMPERATURE = Hyperparameter(
    "temperature",
    "Temperature of LwF's softened outputs.",
    default=2.0,
    closed=False,
    per_learner=True,
    per_method=True,
    label="T",
)

LWF = Method(
    "LwF",
    "Li & Hoiem, 2016",
    Losses(
        (
            Term(CROSS_ENTROPY, lambda values, tasks: 1 / tasks),
            Term(TEACHER, lambda values, tasks: values.distillation * (1 - 1 / tasks)),
        )
    ),
    own=(DISTILLATION, TEMPERATURE),
    named_only=True,
)
