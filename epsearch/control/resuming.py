"""Stored studies are trained on as they are, without their options being typed again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from epsearch.failures.errors import UsageError
from epsearch.findings.listing import load, opened
from epsearch.preparation.build import elsewhere
from epsearch.study.description import Study
from results.ledger.url import LedgerUrl
from results.ledger.writers.states import FAILED


def stored(name: str | None, storage: LedgerUrl, out: Path, given: Mapping[str, Any]) -> Study:
    """A stored study, the newest without a name, as it is to be trained on.

    given: options that say where and how it runs, as the command line has them; None where they are not given.
    """
    return elsewhere(load(name, storage, out).study, given)


def failed(storage: LedgerUrl) -> list[str]:
    """Names of the studies that have failed, the oldest first. Raises UsageError where there is none."""
    with opened(storage) as store:
        there = store.leases.standings()
        names = [row.name for row in store.studies() if row.name in there and there[row.name].state == FAILED]
    if not names:
        raise UsageError(f"no study in {storage} has failed")
    return names
