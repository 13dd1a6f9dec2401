"""The functions behind the command line (and any other door): open, run, resume, report, list, show."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from epsearch.errors import UsageError, unknown
from epsearch.evaluate import StudyLoop
from epsearch.machine import describe_machine
from epsearch.numeric import numeric_path
from epsearch.progress import Monitor, clock
from epsearch.study import Study, restore_study
from results.store import Store, StoreError, StudyRow
from results.study import SearchRound, StudyResults
from search_spaces.definition import definitions, load_definition
from trainers.streams import STREAMS, DataError, open_stream
from trainers.streams.base import TaskStream

# The largest difference of an accuracy between a member alone and in its cohort: on a GPU a batched matrix product may
# add in another order for another number of members, and a step along a tiny gradient makes a rounding error large.
TOLERANCE = {"cpu": 0.0, "cuda": 0.02}


@dataclass(frozen=True)
class Effort:
    """What this call of `run` did: members trained and reused, member-steps taken and saved, wall seconds.

    saved: member-steps that were not taken, as all ε of a seed share the first task.
    """

    trained: int
    reused: int
    member_steps: int
    saved: int
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """A study's results, the path of its report, and what it took."""

    results: StudyResults
    report: Path
    effort: Effort


class Listed(NamedTuple):
    """One line of `epsearch list`; score is the mean A_T in [0, 1] that chose ε."""

    name: str
    dataset: str
    status: str
    best_epsilon: float | None
    score: float | None
    created: str


class Dataset(NamedTuple):
    """One line of `epsearch datasets`."""

    name: str
    title: str
    status: str
    where: str


def run(study: Study, console: Console, quiet: bool = False) -> Outcome:
    """Runs the study from where the ledger stands to its report.

    Raises UsageError (bad input; nothing has been trained); Interrupted and TrainingFailed (what was trained is kept).
    """
    stream = _open_stream(study)
    _make_folder(study.out)
    with open_store(study.storage) as store, ExitStack() as stack:
        row = store.study(study.name)
        # A new study will have to train, so its runner may start at once; for an old one the ledger is asked first.
        train = stack.enter_context(_runner(study)) if row is None else None
        study = replace(
            study, numeric_path=numeric_path(study, stream, row.config.get("numeric_path") if row else None)
        )
        images = stream.describe()
        _save_study(store, study, images)
        loop = StudyLoop(study, images, store)
        with Monitor(loop, console, quiet) as monitor:
            if not loop.done:
                train = train or stack.enter_context(_runner(study))
                train(loop, monitor)
        effort = Effort(loop.trained, loop.reused, monitor.member_steps, loop.saved, monitor.seconds)
    return _report(loop, effort)


def report(name: str | None, storage: str, out: Path) -> Outcome:
    """Writes the report of a stored study again, from the ledger alone; without a name, of the newest study."""
    loop = load(name, storage, out)
    if loop.strategy.best is None:
        raise UsageError(f"study {loop.study.name!r} has no finished repeat yet; run it again to go on")
    return _report(loop, None)


def load(name: str | None, storage: str, out: Path) -> StudyLoop:
    """A stored study as far as the ledger knows it. Nothing is trained."""
    with open_store(storage) as store:
        rows = {row.name: row for row in store.studies()}
        if not rows:
            raise UsageError(f"no study in {storage} yet; `epsearch run` makes one")
        if name is not None and name not in rows:
            raise UsageError(unknown("study", name, rows))
        row = rows[name] if name is not None else list(rows.values())[-1]
        return _loop(row, store, storage, out)


def list_studies(storage: str, out: Path) -> list[Listed]:
    """The studies of a ledger, oldest first."""
    with open_store(storage) as store:
        return [_listed(_loop(row, store, storage, out), row.created) for row in store.studies()]


def list_datasets(data_dir: Path) -> list[Dataset]:
    """Every dataset that has a definition, and where its images lie."""
    found = []
    for name in definitions():
        source = STREAMS.get(name)
        where = source.present(data_dir) if source else None
        status = "present" if where else "downloaded when first used" if source else "no stream yet"
        found.append(Dataset(name, load_definition(name).title, status, where or ""))
    return found


def open_store(storage: str) -> Store:
    """The ledger. Raises UsageError in one line."""
    try:
        return Store.open(storage)
    except StoreError as error:
        raise UsageError(str(error)) from error


def study_results(loop: StudyLoop, facts: Mapping[str, str]) -> StudyResults:
    """What the ledger knows of a study, in the shape the report takes. Needs one finished repeat."""
    best, study = loop.strategy.best, loop.study
    if best is None:
        raise UsageError(
            f"study {study.name!r} has no ε left to choose: members of every value diverged; try a smaller --lr"
        )
    rounds = tuple(
        SearchRound(
            found.number,
            found.interval.low,
            found.interval.high,
            found.epsilons,
            found.scores,
            found.winners,
            found.note,
        )
        for found in loop.strategy.rounds
    )
    return StudyResults(
        name=study.name,
        dataset=study.dataset,
        method=study.method,
        score_on=study.score_on,
        chosen_epsilon=best.epsilon,
        chosen_score=best.value,
        rounds=rounds,
        search=loop.search_records(),
        evaluation=loop.evaluation_records(),
        config=study.shown(),
        facts=facts,
        notes=tuple(_notes(loop)),
        certificates=tuple(loop.certificates.values()),
        tolerance=TOLERANCE[study.device],
    )


def _loop(row: StudyRow, store: Store, storage: str, out: Path) -> StudyLoop:
    study = restore_study(row.config["study"], row.name, out, storage)
    # A study of an older ledger began before there were paths; it can be listed, and finds none of its members.
    return StudyLoop(replace(study, numeric_path=row.config.get("numeric_path")), row.config["stream"], store)


def _listed(loop: StudyLoop, created: str) -> Listed:
    best = loop.strategy.best
    known, wanted = loop.stage_members()
    status = "finished" if loop.done else f"{loop.stage}, {known}/{wanted} members"
    return Listed(
        loop.study.name,
        loop.study.dataset,
        status,
        None if best is None else best.epsilon,
        None if best is None else best.value,
        created,
    )


def _runner(study: Study) -> AbstractContextManager[Callable[[StudyLoop, Monitor], None]]:
    if study.runner == "local":
        from epsearch.runners import local

        return local.ready(study)
    from epsearch.runners import tune

    return tune.ready(study)


def _open_stream(study: Study) -> TaskStream:
    """The evaluation stream, after everything about it has been checked."""
    try:
        stream = open_stream(study.dataset, study.data_dir, study.stream_tasks("eval"), study.examples_per_task)
    except DataError as error:
        raise UsageError(str(error)) from error
    if stream.examples < study.batch_size:
        raise UsageError(
            f"batch-size must be <= the {stream.examples} training examples of a task, got {study.batch_size}"
        )
    return stream


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to the out folder {folder}: {error.strerror}; give another --out") from error
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write to the out folder {folder}: no permission; give another --out")


def _save_study(store: Store, study: Study, images: Mapping[str, Any]) -> None:
    try:
        described = {"study": study.identity(), "stream": dict(images), "numeric_path": study.numeric_path}
        store.save_study(study.name, described)
    except StoreError as error:
        raise UsageError(str(error)) from error


def _report(loop: StudyLoop, effort: Effort | None) -> Outcome:
    from results.files import write_atomically
    from results.report import write_report

    _make_folder(loop.study.folder)
    results = study_results(loop, _facts(loop, effort))
    write_atomically(loop.study.folder / "study.yaml", loop.study.to_yaml().encode())
    path = write_report(results, loop.study.folder)
    return Outcome(results, path, effort or Effort(0, len(loop.records), 0, 0, 0.0))


def _facts(loop: StudyLoop, effort: Effort | None) -> dict[str, str]:
    records = loop.records.values()
    facts = {
        "members": f"{len(records)} in the ledger for this study",
        "SGD steps of all members": f"{sum(record.steps for record in records):,}",
        "training time of all members": clock(sum(record.seconds for record in records)),
    }
    if effort is not None:
        facts["last run"] = (
            f"{effort.trained} members trained, {effort.reused} taken from the ledger, in {clock(effort.seconds)}"
        )
        facts["SGD steps of the last run"] = (
            f"{effort.member_steps:,} taken, {effort.saved:,} saved: all ε of a seed share the first task"
        )
    return facts | describe_machine() | {"epsearch": version("epsearch")}


def _notes(loop: StudyLoop) -> list[str]:
    """What a reader must know to judge the figures, besides what the report sees by itself."""
    notes = []
    if not loop.done:
        known, wanted = loop.stage_members()
        notes.append(f"The study is not finished: {loop.stage}, {known} of {wanted} members are trained.")
    diverged = [record for record in loop.records.values() if record.status == "diverged"]
    if diverged:
        values = ", ".join(f"{epsilon:.6g}" for epsilon in sorted({record.epsilon for record in diverged}))
        notes.append(f"{len(diverged)} members diverged (ε = {values}); a value of ε that loses a seed has no score.")
    return notes
