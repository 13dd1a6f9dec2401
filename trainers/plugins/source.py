"""Source files of plug-in modules, and a hash of each.

Results of a user's own code belong to that code as much as to its name. What belongs to a module is its file, or all
files of its top-level package, and modules of the same folder that they import, found from their import statements.
"""

import ast
import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.machinery import ModuleSpec, all_suffixes
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

SUFFIXES = tuple(all_suffixes())  # of modules: sources, and what is compiled and has none
LIBRARIES = ("site-packages", "dist-packages")  # what is installed beside a module is no part of it
OURS = ("epsearch", "trainers", "search_spaces", "results")  # the protocol version stands for them
WRAPPERS = "trainers.foreign.libraries."  # begins those of our modules that are code of others to a study
HERE = Path(__file__).resolve().parents[2]
DIGITS = 16  # hexadecimal, of a hash
SOURCE = "source_files"  # in the description of a stream: hashes of the files that it is made of


class SourceError(Exception):
    """Source that cannot be read; the message is one line for the user."""


@dataclass(frozen=True)
class Source:
    """The files that belong to a module."""

    hashes: Mapping[str, str]
    """SHA-256 by name, its first DIGITS, sorted; a name is relative to the folder in which the module lies, so that it
    is the same wherever that is.
    """
    paths: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The name of each file by its path on this machine."""

    def name(self, path: str) -> str | None:
        """Returns the name of one of the files, or of a member of one, a zip; None of any other path."""
        places = [file for file in self.paths if path == file or path.startswith(file + os.sep)]
        return self.paths[places[0]] + path[len(places[0]) :] if places else None


def whole(module: str) -> str:
    """Returns the module whose source is hashed: the top-level package; a module of WRAPPERS alone.

    >>> whole("package.part.mine"), whole("trainers.foreign.libraries.avalanche")
    ('package', 'trainers.foreign.libraries.avalanche')
    """
    return module if module.startswith(WRAPPERS) else module.partition(".")[0]


def source_of(module: str) -> Source:
    """Returns the files that belong to an importable module; none of one that is not found or built into Python.

    Nothing but packages of ours is imported. Raises SourceError.
    """
    hashes: dict[str, str] = {}
    paths: dict[str, str] = {}
    waiting, visited = _places(whole(module)), set[Path]()
    while waiting:
        place = waiting.pop(0)
        if place in visited:  # modules may import each other
            continue
        visited.add(place)
        for path in _files(place):
            name = path.relative_to(place.parent).as_posix()
            if str(path) in paths or name in hashes:  # of a package in several folders Python takes the first
                continue
            content = _read(path)
            paths[str(path)], hashes[name] = name, hashlib.sha256(content).hexdigest()[:DIGITS]
            if path.suffix == ".py" and place.parent.name not in LIBRARIES:
                waiting += _neighbours(place.parent, content)
    return Source(dict(sorted(hashes.items())), paths)


def digest(hashes: Mapping[str, str]) -> str:
    """Returns one hash of all files.

    >>> digest({"a.py": "01", "b.py": "23"}) == digest({"b.py": "23", "a.py": "01"}) != digest({"a.py": "01"})
    True
    """
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()[:DIGITS]


def changed_files(before: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """Returns the names of files that are not the same, or on one side only.

    >>> changed_files({"a.py": "01", "b.py": "23"}, {"a.py": "01", "b.py": "45", "c.py": "67"})
    ['b.py', 'c.py']
    """
    return [name for name in sorted({*before, *here}) if before.get(name) != here.get(name)]


def _places(whole: str) -> list[Path]:
    """Returns the places of a module: a file, or the folders of a package, of which there may be several."""
    try:
        spec = find_spec(whole)
    except (ImportError, ValueError, AttributeError):  # ValueError of a module that was made by hand
        return []
    return [] if spec is None else [_on_disk(Path(place)) for place in _locations(spec)]


def _locations(spec: ModuleSpec) -> list[str]:
    """Returns the folders of a package, else the file of a module; none of a module that is built into Python."""
    if spec.submodule_search_locations is not None:
        return list(spec.submodule_search_locations)
    return [spec.origin] if spec.has_location and spec.origin else []


def _on_disk(place: Path) -> Path:
    """Returns the place, or the archive in which it is."""
    place = Path(os.path.abspath(place))
    return next((path for path in (place, *place.parents) if path.is_file()), place)


def _files(place: Path) -> Iterator[Path]:
    """Yields a file, or all files of a package that can be imported; links are followed, each folder is seen once."""
    if not place.is_dir():
        yield place
        return
    visited = set()
    for folder, folders, names in os.walk(place, onerror=_refuse, followlinks=True):
        if os.path.realpath(folder) in visited:
            folders.clear()
            continue
        visited.add(os.path.realpath(folder))
        # Of hidden ones nothing is imported; editors leave locks there, which look like modules.
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        for name in sorted(names):
            path = Path(folder, name)
            if name.endswith(SUFFIXES) and not name.startswith(".") and path.is_file():
                yield path


def _neighbours(folder: Path, content: bytes) -> list[Path]:
    """Returns the imported modules that lie in the folder. Raises SourceError for a name of OURS."""
    names = sorted(name for name in _imports(content) if not (name in OURS and folder.resolve() == HERE))
    places = [(name, folder / f"{name}{suffix}") for name in names for suffix in ("", *SUFFIXES)]
    for name, place in places:
        if name in OURS and _is_hidden(name, place):
            raise SourceError(f"{name!r} is a package of epsearch, not {place}; give yours another name")
    return [place for _, place in places if place.exists()]


def _is_hidden(name: str, place: Path) -> bool:
    """Returns whether a place has modules that a package of ours, of which it is no copy, hides by its name."""
    if not place.is_dir():
        return place.is_file()
    begins = place / "__init__.py"
    if begins.is_file():
        return begins.read_bytes() != (HERE / name / begins.name).read_bytes()
    return any(name.endswith(".py") for name in os.listdir(place))  # else it is a folder of other things


@lru_cache(maxsize=1024)  # a service, and a study of several plug-ins, ask for the same files again and again
def _imports(content: bytes) -> frozenset[str]:
    """Returns the top-level modules that a source names in import statements; none where it is not Python."""
    try:
        with warnings.catch_warnings(action="ignore"):  # Python says the same when it imports the module
            tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    nodes = list(ast.walk(tree))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    # Those with a level are relative: of the package, all files of which are hashed anyway.
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return frozenset(name.partition(".")[0] for name in names)


def _read(path: Path) -> bytes:
    """Returns all bytes of a file. Raises SourceError."""
    try:
        return path.read_bytes()
    except OSError as error:
        _refuse(error, path)


def _refuse(error: OSError, path: Path | None = None) -> NoReturn:
    """Raises SourceError.

    path: what could not be read, where the error does not know, as one does not that comes after the opening.
    """
    raise SourceError(
        f"cannot read {path or error.filename}, which belongs to its source: {error.strerror or error}"
    ) from error
