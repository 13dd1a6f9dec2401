"""Trains cohorts of continual learners. Imports torch and NumPy only, for bare GPU machines.

`trainers.population.train_cohort` is the door; the plain values it takes and returns are here, without torch.
ROOMS lists modules and folders from the top down; each imports only what stands behind it.

cost                          what a run takes: FLOP counted, speed measured
paths                         forks, with those of their origins that are not kept
population                    a cohort through all tasks
footprint, checkpoints        the RAM that a cohort takes;  what is kept of its way
forks                         learners that go on from a task of another run with other values
foreign                       trainers that users write themselves, each run in a process of its own
engines                       the arithmetic: compiled, in batches of tensors, of networks that grow
pool, reservoir               the examples that a seed sees
networks                      what is trained
streams                       tasks of images: moved pixels, classes, a user's own
schedule                      in which order examples are seen, and which are remembered
passes                        how many steps a task takes
cohort                        learners, cohorts, what is trained, what comes out: plain values, without torch
methods, hyperparameters      the rules by which networks are trained, and what they declare
free_memory                   the memory that a device has left
numeric_path                  the name of an arithmetic
scenarios                     the outputs that compete on an example: task-, domain-, class-incremental
plugins                       code from outside: imported, hashed, its exceptions named
persistence                   files with a checksum;  notes  messages to the user, from anywhere
spelling                      lines about names that nobody knows
capacity                      a cohort cut in halves where it takes too much
operating_system              calls that not every operating system has, with fallbacks
"""

from trainers.cohort import Architecture, Cohort, CohortResult, Learner
from trainers.hyperparameters import Hyperparameters

ROOMS = (
    *("cost", "paths", "population", "footprint", "checkpoints", "forks", "foreign", "engines", "pool", "reservoir"),
    *(
        "networks",
        "streams",
        "schedule",
        "passes",
        "cohort",
        "methods",
        "hyperparameters",
        "free_memory",
        "numeric_path",
        "scenarios",
        "plugins",
    ),
    *("persistence", "notes", "spelling", "capacity", "operating_system"),
)

__all__ = ["Architecture", "Cohort", "CohortResult", "Hyperparameters", "Learner"]
