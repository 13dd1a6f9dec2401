"""Plug-ins loaded: imported, checked, made known to this process, with what they are made of."""

import difflib
import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from epsearch.failures.errors import CodeOfOthers, refused
from epsearch.plugins.kinds import KINDS
from trainers.plugins.calls import ForeignError, blamed, in_one_line, listed, load, place
from trainers.plugins.source import SOURCE, Source, changed

PLUGINS = "plugins"  # in the description of a study's stream: reference -> what it is made of
OF_THE_DRIVER = ("strategy", "objective")  # what workers need not know
WAYS = "network_ways"  # in it, too: how members of a network of others are trained, in words
REQUIRES = "requires"  # of a module: names of distributions whose versions its results belong to
OF_DISTRIBUTION = "distribution "  # what names such a version among the files
DECLARED = "declared "  # what names what a trainer says of itself among them
VERSION, NOISY = f"{DECLARED}version", f"{DECLARED}not to repeat itself"


class Plugin(NamedTuple):
    """What a worker loads before it trains; plain values."""

    kind: str
    """A name of KINDS."""
    reference: str
    """module:attribute."""
    parts: Mapping[str, str]
    """What it must be made of: hashes of files by name, and versions of distributions."""


class Loaded(NamedTuple):
    """A plug-in in this process."""

    reference: str
    """module:attribute."""
    made: Any
    """The attribute."""
    parts: Mapping[str, str]
    """What it is made of, as of `Plugin`."""
    source: Source
    """Its files."""


@refused(ForeignError, ValueError, by=CodeOfOthers)
def loaded(kind: str, reference: str, beside: Path | None = None) -> Loaded:
    """Imports a plug-in as it is now, and makes it known to this process.

    beside: the folder in which its module may lie; by default that in which the program runs. Raises UsageError.
    """
    return _loaded(kind, reference, beside or Path.cwd())


def of_workers(named: Mapping[str, str], images: Mapping[str, Any]) -> tuple[Plugin, ...]:
    """Those that train: what a strategy suggests, workers need not know.

    named: reference -> kind; images: the description of a study's stream, with PLUGINS.
    """
    return tuple(Plugin(kind, name, images[PLUGINS][name]) for name, kind in named.items() if kind not in OF_THE_DRIVER)


def all_parts(dataset: str, images: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    """Code of others that results belong to, a stream's too: name -> what it is made of; images: as of `of_workers`."""
    stream = {dataset: images[SOURCE]} if SOURCE in images else {}
    return stream | dict(images.get(PLUGINS, {}))


def load_expected(plugin: Plugin, beside: Path) -> Loaded:
    """The same in a worker, where it must be what the study began with. Raises ForeignError."""
    try:
        found = _loaded(plugin.kind, plugin.reference, beside, files_of(plugin.parts))
    except ValueError as error:
        raise ForeignError(str(error)) from error
    if other := changed(plugin.parts, found.parts):
        was, now = (parts.get(other[0], "not there") for parts in (plugin.parts, found.parts))
        raise ForeignError(f"{listed(other)} of {plugin.reference!r} is not the same here: {was} then, {now} now")
    return found


@contextmanager
def at_fault(plugins: Iterable[Loaded]) -> Iterator[None]:
    """Within it, what comes from a plug-in's own lines is a ForeignError: it is called too often to be watched."""
    try:
        yield
    except ForeignError:
        raise
    except Exception as error:
        for one in plugins:
            if where := place(error, one.source):
                raise ForeignError(f"{one.reference} failed with {in_one_line(error)}{where}") from error
        raise


def reachable(beside: Path) -> None:
    """Modules of the folder can be imported, and found as they are now; those of other places go before them."""
    if str(beside) not in sys.path:
        sys.path.append(str(beside))
    importlib.invalidate_caches()


def _loaded(kind: str, reference: str, beside: Path, files: Mapping[str, str] | None = None) -> Loaded:
    module, _, attribute = reference.partition(":")
    reachable(beside)
    imported, source = load(module, f"{kind} {reference!r}", files)
    try:
        with blamed(f"{reference} failed with", source, missing=attribute):
            made = getattr(imported, attribute)
    except AttributeError:
        near = difflib.get_close_matches(attribute, dir(imported), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"module {module!r} has no {attribute!r}{hint}") from None
    if not KINDS[kind].plug(reference, made, source):
        raise ValueError(f"{kind} {reference!r} must be {KINDS[kind].what}, got a {type(made).__name__}")
    return Loaded(reference, made, dict(source.hashes) | _versions(reference, getattr(imported, REQUIRES, ())), source)


def _versions(reference: str, required: Any) -> dict[str, str]:
    """Of the distributions that a module names. Raises ValueError where it names none that is installed."""
    if isinstance(required, str) or not all(isinstance(one, str) for one in required):
        raise ValueError(f"{REQUIRES} of {reference!r} must be a list of names of distributions, got {required!r}")
    try:
        return {f"{OF_DISTRIBUTION}{name}": version(name) for name in required}
    except (PackageNotFoundError, ValueError) as error:
        raise ValueError(f"{reference!r} requires what is not installed here: {in_one_line(error)}") from error


def files_of(parts: Mapping[str, str]) -> dict[str, str]:
    """Hashes of files by name."""
    return {name: part for name, part in parts.items() if not name.startswith((OF_DISTRIBUTION, DECLARED))}


def versions_of(parts: Mapping[str, str]) -> dict[str, str]:
    """Versions of distributions by name."""
    named = (
        (name.removeprefix(OF_DISTRIBUTION), part) for name, part in parts.items() if name.startswith(OF_DISTRIBUTION)
    )
    return dict(named)
