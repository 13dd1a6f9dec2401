"""One session of training: ledger, runner and progress line around a loop, whatever its kind."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from epsearch.checking.check_cache import refuse_inert
from epsearch.events import Listener, Planned, Warned, ignore, stops, warner
from epsearch.failures.errors import Interrupted, UsageError
from epsearch.ledger.damage import reading, unused_in_words
from epsearch.ledger.evaluation_log import user_log
from epsearch.ledger.location import kept_within
from epsearch.loop.ahead import Eta, Plan
from epsearch.loop.base import Loop
from epsearch.loop.search import open_search
from epsearch.loop.table import open_table
from epsearch.preparation import growth
from epsearch.preparation.arithmetic import numeric_path
from epsearch.preparation.checkpoints import check_checkpoints
from epsearch.preparation.data import Prepared, prepare
from epsearch.preparation.memory import limit_workers
from epsearch.runners import overheads
from epsearch.runners.progress import Monitor
from epsearch.runners.registry import runner_of
from epsearch.session.confirmation import confirming, sum_up
from epsearch.session.holding import Held, holding
from epsearch.study.description import Study
from epsearch.study.kinds import Comparison, MemoryStudy, Search
from results.files import writable
from results.labels import duration_text, on_one_line
from results.ledger.errors import StoreUnavailable
from results.ledger.retry import Patience
from results.ledger.store import Store, StoreError, StudyRow
from results.ledger.url import LedgerUrl
from results.ledger.writers.access import NO_PATIENCE
from trainers.notes import redirect_notes
from trainers.plugins.calls import ForeignError

AnyStudy = TypeVar("AnyStudy", bound=Study)

PATIENCE = 300.0  # seconds for which a run waits for a PostgreSQL that has gone


# Of a study, its stream's description, a ledger, and what the study was before it grew.
LOOPS: dict[str, Callable[[Any, Mapping[str, Any], Store, Sequence[Search]], Loop]] = {
    Search.kind: open_search,
    Comparison.kind: open_table,
    MemoryStudy.kind: open_table,
}


@dataclass(frozen=True)
class Effort:
    """What a session did."""

    trained: int
    """Members that were trained."""
    reused: int
    """Members that were in the ledger."""
    member_steps: int
    """SGD steps that were taken, of all members."""
    saved: int
    """Member-steps that were not taken, as members that begin alike share the first task."""
    seconds: float
    """Wall time."""
    share: float = 1.0
    """Of the processor time that the plan's probe wanted, what it had."""


@contextmanager
def passing_warnings(listener: Listener) -> Iterator[None]:
    """Passes warnings of this thread to the listener; errors of plug-in code become UsageError."""
    try:
        with redirect_notes(warner(listener)):
            yield
    except ForeignError as error:
        raise UsageError(str(error)) from error


def train(
    study: Study, listener: Listener = ignore, extend: bool = False, wait: bool = False, resume: bool = False
) -> tuple[Loop, Effort]:
    """Trains from where the ledger stands to the end; returns the loop at its end, and what the session did.

    study: whatever kind; listener: hears everything on the way; extend: a study of that name may grow into this one;
    wait: for the end of another run that is training this study, which is an error otherwise; resume: also a study that
    was cancelled.

    Raises UsageError (bad input, or another run has the study, or it was cancelled: nothing has been trained);
    Interrupted (TimeSpent where that was the study's time budget) and
    TrainingFailed (what was trained is kept); Unavailable where Ray cannot be had, and StoreError where the database
    fails, or another run has taken the study over: what was stored before is kept, too.
    """
    with passing_warnings(listener):
        prepared = prepare(study, listener)
        make_folder(study.out)
        check_checkpoints(study)
        with (
            kept_within(),
            open_store(study.storage, patience=patience(listener)) as store,
            holding(store, study.name, listener, wait, resume) as held,
        ):
            return _train(study, prepared, store, held, extend)


def _train(study: Study, prepared: Prepared, store: Store, held: Held, extend: bool) -> tuple[Loop, Effort]:
    """What `train` does once the data are there and checked, and the study is ours."""
    listener = held.listener
    with ExitStack() as stack:
        study = _placed(study, prepared, store, listener)
        described = (study, prepared.images, prepared.proof, extend)
        earlier = growth.keep(store, *described, write=False)
        loop = make_loop(study, prepared.images, store, earlier)
        if not loop.done:
            refuse_inert(study, prepared.images)
        before = store.study(study.name)
        growth.keep(store, *described)  # only now, as a study that cannot begin must not stand in the ledger
        row = store.study(study.name)
        assert row is not None
        if row != before:
            # Until now no row said that the study needs its members: another command may have deleted some since.
            loop = make_loop(study, prepared.images, store, earlier)
        held.runs()
        sum_up(loop, row)
        # What is damaged is told before the training, and behind it what was met on the way.
        stack.callback(_tell_damage, loop, listener, told=_tell_damage(loop, listener))
        loop.proof, loop.evaluation_log = prepared.proof, user_log()
        loop.evaluation_log.add(loop.records.values())  # also those stored before a crash
        ahead = _planned(loop, listener)
        share = ahead.share if ahead else 1.0
        report = ahead.report if ahead else overheads.expected(overheads.REPORT)
        monitor = Monitor(loop, listener, ahead, _starting(study, ahead), study.time_budget, report)
        if not loop.done:
            runner, begun = runner_of(study), time.monotonic()
            with confirming(loop, store, row.config, listener), runner.ready(study) as run:
                run(loop, monitor)
            # The end of a Ray that took over is no part of a start with threads.
            besides = monitor.beginning if runner.ray_may_join else time.monotonic() - begun - monitor.at_work
            overheads.remember(runner.name, besides, share)
        return loop, Effort(loop.trained, loop.reused, monitor.member_steps, loop.saved, monitor.seconds, share)


def _planned(loop: Loop, listener: Listener) -> Eta | None:
    """Sends the plan to the listener; returns its time, None unless a listener made it.

    Where training begins at once its first seconds tell how long it takes, and no probe is trained before.
    """
    plans: list[Plan] = []

    def make() -> Plan:
        plans.append(_plan(loop, not runner_of(loop.study).starts_at_once))
        return plans[-1]

    if not loop.done:
        listener(Planned(make))
    return plans[-1].eta if plans else None


def _starting(study: Study, ahead: Eta | None) -> str:
    """What is done before the first step, where that takes long, and how long, as planned."""
    stage = runner_of(study).starting(study)
    return f"{stage} (about {duration_text(ahead.start)})" if stage and ahead else stage


def _plan(loop: Loop, probe: bool = True) -> Plan:
    from epsearch.session.plan import make_plan  # brings torch along, which those who only read do without

    return make_plan(loop, probe)


def patience(listener: Listener) -> Patience:
    """What a run has with a database that has gone: PATIENCE seconds; the listener is told, and can end the wait."""
    return Patience(PATIENCE, warner(listener), partial(_sleep, listener))


def _sleep(listener: Listener, seconds: float) -> None:
    """Waits between two tries of a database. Raises Interrupted where the listener wants to stop."""
    time.sleep(seconds)
    if stops(listener):
        raise Interrupted


def plan(study: Study, listener: Listener = ignore, extend: bool = False) -> Plan:
    """What `train` would do, with the same arguments. Nothing is trained but for a probe of a few seconds.

    Nothing is stored: the ledger need not be writable, nor be there. Raises UsageError.
    """
    with passing_warnings(listener):
        prepared = prepare(study, listener)
        with kept_within(), open_store(study.storage, Store.read) as store:
            study = _placed(study, prepared, store, ignore)  # the plan itself says what is said there
            refuse_inert(study, prepared.images)
            earlier = growth.keep(store, study, prepared.images, prepared.proof, extend, write=False)
            return _plan(make_loop(study, prepared.images, store, earlier))


def _placed(study: AnyStudy, prepared: Prepared, store: Store, listener: Listener) -> AnyStudy:
    """With the arithmetic and the number of workers that fit this machine; a study that was begun keeps its own."""
    row = growth.find(store, study.name)
    path = numeric_path(study, prepared.stream, row.config.get("numeric_path") if row else None, listener)
    return limit_workers(replace(study, numeric_path=path), prepared.stream, listener)


def _tell_damage(loop: Loop, listener: Listener, told: frozenset[str] = frozenset()) -> frozenset[str]:
    """Says which records were not used that have not been told of; returns all told of now."""
    damage = {key: why for key, why in loop.damaged.items() if key not in told}
    if damage:
        listener(Warned(f"{unused_in_words(damage)}; what was lost is trained again and replaces it"))
    return told | damage.keys()


def make_loop(study: Study, images: Mapping[str, Any], store: Store, earlier: Sequence[Search] = ()) -> Loop:
    """The loop of the study's kind, as far as the ledger knows it.

    images: the stream's description of itself; earlier: what the study was before it grew, oldest first.
    """
    return LOOPS[study.kind](study, images, store, earlier)


def stored_loop(row: StudyRow, store: Store, storage: LedgerUrl, out: Path) -> Loop:
    """A stored study as far as the ledger knows it. Nothing is trained, no data are needed. Raises Unreadable.

    storage, out: where the ledger and the reports are today, wherever they were when the study was begun.
    """
    known = growth.read(row, storage, out)
    with reading(row):
        loop = make_loop(known.study, known.images, store, known.earlier)
        loop.proof = known.proof
        return loop


def open_store(
    storage: LedgerUrl, open_it: Callable[[LedgerUrl, Patience], Store] = Store.open, patience: Patience = NO_PATIENCE
) -> Store:
    """The ledger, to write to; with `Store.read` to read from, for which it need not be writable, nor be there.

    Raises UsageError; StoreUnavailable where another try may find it as it should be.
    """
    try:
        return open_it(storage, patience)
    except StoreUnavailable:
        raise
    except StoreError as error:
        raise UsageError(str(error)) from error


def make_folder(folder: Path, instead: str = "give another --out") -> None:
    """Makes a folder, unless it is there. Raises UsageError, with what to do instead, where it cannot be written to."""
    wrong = f"cannot write to the out folder {on_one_line(folder)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{wrong}: {error.strerror}; {instead}") from error
    if not writable(folder):
        raise UsageError(f"{wrong}: no permission; {instead}")
