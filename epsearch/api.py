"""Functions for Python and the command line: run, extend, report, compare, publish."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from epsearch.events import Listener, ignore
from epsearch.failures.errors import Unavailable, UsageError, as_usage_error, brief
from epsearch.failures.stopping import TRAINS
from epsearch.findings import listing
from epsearch.findings.facts import facts, verification
from epsearch.findings.notebook import SideBySide, StoredStudy
from epsearch.findings.reports import REPORTS, resolve_latex_metrics
from epsearch.ledger.location import ledger_url
from epsearch.loop.base import Loop
from epsearch.preparation.build import extend_search, places
from epsearch.publishing import targets
from epsearch.publishing.report import PublishReport
from epsearch.publishing.targets import live as live
from epsearch.runners import overheads
from epsearch.session.session import Effort, make_folder, retry_policy, train
from epsearch.study.description import Study
from epsearch.study.kinds import KINDS, Search
from results.ledger.retry import RetryPolicy
from results.ledger.url import LedgerUrl
from results.search import SearchResults
from search_spaces.published.definition import definitions, load_definition
from trainers.streams import is_downloadable, present

if TYPE_CHECKING:
    from results.pages.writing import Figures

SIDE_BY_SIDE = "strategies"  # the folder


@dataclass(frozen=True)
class Outcome(StoredStudy):
    """Results of a trained study, whose description has its numeric path and workers."""

    report: Path
    """Path of its first page."""
    effort: Effort
    """Work of the session, with the report; without training, 0 trained members."""
    image_files: tuple[Path, ...] = ()
    """Files of the figures for a paper, where `report` was asked for them."""


def run(
    study: Study,
    listener: Listener = ignore,
    extend: bool = False,
    wait: bool = False,
    resume: bool = False,
    with_printed: bool = False,
    metrics: Sequence[str] = (),
) -> Outcome:
    """Trains a study from its state in the ledger, and writes its report.

    listener: called with every event; extend: extends a stored search to this one; wait: for the end of another run
    of this study, instead of raising UsageError; resume: also a cancelled study, instead of raising Cancelled;
    with_printed, metrics: see `report`.

    Running the same study again trains nothing twice, and writes the report anew. Raises UsageError (bad input; nothing
    has been trained); Interrupted, TrainingFailed and Unavailable (what was trained is stored); StoreError where the
    ledger fails.
    """
    if getattr(type(study), "kind", None) not in KINDS:  # also a class without its brackets
        raise UsageError(
            f"run takes a study, {' or '.join(kind.__name__ for kind in KINDS.values())}, got {brief(study)}"
        )
    metrics = resolve_latex_metrics(study, metrics)
    TRAINS.set()
    loop, effort = train(study, listener, extend, wait, resume)
    begun = time.monotonic()
    outcome = _report(loop, effort, retry_policy(listener), with_printed, metrics)
    seconds = time.monotonic() - begun
    overheads.remember(overheads.REPORT, seconds, effort.share)
    return replace(outcome, effort=replace(effort, seconds=effort.seconds + seconds))


def build_extension(options: Mapping[str, Any], config: Path | None = None) -> Search:
    """Returns the stored search `options["name"]`, extended by other options.

    options, config: see `build`; other options keep their values. Raises UsageError for an unknown search, and for
    options that would make it another one.
    """
    name, out, storage = places(options, config)
    if name is None:
        raise UsageError("--extend needs --name, the study to extend")
    before = listing.load(name, storage, out).study
    if not before.extendable:
        raise UsageError(f"only searches can be extended: {before.name!r} is a study of `epsearch {before.kind}`")
    search = cast(Search, before)
    return extend_search(search, options, config)


def load(name: str | None = None, out: Path | str = "runs", storage: LedgerUrl | str | None = None) -> StoredStudy:
    """Returns the results of a stored study, finished or not; name: None for the newest.

    out: folder of the ledger; storage: its URL, if elsewhere. Nothing is written. Raises UsageError for an unknown or
    unreadable study, and for a search without a finished round.
    """
    return _stored_study(listing.load(name, *_ledger(out, storage)))


def compare(*searches: str | StoredStudy, out: Path | str = "runs", storage: str | None = None) -> SideBySide:
    """Sets several stored searches on one stream side by side, as `epsearch report A B`.

    searches: names in the ledger, or results of `run` and `load`; out, storage: see `load`. Nothing is written. To
    compare methods, use `run(Comparison(…))`. Raises UsageError for other studies, and for different streams.
    """
    ledger = _ledger(out, storage)
    return _side_by_side(
        [
            search if isinstance(search, StoredStudy) else _stored_study(listing.load(search, *ledger))
            for search in searches
        ]
    )


def publish(
    name: str,
    tool: str,
    where: str,
    out: Path | str = "runs",
    storage: LedgerUrl | str | None = None,
    artifacts: Path | None = None,
) -> PublishReport:
    """Publishes a stored study, finished or not, in Optuna, MLflow or TensorBoard.

    tool, where: "optuna" and the URL of a storage, "mlflow" and a tracking URI, "tensorboard" and a folder; out,
    storage: see `load`; artifacts: folder of Optuna's artifact store, by default OUT/artifacts. Raises UsageError.
    """
    ledger, folder = _ledger(out, storage)
    return targets.publish(listing.load(name, ledger, folder), tool, where, artifacts or folder / "artifacts")


def report(
    name: str | None,
    storage: LedgerUrl,
    out: Path,
    figures: Sequence[str] = (),
    with_printed: bool = False,
    metrics: Sequence[str] = (),
) -> Outcome:
    """Writes the report of a stored study again, from the ledger alone; name: None for the newest.

    figures: formats, svg or pdf, of each figure for a paper; with_printed: True to set the paper's printed rows beside
    results of other sizes, too; metrics: of the LaTeX table of a comparison or memory study, in its order, () for all.
    Raises UsageError like `load`; Unavailable where figures cannot be drawn here.
    """
    loop = listing.load(name, storage, out)
    metrics = resolve_latex_metrics(loop.study, metrics)
    outcome = _report(loop, None, with_printed=with_printed, metrics=metrics)
    return replace(outcome, image_files=_write_figures(outcome.drawings, outcome.report, figures))


def side_by_side(
    names: Sequence[str], storage: LedgerUrl, out: Path, figures: Sequence[str] = ()
) -> tuple[SideBySide, Path]:
    """Writes the page that sets several stored searches side by side; returns its data and path.

    The page is in OUT/strategies; figures: see `report`. Raises UsageError like `compare`.
    """
    from results.pages.side_by_side import write_strategies

    compared = _side_by_side([_stored_study(listing.load(name, storage, out)) for name in names])
    make_folder(out / SIDE_BY_SIDE, _elsewhere(storage))
    with compared.objective():
        page = write_strategies(compared.searches, out / SIDE_BY_SIDE)
    return replace(compared, image_files=_write_figures(compared.drawings, page, figures)), page


def list_datasets(data_dir: Path) -> list[dict[str, str]]:
    """Returns all datasets with a definition, by name; data_dir: folder of their images.

    Each has a name, the title in the paper, a status in words, and where its data are, "" if absent.
    """
    places = {name: present(name, data_dir) for name in definitions()}
    absent = {True: "downloaded when first used", False: "put there by you"}
    return [
        {
            "name": name,
            "title": load_definition(name).title,
            "status": "present" if where else absent[is_downloadable(name)],
            "where": where or "",
        }
        for name, where in places.items()
    ]


def _report(
    loop: Loop,
    effort: Effort | None,
    waiting: RetryPolicy | None = None,
    with_printed: bool = False,
    metrics: Sequence[str] = (),
) -> Outcome:
    """Writes pages, tables and study.yaml from the ledger; effort: None if nothing was trained."""
    from results.files import write_atomically

    # First, as making the pages takes a while.
    make_folder(loop.study.folder, _elsewhere(loop.study.storage))
    kind = REPORTS[loop.study.kind]
    results = kind.results(loop, facts(loop, effort) | verification(loop, waiting), waiting)
    # Only what was asked for: not every kind of results has them.
    changes = {"with_printed": with_printed, "latex_metrics": tuple(metrics)}
    results = replace(results, **{name: value for name, value in changes.items() if value})
    path = kind.write(results, loop.study.folder)
    write_atomically(loop.study.folder / "study.yaml", loop.study.to_yaml().encode())
    return Outcome(loop.study, results, path, effort or Effort(0, len(loop.records), 0, 0, 0.0))


def _stored_study(loop: Loop) -> StoredStudy:
    """Returns the results of a study."""
    results = REPORTS[loop.study.kind].results(loop, facts(loop, None) | verification(loop), None)
    return StoredStudy(loop.study, results)


def _side_by_side(studies: Sequence[StoredStudy]) -> SideBySide:
    from results.pages.side_by_side_numbers import check_studies

    if others := [stored.study for stored in studies if stored.study.kind != Search.kind]:
        what = f"a study of `epsearch {others[0].kind}`"
        raise UsageError(f"only searches can be set side by side; {others[0].name!r} is {what}")
    searches = tuple(cast(SearchResults, stored.results) for stored in studies)
    with as_usage_error(ValueError):
        check_studies(searches)
    return SideBySide(searches)


def _write_figures(drawings: "Figures", page: Path, formats: Sequence[str]) -> tuple[Path, ...]:
    """Writes figures beside their tables; returns the paths. Raises Unavailable where this machine cannot draw them."""
    if not formats:
        return ()
    from results.pages.vector import DrawingError, write_vectors

    try:
        return write_vectors(drawings, page.parent / "figures", formats)
    except DrawingError as error:
        raise Unavailable(f"{error}; the report is {page}") from error


def _ledger(out: Path | str, storage: LedgerUrl | str | None) -> tuple[LedgerUrl, Path]:
    """Returns ledger and folder of arguments, parsed like the arguments of commands."""
    options = Study.options()
    folder = options["out"].parse(out)
    return ledger_url(folder, None if storage is None else options["storage"].parse(storage)), folder


def _elsewhere(storage: LedgerUrl) -> str:
    """Returns advice for an out folder that cannot be written to."""
    return "give another --out" + ("" if storage.from_environment else f", and --storage {storage}")
