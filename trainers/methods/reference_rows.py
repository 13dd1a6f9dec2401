"""Joint and i.i.d. training: plain SGD on tasks together, as bounds of what methods reach."""

from trainers.hyperparameters import MOST, Hyperparameter
from trainers.methods.rules import IID, JOINT, Method, Mixing
from trainers.methods.van import mix

JOINT_EVERY = Hyperparameter(
    "joint_every",
    "Joint training begins anew on all tasks so far after every so many tasks, and after the last one.",
    usual="after the last one alone",
    low=1,
    high=MOST,
    whole=True,
    all_for_none=True,
    none="last",
    later=True,
)

JOINT_TRAINING = Method(
    "Joint",
    "plain SGD on all tasks so far together",
    Mixing(mix),
    own=(JOINT_EVERY,),
    union=JOINT,
    settings_of="van",
    named_only=True,
)
IID_TRAINING = Method(
    "i.i.d.",
    "plain SGD on the examples of all tasks in one random order",
    Mixing(mix),
    union=IID,
    settings_of="van",
    named_only=True,
)
