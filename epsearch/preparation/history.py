"""The stored description of a study: options, stream, proof that they are disjoint, earlier versions."""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from epsearch.failures.errors import UsageError, as_usage_error
from epsearch.ledger.damage import Unreadable, as_unreadable
from epsearch.plugins.loading import all_parts
from epsearch.preparation.build import restore
from epsearch.preparation.extension import fixed_options
from epsearch.study.description import Disjointness, Study
from epsearch.study.kinds import REQUESTS, Search
from results.ledger.errors import StoreUnavailable, conflict
from results.ledger.store import Store, StoreError, StudyRow
from results.ledger.url import LedgerUrl
from trainers.plugins.calls import list_names
from trainers.plugins.source import changed_files

PACK = "from_pack"
COMPARED = ("kind", "study", "stream", "numeric_path")


class StudyHistory(NamedTuple):
    """A study read from a ledger, with its earlier versions."""

    study: Study
    earlier: tuple[Search, ...]
    """Its earlier versions, oldest first."""
    disjointness: Disjointness
    """Stored proof that search and evaluation share no tasks."""
    images: Mapping[str, Any]
    """The stream's description."""


def find(store: Store, name: str) -> StudyRow | None:
    """Returns a study's row; None if there is none. Raises UsageError where it is damaged."""
    row = store.study(name)
    if row is not None and row.damage:
        raise UsageError(f"{Unreadable(name, f'damaged: {row.damage}')}; choose another --name")
    return row


def read(row: StudyRow, storage: LedgerUrl, out: Path) -> StudyHistory:
    """Returns the study of a row, with the current ledger and out folder.

    Raises Unreadable for a damaged row, or one that this version does not understand.
    """

    def study(identity: Mapping[str, Any]) -> Study:
        return restore({**row.config, "study": identity}, row.name, out, storage)

    with as_unreadable(row):
        return StudyHistory(
            study(row.config["study"]),
            tuple(
                cast(Search, study(identity)) for identity in row.config.get("earlier", ())
            ),  # only searches have any
            _disjointness(row.config["seal"]),
            row.config["stream"],
        )


def _disjointness(stored: Mapping[str, Any]) -> Disjointness:
    """Returns the proof of a row. Raises TypeError for unknown fields or types."""
    proof = Disjointness(**stored)
    if not (isinstance(proof.sound, bool) and isinstance(proof.sentence, str) and isinstance(proof.warning, str)):
        raise TypeError(f"no proof of disjointness: {dict(stored)!r:.80}")
    return proof


@as_usage_error(StoreError, but=StoreUnavailable)
def save(
    store: Store, study: Study, images: Mapping[str, Any], disjointness: Disjointness, extend: bool, write: bool = True
) -> tuple[Search, ...]:
    """Stores a new study, or finds or extends the stored one; returns its earlier versions, oldest first.

    images: the stream's description; extend: extends the stored study; write: False for a check without writing.
    Raises UsageError where another study has the name, code of a plug-in has changed, or the ledger cannot be written
    to; StoreUnavailable where another try may help.
    """
    described = _identity_as_json(study, images, disjointness)
    row = find(store, study.name)
    requests = _requests(study, {} if row is None else row.config)  # no part of the identity: may change with every run
    if row is None:
        if write:
            store.save_study(study.name, described | requests)
        return ()
    if (pack := row.config.get(PACK)) is not None and _questions(requests.get(PACK)) != _questions(pack):
        raise UsageError(f"study {study.name!r} is held against pack {pack['name']!r} as it was; choose another --name")
    stored = read(row, study.storage, study.out)
    before = _identity_as_json(stored.study, stored.images, stored.disjointness)
    old, new = ({name: description.get(name) for name in COMPARED} for description in (before, described))
    if old == new:
        config = {**row.config, **requests}
        if write and config != row.config:
            # Fails where another process has changed the row since it was read.
            store.change_study(row, config)
        return stored.earlier
    if row.config.get("kind") != described.get("kind"):
        raise UsageError(f"{study.name!r} is a study of `epsearch {stored.study.kind}`; choose another --name")
    # Before the general conflict, as its message names the changed files.
    _check_source(store, study.name, old["stream"] or {}, new["stream"] or {})
    extendable = _extendable(stored.study, old, new)
    if not (extend and extendable):
        raise UsageError(f"{conflict(study.name, old, new)}{', or extend it with --extend' if extendable else ''}")
    described |= {"earlier": [*row.config.get("earlier", ()), row.config["study"]], **requests}
    if write:
        store.change_study(row, described)
    return read(StudyRow(row.name, described, row.created), study.storage, study.out).earlier


def _requests(study: Study, before: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the stored options of the newest run, without defaults, unless an earlier run had another value."""
    options = {name: option for name, option in study.options().items() if name in REQUESTS}
    values = {name: option.show(study.value(name)) for name, option in options.items()}
    return {name: value for name, value in values.items() if value or options[name].default or name in before}


def _questions(pack: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns what a pack asks, as JSON: all but the anomalies, which are remarks that later runs of it may add to."""
    return {name: value for name, value in (pack or {}).items() if name != "anomalies"}


def _identity_as_json(study: Study, images: Mapping[str, Any], disjointness: Disjointness) -> dict[str, Any]:
    """Returns the identity of a study as JSON: lists in place of tuples."""
    described = {
        "study": study.identity(),
        "stream": dict(images),
        "numeric_path": study.numeric_path,
        # Without an empty warning, which old rows lack.
        "seal": {name: value for name, value in disjointness._asdict().items() if name != "warning" or value},
    } | ({"kind": study.kind} if study.names_its_kind else {})
    return dict(json.loads(json.dumps(described)))


def _check_source(store: Store, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raises UsageError where code of a plug-in has changed, which would make the study another one."""
    files = changed_files(_parts(old), _parts(new))
    if files and _parts(new):
        free = next(f"{name}-{number}" for number in itertools.count(2) if store.study(f"{name}-{number}") is None)
        raise UsageError(
            f"study {name!r} was made with another {list_names(files)}; it can be shown and reported, but not gone on "
            f"with: put the source back, or choose another --name, such as --name {free}"
        )


def _parts(images: Mapping[str, Any]) -> dict[str, str]:
    """Returns the parts of all plug-ins, by name, from the description of a stream."""
    return {name: part for parts in all_parts("", images).values() for name, part in parts.items()}


def _extendable(study: Study, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Returns whether a study may be extended to another: same data and arithmetic, so that runs can be reused."""
    if any(old[name] != new[name] for name in COMPARED if name != "study"):
        return False
    return not fixed_options(old["study"], new["study"], study.extendable_options)
