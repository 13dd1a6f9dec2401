"""A study as one file that can be cited: methods, tables, figures, versions and the archive itself."""

import json
import math
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from epsearch.failures.errors import UsageError
from epsearch.findings.facts import facts, verification
from epsearch.findings.listing import load
from epsearch.findings.notebook import StoredStudy
from epsearch.findings.reports import REPORTS
from epsearch.plugins.registration import add_plugins
from epsearch.reuse.transfer import check_target, export_study
from epsearch.study.kinds import Search
from results.archive import WHEN
from results.labels import on_one_line
from results.ledger.url import LedgerUrl
from results.search import SearchResults

ARCHIVE = "study.zip"
PACKAGES = ("epsearch", "numpy", "scipy", "pandas", "numba", "torch", "torchvision", "ray", "optuna", "plotly")
"""Packages whose versions the file names, where they are installed."""

README = """# {name}

A search by epsearch {version}, with everything that its results rest on.

| file | is |
| --- | --- |
| methods.md | a paragraph for the methods section |
| references.bib | the entries to cite |
| tables/ | every table as CSV, the evaluation as LaTeX, too (it needs booktabs) |
| figures/ | every figure{formats}, with the numbers behind it as CSV |
| study.yaml | the description of the study: `epsearch run --config study.yaml` trains it anew |
| versions.txt | versions of software and machine |
| verification.json | what was trained a second time, alone, and how far it differed |
| {archive} | all runs, to import into a ledger |

To check it:

```
epsearch import {archive} --out checked
epsearch verify {name} --out checked --sample 3
```
"""


class PaperFile(NamedTuple):
    """A study that was written as one file."""

    file: Path
    """The zip."""
    parts: tuple[str, ...]
    """Names of the files in it."""
    left_out: str
    """Why images of figures are left out; "" where they are in it."""


def export_paper(name: str, file: Path, storage: LedgerUrl, out: Path) -> PaperFile:
    """Writes a finished search as one zip for a paper's supplement.

    Raises UsageError for other studies, a search without an evaluation, and a file that cannot be written.
    """
    loop = load(name, storage, out)
    if loop.study.kind != Search.kind:
        raise UsageError(f"--paper is for searches; {name!r} is a study of `epsearch {loop.study.kind}`")
    if not loop.done:
        raise UsageError(f"study {name!r} is not finished: {loop.state()}; `epsearch resume {name}` goes on")
    results = REPORTS[loop.study.kind].results(loop, facts(loop, None) | verification(loop), None)
    if not results.evaluation:
        raise UsageError(f"study {name!r} has no evaluation to report in a paper")
    study = StoredStudy(loop.study, results)
    check_target(file)
    with add_plugins(results.config), tempfile.TemporaryDirectory(prefix="epsearch-") as folder:
        place = Path(folder)
        left_out = _write_parts(study, results, place)
        export_study(name, place / ARCHIVE, storage, out)
        parts = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
        _pack(place, parts, file)
    return PaperFile(file, tuple(parts), left_out)


def _write_parts(study: StoredStudy, results: SearchResults, folder: Path) -> str:
    """Writes all files but the archive; returns why images of figures are left out."""
    from results.export import write_csv
    from results.pages.search.latex import evaluation_sheet
    from results.pages.search.methods_text import bibtex, methods_paragraph
    from results.pages.sheet import as_latex

    (folder / "tables").mkdir()
    (folder / "figures").mkdir()
    for name, table in study.tables.items():
        write_csv(folder / "tables" / f"{name}.csv", table)
    for module, numbers in study.drawings.values():
        for name, table in module.tables(numbers).items():
            write_csv(folder / "figures" / f"{name}.csv", table)
    left_out = _draw(study, folder / "figures")
    formats = "" if left_out else " as PDF and SVG"
    texts: dict[str, Callable[[], str]] = {
        "tables/evaluation.tex": lambda: as_latex(evaluation_sheet(results)),
        "methods.md": lambda: f"{methods_paragraph(results)}\n",
        "references.bib": lambda: bibtex(results),
        "study.yaml": lambda: study.study.to_yaml(places=False),
        "versions.txt": lambda: "".join(f"{line}\n" for line in _versions(results)),
        "verification.json": lambda: json.dumps(_verification(results), indent=2, ensure_ascii=False) + "\n",
        "README.md": lambda: README.format(
            name=study.study.name, version=metadata.version("epsearch"), archive=ARCHIVE, formats=formats
        ),
    }
    for name, text in texts.items():
        (folder / name).write_text(text(), encoding="utf-8")
    return left_out


def _draw(study: StoredStudy, folder: Path) -> str:
    """Writes the images of all figures; returns why this machine cannot, or ""."""
    from results.pages.vector import DrawingError, write_vectors

    try:
        write_vectors(study.drawings, folder)
    except DrawingError as error:
        return str(error)
    return ""


def _versions(results: SearchResults) -> Iterator[str]:
    """Yields what trained the runs, as the report has it, and what is installed here."""
    yield from (f"{label}: {text}" for label, text in results.facts.items())
    for package in PACKAGES:
        try:
            yield f"installed {package}: {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            continue


def _verification(results: SearchResults) -> dict[str, object]:
    """Returns the certificates of the search and the last verification, as JSON."""
    from results.verdict import certificates

    return {
        "verified": results.facts.get("verified"),
        "certificates": [
            # JSON has no infinity.
            {
                "key": certificate.key,
                "accuracy_difference": _finite(certificate.accuracy_difference),
                "created": certificate.created,
            }
            for certificate in results.certificates
        ],
        "summary": certificates.summary(results),
        "disjointness": results.disjointness,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _pack(folder: Path, parts: Sequence[str], file: Path) -> None:
    """Writes the files of a folder into a zip, atomically. Raises UsageError."""
    from results.files import atomically

    try:
        with atomically(file) as path, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for part in parts:
                # Of one time, so that the same study makes the same file.
                archive.writestr(zipfile.ZipInfo(part, WHEN), (folder / part).read_bytes(), zipfile.ZIP_DEFLATED)
    except OSError as error:
        raise UsageError(f"cannot write {on_one_line(file)}: {error.strerror or error}") from error
