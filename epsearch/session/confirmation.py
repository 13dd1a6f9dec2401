"""Confirmation at the end of a training: reads the ledger back, and stores missing results again."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from sqlalchemy import Table

from epsearch.events import Listener, Warned
from epsearch.failures.errors import Interrupted
from epsearch.failures.stopping import CONFIRMED
from epsearch.loop.base import Loop
from results.archive import PARTS, write
from results.labels import count_text, on_one_line
from results.ledger import schema
from results.ledger.record import ALONE
from results.ledger.retry import RetryPolicy
from results.ledger.store import Store, StoreError, StudyRow

SAVED = "unsaved-results.zip"


@contextmanager
def confirm_results(loop: Loop, store: Store, config: Mapping[str, Any], listener: Listener) -> Iterator[None]:
    """Confirms results after a training; after a failure, saves unconfirmed ones in a file."""
    CONFIRMED.clear()  # of an earlier study of this process
    try:
        yield
        confirm(loop, store, config, listener)
    except BaseException:
        save(loop, store, config, listener)
        raise


def confirm(loop: Loop, store: Store, config: Mapping[str, Any], listener: Listener) -> None:
    """Reads the results of a study back from the ledger, and stores missing ones again.

    config: the stored description of the study. Raises StoreError where the database fails.
    """
    store.reopen()  # or a file that was overwritten in place would seem unchanged
    name, lacking = loop.study.name, store.lacking(loop.records)
    certificates = store.lacking(loop.certificates, schema.certificates)
    if lacking or certificates or store.study(name) is None:
        store.save_study(name, config)
        store.add([loop.records[key] for key in lacking], None)  # the summary follows
        store.certify(loop.certificates[key] for key in certificates)
        sum_up(loop, store.study(name))
        count = len(lacking) + len(certificates)
        what = f"{count_text(count, 'result')} of study {name!r}" if count else f"the description of study {name!r}"
        listener(Warned(f"the ledger lacked {what} at the end, stored again now"))
    CONFIRMED.set()


def save(loop: Loop, store: Store, config: Mapping[str, Any], listener: Listener) -> None:
    """Confirms without waiting, after a failure; writes unconfirmed results to a file for `epsearch import`.

    For the arguments see `confirm`.
    """
    store.retries = RetryPolicy()  # the run has waited already
    with suppress(StoreError, Interrupted):
        confirm(loop, store, config, listener)
        return
    if len(loop.records) <= loop.reused and not loop.new_certificates:
        return
    for folder in (loop.study.out / loop.study.name, Path(gettempdir())):
        file = folder / SAVED
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            write(file, _rows(loop, config), version("epsearch"))
            count = count_text(len(loop.records), "result")
            where = on_one_line(file)
            listener(Warned(f"{count} could not be stored and are in {where}; `epsearch import` takes them over"))
            return


def sum_up(loop: Loop, row: StudyRow | None) -> None:
    """Writes the summary of a stored study, which its loop updates from now on."""
    loop.row = row.checksum if row is not None else ""
    loop.stored_at = row.created if row is not None else ""
    loop.sum_up()


def _rows(loop: Loop, config: Mapping[str, Any]) -> dict[Table, Iterable[list[Mapping[str, Any]]]]:
    """Returns all rows of a study, with checksums, by table of an archive."""
    rows: dict[Table, list[Mapping[str, Any]]] = {table: [] for table in PARTS}
    created = min(record.created for record in loop.records.values())
    rows[schema.studies] = [schema.study_to_row(loop.study.name, config, created)]
    rows[schema.runs] = [schema.to_row(loop.records[key]) for key in sorted(loop.records)]
    certificates = [loop.certificates[key] for key in sorted(loop.certificates)]
    rows[schema.CERTIFICATES[ALONE]] = [schema.certificate_to_row(certificate) for certificate in certificates]
    return {table: [group] for table, group in rows.items()}
