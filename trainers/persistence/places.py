"""Storage of files with checksums: a folder, or a URL of fsspec.

Names are FOLDER/FILE, as no kind of storage does without. Credentials are the environment's, never the URL's.
"""

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar

from trainers.notes import first_line
from trainers.persistence import checked_files
from trainers.persistence.array_store import prune

Answer = TypeVar("Answer")

ANSWER_SECONDS = 120.0  # seconds for one answer from elsewhere: storage that hangs must not hold a run up for ever
EXTRAS = {"s3": "s3", "s3a": "s3"}  # protocol -> the extra of epsearch that has it


class Folder:
    """Files on a disk of this machine, or one that machines share. limited: it is a cache, and pruned like one.

    All methods raise OSError with one line; `str` is the path.
    """

    def __init__(self, path: Path, limited: bool = False) -> None:
        self._path, self._limited = path, limited

    def __str__(self) -> str:
        return str(self._path)

    def names(self, folder: str) -> list[str]:
        """Returns the names of the files in a folder, without it; none without such a folder."""
        try:
            return os.listdir(self._path / folder)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def contents(self, name: str, mark: str) -> bytes:
        """Returns the content under this mark. Raises FileNotFoundError, and Damaged for another content."""
        content = checked_files.contents(self._path / name, mark)
        with suppress(OSError):  # somebody else's file, perhaps
            os.utime(self._path / name)
        return content

    def write(self, name: str, mark: str, content: memoryview) -> None:
        """Creates or replaces the file."""
        path = self._path / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            checked_files.write(path, mark, content)
        except FileNotFoundError:  # somebody has just removed the folder, which was empty
            path.parent.mkdir(parents=True, exist_ok=True)
            checked_files.write(path, mark, content)
        if self._limited:
            with suppress(OSError):
                prune(self._path, content.nbytes)

    def remove(self, names: Iterable[str]) -> None:
        """Removes existing files, and folders that are then empty."""
        for name in names:
            path = self._path / name
            path.unlink(missing_ok=True)
            with suppress(OSError):  # it is not empty
                path.parent.rmdir()


class Remote:
    """Files at a URL of fsspec, opened at the first call; for the methods see `Folder`.

    timeout: seconds to wait for one answer.
    """

    def __init__(self, url: str, timeout: float = ANSWER_SECONDS) -> None:
        self._url, self._timeout = url.rstrip("/"), timeout
        self._opened: tuple[Any, str] | None = None
        self._made: set[str] = set()  # folders

    def __str__(self) -> str:
        return self._url

    def names(self, folder: str) -> list[str]:
        """Returns the names of the files in a folder, as `Folder.names`."""

        def names(fs: Any, root: str) -> list[str]:
            fs.invalidate_cache()  # of listings, which others have changed since
            try:
                return [str(path).rpartition("/")[2] for path in fs.ls(f"{root}/{folder}", detail=False)]
            except FileNotFoundError:
                return []

        return self._within(names)

    def contents(self, name: str, mark: str) -> bytes:
        """Returns the content under this mark, as `Folder.contents`."""
        content: bytes = self._within(lambda fs, root: fs.cat_file(f"{root}/{name}"))
        return checked_files.open_checked(content, mark)

    def write(self, name: str, mark: str, content: memoryview) -> None:
        """Creates or replaces the file, as `Folder.write`.

        Most kinds of storage replace a file at once; half a file's checksum does not fit.
        """
        whole = b"".join((checked_files.checksum(mark, content), content))

        def write(fs: Any, root: str) -> None:
            # Folder by folder, never with parents: object storage, where folders are nothing, would make a bucket.
            for folder in (root, f"{root}/{name}".rpartition("/")[0]):
                if folder not in self._made:
                    with suppress(FileExistsError):
                        fs.mkdir(folder, create_parents=False)
                    self._made.add(folder)
            fs.pipe_file(f"{root}/{name}", whole)

        self._within(write)

    def remove(self, names: Iterable[str]) -> None:
        """Removes existing files, as `Folder.remove`."""

        def remove(fs: Any, root: str) -> None:
            for name in names:
                with suppress(FileNotFoundError):
                    fs.rm_file(f"{root}/{name}")

        self._within(remove)

    def _open(self) -> tuple[Any, str]:
        """Returns (the file system, the path in it)."""
        if self._opened is None:
            import fsspec  # late: on a bare machine there is none, and folders need none

            protocol = self._url.partition("://")[0]
            try:
                fsspec.get_filesystem_class(protocol)
            except ImportError as error:
                extra = f"; pip install 'epsearch[{EXTRAS[protocol]}]'" if protocol in EXTRAS else ""
                raise OSError(f"{first_line(error)}{extra}") from error
            self._opened = fsspec.url_to_fs(self._url)
        return self._opened

    def _within(self, call: Callable[[Any, str], Answer]) -> Answer:
        """Returns the result of a call in a thread of its own; stops waiting for it when it hangs."""
        answers: SimpleQueue[tuple[Answer | None, Exception | None]] = SimpleQueue()

        def ask() -> None:
            try:
                answers.put((call(*self._open()), None))
            except Exception as error:  # noqa: BLE001  each kind of storage has errors of its own
                answers.put((None, error))

        threading.Thread(target=ask, name="checkpoints", daemon=True).start()
        try:
            answer, error = answers.get(timeout=self._timeout)
        except Empty:
            raise TimeoutError(f"no answer within {self._timeout:g} seconds") from None
        if error is None:
            return answer  # type: ignore[return-value]  # None only where the call returns it
        raise error if isinstance(error, OSError) else OSError(first_line(error)) from error


Place: TypeAlias = Folder | Remote


def reason(error: OSError) -> str:
    """Returns the reason of an error, in words and one line."""
    return error.strerror or first_line(error)


def place(where: str | Path, timeout: float = ANSWER_SECONDS) -> Place:
    """Returns a folder, or what fsspec has at a URL."""
    text = str(where)
    for local in ("file://", "local://"):
        text = text.removeprefix(local)
    return Remote(text, timeout) if "://" in text else Folder(Path(text))
