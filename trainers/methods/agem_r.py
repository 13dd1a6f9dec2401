"""A-GEM-R: A-GEM whose memory is a reservoir over the whole stream (Buzzega et al., 2020)."""

from trainers.methods.agem import AGEM
from trainers.methods.rules import MEMORY, MEMORY_BATCH, RESERVOIR, Method

AGEM_R = Method(
    "A-GEM-R",
    "Chaudhry et al., 2019, with the memory of Buzzega et al., 2020",
    AGEM.rule,
    RESERVOIR,
    (MEMORY, MEMORY_BATCH),
    settings_of="agem",
    named_only=True,
)
