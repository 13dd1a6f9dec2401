"""The functions behind the command line (and any other door): open, run, resume, report, list, show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from epsearch.events import SILENT, Events
from epsearch.failures.errors import UsageError
from epsearch.findings import tables
from epsearch.findings.evaluated import looks
from epsearch.findings.listing import load, opened
from epsearch.ledger.damage import unused_in_words
from epsearch.loop import race
from epsearch.loop.base import Loop
from epsearch.loop.search import SearchLoop
from epsearch.loop.table import TableLoop
from epsearch.preparation import growth
from epsearch.preparation.build import grow, places
from epsearch.session.session import Effort, facts, make_folder, patience, train, unfinished
from epsearch.study.kinds import Comparison, Search, Study
from results.ledger.retry import Patience
from results.ledger.url import LedgerUrl
from results.pages.comparison_numbers import Comparison as ComparisonResults
from results.pages.memory_numbers import MemoryStudy as MemoryResults
from results.points import setting, setting_text
from results.search import Look, Race, SearchResults, SearchRound
from search_spaces.published.definition import definitions, load_definition
from search_spaces.space import Parameter
from trainers.numeric_path import NumericPath
from trainers.streams import downloaded, present

SIDE_BY_SIDE = "strategies"  # the folder

AnyResults: TypeAlias = SearchResults | ComparisonResults | MemoryResults

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


class Dataset(NamedTuple):
    """One line of `epsearch datasets`."""

    name: str
    title: str
    status: str
    where: str


def run(study: Study, events: Events = SILENT, extend: bool = False) -> Outcome:
    """Trains a search, a comparison or a memory study from where the ledger stands, and writes its report.

    extend: a stored search may grow into this one. Raises what `session.train` does.
    """
    loop, effort = train(study, events, extend)
    return _report(loop, effort, patience(events))


def grown(given: Mapping[str, Any], config: Path | None = None) -> Search:
    """The stored search `given["name"]` with other options, as far as it may have them. Raises UsageError."""
    name, out, storage = places(given, config)
    if name is None:
        raise UsageError("extend needs --name, the study that is to grow")
    before = load(name, storage, out).study
    if not isinstance(before, Search):
        raise UsageError(f"extend lets searches grow, {before.name!r} is a study of `epsearch {before.kind}`")
    after = grow(before, given, config)
    growth.check_growth(before, after)
    return after


def report(name: str | None, storage: LedgerUrl, out: Path) -> Outcome:
    """Writes the report of a stored study again, from the ledger alone; without a name, of the newest study."""
    return _report(load(name, storage, out), None)


def side_by_side(names: Sequence[str], storage: LedgerUrl, out: Path) -> tuple[list[SearchResults], Path]:
    """Sets several stored searches on one stream side by side; their results, and the path of the page.

    Raises UsageError where they cannot be compared.
    """
    from results.pages.strategies import write_strategies
    from results.pages.strategies_numbers import check_studies

    loops = [load(name, storage, out) for name in names]
    for loop in loops:
        if not isinstance(loop, SearchLoop):
            what = f"a study of `epsearch {loop.study.kind}`"
            raise UsageError(f"only searches can be set side by side; {loop.study.name!r} is {what}")
    with opened(storage) as store:
        studies = [study_results(loop, {}, looks(loop, store)) for loop in loops if isinstance(loop, SearchLoop)]
    try:
        check_studies(studies)
    except ValueError as error:
        raise UsageError(str(error)) from error
    make_folder(out / SIDE_BY_SIDE, _elsewhere(storage))
    return studies, write_strategies(studies, out / SIDE_BY_SIDE)


def list_datasets(data_dir: Path) -> list[Dataset]:
    """Every dataset that has a definition, and where its images lie."""
    found = []
    for name in definitions():
        where = present(name, data_dir)
        status = "present" if where else "downloaded when first used" if downloaded(name) else "put there by you"
        found.append(Dataset(name, load_definition(name).title, status, where or ""))
    return found


def study_results(loop: SearchLoop, facts: Mapping[str, str], seen: tuple[Look, ...] = ()) -> SearchResults:
    """What the ledger knows of a study, in the shape the report takes. Needs one finished round."""
    best, study, space = loop.best, loop.study, loop.study.space
    if best is None and loop.done:
        raise UsageError(
            f"study {study.name!r} has no value left to choose: members of every one diverged; try a smaller --lr"
        )
    if best is None:
        why = f" ({unused_in_words(unused)})" if (unused := loop.unused()) else ""
        raise UsageError(f"study {study.name!r} has no finished round yet{why}; run it again to go on")
    rounds = tuple(
        SearchRound(one.number, one.points, one.scores, one.span, one.winners, one.note) for one in loop.rounds()
    )
    spaces = [one.study.space for one in (*loop.earlier, loop)]
    ends = tuple(_hull([one.parameters[index] for one in spaces]) for index in range(len(space.names)))
    return SearchResults(
        name=study.name,
        dataset=study.dataset,
        method=study.method,
        score_on=study.score_on,
        parameters=space.names,
        log=tuple(one.name for one in space.parameters if one.log),
        strategy=study.strategy,
        printed_epsilon=load_definition(study.dataset).reported_epsilon,
        chosen=best.point,
        chosen_score=best.value,
        baseline=study.baseline,
        domain=ends,
        seeds=study.seeds,
        eval_seeds=study.final_seeds,
        rounds=rounds,
        search=loop.search_records(),
        evaluation=loop.evaluation_records(),
        config=study.shown(),
        facts=facts,
        notes=tuple(_notes(loop)),
        certificates=tuple(loop.certificates.values()),
        tolerance=_tolerance(study),
        race=_race(loop),
        looks=seen,
        seal=loop.proof.sentence,
        grown=tuple(one.heading() for one in loop.earlier),
    )


def _hull(parameters: Sequence[Parameter]) -> tuple[float, float] | None:
    """From the lowest to the highest end of all searches of a study; None where there are choices."""
    ends = [(one.low, one.high) for one in parameters if one.low is not None and one.high is not None]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if len(ends) == len(parameters) else None


def _race(loop: SearchLoop) -> Race | None:
    """What the race saved, in members of the search."""
    if not loop.study.race:
        return None
    shares = loop.strategist.given().values()
    return Race(sum(map(len, shares)), len(shares) * len(loop.study.seeds), race.LEVEL)


def _tolerance(study: Study) -> float:
    path = NumericPath.parse(study.numeric_path) if study.numeric_path else NumericPath()
    alone = path.device == "cpu" and (study.network == "mlp" or path.one_by_one)
    return 0.0 if alone else TOLERANCE


def _report(loop: Loop, effort: Effort | None, waiting: Patience | None = None) -> Outcome:
    from results.ledger.files import write_atomically

    make_folder(loop.study.folder, _elsewhere(loop.study.storage))
    told = facts(loop, effort)
    results, path = _written(loop, told, waiting)
    write_atomically(loop.study.folder / "study.yaml", loop.study.to_yaml().encode())
    return Outcome(results, path, effort or Effort(0, len(loop.records), 0, 0, 0.0))


def _elsewhere(storage: LedgerUrl) -> str:
    return f"give another --out, and --storage {storage}"


def _written(loop: Loop, told: Mapping[str, str], waiting: Patience | None) -> tuple[AnyResults, Path]:
    """The results in the shape their report takes, and the path of the page that was written."""
    if isinstance(loop, SearchLoop):
        from results.pages.search import write_report

        with opened(loop.study.storage, waiting) as store:
            found = study_results(loop, told, looks(loop, store))
        return found, write_report(found, loop.study.folder)
    assert isinstance(loop, TableLoop)
    if isinstance(loop.study, Comparison):
        from results.pages.comparison import write_comparison

        comparison = tables.comparison(loop, told)
        return comparison, write_comparison(comparison, loop.study.folder)
    from results.pages.memory import write_memory_study

    study = tables.memory_study(loop, told)
    return study, write_memory_study(study, loop.study.folder)


def _notes(loop: SearchLoop) -> list[str]:
    """What a reader must know to judge the figures, besides what the report sees by itself."""
    notes = unfinished(loop)
    if not loop.proof.sound:
        notes.append(f"Search and evaluation are not wholly apart: {loop.proof.sentence}.")
    diverged = [record for record in loop.records.values() if record.status == "diverged"]
    if diverged:
        names = loop.study.space.names
        values = dict.fromkeys(setting_text(names, setting(record, names)) for record in diverged)
        notes.append(f"{len(diverged)} members diverged ({'; '.join(values)}); a value that loses a seed has no score.")
    return notes
