"""Names on their way to a field's value: datasets, methods, plug-ins, and settings of methods.

Each converter is as those of `parsers`; code of others that is named is loaded.
"""

import os
from collections.abc import Collection
from typing import Any

from epsearch.failures.errors import UsageError, refused, unknown
from epsearch.plugins.loading import loaded
from epsearch.plugins.naming import installed, referred
from epsearch.study.parsers import hyperparameter, listed, path
from results.labels import OBJECTIVES, WORST, is_objective
from search_spaces.published.definition import UnknownDataset, load_definition
from trainers import methods as methods_of
from trainers.hyperparameters import Hyperparameter, Value
from trainers.methods import METHODS

# By the methods of a comparison, which is paired: they see the same mini-batches, and keep as many examples.
SHARED = ("batch_size", "memory")


@refused(UnknownDataset)
def dataset(value: Any, name: str) -> str:
    """A dataset's name, folder:/path (made absolute) or module:factory."""
    kind, colon, rest = str(value).partition(":")
    if colon and not (kind and rest):
        raise UsageError(f"{name} must be a name, folder:PATH or module:factory, got {value!r}")
    if kind == "folder":
        return f"folder:{path(rest, name).absolute()}"
    try:
        return load_definition(str(value)).name
    except UnknownDataset as error:
        if str(value) in (one.name for one in installed("stream")):
            return referred("stream", value, ())
        if os.path.isdir(str(value)):  # unlike Path's, it answers for what cannot be a name, too
            raise UsageError(f"no dataset {value!r}; the images of the folder {value} are folder:{value}") from error
        raise


def method(value: Any, name: str = "method") -> str:
    """A method's name, in which '-' and '_' are the same; or module:attribute of somebody else's, which is loaded."""
    ours = str(value).replace("-", "_")
    return ours if ours in METHODS else plugin(value, name, "method", METHODS)


def plugin(value: Any, name: str, kind: str, known: Collection[str]) -> str:
    """A name of ours, or module:attribute of a plug-in of a kind, which is loaded; also by an entry point's name."""
    reference = referred(kind, value, known)
    if reference not in known:
        loaded(kind, reference)
    return reference


def plugins(value: Any, name: str, kind: str) -> tuple[str, ...]:
    """Several of a kind of which none is ours, each once, with commas between; they are not loaded yet."""
    return tuple(dict.fromkeys(referred(kind, str(part).strip(), ()) for part in listed(value)))


def objective(value: Any, name: str) -> str:
    """What a search maximises, where '-' and '_' are the same in words of ours; or a function of others, loaded."""
    ours = str(value).replace("worst_task", WORST)
    return ours if is_objective(ours) else plugin(value, name, "objective", OBJECTIVES)


def trainer(value: Any, name: str) -> str:
    """module:attribute of somebody else's trainer; nothing of it is imported here."""
    reference = referred("trainer", value, ())
    if reference not in methods_of.PLUGGED:
        stands_in(reference)
    return reference


def stands_in(reference: str, declared: tuple[Hyperparameter, ...] | None = None) -> None:
    """Makes a trainer known as a method, with what it declares, or as one that takes any value of any name."""
    rule = methods_of.Foreign(declared is not None)
    methods_of.plug(reference, methods_of.Method(reference, "", rule, own=declared or ()))


def methods(value: Any, name: str) -> tuple[str, ...]:
    """Some methods, each once: a list, names with commas between, or all."""
    if value == "all":
        return tuple(METHODS)
    names = [method(str(part).strip()) for part in listed(value)]
    if not names or len(set(names)) < len(names):
        raise UsageError(f"{name} must be different names with commas between, or all; got {value!r}")
    return tuple(names)


def settings(value: Any, name: str) -> tuple[tuple[str, str, Value], ...]:
    """(method, hyperparameter, value) from ewc.lr=0.01,ewc.strength=100 or a YAML mapping of the same.

    Raises UsageError for what is unknown or given twice, and for what the methods of a comparison share: they would not
    see the same mini-batches and memories.
    """
    pairs = list(value.items()) if isinstance(value, dict) else [part.split("=") for part in str(value).split(",")]
    parsed: dict[tuple[str, str], Value] = {}
    for pair in pairs:
        target, dot, field = str(pair[0]).strip().rpartition(".")
        if len(pair) != 2 or not dot:
            raise UsageError(
                f"{name} takes METHOD.HYPERPARAMETER with a value, like ewc.strength=100; "
                f"got {'='.join(map(str, pair))!r}"
            )
        of, field = method(target.strip()), field.replace("-", "_")
        # All but what the steps and the memories of all methods share.
        declared = {one.name: one for one in methods_of.method(of).hyperparameters if one.name not in SHARED}
        if field not in declared:
            raise UsageError(f"method {of!r}: {unknown('hyperparameter', field, declared)} ({name})")
        if (of, field) in parsed:
            raise UsageError(f"{name} name {of}.{field} twice: {value!r}")
        parsed[of, field] = hyperparameter(pair[1], f"{of}.{field}", declared[field])
    return tuple((of, field, one) for (of, field), one in parsed.items())


def settings_shown(value: tuple[tuple[str, str, Value], ...]) -> dict[str, Value]:
    """The inverse of `settings`."""
    return {f"{name}.{field}": number for name, field, number in value}
