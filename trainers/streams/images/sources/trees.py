"""Folders and zip files through one pair of eyes: what lies under a folder, and the bytes of one file."""

import lzma
import os
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Protocol

from trainers.notes import first_line
from trainers.streams.base import DataError
from trainers.streams.files import Unfit, odd_kind, read_regular, too_large
from trainers.streams.images.sources.base import LARGEST_FILE, Damaged, printable

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


class Tree(Protocol):
    """Files and folders under a top, "", at which names begin; they have slashes between.

    Hidden files and folders do not exist, nor does what lies outside.
    """

    @property
    def where(self) -> str:
        """The tree's path, for people: without characters that cannot be printed."""
        ...

    def folders(self, under: str) -> list[str]:
        """Sorted names of the folders directly in a folder; none where there is no such folder."""
        ...

    def files(self, under: str) -> list[str]:
        """Sorted names of the files directly in a folder."""
        ...

    def read(self, name: str, most: int = LARGEST_FILE) -> bytes:
        """A file's bytes. Raises DataError, and Damaged where this file cannot be read but others can.

        That is one that is not regular, has more than `most` bytes, or is a damaged or encrypted member of an archive.
        """
        ...

    def stamp(self, name: str) -> tuple[int, int]:
        """What changes when the file does, had without reading it."""
        ...

    def below(self, folder: str) -> "Tree":
        """The tree that begins at a folder directly in this one."""
        ...


class FolderTree:
    """A folder on disk."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: dict[str, tuple[list[str], list[str]]] = {}

    @property
    def where(self) -> str:
        """The folder's path, for people."""
        return printable(str(self._root))

    def folders(self, under: str) -> list[str]:
        """Returns the sorted names of the folders directly in a folder."""
        return self._list(under)[0]

    def files(self, under: str) -> list[str]:
        """Returns the sorted names of the files directly in a folder."""
        return self._list(under)[1]

    def read(self, name: str, most: int = LARGEST_FILE) -> bytes:
        """Returns a regular file's bytes; raises Damaged where it is none or too large, DataError where it fails."""
        try:
            return read_regular(self._root / name, most)
        except Unfit as error:
            raise Damaged(error.strerror) from error
        except OSError as error:
            raise DataError(f"cannot read {self._root / name}: {error.strerror}") from error

    def stamp(self, name: str) -> tuple[int, int]:
        """Returns size and time of change in nanoseconds; raises DataError."""
        try:
            found = os.stat(self._root / name)
        except OSError as error:
            raise DataError(f"cannot read {self._root / name}: {error.strerror}") from error
        return found.st_size, found.st_mtime_ns

    def below(self, folder: str) -> "FolderTree":
        """Returns the tree that begins at a folder directly in this one."""
        return FolderTree(self._root / folder)

    def _list(self, under: str) -> tuple[list[str], list[str]]:
        if under and any(not part or _hidden(part) for part in under.split("/")):  # "..", if a list of images says so
            return [], []
        # Listed once: sources ask for the same folders again and again.
        if under not in self._seen:
            folders: list[str] = []
            files: list[str] = []
            try:
                with os.scandir(self._root / under) as entries:
                    for entry in entries:
                        if not _hidden(entry.name):
                            (folders if _is_folder(entry) else files).append(entry.name)
            except (FileNotFoundError, NotADirectoryError):
                pass
            except OSError as error:
                raise DataError(f"cannot read {self._root / under}: {error.strerror}") from error
            except ValueError as error:  # a zero byte in a name
                raise DataError(f"cannot read {str(self._root / under)!r}: {error}") from error
            self._seen[under] = sorted(folders), sorted(files)
        return self._seen[under]


class ZipTree:
    """A zip file, read in place."""

    def __init__(self, path: Path) -> None:
        """Raises DataError where the file cannot be read or is no zip file."""
        try:
            self._zip = zipfile.ZipFile(path)
        except BROKEN as error:
            raise DataError(f"{path} is not a zip file, or a damaged one ({first_line(error)})") from error
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from error
        self._path, self._top = path, ""
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._inside: dict[str, tuple[set[str], set[str]]] = {}
        for member in self._zip.infolist():
            self._enter(member)

    @property
    def where(self) -> str:
        """The zip file's path and the folder in it, for people."""
        return printable(f"{self._path}/{self._top}".rstrip("/"))

    def folders(self, under: str) -> list[str]:
        """Returns the sorted names of the folders directly in a folder."""
        return sorted(self._inside.get(_join(self._top, under), (set(), set()))[0])

    def files(self, under: str) -> list[str]:
        """Returns the sorted names of the files directly in a folder."""
        return sorted(self._inside.get(_join(self._top, under), (set(), set()))[1])

    def read(self, name: str, most: int = LARGEST_FILE) -> bytes:
        """Returns a member's bytes; raises Damaged where it is too large, encrypted or damaged, else DataError."""
        member = self._members[_join(self._top, name)]
        if member.file_size > most:
            raise Damaged(too_large(member.file_size, most))
        if member.flag_bits & 1:
            raise Damaged("it is encrypted")
        try:
            with self._zip.open(member) as file:
                return b"".join(iter(lambda: file.read(PIECE), b""))
        except BROKEN as error:
            raise Damaged(first_line(error)) from error
        except OSError as error:
            if error.errno is None:  # bzip2's word for damaged
                raise Damaged(first_line(error)) from error
            raise DataError(f"cannot read {name} in {self.where}: {error.strerror}") from error
        except MemoryError as error:
            raise DataError(f"cannot read {name} in {self.where}: there is too little memory") from error

    def stamp(self, name: str) -> tuple[int, int]:
        """Returns a member's unpacked size and CRC."""
        member = self._members[_join(self._top, name)]
        return member.file_size, member.CRC

    def below(self, folder: str) -> "ZipTree":
        """Returns the tree that begins at a folder, on the same open file."""
        # Not opened again: all trees of one zip file share its handle and its table of members.
        tree = object.__new__(ZipTree)
        tree.__dict__.update(self.__dict__ | {"_top": _join(self._top, folder)})
        return tree

    def _enter(self, member: zipfile.ZipInfo) -> None:
        # As unpackers do: "./a//b" is "a/b", and of two members of one name the second is the file.
        parts = [part for part in member.filename.replace("\\", "/").split("/") if part not in ("", ".")]
        if not parts or len(parts) > DEEPEST or any(map(_hidden, parts)):
            return
        for depth in range(len(parts)):
            folders, files = self._inside.setdefault("/".join(parts[:depth]), (set(), set()))
            is_folder = depth < len(parts) - 1 or member.is_dir()
            (folders if is_folder else files).add(parts[depth])
        if not member.is_dir():
            self._members["/".join(parts)] = member


def open_tree(path: Path) -> Tree:
    """The folder or zip file at a path. Raises DataError where there is neither."""
    if os.path.isdir(path):  # unlike pathlib, False where the path cannot be looked at
        return FolderTree(path)
    if os.path.isfile(path):
        return ZipTree(path)
    if kind := odd_kind(path):
        raise DataError(f"{path} is {kind}; a folder or a zip file of images is needed")
    raise DataError(f"there is no {path}; a folder or a zip file of images is needed")


def _join(top: str, name: str) -> str:
    return f"{top}/{name}".strip("/")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # links in a circle, for one: told if someone needs the file
        return False


def _hidden(name: str) -> bool:
    return name.startswith(".") or name in OF_SYSTEMS
