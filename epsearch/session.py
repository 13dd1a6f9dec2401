"""One session of training: ledger, runner and progress line around a loop, whatever its kind."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from rich.console import Console

from epsearch import stored
from epsearch.errors import UsageError
from epsearch.evaluate import StudyLoop
from epsearch.fitting import fitted
from epsearch.loop import Loop
from epsearch.machine import describe_machine
from epsearch.numeric import numeric_path
from epsearch.plan import Plan, make_plan
from epsearch.preparation import Prepared, prepare
from epsearch.progress import Monitor, clock
from epsearch.study import Comparison, MemoryStudy, Setup, Study
from epsearch.table import TableLoop
from results.store import Store, StoreError, StudyRow

AnySetup = TypeVar("AnySetup", bound=Setup)


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


def train(study: Setup, console: Console, quiet: bool = False, extend: bool = False) -> tuple[Loop, Effort]:
    """Trains from where the ledger stands to the end. extend: a study of that name may grow into this one.

    Raises UsageError (bad input; nothing has been trained); Interrupted and TrainingFailed (what was trained is kept).
    """
    prepared = prepare(study, console, quiet)
    make_folder(study.out)
    with open_store(study.storage) as store, ExitStack() as stack:
        study = _placed(study, prepared, store, console, quiet)
        described = (study, prepared.images, prepared.proof, extend)
        earlier = stored.keep(store, *described, write=False)
        loop = make_loop(study, prepared.images, store, earlier)
        stored.keep(store, *described)  # only now, as a study that cannot begin must not stand in the ledger
        loop.proof = prepared.proof
        if isinstance(loop, StudyLoop) and not (loop.done or quiet):
            # A loop of its own: the jobs that the plan looks at are not those that are trained.
            _announce(make_plan(StudyLoop(loop.study, prepared.images, store, earlier=earlier)), console)
        with Monitor(loop, console, quiet) as monitor:
            if not loop.done:
                stack.enter_context(_runner(study))(loop, monitor)
        return loop, Effort(loop.trained, loop.reused, monitor.member_steps, loop.saved, monitor.seconds)


def plan(study: Study, console: Console, quiet: bool = False, extend: bool = False) -> Plan:
    """What `train` would do. Nothing is trained but for a probe of a few seconds, and nothing stored."""
    prepared = prepare(study, console, quiet)
    with _ledger_to_read(study.storage) as storage, open_store(storage) as store:
        study = _placed(study, prepared, store, console, quiet=True)
        earlier = stored.keep(store, study, prepared.images, prepared.proof, extend, write=False)
        return make_plan(StudyLoop(study, prepared.images, store, earlier=earlier))


def _placed(study: AnySetup, prepared: Prepared, store: Store, console: Console, quiet: bool) -> AnySetup:
    """With the arithmetic and the number of workers that fit this machine; a study that was begun keeps its own."""
    row = store.study(study.name)
    path = numeric_path(study, prepared.stream, row.config.get("numeric_path") if row else None)
    return fitted(replace(study, numeric_path=path), prepared.stream, console, quiet)


def _announce(found: Plan, console: Console) -> None:
    from epsearch import show  # imports pandas, which can wait

    console.print(show.plan(found), soft_wrap=True)


@contextmanager
def _ledger_to_read(storage: str) -> Iterator[str]:
    """The ledger, or an empty one where there is none yet: looking makes no file."""
    file = Path(storage.removeprefix("sqlite:///"))
    if file.exists() or not storage.startswith("sqlite:///"):
        yield storage
        return
    with TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/empty.sqlite"


def make_loop(study: Setup, images: Mapping[str, Any], store: Store, earlier: Sequence[Study] = ()) -> Loop:
    """The loop of the study's kind."""
    if isinstance(study, Study):
        return StudyLoop(study, images, store, earlier=earlier)
    assert isinstance(study, (Comparison, MemoryStudy))
    return TableLoop(study, images, store)


def stored_loop(row: StudyRow, store: Store, storage: str, out: Path) -> Loop:
    """A stored study as far as the ledger knows it. Nothing is trained."""
    # A study of an older ledger began before there were paths; it can be listed, and finds none of its members.
    known = stored.read(row, storage, out)
    loop = make_loop(known.study, row.config["stream"], store, known.earlier)
    loop.proof = known.proof
    return loop


def open_store(storage: str) -> Store:
    """The ledger. Raises UsageError in one line."""
    try:
        return Store.open(storage)
    except StoreError as error:
        raise UsageError(str(error)) from error


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to the out folder {folder}: {error.strerror}; give another --out") from error
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write to the out folder {folder}: no permission; give another --out")


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
    return [] if loop.done else [f"The study is not finished; {loop.state()}."]


def _runner(study: Setup) -> AbstractContextManager[Callable[[Loop, Monitor], None]]:
    if study.runner == "local":
        from epsearch.runners import local

        return local.ready(study)
    from epsearch.runners import tune

    return tune.ready(study)
