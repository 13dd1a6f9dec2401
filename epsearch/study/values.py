"""Types of values that options take."""

from collections.abc import Collection, Mapping
from functools import partial

from epsearch.ledger.location import storage
from epsearch.study import hyperparameters as spaces
from epsearch.study import limits, names, parsers
from epsearch.study.option import ValueType
from search_spaces.published.pack import Pack
from search_spaces.strategies import STRATEGIES
from trainers.cohort import NETWORKS
from trainers.hyperparameters import Hyperparameter
from trainers.methods import METHODS

MAPPING = {"type": "object"}
WORDS = {"type": "array", "items": {"type": "string"}}
NUMBERS = {"type": "array", "items": {"type": "integer"}}
WIDEST = 14  # characters of choices that fit into the help's column of types


def whole(low: int, high: int = limits.COUNT) -> ValueType:
    """Returns the type of whole numbers between two limits, both allowed."""
    schema = {"type": "integer", "minimum": low, "maximum": high}
    return ValueType(partial(parsers.whole, low=low, high=high), "INT", json=schema)


def words(*allowed: str) -> ValueType:
    """Returns the type of one of some words."""
    schema = {"type": "string", "enum": list(allowed)}
    return ValueType(partial(parsers.one_of, allowed=allowed), _metavar(allowed), choices=allowed, json=schema)


def plugin(kind: str, known: Collection[str]) -> ValueType:
    """Returns the type of a known name, or a plug-in of a kind."""
    return ValueType(partial(names.plugin, kind=kind, known=known), "NAME", choices=known)


def plugins(kind: str) -> ValueType:
    """Returns the type of several plug-ins of a kind."""
    return ValueType(partial(names.plugins, kind=kind), "NAME …", list, words=0, json=WORDS)


def hyperparameter(declared: Hyperparameter) -> ValueType:
    """Returns the type of a declared hyperparameter.

    >>> from trainers.methods import hyperparameters
    >>> [hyperparameter(hyperparameters()[name]).metavar for name in ("lr", "memory_batch", "trigger")]
    ['FLOAT', 'INT|all', 'zero|epsilon']
    """
    number = ("INT" if declared.whole else "FLOAT") + f"|{declared.none}" * declared.all_for_none
    schema: dict[str, object] = {"type": "integer" if declared.whole else "number"}
    if declared.choices:
        schema = {"type": "string", "enum": list(declared.choices)}
    return ValueType(
        partial(parsers.hyperparameter, declared=declared),
        "|".join(declared.choices) or number,
        none=declared.none if declared.all_for_none else None,
        choices=declared.choices,
        json=_or_word(schema, declared.none) if declared.all_for_none else schema,
    )


def _or_word(schema: Mapping[str, object], word: str = "all") -> Mapping[str, object]:
    return {"anyOf": [schema, {"type": "string", "enum": [word]}]}


def _or_object() -> Mapping[str, object]:
    return {"anyOf": [{"type": "string"}, MAPPING]}


def _metavar(allowed: Collection[str]) -> str:
    listed = "|".join(allowed)
    return listed if len(listed) <= WIDEST else "NAME"


ADDRESS = ValueType(parsers.address)
CLAIM = ValueType(parsers.claim, "CLAIM")
DATASET = ValueType(names.dataset, "DATASET")
DISTANCE = ValueType(
    parsers.distance,
    f"INT|{parsers.AUTO}",
    none="none",
    json={"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "enum": [parsers.AUTO, "none"]}]},
)
DURATION = ValueType(parsers.duration, "TIME", parsers.format_duration)
TIME_LEFT = ValueType(parsers.time_left, "TIME|slurm")
EXAMPLES = ValueType(
    partial(parsers.whole_or_all, low=1), "INT|all", none="all", json=_or_word({"type": "integer", "minimum": 1})
)
FLAG = ValueType(parsers.yes_or_no, "", json={"type": "boolean"})
FOLDER = ValueType(parsers.path, "DIRECTORY", parsers.format_path)
SHARE = ValueType(parsers.share, "FLOAT", json={"type": "number", "minimum": 0, "maximum": parsers.LARGEST_SHARE})
INTERVAL = ValueType(
    parsers.interval,
    "LOW HIGH",
    list,
    words=2,
    json={"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
)
LEDGER = ValueType(storage, "URL", str)
METHOD_NAME = ValueType(names.method, "METHOD", choices=METHODS)
METHOD_NAMES = ValueType(names.methods, "METHOD,…|all", list, json=WORDS)
METHOD_VALUES = ValueType(
    spaces.own_values, "NAME=VALUE …", spaces.format_values, words=0, by_method=True, json=MAPPING
)
NETWORK = plugin("network", NETWORKS)
NUMERIC_PATH = ValueType(parsers.numeric_path, "NAME")
OBJECTIVE = ValueType(names.objective)
PACK = ValueType(names.pack, "NAME|FILE", Pack.as_data, json=_or_object())
PROTOCOL_NAME = ValueType(names.protocol, "PROTOCOL")
PROTOCOL_NAMES = ValueType(names.protocols, "PROTOCOL,…", list, json=WORDS)
PLACE = ValueType(parsers.place)
REFERENCE_ROWS = ValueType(
    names.reference_rows,
    "ROW,…|none",
    list,
    json={"type": "array", "items": {"type": "string", "enum": list(names.REFERENCE_ROWS)}},
)
PRETRAINED = ValueType(parsers.parse_weights, "NAME|PATH", none="none")
SEED_NUMBERS = ValueType(parsers.seeds, "SEEDS", list, json={"anyOf": [{"type": "integer", "minimum": 1}, NUMBERS]})
SETTINGS = ValueType(names.settings, "VALUES", names.format_settings, words=0, json=MAPPING)
SIZE = ValueType(parsers.size, "SIZE", parsers.format_size)
SIZE_OF_MEMORY = ValueType(partial(parsers.size, least="1KB", example="2MB or 500KiB"), "SIZE", parsers.format_size)
SIZES = ValueType(parsers.sizes, "INT,…", list, json=NUMBERS)
SPACE = ValueType(spaces.space, "SPACE", spaces.format_space, words=0, by_method=True, json=MAPPING)
STRATEGY = plugin("strategy", STRATEGIES)
STUDY_NAME = ValueType(parsers.study_name, "NAME")
WIDTHS = ValueType(parsers.widths, "INT,…", list, json=NUMBERS)
TASK_ORDER = ValueType(parsers.task_order, "TASK,…", list, json=NUMBERS)
TRAINER_NAME = ValueType(names.trainer, "MODULE:NAME")
