"""A training session: ledger, lease and runner around a loop of any kind."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from epsearch.checking.check_cache import refuse_inert
from epsearch.events import Listener, Note, Planned, Warned, ignore, stops, warner
from epsearch.failures import requeues
from epsearch.failures.errors import Interrupted, UsageError
from epsearch.ledger.damage import as_unreadable, describe_unused
from epsearch.ledger.evaluation_log import user_log
from epsearch.ledger.location import hide_storage
from epsearch.loop.base import LOGS, Loop
from epsearch.loop.claim import check_claim, claim_hash
from epsearch.loop.estimates import Eta, Plan
from epsearch.loop.protocols import open_protocols
from epsearch.loop.search import open_search
from epsearch.loop.table import open_table
from epsearch.preparation import history
from epsearch.preparation.arithmetic import numeric_path
from epsearch.preparation.checkpoints import check_checkpoints
from epsearch.preparation.data import Prepared, prepare
from epsearch.preparation.memory import limit_workers
from epsearch.runners import overheads
from epsearch.runners.progress import Monitor
from epsearch.runners.registry import runner_of
from epsearch.runners.time_left import TimeLeft
from epsearch.session.confirmation import confirm_results, sum_up
from epsearch.session.lease import StudyLease, hold
from epsearch.slurm.time_left import seconds_left
from epsearch.study.description import Study
from epsearch.study.kinds import Comparison, MemoryStudy, ProtocolStudy, Search
from results.files import writable
from results.labels import duration_text, on_one_line
from results.ledger.errors import StoreUnavailable
from results.ledger.retry import RetryPolicy
from results.ledger.store import Store, StoreError, StudyRow
from results.ledger.url import LedgerUrl
from results.ledger.writers.access import NO_RETRIES
from results.ledger.writers.states import FINISHED
from trainers.notes import redirect_notes
from trainers.plugins.calls import ForeignError

AnyStudy = TypeVar("AnyStudy", bound=Study)

WAIT_SECONDS = 300.0  # seconds for which a run waits for a lost PostgreSQL


# Kind of study -> its loop, from a study, its stream's description, a ledger, and earlier versions of the study.
LOOPS: dict[str, Callable[[Any, Mapping[str, Any], Store, Sequence[Search]], Loop]] = {
    Search.kind: open_search,
    Comparison.kind: open_table,
    MemoryStudy.kind: open_table,
    ProtocolStudy.kind: open_protocols,
}


@dataclass(frozen=True)
class Effort:
    """Work of a session."""

    trained: int
    """Number of trained members."""
    reused: int
    """Number of members from the ledger."""
    member_steps: int
    """SGD steps of all members."""
    saved: int
    """Member-steps saved, as members with the same start share the first task."""
    seconds: float
    """Wall time."""
    share: float = 1.0
    """Share of the processor time that the plan's probe got."""


@contextmanager
def pass_warnings(listener: Listener) -> Iterator[None]:
    """Passes warnings of this thread to the listener; errors of plug-in code become UsageError."""
    try:
        with redirect_notes(warner(listener)):
            yield
    except ForeignError as error:
        raise UsageError(str(error)) from error


def train(
    study: Study, listener: Listener = ignore, extend: bool = False, wait: bool = False, resume: bool = False
) -> tuple[Loop, Effort]:
    """Trains a study from its state in the ledger to the end; returns its loop and the work of the session.

    listener: called with all events; extend: extends a stored study of that name; wait: for the end of
    another run of this study, which is an error otherwise; resume: also a cancelled study.

    Raises UsageError for bad input, a study that another run has, or a cancelled one: nothing has been trained.
    Interrupted (TimeSpent where its time is spent), TrainingFailed, Unavailable without Ray or where a requeued job of
    Slurm keeps nothing new, and StoreError where the database fails or another run has taken over: trained members are
    stored.
    """
    begun, left = time.monotonic(), seconds_left(study.time_left)
    with pass_warnings(listener):
        with requeues.limit_requeues():
            prepared = prepare(study, listener)
            make_folder(study.out)
            check_checkpoints(study)
        with (
            hide_storage(),
            open_store(study.storage, retries=retry_policy(listener)) as store,
            hold(store, study.name, listener, wait, resume) as lease,
        ):
            return _train(study, prepared, store, lease, extend, None if left is None else begun + left)


def _train(
    study: Study, prepared: Prepared, store: Store, lease: StudyLease, extend: bool, until: float | None
) -> tuple[Loop, Effort]:
    """Trains a study whose data are prepared and whose lease is held; until: the end of its time, by `monotonic`."""
    listener = lease.listener
    with ExitStack() as stack:
        study = _fit_to_machine(study, prepared, store, listener)
        described = (study, prepared.images, prepared.disjointness, extend)
        earlier = history.save(store, *described, write=False)
        loop = make_loop(study, prepared.images, store, earlier)
        if not loop.done:
            refuse_inert(study, prepared.images)
        before = store.study(study.name)
        if before is None:
            check_claim(loop)
        history.save(store, *described)  # only now, as the ledger must not have a study that cannot begin
        row = store.study(study.name)
        assert row is not None
        if row != before:
            # Before this row existed, another command may have deleted members that the study needs.
            loop = make_loop(study, prepared.images, store, earlier)
        lease.runs()
        if before is None and (claim := getattr(study, "claim", None)) is not None:
            listener(Note(f"claim {claim} stored before the evaluation, hash {claim_hash(loop)}"))
        sum_up(loop, row)
        # Damage is reported before the training, and after it damage that was found meanwhile.
        stack.callback(_warn_of_damage, loop, listener, before=_warn_of_damage(loop, listener))
        loop.disjointness, loop.evaluation_log = prepared.disjointness, user_log()
        loop.evaluation_log.add(loop.records.values())  # also those stored before a crash
        eta = _send_plan(loop, listener)
        share = eta.share if eta else 1.0
        report = eta.report if eta else overheads.expected_seconds(overheads.REPORT)
        monitor = Monitor(loop, listener, eta, _starting(study, eta), TimeLeft(study.time_budget, until), report)
        if not loop.done:
            runner, begun = runner_of(study), time.monotonic()
            with (
                confirm_results(loop, store, row.config, listener),
                # One that waited had less than its time; two new objects are not equal.
                requeues.limit_requeues(object if lease.waited else partial(_progress, loop)),
                _prepared_trainer(study, monitor),
                runner.ready(study) as run,
            ):
                run(loop, monitor)
            if loop.imports:
                overheads.remember(overheads.import_of(study.value("method")), max(loop.imports), share)
            # The end of a Ray that took over does not count as a start with threads.
            overhead = monitor.beginning if runner.ray_may_join else time.monotonic() - begun - monitor.at_work
            overheads.remember(runner.name, overhead, share)
        return loop, Effort(loop.trained, loop.reused, monitor.member_steps, loop.saved, monitor.seconds, share)


def _progress(loop: Loop) -> object:
    """Returns what is kept of a study, to be compared; nothing is equal while others train its members."""
    others = object() if loop.claims.held_by_others() else None
    return loop.trained, len(loop.certificates), loop.checkpoints(), others


@contextmanager
def _prepared_trainer(study: Study, monitor: Monitor) -> Iterator[None]:
    """Within the context, a plug-in trainer has a folder for logs, and processes that have imported it."""
    if not study.foreign:
        yield
        return
    from trainers.foreign.fork_servers import end_idle, keep_servers

    _announce_logs(study, monitor)
    with keep_servers():
        if not runner_of(study).starts_at_once:
            end_idle()  # that of the declaration, as nothing is trained here
        yield


def _announce_logs(study: Study, monitor: Monitor) -> None:
    """Makes the folder of what a plug-in trainer prints, and names it; without it, the temporary folder has them."""
    folder = study.folder / LOGS
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        monitor.note(f"the output of each member is in {folder}")


def _send_plan(loop: Loop, listener: Listener) -> Eta | None:
    """Sends the plan to the listener; returns its time, None unless a listener made it.

    A runner that starts at once needs no probe, as its first seconds show the speed.
    """
    plans: list[Plan] = []

    def make() -> Plan:
        plans.append(_plan(loop, not runner_of(loop.study).starts_at_once))
        return plans[-1]

    if not loop.done:
        listener(Planned(make))
    return plans[-1].eta if plans else None


def _starting(study: Study, eta: Eta | None) -> str:
    """Returns the stage before the first step, if it takes long, with its planned time."""
    stage = runner_of(study).starting(study)
    return f"{stage} (about {duration_text(eta.start)})" if stage and eta else stage


def _plan(loop: Loop, probe: bool = True) -> Plan:
    from epsearch.session.plan import make_plan  # imports torch, which readers do not need

    return make_plan(loop, probe)


def retry_policy(listener: Listener) -> RetryPolicy:
    """Returns the retries of a run whose database does not answer; the listener is notified, and can end the wait."""
    return RetryPolicy(WAIT_SECONDS, warner(listener), partial(_sleep, listener))


def _sleep(listener: Listener, seconds: float) -> None:
    """Waits between two tries of a database. Raises Interrupted where the listener asks to stop."""
    time.sleep(seconds)
    if stops(listener):
        raise Interrupted


def plan(study: Study, listener: Listener = ignore, extend: bool = False) -> Plan:
    """Returns the plan of `train` with the same arguments, after a probe of a few seconds.

    Nothing is stored: the ledger need not be writable, or exist. Raises UsageError.
    """
    with pass_warnings(listener):
        prepared = prepare(study, listener)
        with hide_storage(), open_store(study.storage, Store.read) as store:
            study = _fit_to_machine(study, prepared, store, ignore)  # the plan contains these notes
            refuse_inert(study, prepared.images)
            earlier = history.save(store, study, prepared.images, prepared.disjointness, extend, write=False)
            loop = make_loop(study, prepared.images, store, earlier)
            if store.study(study.name) is None:
                check_claim(loop)
            return _plan(loop)


def _fit_to_machine(study: AnyStudy, prepared: Prepared, store: Store, listener: Listener) -> AnyStudy:
    """Returns the study with the numeric path and workers for this machine; a stored study keeps its path."""
    row = history.find(store, study.name)
    path = numeric_path(study, prepared.stream, row.config.get("numeric_path") if row else None, listener)
    return limit_workers(replace(study, numeric_path=path), prepared.stream, listener)


def _warn_of_damage(loop: Loop, listener: Listener, before: frozenset[str] = frozenset()) -> frozenset[str]:
    """Warns of damaged records that are not in `before`; returns the keys of both."""
    damage = {key: why for key, why in loop.damaged.items() if key not in before}
    if damage:
        listener(Warned(f"{describe_unused(damage)}; what was lost is trained again and replaces it"))
    return before | damage.keys()


def make_loop(study: Study, images: Mapping[str, Any], store: Store, earlier: Sequence[Search] = ()) -> Loop:
    """Returns the loop of a study, caught up with the ledger.

    images: the stream's description; earlier: earlier versions of the study, oldest first.
    """
    return LOOPS[study.kind](study, images, store, earlier)


def stored_loop(row: StudyRow, store: Store, storage: LedgerUrl, out: Path) -> Loop:
    """Returns the loop of a stored study, without its data. Raises Unreadable.

    storage, out: current ledger and folder of reports, which may have moved.
    """
    stored = history.read(row, storage, out)
    with as_unreadable(row):
        loop = make_loop(stored.study, stored.images, store, stored.earlier)
        loop.disjointness, loop.stored_at = stored.disjointness, row.created
        state = store.leases.state_of(row.name)
        loop.was_finished = state is not None and state.state == FINISHED
        return loop


def open_store(
    storage: LedgerUrl,
    open_it: Callable[[LedgerUrl, RetryPolicy], Store] = Store.open,
    retries: RetryPolicy = NO_RETRIES,
) -> Store:
    """Opens the ledger for writing; with `Store.read` for reading, even if it is read-only or missing.

    Raises UsageError; StoreUnavailable where another try may succeed.
    """
    try:
        return open_it(storage, retries)
    except StoreUnavailable:
        raise
    except StoreError as error:
        raise UsageError(str(error)) from error


def make_folder(folder: Path, instead: str = "give another --out") -> None:
    """Makes a folder unless it exists. Raises UsageError, with advice, where it is not writable."""
    wrong = f"cannot write to the out folder {on_one_line(folder)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{wrong}: {error.strerror}; {instead}") from error
    if not writable(folder):
        raise UsageError(f"{wrong}: no permission; {instead}")
