"""DER and DER++: dark experience replay (Buzzega et al., 2020).

Replay by the outputs that the network had for an example when it entered the memory; DER++ also by labels.
"""

from trainers.hyperparameters import Hyperparameter
from trainers.methods.losses import CROSS_ENTROPY, STORED, Losses, Term
from trainers.methods.rules import MEMORY, MEMORY_BATCH, RESERVOIR, Method


def _weight(name: str, of: str, label: str) -> Hyperparameter:
    """Declares a weight that Mammoth's best_args give some datasets."""
    return Hyperparameter(
        name,
        of,
        usual="the published one, or 0.5",
        default=0.5,
        per_learner=True,
        published=name,
        per_method=True,
        label=label,
        stability=1,
    )


ALPHA = _weight("alpha", "Weight of the squared distance to stored logits in DER and DER++.", "α")
BETA = _weight("beta", "Weight of replayed labels in DER++.", "β")

NOW = Term(CROSS_ENTROPY, lambda values, tasks: 1.0)
DARK = Term(STORED, lambda values, tasks: values.alpha, draw=1)
LABELS = Term(CROSS_ENTROPY, lambda values, tasks: values.beta, draw=2)

DER = Method(
    "DER",
    "Buzzega et al., 2020",
    Losses((NOW, DARK)),
    RESERVOIR,
    (ALPHA, MEMORY, MEMORY_BATCH),
    named_only=True,
)
DERPP = Method(
    "DER++",
    "Buzzega et al., 2020",
    Losses((NOW, DARK, LABELS)),
    RESERVOIR,
    (ALPHA, BETA, MEMORY, MEMORY_BATCH),
    named_only=True,
)
