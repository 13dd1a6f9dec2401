"""Declarations of plug-in trainers, and the options of their studies."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsearch.failures.errors import PluginError, UsageError, as_usage_error
from epsearch.plugins.loading import NOISY, OF_DISTRIBUTION, VERSION, add_to_path
from epsearch.study.hyperparameters import check_column
from epsearch.study.kinds import Search
from epsearch.study.names import register_trainer
from epsearch.study.option import METHOD
from trainers.methods import hyperparameters
from trainers.plugins.calls import ForeignError
from trainers.plugins.source import SourceError, source_of

if TYPE_CHECKING:
    from trainers.foreign.declaration import Declaration


@as_usage_error(ForeignError, SourceError, by=PluginError)
def declare(reference: str) -> "Declaration":
    """Returns a trainer's declaration, from a process of its own, and registers it here as a method.

    Raises UsageError where it cannot be loaded.
    """
    from trainers.foreign.declaration import reference_of

    beside = Path.cwd()
    add_to_path(beside)
    declaration = _declaration(reference, beside, tuple(source_of(reference_of(reference)[0]).hashes.items()))
    for parameter in declaration.parameters or ():
        check_column(parameter.name)
    register_trainer(reference, declaration.parameters)
    return declaration


@lru_cache(64)
def _declaration(reference: str, beside: Path, source: tuple[tuple[str, str], ...]) -> "Declaration":
    """Caches declarations by source, as a process that imports large libraries takes seconds."""
    from trainers.foreign.declaration import read_declaration

    return read_declaration(reference, beside, dict(source) or None)


def parts_of(reference: str) -> dict[str, str]:
    """Returns the parts of a trainer: files, required versions, its version, and whether it is noisy."""
    declaration = declare(reference)
    return {
        **declaration.source,
        **{f"{OF_DISTRIBUTION}{name}": version for name, version in declaration.requires.items()},
        **({VERSION: declaration.version} if declaration.version else {}),
        **({} if declaration.deterministic else {NOISY: "yes"}),
    }


@as_usage_error(SourceError, by=PluginError)
def parts_of_network(reference: str) -> dict[str, str]:
    """Returns the files of a network that a trainer's process makes; nothing of it is imported here.

    Raises UsageError without files.
    """
    add_to_path(Path.cwd())
    module = reference.partition(":")[0]
    if not (files := dict(source_of(module).hashes)):
        raise UsageError(f"network {reference!r}: there is no module {module!r}")
    return files


def of_trainer(values: Mapping[str, Any], explicit: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options that a trainer decides. Raises UsageError for options that do not apply to its study.

    values: of all options; explicit: of those that the user has set.
    """
    reference, options = values["trainer"], Search.options()
    for name in explicit:
        if name in hyperparameters():
            written = f"--set {name}={explicit[name]}"
            raise UsageError(
                f"{name.replace('_', '-')} is an option of epsearch's own methods; of a trainer, {written}"
            )
        if options[name].part == METHOD:
            raise UsageError(
                f"{name.replace('_', '-')} has no part in a study of a trainer, got {explicit[name]}; leave it out"
            )
    declared, against = declare(reference), dict(values["against"])
    names = values["search"].names if values["search"] is not None else ()
    valued = {*names, *(name for name, value in values["set"] if value is not None)}
    if lacking := [
        parameter.name
        for parameter in declared.parameters or ()
        if parameter.default is None and parameter.name not in valued
    ]:
        raise UsageError(
            f"{reference} has no default of {', '.join(lacking)}: give --set {lacking[0]}=VALUE, or search it"
        )
    if not against and declared.baseline is not None:
        usual = {parameter.name: parameter.default for parameter in declared.parameters or ()} | dict(values["set"])
        against = usual | dict(declared.baseline)
    if against and (missing := [name for name in names if name not in against]):
        raise UsageError(f"against must have a value of all that is searched, got none of {', '.join(missing)}")
    chosen = tuple((name, against[name]) for name in names) if against else ()
    return {"method": reference, "against": chosen}
