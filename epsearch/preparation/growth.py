"""What a ledger keeps of a study: options, stream, the proof that its streams are disjoint, and what it grew from."""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from epsearch.failures.errors import UsageError, refused
from epsearch.ledger.damage import Unreadable, reading
from epsearch.plugins.loading import all_parts
from epsearch.preparation.build import restore
from epsearch.study.description import Disjointness, Study
from epsearch.study.kinds import GROWS, REQUESTS, Search
from results.ledger.errors import StoreUnavailable, conflict
from results.ledger.store import Store, StoreError, StudyRow
from results.ledger.url import LedgerUrl
from trainers.plugins.calls import listed
from trainers.plugins.source import changed

SIZES = ("repeats", "points")
COMPARED = ("kind", "study", "stream", "numeric_path")


class Stored(NamedTuple):
    """A study as a ledger knows it."""

    study: Study
    earlier: tuple[Search, ...]
    """What it was before, oldest first."""
    proof: Disjointness
    """Whether search and evaluation are apart, as the ledger keeps it."""
    images: Mapping[str, Any]
    """The stream's description of itself."""


def find(store: Store, name: str) -> StudyRow | None:
    """The study's row, None where there is none. Raises UsageError where it is damaged: nothing may go on from it."""
    row = store.study(name)
    if row is not None and row.damage:
        raise UsageError(f"{Unreadable(name, f'damaged: {row.damage}')}; choose another --name")
    return row


def read(row: StudyRow, storage: LedgerUrl, out: Path) -> Stored:
    """Returns the study of a row, with today's places.

    Raises Unreadable where the row is damaged, or says what this version does not know.
    """

    def one(identity: Mapping[str, Any]) -> Study:
        return restore({**row.config, "study": identity}, row.name, out, storage)

    with reading(row):
        return Stored(
            one(row.config["study"]),
            tuple(cast(Search, one(identity)) for identity in row.config.get("earlier", ())),  # no others grow
            _proof(row.config["seal"]),
            row.config["stream"],
        )


def _proof(stored: Mapping[str, Any]) -> Disjointness:
    """Returns the proof as a row has it. Raises TypeError for fields that there are not, or of other types."""
    proof = Disjointness(**stored)
    if not (isinstance(proof.sound, bool) and isinstance(proof.sentence, str) and isinstance(proof.warning, str)):
        raise TypeError(f"no proof of disjointness: {dict(stored)!r:.80}")
    return proof


@refused(StoreError, but=StoreUnavailable)
def keep(
    store: Store, study: Study, images: Mapping[str, Any], proof: Disjointness, extend: bool, write: bool = True
) -> tuple[Search, ...]:
    """Writes the study down, or finds it there, or lets it grow; returns what it was before, oldest first.

    images: the stream's description of itself; extend: whether it may grow; write: False only looks whether all of that
    can be done. Raises UsageError where another study has the name, a user's own code has changed, or the ledger cannot
    be written to; StoreUnavailable where another try may help.
    """
    described = _described(study, images, proof)
    # Apart from what identifies the study: it may change with every run.
    row = find(store, study.name)
    asked = _asked(study, {} if row is None else row.config)
    if row is None:
        if write:
            store.save_study(study.name, described | asked)
        return ()
    there = read(row, study.storage, study.out)
    stored = _described(there.study, there.images, there.proof)
    old, new = ({name: one.get(name) for name in COMPARED} for one in (stored, described))
    if old == new:
        kept = {**row.config, **asked}
        if write and kept != row.config:
            # With the row as it was read: where another process has changed it meanwhile, this fails.
            store.change_study(row, kept)
        return there.earlier
    if row.config.get("kind") != described.get("kind"):
        raise UsageError(f"{study.name!r} is a study of `epsearch {there.study.kind}`; choose another --name")
    # Before the conflict in general, as it knows which files have changed and what helps.
    _check_source(store, study.name, old["stream"] or {}, new["stream"] or {})
    grows = _grows(old, new)
    if not (extend and grows):
        raise UsageError(f"{conflict(study.name, old, new)}{', or let it grow with --extend' if grows else ''}")
    described |= {"earlier": [*row.config.get("earlier", ()), row.config["study"]], **asked}
    if write:
        store.change_study(row, described)
    return read(StudyRow(row.name, described, row.created), study.storage, study.out).earlier


def _asked(study: Study, before: Mapping[str, Any]) -> dict[str, Any]:
    """What a ledger keeps of the newest run; nothing, where that is the default, only where it was not so before."""
    known = {name: one for name, one in study.options().items() if name in REQUESTS}
    shown = {name: one.show(study.value(name)) for name, one in known.items()}
    return {name: value for name, value in shown.items() if value or known[name].default or name in before}


def _described(study: Study, images: Mapping[str, Any], proof: Disjointness) -> dict[str, Any]:
    """What identifies the study, as the ledger has it: tuples are lists there."""
    described = {
        "study": study.identity(),
        "stream": dict(images),
        "numeric_path": study.numeric_path,
        # As before there were warnings, where there is none.
        "seal": {name: value for name, value in proof._asdict().items() if name != "warning" or value},
    } | ({"kind": study.kind} if study.names_its_kind else {})
    return dict(json.loads(json.dumps(described)))


def check_growth(old: Search, new: Search) -> None:
    """Raises UsageError where a study would not grow but become another one.

    Seeds may only be added behind those there were: a race gives its first seeds to all points.
    """
    there, here = old.identity(), new.identity()
    if fixed := _fixed(there, here):
        was, now = there.get(fixed[0]), here.get(fixed[0])
        raise UsageError(f"extend can change {', '.join(GROWS)}; {fixed[0]} is {was} there, {now} here")
    if old.space.names != new.space.names:
        raise UsageError(
            f"extend goes on searching {', '.join(old.space.names)}, got {', '.join(new.space.names)}; "
            "choose another --name"
        )
    for name, before, now in (("seeds", old.seeds, new.seeds), ("eval-seeds", old.final_seeds, new.final_seeds)):
        if now[: len(before)] != before:  # a race begins with the first ones
            raise UsageError(f"{name} can only grow at their end; got {list(now)}, which were {list(before)}")
    # Another strategy or interval is another search behind the first, of whatever size. The same one with fewer rounds
    # or points would leave runs behind that nothing is done with, and a report that its options do not describe.
    for name in SIZES if _same_search(there, here) else ():
        if here[name] < there[name]:
            raise UsageError(f"{name} can only grow; got {here[name]}, which were {there[name]}")


def _same_search(there: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    """Whether two identities search alike, but for how much and with which seeds."""
    return all(there.get(name) == here.get(name) for name in ("strategy", "strategy_seed", "search", "interval"))


def _check_source(store: Store, name: str, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """A user's own code that has changed would make the study another one. Raises UsageError."""
    files = changed(_parts(there), _parts(here))
    if files and _parts(here):
        free = next(f"{name}-{number}" for number in itertools.count(2) if store.study(f"{name}-{number}") is None)
        raise UsageError(
            f"study {name!r} was made with another {listed(files)}; it can be shown and reported, but not gone on "
            f"with: put the source back, or choose another --name, such as --name {free}"
        )


def _parts(images: Mapping[str, Any]) -> dict[str, str]:
    """All that code of others is made of, by name, in the description of a stream."""
    return {name: part for parts in all_parts("", images).values() for name, part in parts.items()}


def _grows(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether only that differs which may: on other data or with other arithmetic no run could be reused."""
    return all(old[name] == new[name] for name in COMPARED if name != "study") and not _fixed(
        old["study"], new["study"]
    )


def _fixed(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Options of two identities that differ and may not, in their order."""
    may = (*GROWS, "race_rule")  # which comes and goes with the race
    return [name for name in dict.fromkeys((*there, *here)) if name not in may and there.get(name) != here.get(name)]
