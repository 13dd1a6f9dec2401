"""GPM: gradient projection memory (Saha, Garg & Roy, 2021).

Steps are orthogonal to the inputs that each layer has had in earlier tasks, as far as these have most of the energy.
"""

from trainers.hyperparameters import Hyperparameter, Hyperparameters
from trainers.methods.rules import Method
from trainers.methods.subspaces import REPRESENTATIONS, Subspaces


def threshold(values: Hyperparameters, layer: int, task: int) -> float:
    """Returns ε_th of the layer, with its growth for every task before."""
    first: float = values.hidden_threshold if layer else values.input_threshold
    return first + task * float(values.threshold_growth)


INPUT_THRESHOLD = Hyperparameter(
    "input_threshold",
    "ε_th of GPM's first layer: the share of the inputs' energy that is protected.",
    default=0.95,
    high=1,
    per_learner=True,
    label="ε_th",
    stability=1,
)
HIDDEN_THRESHOLD = Hyperparameter(
    "hidden_threshold",
    "ε_th of GPM's other layers.",
    default=0.99,
    high=1,
    per_learner=True,
    stability=1,
)
THRESHOLD_GROWTH = Hyperparameter(
    "threshold_growth",
    "What GPM adds to ε_th from each task to the next.",
    default=0.0,
    high=1,
    stability=1,
)
GPM = Method(
    "GPM",
    "Saha, Garg & Roy, 2021",
    Subspaces(threshold),
    own=(INPUT_THRESHOLD, HIDDEN_THRESHOLD, THRESHOLD_GROWTH, REPRESENTATIONS),
    late=(THRESHOLD_GROWTH.name,),
    named_only=True,
)
