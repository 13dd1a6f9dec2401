"""Types of values that options take."""

from collections.abc import Collection
from functools import partial

from epsearch.ledger.location import storage
from epsearch.study import hyperparameters as spaces
from epsearch.study import limits, names, parsers
from epsearch.study.option import ValueType
from search_spaces.strategies import STRATEGIES
from trainers.cohort import NETWORKS
from trainers.hyperparameters import Hyperparameter
from trainers.methods import METHODS

WIDEST = 14  # characters of choices that fit into the help's column of types


def whole(low: int, high: int = limits.COUNT) -> ValueType:
    """Returns the type of whole numbers between two limits, both allowed."""
    return ValueType(partial(parsers.whole, low=low, high=high), "INT")


def words(*allowed: str) -> ValueType:
    """Returns the type of one of some words."""
    return ValueType(partial(parsers.one_of, allowed=allowed), _metavar(allowed), choices=allowed)


def plugin(kind: str, known: Collection[str]) -> ValueType:
    """Returns the type of a known name, or a plug-in of a kind."""
    return ValueType(partial(names.plugin, kind=kind, known=known), "NAME", choices=known)


def plugins(kind: str) -> ValueType:
    """Returns the type of several plug-ins of a kind."""
    return ValueType(partial(names.plugins, kind=kind), "NAME,…", list)


def hyperparameter(one: Hyperparameter) -> ValueType:
    """Returns the type of a declared hyperparameter.

    >>> from trainers.methods import hyperparameters
    >>> [hyperparameter(hyperparameters()[name]).metavar for name in ("lr", "memory_batch", "trigger")]
    ['FLOAT', 'INT|all', 'zero|epsilon']
    """
    number = ("INT" if one.whole else "FLOAT") + "|all" * one.all_for_none
    return ValueType(
        partial(parsers.hyperparameter, one=one),
        "|".join(one.choices) or number,
        none="all" if one.all_for_none else None,
        choices=one.choices,
    )


def _metavar(allowed: Collection[str]) -> str:
    listed = "|".join(allowed)
    return listed if len(listed) <= WIDEST else "NAME"


ADDRESS = ValueType(parsers.address)
DATASET = ValueType(names.dataset, "DATASET")
DURATION = ValueType(parsers.duration, "TIME", parsers.format_duration)
EXAMPLES = ValueType(partial(parsers.whole_or_all, low=1), "INT|all", none="all")
FLAG = ValueType(parsers.yes_or_no, "")
FOLDER = ValueType(parsers.path, "DIRECTORY", parsers.format_path)
INTERVAL = ValueType(parsers.interval, "LOW HIGH", list, words=2)
LEDGER = ValueType(storage, "URL", str)
METHOD_NAME = ValueType(names.method, "METHOD", choices=METHODS)
METHOD_NAMES = ValueType(names.methods, "METHOD,…|all", list)
METHOD_VALUES = ValueType(spaces.own_values, "NAME=VALUE …", spaces.format_values, words=0, by_method=True)
NETWORK = plugin("network", NETWORKS)
NUMERIC_PATH = ValueType(parsers.numeric_path, "NAME")
OBJECTIVE = ValueType(names.objective)
PLACE = ValueType(parsers.place)
PRETRAINED = ValueType(parsers.pretrained, "NAME|PATH", none="none")
SEED_NUMBERS = ValueType(parsers.seeds, "SEEDS", list)
SETTINGS = ValueType(names.settings, "VALUES", names.format_settings)
SIZE = ValueType(parsers.size, "SIZE", parsers.format_size)
SIZES = ValueType(parsers.sizes, "INT,…", list)
SPACE = ValueType(spaces.space, "SPACE", spaces.format_space, words=0, by_method=True)
STRATEGY = plugin("strategy", STRATEGIES)
STUDY_NAME = ValueType(parsers.study_name, "NAME")
TRAINER_NAME = ValueType(names.trainer, "MODULE:NAME")
