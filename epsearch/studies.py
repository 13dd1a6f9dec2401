"""The functions behind the command line (and any other door): open, run, resume, report, list, show."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from rich.console import Console

from epsearch import tables
from epsearch.errors import UsageError, unknown
from epsearch.evaluate import StudyLoop
from epsearch.loop import Loop
from epsearch.session import Effort, facts, make_folder, open_store, stored_loop, train, unfinished
from epsearch.study import Comparison, Setup
from epsearch.table import TableLoop
from results.comparison import Comparison as ComparisonResults
from results.memory_study import MemoryStudy as MemoryResults
from results.study import SearchRound, StudyResults
from search_spaces.definition import definitions, load_definition
from trainers.numeric_path import NumericPath
from trainers.streams import DOWNLOADED, present

AnyResults: TypeAlias = StudyResults | ComparisonResults | MemoryResults

# The largest difference of an accuracy between a member alone and in its cohort: on a GPU a batched matrix product may
# add in another order for another number of members, and a step along a tiny gradient makes a rounding error large. So
# it is on a CPU where members of a residual network are trained in one grouped convolution.
TOLERANCE = 0.02


@dataclass(frozen=True)
class Outcome:
    """A study's results, the path of its report, and what it took."""

    results: AnyResults
    report: Path
    effort: Effort


class Listed(NamedTuple):
    """One line of `epsearch list`; score is the mean A_T in [0, 1] that chose ε, where the study is a search."""

    name: str
    command: str
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


def train_and_report(study: Setup, console: Console, quiet: bool = False) -> Outcome:
    """Runs a search, a comparison or a memory study from where the ledger stands to its report.

    Raises what `session.train` does.
    """
    loop, effort = train(study, console, quiet)
    return _report(loop, effort)


def report(name: str | None, storage: str, out: Path) -> Outcome:
    """Writes the report of a stored study again, from the ledger alone; without a name, of the newest study."""
    return _report(load(name, storage, out), None)


def load(name: str | None, storage: str, out: Path) -> Loop:
    """A stored study as far as the ledger knows it. Nothing is trained."""
    with open_store(storage) as store:
        rows = {row.name: row for row in store.studies()}
        if not rows:
            raise UsageError(f"no study in {storage} yet; `epsearch run` makes one")
        if name is not None and name not in rows:
            raise UsageError(unknown("study", name, rows))
        row = rows[name] if name is not None else list(rows.values())[-1]
        return stored_loop(row, store, storage, out)


def list_studies(storage: str, out: Path) -> list[Listed]:
    """The studies of a ledger, oldest first."""
    with open_store(storage) as store:
        return [_listed(stored_loop(row, store, storage, out), row.created) for row in store.studies()]


def list_datasets(data_dir: Path) -> list[Dataset]:
    """Every dataset that has a definition, and where its images lie."""
    found = []
    for name in definitions():
        where = present(name, data_dir)
        status = "present" if where else "downloaded when first used" if name in DOWNLOADED else "put there by you"
        found.append(Dataset(name, load_definition(name).title, status, where or ""))
    return found


def study_results(loop: StudyLoop, facts: Mapping[str, str]) -> StudyResults:
    """What the ledger knows of a study, in the shape the report takes. Needs one finished repeat."""
    best, study = loop.strategy.best, loop.study
    if best is None and loop.done:
        raise UsageError(
            f"study {study.name!r} has no ε left to choose: members of every value diverged; try a smaller --lr"
        )
    if best is None:
        raise UsageError(f"study {study.name!r} has no finished repeat yet; run it again to go on")
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
        tolerance=_tolerance(study),
    )


def _tolerance(study: Setup) -> float:
    path = NumericPath.parse(study.numeric_path) if study.numeric_path else NumericPath()
    alone = path.device == "cpu" and (study.network == "mlp" or path.one_by_one)
    return 0.0 if alone else TOLERANCE


def _listed(loop: Loop, created: str) -> Listed:
    best = loop.strategy.best if isinstance(loop, StudyLoop) else None
    known, wanted = loop.stage_members()
    status = "finished" if loop.done else f"{loop.stage}, {known}/{wanted} members"
    return Listed(
        loop.study.name,
        loop.study.kind,
        loop.study.dataset,
        status,
        None if best is None else best.epsilon,
        None if best is None else best.value,
        created,
    )


def _report(loop: Loop, effort: Effort | None) -> Outcome:
    from results.files import write_atomically

    make_folder(loop.study.folder)
    told = facts(loop, effort)
    results, path = _written(loop, told)
    write_atomically(loop.study.folder / "study.yaml", loop.study.to_yaml().encode())
    return Outcome(results, path, effort or Effort(0, len(loop.records), 0, 0, 0.0))


def _written(loop: Loop, told: Mapping[str, str]) -> tuple[AnyResults, Path]:
    """The results in the shape their report takes, and the path of the page that was written."""
    if isinstance(loop, StudyLoop):
        from results.report import write_report

        found = study_results(loop, told)
        return found, write_report(found, loop.study.folder)
    assert isinstance(loop, TableLoop)
    if isinstance(loop.study, Comparison):
        from results.comparison_report import write_comparison

        comparison = tables.comparison(loop, told)
        return comparison, write_comparison(comparison, loop.study.folder)
    from results.memory_report import write_memory_study

    study = tables.memory_study(loop, told)
    return study, write_memory_study(study, loop.study.folder)


def _notes(loop: StudyLoop) -> list[str]:
    """What a reader must know to judge the figures, besides what the report sees by itself."""
    notes = unfinished(loop)
    diverged = [record for record in loop.records.values() if record.status == "diverged"]
    if diverged:
        values = ", ".join(f"{epsilon:.6g}" for epsilon in sorted({record.epsilon for record in diverged}))
        notes.append(f"{len(diverged)} members diverged (ε = {values}); a value of ε that loses a seed has no score.")
    return notes
