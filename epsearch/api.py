"""Functions behind the command line and any other door: run, extend, report, set side by side, list datasets."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from epsearch.events import Listener, ignore
from epsearch.failures.errors import Unavailable, UsageError, refused
from epsearch.failures.stopping import TRAINS
from epsearch.findings import listing
from epsearch.findings.facts import facts, verification
from epsearch.findings.notebook import SideBySide, StoredStudy
from epsearch.findings.reports import REPORTS
from epsearch.ledger.location import ledger_url
from epsearch.loop.base import Loop
from epsearch.preparation import growth
from epsearch.preparation.build import grow, places
from epsearch.publishing import targets
from epsearch.publishing.report import PublishReport
from epsearch.publishing.targets import live as live
from epsearch.runners import overheads
from epsearch.session.session import Effort, make_folder, patience, train
from epsearch.study.description import Study
from epsearch.study.kinds import Search
from results.ledger.retry import Patience
from results.ledger.url import LedgerUrl
from results.search import SearchResults
from search_spaces.published.definition import definitions, load_definition
from trainers.streams import downloaded, present

if TYPE_CHECKING:
    from results.pages.writing import Figures

SIDE_BY_SIDE = "strategies"  # the folder


@dataclass(frozen=True)
class Outcome(StoredStudy):
    """Result of `run`: the study with the numeric path and workers of its training, and its report."""

    report: Path
    """Its first page."""
    effort: Effort
    """What the session took, with the report; of a report that is only written again, nothing was trained."""


class Dataset(NamedTuple):
    """One line of `epsearch datasets`."""

    name: str
    """As after --dataset."""
    title: str
    """As in the paper."""
    status: str
    """Whether its data is there, or where it would come from, in words."""
    where: str
    """The folder or file of its data; "" where there is none yet."""


def run(
    study: Study, listener: Listener = ignore, extend: bool = False, wait: bool = False, resume: bool = False
) -> Outcome:
    """Trains a search, a comparison or a memory study from where the ledger stands, and writes its report.

    listener: called with every event; extend: a stored search may grow into this one; wait: for the end of another run
    of this study, which holds it, instead of raising UsageError; resume: also a study that was cancelled, instead of
    raising Cancelled.

    Running the same study again trains nothing twice, and writes the report anew. Raises UsageError (bad input; nothing
    has been trained); Interrupted, TrainingFailed and Unavailable (what was trained is stored); StoreError where the
    ledger fails.
    """
    TRAINS.set()
    loop, effort = train(study, listener, extend, wait, resume)
    begun = time.monotonic()
    outcome = _report(loop, effort, patience(listener))
    seconds = time.monotonic() - begun
    overheads.remember(overheads.REPORT, seconds, effort.share)
    return replace(outcome, effort=replace(effort, seconds=effort.seconds + seconds))


def grown(given: Mapping[str, Any], config: Path | None = None) -> Search:
    """Returns the stored search `given["name"]` with other options, as far as it may have them.

    given, config: as `build` takes them; options that neither names keep their values. Raises UsageError where there is
    no such search, or it would not grow but become another one.
    """
    name, out, storage = places(given, config)
    if name is None:
        raise UsageError("--extend needs --name, the study to extend")
    before = listing.load(name, storage, out).study
    if not before.grows:
        raise UsageError(f"extend lets searches grow, {before.name!r} is a study of `epsearch {before.kind}`")
    search = cast(Search, before)
    after = grow(search, given, config)
    growth.check_growth(search, after)
    return after


def load(name: str | None = None, out: Path | str = "runs", storage: str | None = None) -> StoredStudy:
    """What the ledger knows of a stored study, finished or not; without a name, of the newest. Nothing is written.

    out: folder of the ledger; storage: its URL, where that is elsewhere. Raises UsageError where there is no such
    study, it cannot be read, or its search has no finished round.
    """
    return _stored_study(listing.load(name, *_ledger(out, storage)))


def compare(*searches: str | StoredStudy, out: Path | str = "runs", storage: str | None = None) -> SideBySide:
    """Sets several stored searches on one stream side by side, as `epsearch report A B` does. Nothing is written.

    searches: their names in the ledger, or what `run` and `load` return; out, storage: as of `load`. Methods are
    compared by `run(Comparison(…))`. Raises UsageError where they are no searches, or cannot be compared.
    """
    ledger = _ledger(out, storage)
    return _side_by_side(
        [one if isinstance(one, StoredStudy) else _stored_study(listing.load(one, *ledger)) for one in searches]
    )


def publish(
    name: str,
    tool: str,
    where: str,
    out: Path | str = "runs",
    storage: LedgerUrl | str | None = None,
    artifacts: Path | None = None,
) -> PublishReport:
    """Publishes a stored study, finished or not, in a tool of others; what is there already is not written again.

    tool, where: "optuna" and the URL of a storage, "mlflow" and a tracking URI, "tensorboard" and a folder; out,
    storage: as of `load`; artifacts: folder of Optuna's artifact store, by default OUT/artifacts. Raises UsageError.
    """
    ledger, folder = _ledger(out, storage)
    return targets.publish(listing.load(name, ledger, folder), tool, where, artifacts or folder / "artifacts")


def report(name: str | None, storage: LedgerUrl, out: Path, figures: Sequence[str] = ()) -> Outcome:
    """Writes the report of a stored study again, from the ledger alone; without a name, of the newest study.

    figures: formats, svg or pdf, in which each figure is also written for a paper. Raises UsageError where there is no
    study of that name, it cannot be read, or its search has no finished round; Unavailable where no figure can be
    drawn here.
    """
    outcome = _report(listing.load(name, storage, out), None)
    _write_figures(outcome.drawings, outcome.report, figures)
    return outcome


def side_by_side(
    names: Sequence[str], storage: LedgerUrl, out: Path, figures: Sequence[str] = ()
) -> tuple[SideBySide, Path]:
    """Sets several stored searches on one stream side by side; what that shows, and the path of its page.

    The page lies in OUT/strategies; figures: as of `report`. Raises UsageError where they are no searches, or their
    scores cannot be compared.
    """
    from results.pages.side_by_side import write_strategies

    compared = _side_by_side([_stored_study(listing.load(name, storage, out)) for name in names])
    make_folder(out / SIDE_BY_SIDE, _elsewhere(storage))
    with compared.objective():
        page = write_strategies(compared.searches, out / SIDE_BY_SIDE)
    _write_figures(compared.drawings, page, figures)
    return compared, page


def list_datasets(data_dir: Path) -> list[Dataset]:
    """Every dataset that has a definition, by name, and where its images lie; data_dir: where they are looked for."""
    places = {name: present(name, data_dir) for name in definitions()}
    absent = {True: "downloaded when first used", False: "put there by you"}
    return [
        Dataset(name, load_definition(name).title, "present" if where else absent[downloaded(name)], where or "")
        for name, where in places.items()
    ]


def _report(loop: Loop, effort: Effort | None, waiting: Patience | None = None) -> Outcome:
    """Writes the pages, tables and study.yaml of what the ledger knows. effort: None where nothing was trained."""
    from results.files import write_atomically

    # Before the pages are made, which takes a while: they could not be written.
    make_folder(loop.study.folder, _elsewhere(loop.study.storage))
    kind = REPORTS[loop.study.kind]
    results = kind.results(loop, facts(loop, effort) | verification(loop, waiting), waiting)
    path = kind.write(results, loop.study.folder)
    write_atomically(loop.study.folder / "study.yaml", loop.study.to_yaml().encode())
    return Outcome(loop.study, results, path, effort or Effort(0, len(loop.records), 0, 0, 0.0))


def _stored_study(loop: Loop) -> StoredStudy:
    """What the ledger knows of a study."""
    results = REPORTS[loop.study.kind].results(loop, facts(loop, None) | verification(loop), None)
    return StoredStudy(loop.study, results)


def _side_by_side(found: Sequence[StoredStudy]) -> SideBySide:
    from results.pages.side_by_side_numbers import check_studies

    if others := [one.study for one in found if one.study.kind != Search.kind]:
        what = f"a study of `epsearch {others[0].kind}`"
        raise UsageError(f"only searches can be set side by side; {others[0].name!r} is {what}")
    searches = tuple(cast(SearchResults, one.results) for one in found)
    with refused(ValueError):
        check_studies(searches)
    return SideBySide(searches)


def _write_figures(drawings: "Figures", page: Path, formats: Sequence[str]) -> None:
    """Beside the tables of the figures. Raises Unavailable where this machine cannot draw them."""
    if not formats:
        return
    from results.pages.vector import DrawingError, write_vectors

    try:
        write_vectors(drawings, page.parent / "figures", formats)
    except DrawingError as error:
        raise Unavailable(f"{error}; the report is {page}") from error


def _ledger(out: Path | str, storage: LedgerUrl | str | None) -> tuple[LedgerUrl, Path]:
    """The ledger and the folder that arguments mean, as those of commands do."""
    known = Study.options()
    folder = known["out"].parse(out)
    return ledger_url(folder, None if storage is None else known["storage"].parse(storage)), folder


def _elsewhere(storage: LedgerUrl) -> str:
    """What to do where an out folder cannot be written to: a ledger within it must be named, then."""
    return "give another --out" + ("" if storage.from_environment else f", and --storage {storage}")
