"""Finds stored studies to resume, so that their options need not be typed again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from epsearch.failures.errors import UsageError
from epsearch.findings.listing import load, open_ledger
from epsearch.preparation.build import with_options
from epsearch.study.description import Study
from results.ledger.url import LedgerUrl
from results.ledger.writers.states import FAILED


def stored_study(name: str | None, storage: LedgerUrl, out: Path, options: Mapping[str, Any]) -> Study:
    """Returns a stored study, to be trained with some new options; name: None for the newest study.

    options: run options that replace the stored ones (such as workers); None keeps the stored value.
    """
    return with_options(load(name, storage, out).study, options)


def failed_studies(storage: LedgerUrl) -> list[str]:
    """Returns the names of failed studies, the oldest first. Raises UsageError if there are none."""
    with open_ledger(storage) as store:
        states = store.leases.states()
        names = [row.name for row in store.studies() if row.name in states and states[row.name].state == FAILED]
    if not names:
        raise UsageError(f"no study in {storage} has failed")
    return names
