"""Packs, and the answers of all studies in a ledger that hold a row against print."""

from pathlib import Path

from epsearch.failures.errors import UsageError
from epsearch.findings.listing import open_ledger
from epsearch.findings.reports import REPORTS
from epsearch.ledger.damage import Unreadable
from epsearch.session.session import stored_loop
from results.ledger.url import LedgerUrl
from results.verdict.reproduction import Answer
from search_spaces.published.pack import Pack, load_pack, packs


def all_packs() -> list[Pack]:
    """Returns all packs, a source after the other."""
    return sorted(map(load_pack, packs()), key=lambda pack: (pack.source, pack.dataset, pack.name))


def reproductions(storage: LedgerUrl, out: Path) -> list[Answer]:
    """Returns the answers in a ledger, of a pack and its settings the one with most seeds; by source, stream, pack.

    Raises UsageError without a ledger, or without such a study.
    """
    best: dict[tuple[str, ...], Answer] = {}
    with open_ledger(storage) as store:
        for row in store.studies():
            if row.damage or row.config.get("from_pack") is None:
                continue
            try:
                loop = stored_loop(row, store, storage, out)
            except Unreadable:  # `epsearch list` says why
                continue
            kind = REPORTS[loop.study.kind]
            answer = kind.against_print(loop)
            if answer is not None and answer["n"]:
                # Print and margin, too: files of one name may have others.
                held = f"{answer['printed']:g} ± {answer['margin']:g}"
                key = (answer["source"], answer["dataset"], answer["name"], held, *answer["changed"])
                best[key] = max(best.get(key, answer), answer, key=lambda answer: int(answer["n"]))
    if not best:
        raise UsageError(f"no row has been reproduced in {storage} yet; `epsearch reproduce` lists the packs")
    return [best[key] for key in sorted(best)]
