"""Writes pages, and files with all their numbers."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import pandas as pd

from results.export import export_runs, write_csv
from results.files import write_atomically
from results.html import page
from results.ledger.record import RunRecord
from results.pages.sheet import Sheet, as_latex, as_markdown

Figures: TypeAlias = dict[str, tuple[ModuleType, Any]]
"""Name -> a module of `results.figures`, and its numbers."""


def draw_figures(figures: Figures) -> dict[str, str]:
    """Returns name -> HTML of every figure with its caption."""
    return {name: page.figure(name, module, numbers) for name, (module, numbers) in figures.items()}


def write_page(
    path: Path,
    html: Callable[[], str],
    tables: Mapping[str, pd.DataFrame],
    figures: Figures,
    sheet: Sheet | None = None,
    runs: Iterable[RunRecord] | None = None,
    latex: Sheet | None = None,
) -> Path:
    """Writes a page and everything that it shows, makes the folder if needed, and returns the path of the page.

    path      of the page; every other file lies beside it
    html      makes the page, called last: where drawing fails, the numbers are on disk
    tables    written as <name>.csv, and those of the figures as figures/<name>.csv
    sheet     the table for people, written as Markdown under the name of the page; None for none
    runs      exported, each once, see `results.export.export_runs`; None for no export
    latex     the LaTeX table, written under the name of the page; None for none

    Each file is written atomically, the page last, so that a page never shows numbers that are not in the files.
    Raises OSError where a file cannot be written.
    """
    # In a folder of their own, so that a figure and a table of the page may have the same name.
    of_figures = {f"figures/{name}": t for m, numbers in figures.values() for name, t in m.tables(numbers).items()}
    for name, table in {**tables, **of_figures}.items():
        write_csv(path.parent / f"{name}.csv", table)
    if runs is not None:
        # With --score-on eval the members of the evaluation are also members of the search.
        export_runs({record.key: record for record in runs}.values(), path.parent)
    if sheet is not None:
        write_atomically(path.with_suffix(".md"), as_markdown(sheet).encode())
    if latex is not None:
        write_atomically(path.with_suffix(".tex"), as_latex(latex).encode())
    return write_atomically(path, html().encode())
