"""Export of a study or a whole ledger into a file, and import into another ledger."""

import json
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Table

from epsearch.failures.errors import UsageError, as_usage_error
from epsearch.findings.listing import load, open_ledger
from epsearch.ledger.damage import Unreadable
from epsearch.ledger.location import check_no_file_of
from epsearch.preparation import history
from epsearch.session.confirmation import sum_up
from epsearch.session.session import make_folder, open_store, stored_loop
from epsearch.study.kinds import REQUESTS
from epsearch.study.parsers import study_name
from results.archive import PARTS, Archive, ArchiveError, write
from results.labels import on_one_line
from results.ledger import schema
from results.ledger.database import in_groups
from results.ledger.errors import StoreUnavailable
from results.ledger.record import perturbed_key
from results.ledger.store import Rows, Store, StoreError
from results.ledger.url import LedgerUrl

Names = Mapping[Table, Sequence[str]]


class Transfer(NamedTuple):
    """Result of an export or an import."""

    file: Path
    """The exported or imported file."""
    studies: tuple[str, ...]
    """Names of its studies, as in the ledger."""
    new: tuple[str, ...]
    """Studies that the ledger did not have; for an export, all."""
    runs: int
    """Runs, without those that the ledger had."""
    certificates: int
    """Likewise, of both kinds."""
    damaged: int = 0
    """Rows left out because they cannot be read."""


def export_study(name: str, file: Path, storage: LedgerUrl, out: Path) -> Transfer:
    """Writes a study, its runs and certificates into a file. Raises UsageError."""
    keys = sorted(load(name, storage, out).records)
    with open_ledger(storage) as store:
        tables = {schema.studies: [name], schema.summaries: [name]}
        tables |= {table: keys for table in PARTS if table not in tables}
        return _export(file, store, tables | {schema.certificates: sorted([*keys, *map(perturbed_key, keys)])})


def export_ledger(file: Path, storage: LedgerUrl) -> Transfer:
    """Writes all studies and runs of a ledger into a file. Raises UsageError."""
    with open_ledger(storage) as store:
        return _export(file, store, {table: store.names(table) for table in PARTS})


def check_target(file: Path) -> None:
    """Raises UsageError where a file cannot be written, or would replace anything but a zip.

    Exports and networks of torch are zips; a mistyped name must not replace a ledger.
    """
    if file.exists() and not zipfile.is_zipfile(file):
        raise UsageError(f"{on_one_line(file)} exists and is no such file; give another name")
    make_folder(file.parent, "give another file")


def _export(file: Path, store: Store, names: Names) -> Transfer:
    check_target(file)

    def rows(table: Table) -> Iterable[list[Mapping[str, Any]]]:
        for group in in_groups(names[table]):
            yield [*store.undamaged_rows(table, group)]

    try:
        parts = write(file, {table: rows(table) for table in PARTS}, version("epsearch"))
    except OSError as error:
        raise UsageError(f"cannot write {on_one_line(file)}: {error.strerror or error}") from error
    studies = tuple(row["name"] for group in rows(schema.studies) for row in group)
    # Of one study, runs without a certificate have none that is missing.
    lost = sum(len(names[table]) - parts[table]["rows"] for table in (schema.studies, schema.runs))
    certificates = sum(parts[table]["rows"] for table in schema.CERTIFICATES.values())
    return Transfer(file, studies, studies, parts[schema.runs]["rows"], certificates, lost)


@as_usage_error(ArchiveError)
def import_file(file: Path, storage: LedgerUrl, out: Path, name: str | None = None) -> Transfer:
    """Takes a file over into a ledger, which is made if need be: all of it or nothing.

    name: another one for the study in it, of which there must be one. Runs that the ledger has are recognised. Raises
    UsageError for a file that is damaged or newer, a study of a name that is taken, or is being trained.
    """
    with Archive(file) as archive:
        studies = [schema.to_study(row) for group in archive.rows(schema.studies) for row in group]
        if name is not None and len(studies) != 1:
            raise UsageError(f"--name is for a file of one study, {on_one_line(file)} has {len(studies)}")
        names = [row.name if name is None else name for row in studies]
        for row, new_name in zip(studies, names, strict=True):
            study_name(new_name, f"{on_one_line(file)}: a study's name")  # becomes that of a folder
            check_no_file_of(storage, out, new_name)
            history.read(row, storage, out)
        if storage.file is not None:
            make_folder(out)
        with _refusing(), open_store(storage) as store:
            new, runs, certificates = store.import_rows(_rename(archive, name), REQUESTS)
            _sum_up(store, {*names} - ({*new} & store.summaries().keys()), storage, out)
    return Transfer(file, tuple(names), new, runs, certificates)


def _refusing() -> Any:
    """Turns errors of the ledger into UsageError; a database that is gone is no bad input."""
    return as_usage_error(StoreError, but=StoreUnavailable)


def _rename(archive: Archive, name: str | None) -> Rows:
    """Returns the rows of a file, with its study under another name unless `name` is None."""

    def rows(table: Table) -> Iterable[list[dict[str, Any]]]:
        if name is None or table not in (schema.studies, schema.summaries):
            return archive.rows(table)
        # A summary is of a study's row, which becomes another one: it is made anew.
        return (
            [schema.study_to_row(name, json.loads(row["config"]), row["created"]) for row in group]
            for group in archive.rows(table)
            if table is schema.studies
        )

    return rows


def _sum_up(store: Store, names: Collection[str], storage: LedgerUrl, out: Path) -> None:
    """Computes the summaries of studies that were stored before, or have another name."""
    for row in store.studies():
        if row.name in names:
            with suppress(Unreadable):
                sum_up(stored_loop(row, store, storage, out), row)
