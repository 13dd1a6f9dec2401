"""ER: experience replay from a reservoir over the whole stream.

Chaudhry et al., 2019, "On Tiny Episodic Memories".
"""

from trainers.hyperparameters import Hyperparameters
from trainers.methods.rules import MEMORY, MEMORY_BATCH, RESERVOIR, Method, Mix, Mixing, Products


def mix(products: Products, values: Hyperparameters) -> Mix:
    """Returns the gradient of the plain mean over the mini-batch and the reference batch together.

    With n and m examples that is (n·g + m·g_ref)/(n + m); with a reference batch of 256 a new example weighs little.
    """
    return Mix(products.share, 1 - products.share, products.share < 0)  # nothing is ever projected


ER = Method(
    "ER",
    "Chaudhry et al., 2019 (tiny memories)",
    Mixing(mix, together=True),
    RESERVOIR,
    (MEMORY, MEMORY_BATCH),
    title_suffix=lambda values: (
        ", the whole memory" if values.memory_batch is None else f", reference batch {values.memory_batch}"
    ),
    variants=(("memory_batch", 10),),  # that of its authors' script
)
