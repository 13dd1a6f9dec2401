"""Studies of somebody else's trainer: what it declares, and which options have a part in them."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsearch.failures.errors import CodeOfOthers, UsageError, refused
from epsearch.plugins.loading import NOISY, OF_DISTRIBUTION, VERSION, reachable
from epsearch.study.hyperparameters import check_column
from epsearch.study.kinds import Search
from epsearch.study.names import stands_in
from epsearch.study.option import METHOD
from trainers.methods import hyperparameters
from trainers.plugins.calls import ForeignError
from trainers.plugins.source import SourceError, source_of

if TYPE_CHECKING:
    from trainers.foreign.declaration import Declaration


@refused(ForeignError, SourceError, by=CodeOfOthers)
def declare(reference: str) -> "Declaration":
    """What a trainer declares, found in a process of its own; makes it known to this one as a method of that name.

    Raises UsageError where it cannot be had.
    """
    from trainers.foreign.declaration import reference_of

    beside = Path.cwd()
    reachable(beside)
    found = _declared(reference, beside, tuple(source_of(reference_of(reference)[0]).hashes.items()))
    for one in found.parameters or ():
        check_column(one.name)
    stands_in(reference, found.parameters)
    return found


@lru_cache(64)
def _declared(reference: str, beside: Path, source: tuple[tuple[str, str], ...]) -> "Declaration":
    """Asked once for each state of its source: a process that imports large libraries takes seconds."""
    from trainers.foreign.declaration import declared

    return declared(reference, beside, dict(source) or None)


def parts_of(reference: str) -> dict[str, str]:
    """What a trainer's results belong to: its files, what it requires, its version, and whether it repeats itself."""
    found = declare(reference)
    return {
        **found.source,
        **{f"{OF_DISTRIBUTION}{name}": version for name, version in found.requires.items()},
        **({VERSION: found.version} if found.version else {}),
        **({} if found.deterministic else {NOISY: "yes"}),
    }


@refused(SourceError, by=CodeOfOthers)
def parts_of_network(reference: str) -> dict[str, str]:
    """What a network is made of that a trainer's process makes: its files; nothing of it is imported here.

    Raises UsageError where there are none.
    """
    reachable(Path.cwd())
    module = reference.partition(":")[0]
    if not (found := dict(source_of(module).hashes)):
        raise UsageError(f"network {reference!r}: there is no module {module!r}")
    return found


def of_trainer(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a trainer decides. Raises UsageError for those that have no part in its study.

    values: of all options; given: of those that somebody has named.
    """
    reference, known = values["trainer"], Search.options()
    for name in given:
        if name in hyperparameters():
            written = f"--set {name}={given[name]}"
            raise UsageError(
                f"{name.replace('_', '-')} is an option of epsearch's own methods; of a trainer, {written}"
            )
        if known[name].part == METHOD:
            raise UsageError(
                f"{name.replace('_', '-')} has no part in a study of a trainer, got {given[name]}; leave it out"
            )
    declared, against = declare(reference), dict(values["against"])
    names = values["search"].names if values["search"] is not None else ()
    told = {*names, *(name for name, value in values["set"] if value is not None)}
    if lacking := [one.name for one in declared.parameters or () if one.default is None and one.name not in told]:
        raise UsageError(
            f"{reference} has no default of {', '.join(lacking)}: give --set {lacking[0]}=VALUE, or search it"
        )
    if not against and declared.baseline is not None:
        usual = {one.name: one.default for one in declared.parameters or ()} | dict(values["set"])
        against = usual | dict(declared.baseline)
    if against and (missing := [name for name in names if name not in against]):
        raise UsageError(f"against must have a value of all that is searched, got none of {', '.join(missing)}")
    chosen = tuple((name, against[name]) for name in names) if against else ()
    return {"method": reference, "against": chosen}
