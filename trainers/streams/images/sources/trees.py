"""Folders and zip files under one interface: names and bytes."""

import lzma
import os
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import defaultdict
from copy import copy
from itertools import filterfalse
from pathlib import Path
from typing import Self

from trainers.notes import first_line
from trainers.streams.base import DataError
from trainers.streams.files import Stamp, Unfit, odd_kind, read_regular, stamp, too_large
from trainers.streams.images.sources.base import LARGEST_FILE, SUFFIXES, DamagedImage, printable

PIECE = 4096  # bytes; zipfile unpacks all that it has read of a bzip2 or LZMA member at once
DEEPEST = 16  # folders above a member of a zip file; nothing is looked for further down
OF_SYSTEMS = ("__MACOSX", "@eaDir", "lost+found", "$RECYCLE.BIN", "System Volume Information")  # nobody's classes
BROKEN = (  # what zipfile and its decompressors raise, beside OSError
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)


class Tree(ABC):
    """Files and folders under a top, "", at which names begin; they have slashes between.

    Hidden files and folders do not exist, nor does what lies outside. Each folder is listed once, as sources ask for
    the same ones again and again.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._top = path, ""
        self._listed: dict[str, tuple[list[str], list[str]]] = {}

    @property
    def where(self) -> str:
        """The tree's path, for people: without characters that cannot be printed."""
        return printable(str(self._path / self._top))

    def folders(self, under: str) -> list[str]:
        """Returns sorted names of the folders directly in a folder; none where there is no such folder.

        Raises DataError where the folder cannot be listed.
        """
        return self._list(self._full(under))[0]

    def files(self, under: str) -> list[str]:
        """Returns sorted names of the files directly in a folder, as `folders` does.

        All entries count that are no folder.
        """
        return self._list(self._full(under))[1]

    def images(self, folder: str) -> list[str]:
        """Returns sorted full names of the files directly in a folder that are images by their names."""
        return [f"{folder}/{file}" for file in self.files(folder) if file.lower().endswith(SUFFIXES)]

    def below(self, folder: str) -> Self:
        """Returns the tree that begins at a folder directly in this one."""
        # A copy, not opened again: it shares the listed folders, of a zip file also the handle and the members.
        tree = copy(self)
        tree._top = self._full(folder)
        return tree

    @abstractmethod
    def read(self, name: str, most: int = LARGEST_FILE) -> bytes:
        """Returns a file's bytes. Raises DataError, and DamagedImage where this file cannot be read but others can.

        That is one that is not regular, has more than `most` bytes, or is a damaged or encrypted member of an archive.
        """

    @abstractmethod
    def stamp(self, name: str) -> Stamp:
        """Returns a stamp that changes when the file does, without reading it. Raises DataError."""

    @abstractmethod
    def _list(self, folder: str) -> tuple[list[str], list[str]]:
        """Returns (folders, files) directly in a folder, whose name begins at `_path`."""

    def _full(self, name: str) -> str:
        """Returns the name as it begins at `_path`."""
        return f"{self._top}/{name}".strip("/")


class FolderTree(Tree):
    """A folder on disk, whose files have stamps of their own."""

    def read(self, name: str, most: int = LARGEST_FILE) -> bytes:
        """Returns a regular file's bytes; raises DamagedImage if it is none or too large, DataError if it fails."""
        path = self._path / self._full(name)
        try:
            return read_regular(path, most)
        except Unfit as error:
            raise DamagedImage(error.strerror) from error
        except OSError as error:
            if os.path.islink(path) and not os.path.exists(path):
                raise DamagedImage("it is a link that leads nowhere") from error
            raise DataError(f"cannot read {path}: {error.strerror}") from error

    def stamp(self, name: str) -> Stamp:
        """Returns the file's stamp; raises DataError."""
        path = self._path / self._full(name)
        try:
            return stamp(os.stat(path))
        except OSError as error:
            if os.path.islink(path):  # one that leads nowhere, a corrupt image until it leads somewhere
                return stamp(os.lstat(path))
            raise DataError(f"cannot read {path}: {error.strerror}") from error

    def _list(self, folder: str) -> tuple[list[str], list[str]]:
        if folder not in self._listed:
            self._listed[folder] = self._look(folder)
        return self._listed[folder]

    def _look(self, folder: str) -> tuple[list[str], list[str]]:
        """Returns folders and files as `_list`, from the disk. Raises DataError.

        Both are empty for a hidden folder, and where there is none.
        """
        if folder and any(not part or _hidden(part) for part in folder.split("/")):  # "..", if a list of images says so
            return [], []
        path = self._path / folder
        try:
            # A link in a circle counts as a file: that is told if someone needs the file.
            _, folders, files = next(os.walk(path, onerror=_raise))
        except (FileNotFoundError, NotADirectoryError):
            return [], []
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
        except ValueError as error:  # a zero byte in a name
            raise DataError(f"cannot read {str(path)!r}: {error}") from error
        return sorted(filterfalse(_hidden, folders)), sorted(filterfalse(_hidden, files))


class _ZipTree(Tree):
    """A zip file, read in place. Files are known by its stamp: the sizes and CRCs that it names need not be true.

    Raises DataError where the file cannot be read or is no zip file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._zip = zipfile.ZipFile(path)
            assert self._zip.fp is not None
            self._stamp = stamp(os.fstat(self._zip.fp.fileno()))  # of what is read, whatever lies at the path by now
        except BROKEN as error:
            raise DataError(f"{path} is not a zip file, or a damaged one ({first_line(error)})") from error
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from error
        self._members: dict[str, zipfile.ZipInfo] = {}
        inside: defaultdict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
        for member in self._zip.infolist():
            parts = _visible(member.filename)
            for depth, part in enumerate(parts):
                is_file = depth == len(parts) - 1 and not member.is_dir()
                folders, files = inside["/".join(parts[:depth])]
                (files if is_file else folders).add(part)
            if parts and not member.is_dir():
                self._members["/".join(parts)] = member  # of two members of one name the second, as unpackers do
        self._listed = {name: (sorted(folders), sorted(files)) for name, (folders, files) in inside.items()}

    def read(self, name: str, most: int = LARGEST_FILE) -> bytes:
        """Returns a member's bytes; raises DamagedImage where it is too large, encrypted or damaged, else DataError."""
        member = self._members[self._full(name)]
        if member.file_size > most:
            raise DamagedImage(too_large(member.file_size, most))
        if member.flag_bits & 1:
            raise DamagedImage("it is encrypted")
        try:
            with self._zip.open(member) as file:
                return b"".join(iter(lambda: file.read(PIECE), b""))
        except BROKEN as error:
            raise DamagedImage(first_line(error)) from error
        except OSError as error:
            if error.errno is None:  # bzip2's word for damaged
                raise DamagedImage(first_line(error)) from error
            raise DataError(f"cannot read {name} in {self.where}: {error.strerror}") from error
        except MemoryError as error:
            raise DataError(f"cannot read {name} in {self.where}: there is too little memory") from error

    def stamp(self, name: str) -> Stamp:
        """Returns the zip file's stamp, whichever member is meant."""
        return self._stamp

    def _list(self, folder: str) -> tuple[list[str], list[str]]:
        return self._listed.get(folder, ([], []))


def open_tree(path: Path) -> Tree:
    """Returns the folder or zip file at a path, whatever its name.

    Raises DataError where there is neither, or a zip file that cannot be read.
    """
    if os.path.isdir(path):  # unlike pathlib, False where the path cannot be looked at
        return FolderTree(path)
    if os.path.isfile(path):
        return _ZipTree(path)
    if kind := odd_kind(path):
        raise DataError(f"{path} is {kind}; a folder or a zip file of images is needed")
    raise DataError(f"there is no {path}; a folder or a zip file of images is needed")


def _visible(name: str) -> list[str]:
    """Returns the folders above a member of a zip file and its own name.

    [] where any is hidden, or there are too many.
    """
    # As unpackers do: "./a//b" is "a/b".
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    return [] if len(parts) > DEEPEST or any(map(_hidden, parts)) else parts


def _hidden(name: str) -> bool:
    """Returns whether a file or folder of this name is nobody's images, wherever it lies."""
    return name.startswith(".") or name in OF_SYSTEMS


def _raise(error: OSError) -> None:
    raise error
