"""Names of plug-ins: module:attribute, or an entry point of an installed package."""

from collections.abc import Collection
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from os.path import isfile
from pathlib import Path
from typing import NamedTuple

from epsearch.failures.errors import UsageError, brief
from epsearch.plugins.kinds import KINDS
from results.labels import on_one_line
from trainers.plugins.source import HERE, OURS
from trainers.spelling import unknown


class InstalledPlugin(NamedTuple):
    """A plug-in that an entry point of an installed package provides; a line of `epsearch plugins`."""

    kind: str
    """A name of KINDS."""
    name: str
    """The entry point's name."""
    reference: str
    """module:attribute."""
    package: str
    """Name and version of the distribution."""
    note: str = ""
    """Why the name means something else, if it does."""


def resolve(kind: str, value: object, ours: Collection[str]) -> str:
    """Returns the module:attribute of a name; names of epsearch's own are returned unchanged.

    ours: names that no package can take. Raises UsageError, one line, for an unknown name, and for a name of several
    packages.
    """
    text = str(value)
    if text in ours:
        return text
    module, colon, attribute = text.partition(":")
    if colon:
        _check_ours(module)
        if all(part.isidentifier() for part in module.split(".")) and attribute.isidentifier():
            return text
        raise UsageError(f"{_option(kind)} must be a name or module:attribute, got {brief(text)}")
    matches = [plugin for plugin in installed_plugins(kind) if plugin.name == text]
    if len({plugin.reference for plugin in matches}) > 1:
        several = ", ".join(f"{plugin.reference} of {plugin.package}" for plugin in matches)
        raise UsageError(f"{kind} {brief(text)} is provided by several packages; name one of {several}")
    if not matches:
        raise UsageError(_refusal(kind, text, [*ours, *(plugin.name for plugin in installed_plugins(kind))]))
    return matches[0].reference


def _refusal(kind: str, text: str, known: Collection[str]) -> str:
    """Returns one line for a name that nobody knows; a file of the user's that has it was meant."""
    if text.isidentifier() and isfile(f"{text}.py"):  # of pathlib it would raise for names of any length
        return f"no {kind} {text!r}; for what {text}.py has, give module:attribute, like {text}:NAME"
    if not known:
        return f"no {kind} {brief(text)}; give module:attribute"
    return f"{unknown(kind, text, known)}; or module:attribute"


def column(name: str) -> str:
    """Returns the title of a metric or figure in tables: that of epsearch's own, or the attribute of module:attribute.

    >>> column("bwt-libcontinual"), column("mine:worst")
    ('BWT (LibContinual)', 'worst')
    """
    if ":" in name:
        return name.partition(":")[2]
    from results.continual_evaluation import BY_NAME  # late: most studies have none

    return BY_NAME[name]


def find_shadow(kind: str, name: str) -> InstalledPlugin | None:
    """Returns the installed plug-in whose name is epsearch's own, so that the name does not mean it."""
    return next((plugin for plugin in installed_plugins(kind) if plugin.name == name), None)


def all_installed() -> list[InstalledPlugin]:
    """Returns the plug-ins of installed packages, by kind and name, with notes. Nothing is loaded."""
    rows: list[InstalledPlugin] = []
    for kind, declared in KINDS.items():
        ours, plugins = declared.ours(), installed_plugins(kind)
        for plugin in plugins:
            name, reference = plugin.name, plugin.reference
            others = [other.package for other in plugins if other.name == name and other.reference != reference]
            note = "the name is epsearch's own: use what it stands for" if name in ours else ""
            note = note or (f"{', '.join(others)} has the name, too: use what it stands for" if others else "")
            rows.append(plugin._replace(note=note))
    return rows


@cache
def installed_plugins(kind: str) -> tuple[InstalledPlugin, ...]:
    """Returns the plug-ins of a kind in installed packages, by name."""
    points = sorted(entry_points(group=KINDS[kind].group), key=lambda point: (point.name, point.value))
    return tuple(dict.fromkeys(_plugin(kind, point) for point in points))


def _plugin(kind: str, point: EntryPoint) -> InstalledPlugin:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "a package without a name"
    return InstalledPlugin(kind, point.name, f"{point.module}:{point.attr}", package)


def _check_ours(module: str) -> None:
    """Raises UsageError for a user's file with the name of a package of epsearch, which would never be imported."""
    top = module.partition(".")[0]
    place = next((path for path in (Path.cwd() / f"{top}.py", Path.cwd() / top) if path.exists()), None)
    if top in OURS and place is not None and place.resolve().parent != HERE:
        raise UsageError(f"{module!r} is a package of epsearch, not {on_one_line(place)}; give yours another name")


def _option(kind: str) -> str:
    return KINDS[kind].option.replace("_", "-")
