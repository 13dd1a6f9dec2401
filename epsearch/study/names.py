"""Parsers of names: datasets, methods, plug-ins, and settings of methods.

They are called as those of `parsers`; plug-ins are loaded.
"""

import os
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from epsearch.failures.errors import UsageError, as_usage_error, brief
from epsearch.plugins.kinds import KINDS
from epsearch.plugins.loading import load_plugin
from epsearch.plugins.names import installed_plugins, resolve
from epsearch.study.parsers import hyperparameter, one_of, path, some_of, split_list
from results.labels import OBJECTIVES, WORST, is_objective
from search_spaces.published.definition import UnknownDataset, load_definition
from search_spaces.published.fields import read_yaml
from search_spaces.published.pack import Pack, load_pack, parse_pack
from trainers import methods as methods_of
from trainers.hyperparameters import OF_EVERY_METHOD, Hyperparameter, Value
from trainers.methods import METHODS
from trainers.methods.rules import MEMORY
from trainers.spelling import unknown

# Methods that show tasks together, as bounds of what others reach.
REFERENCE_ROWS = tuple(name for name, declared in METHODS.items() if declared.union is not None)
PACK_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,59}")
USUAL = "cv-tasks"
"""The protocol of nearly all stored searches, which are listed without a table of protocols."""
# The methods of a comparison share these, as it is paired.
SHARED = (*(declared.name for declared in OF_EVERY_METHOD if not declared.per_method), MEMORY.name)


@as_usage_error(UnknownDataset)
def dataset(value: Any, name: str) -> str:
    """Returns a dataset's name, folder:/path (made absolute) or module:factory."""
    kind, colon, rest = str(value).partition(":")
    if colon and not (kind and rest):
        raise UsageError(f"{name} must be a name, folder:PATH or module:factory, got {value!r}")
    if kind == "folder":
        return f"folder:{path(rest, name).absolute()}"
    try:
        return load_definition(str(value)).name
    except UnknownDataset as error:
        if str(value) in (plugin.name for plugin in installed_plugins("stream")):
            return resolve("stream", value, ())
        if os.path.isdir(str(value)):  # unlike Path's, it accepts invalid names, too
            raise UsageError(f"no dataset {value!r}; the images of the folder {value} are folder:{value}") from error
        raise


def method(value: Any, name: str = "method") -> str:
    """Returns a method's name, with '_' for '-'; or module:attribute of a plug-in, which is loaded."""
    ours = str(value).replace("-", "_")
    return ours if ours in METHODS else plugin(value, name, "method", METHODS)


def plugin(value: Any, name: str, kind: str, known: Collection[str]) -> str:
    """Returns a name of epsearch's own, or module:attribute of a plug-in, which is loaded."""
    reference = resolve(kind, value, known)
    if reference not in known:
        load_plugin(kind, reference)
    return reference


def protocols(value: Any, name: str) -> tuple[str, ...]:
    """Returns names of search protocols, each once, with commas between; plug-ins are loaded."""
    chosen = tuple(protocol(text, name) for text in split_list(value))
    if not chosen or len(set(chosen)) < len(chosen):
        raise UsageError(f"{name} must be different protocols, got {', '.join(chosen) or 'none'}")
    return chosen


def protocol(value: Any, name: str) -> str:
    """Returns the name of a search protocol; a plug-in is loaded. Raises UsageError, with the nearest name."""
    text = str(value)
    if text == USUAL:
        return text
    from epsearch.protocols import registry  # late: it imports numpy

    if ":" in text:
        text = resolve("protocol", text, registry.PROTOCOLS)
        load_plugin("protocol", text)
    registry.protocol(text)
    return text


def plugins(value: Any, name: str, kind: str) -> tuple[str, ...]:
    """Returns several plug-ins, or names of epsearch's own, with blanks or commas between, each once.

    None is loaded.
    """
    parts = value.replace(",", " ").split() if isinstance(value, str) else split_list(value)
    ours = KINDS[kind].ours() if parts else ()
    return tuple(dict.fromkeys(resolve(kind, str(part).strip(), ours) for part in parts))


def objective(value: Any, name: str) -> str:
    """Returns the name of an objective, or module:attribute of a plug-in, which is loaded."""
    ours = str(value).replace("worst_task", WORST)
    return ours if is_objective(ours) else plugin(value, name, "objective", OBJECTIVES)


def trainer(value: Any, name: str) -> str:
    """Returns module:attribute of a plug-in trainer, which is registered without being imported."""
    reference = resolve("trainer", value, ())
    if reference not in methods_of.PLUGGED:
        register_trainer(reference)
    return reference


def register_trainer(reference: str, declared: tuple[Hyperparameter, ...] | None = None) -> None:
    """Registers a trainer as a method, with its declared hyperparameters, or any."""
    rule = methods_of.Foreign(declared is not None)
    methods_of.plug(reference, methods_of.Method(reference, "", rule, own=declared or ()))


def methods(value: Any, name: str) -> tuple[str, ...]:
    """Returns methods, each once, from a list, names separated by commas, or all but those that must be named."""
    if value == "all":
        return tuple(name for name, declared in METHODS.items() if not declared.named_only)
    names = [method(part) for part in split_list(value)]
    if not names or len(set(names)) < len(names):
        raise UsageError(f"{name} must be different names with commas between, or all; got {value!r}")
    return tuple(names)


def reference_rows(value: Any, name: str) -> tuple[str, ...]:
    """Returns reference rows, each once, from a list, names separated by commas, or none.

    >>> reference_rows("iid, joint", "reference-rows"), reference_rows("none", "reference-rows")
    (('iid', 'joint'), ())
    """
    return () if str(value).lower() == "none" else some_of(value, name, REFERENCE_ROWS)


def settings(value: Any, name: str) -> tuple[tuple[str, str, Value], ...]:
    """Returns (method, hyperparameter, value) from ewc.lr=0.01,ewc.strength=100, also with spaces, or a YAML mapping.

    Raises UsageError for unknown or repeated names, and for hyperparameters that methods of a comparison share.
    """
    pairs = (
        list(value.items())
        if isinstance(value, dict)
        else [part.split("=") for part in re.split(r"[\s,]+", str(value).strip())]
    )
    parsed: dict[tuple[str, str], Value] = {}
    for pair in pairs:
        target, dot, field = str(pair[0]).strip().rpartition(".")
        if len(pair) != 2 or not dot:
            raise UsageError(
                f"{name} takes METHOD.HYPERPARAMETER with a value, like ewc.strength=100; "
                f"got {'='.join(map(str, pair))!r}"
            )
        of, field = method(target.strip()), field.replace("-", "_")
        declared = {each.name: each for each in methods_of.method(of).hyperparameters if each.name not in SHARED}
        if field not in declared:
            raise UsageError(f"method {of!r}: {unknown('hyperparameter', field, declared)} ({name})")
        if (of, field) in parsed:
            raise UsageError(f"{name} name {of}.{field} twice: {value!r}")
        parsed[of, field] = hyperparameter(pair[1], f"{of}.{field}", declared[field])
    return tuple((of, field, value) for (of, field), value in parsed.items())


@as_usage_error(ValueError, OSError)
def pack(value: Any, name: str) -> Pack:
    """Returns the pack of a name, of a file (a Path), or of data as `Pack.as_data` has them."""
    if isinstance(value, Pack):
        return value
    if isinstance(value, Path):
        value = pack_file(value)
    if not isinstance(value, dict):
        return load_pack(str(value))
    data = {key: _parse_numbers(part) for key, part in value.items()}
    pack_name, changed = str(data.pop("name", "")), data.pop("changed", [])
    if not PACK_NAME.fullmatch(pack_name):
        raise UsageError(f"the name of a pack must be up to 60 letters, digits and . _ -, got {brief(pack_name)}")
    read = replace(parse_pack(pack_name, data), changed=tuple(map(str, split_list(changed))))
    method(read.method, f"method of pack {pack_name}")
    _check_printed(read)
    return replace(read, dataset=dataset(read.dataset, f"dataset of pack {pack_name}"))


def _check_printed(read: Pack) -> None:
    """Raises UsageError where the metric of a pack has no such mean, or its spread is of an unknown kind."""
    from results.metrics import ACCURACIES, METRICS, PERCENT  # late, as most studies have no pack
    from results.statistics.equivalence import SPREADS

    one_of(read.metric, f"metric of pack {read.name}", METRICS)
    low = 0 if read.metric in ACCURACIES else -100
    if METRICS[read.metric].display_unit == PERCENT and not low <= read.mean <= 100:
        raise UsageError(
            f"pack {read.name}: mean of {read.metric} in percent must be in [{low}, 100], got {read.mean:g}"
        )
    if read.spread is not None:
        one_of(read.spread_is, f"spread_is of pack {read.name}", SPREADS)


def pack_file(path: Path) -> dict[str, Any]:
    """Returns the data of a pack in a YAML file, whose name is that of the pack. Raises UsageError."""
    try:
        return {**read_yaml(str(path), path.read_text("utf-8")), "name": path.stem}
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the pack {path}: {getattr(error, 'strerror', None) or error}") from error


def _parse_numbers(value: Any) -> Any:
    """Returns a value with numbers for texts: in files of options and forms numbers are texts."""
    if isinstance(value, dict):
        return {name: _parse_numbers(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_parse_numbers(part) for part in value]
    number = re.fullmatch(r"-?[0-9.]+(e[-+]?[0-9]+)?", value) if isinstance(value, str) else None
    return value if number is None else float(value) if {".", "e"} & set(value) else int(value)


def format_settings(value: tuple[tuple[str, str, Value], ...]) -> dict[str, Value]:
    """Returns settings as `settings` reads them."""
    return {f"{name}.{field}": number for name, field, number in value}
