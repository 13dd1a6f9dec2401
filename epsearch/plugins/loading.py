"""Loads plug-ins: imports, checks and registers them, with hashes of their files."""

import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from epsearch.failures.errors import PluginError, as_usage_error
from epsearch.plugins.kinds import KINDS
from trainers.plugins.calls import ForeignError, blamed, in_one_line, list_names, load, place
from trainers.plugins.source import SOURCE, Source, changed_files
from trainers.spelling import did_you_mean

PLUGINS = "plugins"  # in the description of a study's stream: reference -> parts
OF_THE_DRIVER = ("strategy", "objective", "protocol")  # which workers do not need
WAYS = "network_ways"  # in the description, too: how members of a plug-in network are trained
REQUIRES = "requires"  # of a module: distributions whose versions affect its results
OF_DISTRIBUTION = "distribution "  # prefix of such a version among the parts
DECLARED = "declared "  # prefix of a trainer's declarations among the parts
VERSION, NOISY = f"{DECLARED}version", f"{DECLARED}not to repeat itself"


class Plugin(NamedTuple):
    """A plug-in for workers, as plain values."""

    kind: str
    """A name of KINDS."""
    reference: str
    """module:attribute."""
    parts: Mapping[str, str]
    """Its required parts: hashes of files by name, and versions of distributions."""


class LoadedPlugin(NamedTuple):
    """A plug-in in this process."""

    reference: str
    """module:attribute."""
    made: Any
    """The attribute."""
    parts: Mapping[str, str]
    """Its parts, see `Plugin`."""
    source: Source
    """Its files."""


@as_usage_error(ForeignError, ValueError, by=PluginError)
def load_plugin(kind: str, reference: str, beside: Path | None = None) -> LoadedPlugin:
    """Imports a plug-in as it is now, and registers it in this process.

    beside: folder of its module; None for the current folder. Raises UsageError.
    """
    return _load(kind, reference, beside or Path.cwd())


def of_workers(named: Mapping[str, str], images: Mapping[str, Any]) -> tuple[Plugin, ...]:
    """Returns the plug-ins that workers need, without strategies and objectives.

    named: reference -> kind; images: the description of a study's stream, with PLUGINS.
    """
    return tuple(Plugin(kind, name, images[PLUGINS][name]) for name, kind in named.items() if kind not in OF_THE_DRIVER)


def all_parts(dataset: str, images: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    """Returns the parts of all plug-ins, including the stream's, by name; images: see `of_workers`."""
    stream = {dataset: images[SOURCE]} if SOURCE in images else {}
    return stream | dict(images.get(PLUGINS, {}))


def load_expected(plugin: Plugin, beside: Path) -> LoadedPlugin:
    """Loads a plug-in in a worker. Raises ForeignError where its parts differ from the study's."""
    try:
        loaded = _load(plugin.kind, plugin.reference, beside, files_of(plugin.parts))
    except ValueError as error:
        raise ForeignError(str(error)) from error
    if other := changed_files(plugin.parts, loaded.parts):
        was, now = (parts.get(other[0], "not there") for parts in (plugin.parts, loaded.parts))
        raise ForeignError(f"{list_names(other)} of {plugin.reference!r} is not the same here: {was} then, {now} now")
    return loaded


@contextmanager
def at_fault(plugins: Iterable[LoadedPlugin]) -> Iterator[None]:
    """Turns errors from lines of plug-ins into ForeignError, for calls too frequent to wrap one by one."""
    try:
        yield
    except ForeignError:
        raise
    except Exception as error:
        for plugin in plugins:
            if where := place(error, plugin.source):
                raise ForeignError(f"{plugin.reference} failed with {in_one_line(error)}{where}") from error
        raise


def add_to_path(beside: Path) -> None:
    """Adds a folder to the end of the import path, and forgets cached listings."""
    if str(beside) not in sys.path:
        sys.path.append(str(beside))
    importlib.invalidate_caches()


def _load(kind: str, reference: str, beside: Path, files: Mapping[str, str] | None = None) -> LoadedPlugin:
    module, _, attribute = reference.partition(":")
    add_to_path(beside)
    imported, source = load(module, f"{kind} {reference!r}", files)
    try:
        with blamed(f"{reference} failed with", source, missing=attribute):
            made = getattr(imported, attribute)
    except AttributeError:
        hint = did_you_mean(attribute, dir(imported))
        raise ValueError(f"module {module!r} has no {attribute!r}{hint}") from None
    if not KINDS[kind].plug(reference, made, source):
        raise ValueError(f"{kind} {reference!r} must be {KINDS[kind].what}, got a {type(made).__name__}")
    return LoadedPlugin(
        reference, made, dict(source.hashes) | _versions(reference, getattr(imported, REQUIRES, ())), source
    )


def _versions(reference: str, required: Any) -> dict[str, str]:
    """Returns versions of distributions. Raises ValueError for one that is not installed."""
    if isinstance(required, str) or not all(isinstance(name, str) for name in required):
        raise ValueError(f"{REQUIRES} of {reference!r} must be a list of names of distributions, got {required!r}")
    try:
        return {f"{OF_DISTRIBUTION}{name}": version(name) for name in required}
    except (PackageNotFoundError, ValueError) as error:
        raise ValueError(f"{reference!r} requires what is not installed here: {in_one_line(error)}") from error


def files_of(parts: Mapping[str, str]) -> dict[str, str]:
    """Returns hashes of files by name."""
    return {name: part for name, part in parts.items() if not name.startswith((OF_DISTRIBUTION, DECLARED))}


def versions_of(parts: Mapping[str, str]) -> dict[str, str]:
    """Returns versions of distributions by name."""
    named = (
        (name.removeprefix(OF_DISTRIBUTION), part) for name, part in parts.items() if name.startswith(OF_DISTRIBUTION)
    )
    return dict(named)
