"""Names of plug-ins: module:attribute, or an entry point of an installed package, which stands for one."""

from collections.abc import Collection
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import NamedTuple

from epsearch.failures.errors import UsageError, brief, unknown
from epsearch.plugins.kinds import KINDS
from results.labels import on_one_line
from trainers.plugins.source import HERE, OURS


class Provided(NamedTuple):
    """One line of `epsearch plugins`."""

    kind: str
    name: str
    reference: str
    package: str
    note: str
    """Why the name does not mean it; else empty."""


class Installed(NamedTuple):
    """An entry point that provides a plug-in."""

    kind: str
    """A name of KINDS."""
    name: str
    """Under which it can be asked for."""
    reference: str
    """module:attribute."""
    package: str
    """Name and version of the distribution."""


def referred(kind: str, value: object, known: Collection[str]) -> str:
    """The module:attribute that a name stands for, a name of our own as it is.

    known: our own names, which no package can take. Raises UsageError, one line, for a name that nobody knows, and for
    one that several packages have.
    """
    text = str(value)
    if text in known:
        return text
    module, colon, attribute = text.partition(":")
    if colon:
        _check_ours(module)
        if all(part.isidentifier() for part in module.split(".")) and attribute.isidentifier():
            return text
        raise UsageError(f"{_option(kind)} must be a name or module:attribute, got {brief(text)}")
    found = [one for one in installed(kind) if one.name == text]
    if len({one.reference for one in found}) > 1:
        several = ", ".join(f"{one.reference} of {one.package}" for one in found)
        raise UsageError(f"{kind} {brief(text)} is provided by several packages; name one of {several}")
    if not found:
        line = unknown(kind, value, [*known, *(one.name for one in installed(kind))])
        raise UsageError(f"{line}; or module:attribute")
    return found[0].reference


def shadowed(kind: str, name: str) -> Installed | None:
    """The entry point that has the name of something of our own, which is what the name means."""
    return next((one for one in installed(kind) if one.name == name), None)


def everything() -> list[Provided]:
    """What installed packages provide, by kind and name. Nothing is loaded."""
    rows: list[Provided] = []
    for kind, one in KINDS.items():
        ours, found = one.ours(), installed(kind)
        for each in found:
            others = [other.package for other in found if other.name == each.name and other.reference != each.reference]
            note = "the name is epsearch's own: use what it stands for" if each.name in ours else ""
            note = note or (f"{', '.join(others)} has the name, too: use what it stands for" if others else "")
            rows.append(Provided(*each, note))
    return rows


@cache
def installed(kind: str) -> tuple[Installed, ...]:
    """What installed packages provide of a kind, by name."""
    found = sorted(entry_points(group=KINDS[kind].group), key=lambda one: (one.name, one.value))
    return tuple(dict.fromkeys(Installed(kind, one.name, _reference(one), _package(one)) for one in found))


def _check_ours(module: str) -> None:
    """A file of the user's that has the name of a package of ours would never be imported. Raises UsageError."""
    top = module.partition(".")[0]
    place = next((one for one in (Path.cwd() / f"{top}.py", Path.cwd() / top) if one.exists()), None)
    if top in OURS and place is not None and place.resolve().parent != HERE:
        raise UsageError(f"{module!r} is a package of epsearch, not {on_one_line(place)}; give yours another name")


def _reference(one: EntryPoint) -> str:
    return f"{one.module}:{one.attr}"


def _package(one: EntryPoint) -> str:
    return f"{one.dist.name} {one.dist.version}" if one.dist else "a package without a name"


def _option(kind: str) -> str:
    return KINDS[kind].option.replace("_", "-")
