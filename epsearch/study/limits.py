"""Largest values of options, which catch a mistyped zero; smaller studies are planned in seconds.

Limits that depend on data, such as a batch by the examples of a task, are checked with the data.
"""

import math

from epsearch.failures.errors import UsageError
from trainers.cohort import LARGEST_SEED as LARGEST_SEED
from trainers.hyperparameters import LARGEST, MOST

SEEDS = 10_000
ORDERS = 1_000  # of tasks
ROUNDS = 10_000
VALUES = 10_000  # that a search tries in all: points × repeats
CHOICES = 1_000  # of one hyperparameter
MEMBERS = 100_000  # of a study's search, or of a table
TASKS = 1_000  # each is tested after every later one
STREAMS = 100_000  # tasks that are made before the training: seeds × tasks
CLASSES = 100_000
SIDE = 4_096  # pixels
WIDTH = 100_000  # units of a hidden layer
LAYERS = 32  # hidden ones
LARGE = 10_000  # members, or different tasks, from which on a study is announced as large: checks take seconds
COUNT = MOST  # examples or steps
FLOAT = LARGEST  # learning rates and the like
WORKERS = 4_096
SECONDS = 366 * 86_400  # of a time budget, or a wait
NICENESS = 19  # the system's
NAME = 100  # characters of a study's, which is a folder's with files in it, a part of a URL, and a line of tables
# In UTF-8, of the 255 that file systems take: a table may be called NAME.parquet, and has 15 more while it is written.
NAME_BYTES = 255 - len(".parquet") - len("..01234567.part")
STRATEGY_SEED = 2**32 - 1  # of Optuna's generators


def check_product(what: str, limit: int, **factors: int) -> None:
    """Raises UsageError where a product of options is larger than a limit.

    what: name of the product, in the plural; factors: values by option.

    >>> check_product("values", 10, points=5, repeats=3)
    Traceback (most recent call last):
    epsearch.failures.errors.UsageError: points × repeats must be <= 10 values, got 5 × 3 = 15
    """
    product = math.prod(factors.values())
    if product > limit:
        names = " × ".join(factors).replace("_", "-")
        numbers = " × ".join(map(str, factors.values()))
        raise UsageError(f"{names} must be <= {limit} {what}, got {numbers} = {product}")
