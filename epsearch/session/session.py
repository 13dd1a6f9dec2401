"""One session of training: ledger, runner and progress line around a loop, whatever its kind."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from epsearch.consoles import facts as as_facts
from epsearch.failures.errors import UsageError
from epsearch.ledger.damage import reading, unused_in_words
from epsearch.ledger.location import kept_within
from epsearch.loop.base import Loop
from epsearch.loop.search import StudyLoop
from epsearch.loop.table import TableLoop
from epsearch.machine import describe_machine
from epsearch.preparation import growth
from epsearch.preparation.arithmetic import numeric_path
from epsearch.preparation.data import Prepared, prepare
from epsearch.preparation.fit import fitted
from epsearch.runners.progress import Monitor, clock
from epsearch.session.plan import Plan, make_plan
from epsearch.session.plan_text import in_words
from epsearch.study.kinds import Comparison, MemoryStudy, Setup, Study
from results.ledger.errors import StoreUnavailable
from results.ledger.files import on_one_line, writable
from results.ledger.retry import Patience
from results.ledger.store import Store, StoreError, StudyRow
from results.ledger.url import LedgerUrl
from trainers.plugins.calls import ForeignError

AnySetup = TypeVar("AnySetup", bound=Setup)

PATIENCE = 300.0  # seconds for which a run waits for a PostgreSQL that has gone


@dataclass(frozen=True)
class Effort:
    """What a session did: members trained and reused, member-steps taken and saved, wall seconds.

    saved: member-steps that were not taken, as members that begin alike share the first task.
    """

    trained: int
    reused: int
    member_steps: int
    saved: int
    seconds: float


@contextmanager
def _own_code() -> Iterator[None]:
    """What a user's own code raises, here or in a worker, is the user's to mend. Raises UsageError."""
    try:
        yield
    except ForeignError as error:
        raise UsageError(str(error)) from error


@_own_code()
def train(study: Setup, console: Console, quiet: bool = False, extend: bool = False) -> tuple[Loop, Effort]:
    """Trains from where the ledger stands to the end. extend: a study of that name may grow into this one.

    Raises UsageError (bad input; nothing has been trained); Interrupted and TrainingFailed (what was trained is kept).
    """
    prepared = prepare(study, console, quiet)
    make_folder(study.out)
    with kept_within(), open_store(study.storage) as store, ExitStack() as stack:
        store.patience = patience(console)
        if store.told:
            console.print(store.told, style="yellow", highlight=False, soft_wrap=True)
        study = _placed(study, prepared, store, console, quiet)
        described = (study, prepared.images, prepared.proof, extend)
        earlier = growth.keep(store, *described, write=False)
        loop = make_loop(study, prepared.images, store, earlier)
        growth.keep(store, *described)  # only now, as a study that cannot begin must not stand in the ledger
        sum_up(loop, store.study(study.name))
        stack.callback(_tell_damage, loop, console, told=_tell_damage(loop, console))
        loop.proof = prepared.proof
        if isinstance(loop, StudyLoop) and not (loop.done or quiet):
            # A loop of its own: the jobs that the plan looks at are not those that are trained.
            ahead = make_plan(StudyLoop(loop.study, prepared.images, store, earlier=earlier))
            console.print(as_facts(in_words(ahead)), soft_wrap=True)
        with Monitor(loop, console, quiet) as monitor:
            if not loop.done:
                stack.enter_context(_runner(study))(loop, monitor)
        return loop, Effort(loop.trained, loop.reused, monitor.member_steps, loop.saved, monitor.seconds)


def patience(console: Console) -> Patience:
    """What a run has with a database that has gone, said on the console."""
    return Patience(PATIENCE, partial(console.print, highlight=False, soft_wrap=True))


@_own_code()
def plan(study: Study, console: Console, quiet: bool = False, extend: bool = False) -> Plan:
    """What `train` would do. Nothing is trained but for a probe of a few seconds, and nothing stored."""
    prepared = prepare(study, console, quiet)
    with kept_within(), read_store(study.storage) as store:
        study = _placed(study, prepared, store, console, quiet=True)
        earlier = growth.keep(store, study, prepared.images, prepared.proof, extend, write=False)
        return make_plan(StudyLoop(study, prepared.images, store, earlier=earlier))


def _placed(study: AnySetup, prepared: Prepared, store: Store, console: Console, quiet: bool) -> AnySetup:
    """With the arithmetic and the number of workers that fit this machine; a study that was begun keeps its own."""
    row = growth.find(store, study.name)
    path = numeric_path(study, prepared.stream, row.config.get("numeric_path") if row else None)
    return fitted(replace(study, numeric_path=path), prepared.stream, console, quiet)


def _tell_damage(loop: Loop, console: Console, told: frozenset[str] = frozenset()) -> frozenset[str]:
    """Says which records were not used that have not been told of, however quiet the run; returns all told of now."""
    found = {key: why for key, why in loop.damaged.items() if key not in told}
    if found:
        line = f"{unused_in_words(found)}; what was lost is trained again and replaces it"
        console.print(line, style="yellow", highlight=False, soft_wrap=True)
    return told | found.keys()


def make_loop(study: Setup, images: Mapping[str, Any], store: Store, earlier: Sequence[Study] = ()) -> Loop:
    """The loop of the study's kind."""
    if isinstance(study, Study):
        return StudyLoop(study, images, store, earlier=earlier)
    assert isinstance(study, (Comparison, MemoryStudy))
    return TableLoop(study, images, store)


def stored_loop(row: StudyRow, store: Store, storage: LedgerUrl, out: Path) -> Loop:
    """A stored study as far as the ledger knows it. Nothing is trained. Raises Unreadable."""
    known = growth.read(row, storage, out)
    with reading(row):
        loop = make_loop(known.study, known.images, store, known.earlier)
        loop.proof = known.proof
        return loop


def sum_up(loop: Loop, row: StudyRow | None) -> None:
    """Writes the summary of a study that stands in the ledger; from now on its loop keeps that up to date."""
    loop.row = row.checksum if row is not None else ""
    loop.sum_up()


def open_store(storage: LedgerUrl) -> Store:
    """The ledger, to write to. Raises UsageError; StoreUnavailable where another try may find it as it should be."""
    return _opened(Store.open, storage)


def upgrade_store(storage: LedgerUrl) -> Store:
    """The same, brought up to date on whatever database. Raises as `open_store`."""
    return _opened(Store.upgrade, storage)


def read_store(storage: LedgerUrl) -> Store:
    """The ledger, to read from: it need not be writable, nor be there. Raises as `open_store`."""
    return _opened(Store.read, storage)


def _opened(open_it: Callable[[LedgerUrl], Store], storage: LedgerUrl) -> Store:
    try:
        return open_it(storage)
    except StoreUnavailable:
        raise
    except StoreError as error:
        raise UsageError(str(error)) from error


def make_folder(folder: Path, instead: str = "give another --out") -> None:
    """Raises UsageError where nothing can be written there."""
    wrong = f"cannot write to the out folder {on_one_line(folder)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{wrong}: {error.strerror}; {instead}") from error
    if not writable(folder):
        raise UsageError(f"{wrong}: no permission; {instead}")


def facts(loop: Loop, effort: Effort | None) -> dict[str, str]:
    """What a report says about the work: members, steps, times, machine, versions."""
    records = loop.records.values()
    found = {
        "members": f"{len(records)} in the ledger for this study",
        "SGD steps of all members": f"{sum(record.steps for record in records):,}",
        "training time of all members": clock(sum(record.seconds for record in records)),
    }
    if effort is not None:
        found["last run"] = (
            f"{effort.trained} members trained, {effort.reused} taken from the ledger, in {clock(effort.seconds)}"
        )
        found["SGD steps of the last run"] = (
            f"{effort.member_steps:,} taken, {effort.saved:,} saved: members of a seed share the first task"
        )
    return found | describe_machine() | {"epsearch": version("epsearch")}


def unfinished(loop: Loop) -> list[str]:
    """A note where the study is not finished."""
    if loop.done:
        return []
    notes = [f"The study is not finished; {loop.state()}."]
    if unused := loop.unused():
        notes.append(f"{unused_in_words(unused)}; `epsearch {loop.study.kind}` trains again.")
    return notes


def _runner(study: Setup) -> AbstractContextManager[Callable[[Loop, Monitor], None]]:
    if study.runner == "local":
        from epsearch.runners import local

        return local.ready(study)
    from epsearch.runners import tune

    return tune.ready(study)
