"""The page of the episodic-memory study, and files with all its numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from results.export import export_runs
from results.figures import memory_panels
from results.files import write_atomically, write_csv
from results.labels import count_text, dataset_label
from results.pages.cells import count_cell, label_cell, metric_cell, metric_header, remarks, warnings
from results.pages.memory_numbers import MEMORY_METRICS, MemoryResults, memory_notes, memory_table
from results.pages.sheet import Line, Sheet, as_html, as_latex, as_markdown, numbered

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["memory_sheet", "write_memory_study"]


def write_memory_study(study: MemoryResults, folder: Path) -> Path:
    """Writes the page of an episodic-memory study into `folder`, and returns its path.

    Files: memory.html, memory.csv, memory.md, memory.tex, figures/*.csv and the exported runs. Each is written
    atomically, the page last, so that a page never shows numbers that are not in the files.
    """
    table = memory_table(study)
    panels = memory_panels.numbers(table)
    write_csv(folder / "memory.csv", table)
    for name, data in memory_panels.tables(panels).items():
        write_csv(folder / "figures" / f"{name}.csv", data)
    export_runs({r.key: r for row in study.rows for r in row.records}.values(), folder)
    plain = memory_sheet(study, table)
    # In a document of its own the table needs the notes that are at the top of the page.
    sheet = replace(plain, remarks=(*plain.remarks, *study.notes))
    write_atomically(folder / "memory.md", as_markdown(sheet).encode())
    write_atomically(folder / "memory.tex", as_latex(sheet).encode())
    return write_atomically(folder / "memory.html", _page(study, table, panels).encode())


def memory_sheet(study: MemoryResults, table: pd.DataFrame) -> Sheet:
    """Returns the table for people, from the `memory_table`."""
    notes, marks = numbered(memory_notes(study))
    rows = tuple(
        (
            label_cell(row, mark, study.comparable),
            (Line(str(row["memory"])),),
            *(metric_cell(row, metric, study.comparable) for metric in MEMORY_METRICS),
            count_cell(row),
        )
        for (_, row), mark in zip(table.iterrows(), marks, strict=True)
    )
    title = f"Size of the episodic memory on {dataset_label(study.dataset)}"
    header = (("method", ""), ("memory", "per class, task"), *metric_header(MEMORY_METRICS), ("n", "seeds"))
    return Sheet(title, header, rows, notes, tuple(remarks(table, study.comparable, "the paper's memory study")))


def _page(study: MemoryResults, table: pd.DataFrame, panels: memory_panels.MemoryPanels) -> str:
    from results.html import appendix, page

    drawn = (
        page.figure("memory_panels", memory_panels, panels)
        if len(panels.points)
        else page.paragraphs("No member has been measured yet.")
    )
    body = [
        page.notes(warnings(table, study.comparable, study.notes)),
        page.section("Metrics against the memory", drawn),
        page.section("Results beside the printed table", as_html(memory_sheet(study, table))),
        appendix.configuration(study.config),
        appendix.machine(study.facts),
    ]
    heading = f"Size of the episodic memory on {dataset_label(study.dataset)}"
    methods, sizes = table["row"].nunique(), table["memory"].nunique()
    lead = f"{count_text(methods, 'method')} with {count_text(sizes, 'size')} of memory, on the evaluation stream."
    title = f"{heading} — {study.name}"
    return page.page(title, study.name, heading, lead, "\n".join(body), "Memory study ·")
