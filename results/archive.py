"""Rows of a ledger as one file: a zip of JSON lines, and of a manifest with the hash of each part.

A file may come from anywhere: it is read within limits, no path in it is used, and nothing in it is unpickled. Of the
same rows the bytes are the same, whatever database they come from.
"""

import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, cast

from sqlalchemy import Table

from results.files import atomically
from results.labels import on_one_line
from results.ledger import schema
from results.ledger.database import KEYS_PER_QUERY
from results.ledger.record import content_key

FORMAT, MANIFEST = "epsearch ledger 1", "manifest.json"
READABLE = (schema.VERSION, 1, 6, schema.DEVELOPMENT)
"""Schema versions whose parts are those below; the larger ones are of development versions."""
PARTS: dict[Table, str] = {
    schema.studies: "studies.jsonl",
    schema.summaries: "summaries.jsonl",
    schema.runs: "runs.jsonl",
    schema.certificates: "certificates.jsonl",
    schema.reruns: "reruns.jsonl",
}
"""Table -> its part of the file."""

LARGEST_MANIFEST = 2**20
"""Bytes, as the limits below."""
LARGEST = 2**36
"""Largest size of all parts, unpacked."""
LONGEST_LINE = 2**26
"""Largest size of one row: the longest, for a stream with a thousand tasks, has less than half of it."""
WHEN = (1980, 1, 1, 0, 0, 0)  # zip has no earlier time, and none is wanted
UNREADABLE = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, NotImplementedError),
    *(RuntimeError, LookupError, OverflowError, *schema.UNREADABLE),  # encrypted, absent, too deep, no text
)
"""What Python raises for a file that is no such zip, or a damaged one."""


Part: TypeAlias = dict[str, Any]
"""Lines ("rows"), size unpacked ("bytes") and hash in hex ("sha256") of a part, as the manifest has them."""


class ArchiveError(Exception):
    """A file that cannot be taken over; the message is one line."""


def write(path: Path, rows: Mapping[Table, Iterable[list[Mapping[str, Any]]]], program: str) -> dict[Table, Part]:
    """Writes the file, whole or not at all; returns table -> its part.

    rows: those of every table of PARTS, in groups, in the order of their first column; program: the version that
    writes. Raises OSError.
    """
    written: dict[Table, Part] = {}
    with atomically(path) as file, zipfile.ZipFile(file, "w") as archive:
        for table, name in PARTS.items():
            digest, count, size = hashlib.sha256(), 0, 0
            with archive.open(_entry(name), "w", force_zip64=True) as part:
                for row in (row for group in rows[table] for row in group):
                    line = json.dumps(row, sort_keys=True, separators=(",", ":")).encode() + b"\n"
                    part.write(line)
                    digest.update(line)
                    count, size = count + 1, size + len(line)
            written[table] = {"rows": count, "bytes": size, "sha256": digest.hexdigest()}
        parts = {PARTS[table]: part for table, part in written.items()}
        manifest = {"format": FORMAT, "schema": schema.VERSION, "epsearch": program, "parts": parts}
        archive.writestr(_entry(MANIFEST), json.dumps(manifest, indent=1) + "\n")
    return written


def _part(rows: int, bytes: int, sha256: str) -> Part:
    """Returns an entry of the manifest. Raises TypeError, as Python does, for other fields."""
    return {"rows": rows, "bytes": bytes, "sha256": sha256}


def _entry(name: str) -> zipfile.ZipInfo:
    """Returns an entry without the time, machine and user of its making."""
    entry = zipfile.ZipInfo(name, WHEN)
    entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
    return entry


class Archive:
    """A file that was checked to its last byte as it was opened; also a context manager.

    Raises ArchiveError where the file cannot be read, is damaged, is not an epsearch archive, or was written by a newer
    program.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._readable():
            # A pipe would be waited for. A missing file is reported by opening it.
            if path.exists() and not (path.is_file() and zipfile.is_zipfile(path)):
                raise ArchiveError(f"{on_one_line(path)} is no file that `epsearch export` has written, or cut short")
            self._zip = zipfile.ZipFile(path)
        try:
            with self._readable():
                self.parts = self._manifest()
            for table in PARTS:
                for _ in self.rows(table):
                    pass
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the file."""
        self._zip.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def rows(self, table: Table) -> Iterator[list[dict[str, Any]]]:
        """Yields the rows of a table in groups, each checked. Raises ArchiveError, of another hash at the end."""
        group: list[dict[str, Any]] = []
        for row in self._lines(table):
            group.append(row)
            if len(group) == KEYS_PER_QUERY:
                yield group
                group = []
        if group:
            yield group

    def _lines(self, table: Table) -> Iterator[dict[str, Any]]:
        part, name = self.parts[table], PARTS[table]
        digest, count, last = hashlib.sha256(), 0, ""
        with self._readable(), self._zip.open(name) as raw:
            lines = io.BufferedReader(cast(io.RawIOBase, raw), 2**16)
            while line := lines.readline(LONGEST_LINE + 1):
                if len(line) > LONGEST_LINE:
                    raise ArchiveError(f"{self._damage_text()}: a line of {name} has more than {LONGEST_LINE} bytes")
                digest.update(line)
                count += 1
                row = json.loads(line)
                _check(table, row)
                if count > 1 and row[table.columns[0].name] <= last:
                    raise schema.Damaged("it is not behind the one before")
                last = row[table.columns[0].name]
                yield row
        if (count, digest.hexdigest()) != (part["rows"], part["sha256"]):
            raise ArchiveError(f"{self._damage_text()}: the hash of {name} is not the one that its manifest has")

    def _manifest(self) -> dict[Table, Part]:
        entries = {entry.filename: entry for entry in self._zip.infolist()}
        if MANIFEST not in entries or entries[MANIFEST].file_size > LARGEST_MANIFEST:
            raise ArchiveError(f"{on_one_line(self._path)} is no file that `epsearch export` has written")
        manifest = json.loads(self._zip.read(MANIFEST))
        if manifest["format"] != FORMAT or manifest["schema"] not in READABLE:
            theirs = (
                f"{manifest['format']!r}, schema version {manifest['schema']!r}, of epsearch {manifest['epsearch']!r}"
            )
            raise ArchiveError(
                f"{on_one_line(self._path)} is {theirs[:200]}; this epsearch reads {FORMAT} with schema version "
                f"{schema.VERSION}: export it with the same version"
            )
        parts = {table: _part(**manifest["parts"][name]) for table, name in PARTS.items()}
        if [*sorted(entries)] != sorted([MANIFEST, *PARTS.values()]) or len(entries) != len(self._zip.infolist()):
            raise ArchiveError(
                f"{self._damage_text()}: it must hold {', '.join(PARTS.values())} and {MANIFEST}, each once"
            )
        for table, part in parts.items():
            if entries[PARTS[table]].file_size != part["bytes"]:
                raise ArchiveError(f"{self._damage_text()}: {PARTS[table]} has another size than its manifest says")
        if sum(part["bytes"] for part in parts.values()) > LARGEST:
            raise ArchiveError(f"{on_one_line(self._path)} must unpack to at most {LARGEST // 2**30} GiB; it has more")
        return parts

    def _damage_text(self) -> str:
        return f"{on_one_line(self._path)} is damaged"

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turns what Python raises for a file into ArchiveError, on one line."""
        try:
            yield
        except OSError as error:
            raise ArchiveError(f"cannot read {on_one_line(self._path)}: {error.strerror or error}") from error
        except UNREADABLE as error:
            what = " ".join(str(error).split())[:200] or type(error).__name__
            raise ArchiveError(f"{self._damage_text()}: {what}") from error


def _check(table: Table, row: Any) -> None:
    """Raises Damaged where it is no row of the table, or has another key than its content."""
    if not isinstance(row, dict):
        raise schema.Damaged("a row must be a JSON object")
    if row.keys() != {column.name for column in table.columns}:
        raise schema.Damaged(f"its columns are {', '.join(row)}")
    schema.READERS[table](row)
    if table is schema.runs and row["key"] != content_key(json.loads(row["content"])):
        raise schema.Damaged(f"the key of run {row['key'][:12]} is not that of its content")
