"""ER-ACE: replay with an asymmetric cross-entropy (Caccia et al., 2022).

New examples do not push away the classes that they lack; replayed ones compare all classes.
"""

from trainers.methods.losses import CROSS_ENTROPY, PRESENT, Losses, Term
from trainers.methods.rules import MEMORY, MEMORY_BATCH, RESERVOIR, Method
from trainers.scenarios import CLASS

ER_ACE = Method(
    "ER-ACE",
    "Caccia et al., 2022",
    Losses((Term(PRESENT, lambda values, tasks: 1.0), Term(CROSS_ENTROPY, lambda values, tasks: 1.0, draw=1))),
    RESERVOIR,
    (MEMORY, MEMORY_BATCH),
    scenarios=(CLASS,),
    named_only=True,
)
