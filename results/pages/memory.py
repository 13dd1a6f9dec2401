"""The page of the episodic-memory study, and its numbers."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from results.figures import inside_tasks, memory_panels, plugins
from results.html import appendix, page
from results.labels import count_text, dataset_label, settings_text, stream_label
from results.pages.cells import printed_sheet, warnings
from results.pages.costs import cost_table, costs_section, files
from results.pages.latex import table_for_latex
from results.pages.orders import orders_section
from results.pages.sheet import Sheet, as_html
from results.pages.writing import Figures, draw_figures, write_page
from results.paper.differences import with_printed_rows
from results.paper.reference import Printed, footnotes, main_memory, printed_memory_row
from results.table import TableResults

PRINTED_METRICS = memory_panels.PANELS
"""The metrics of the paper's memory tables, in their order."""


def write_memory_study(study: TableResults, folder: Path) -> Path:
    """Writes the page of an episodic-memory study into `folder`, and returns its path.

    Files: memory.html, memory.csv, costs.csv, memory.md, memory.tex, figures/*.csv and the exported runs, as
    `write_page` writes them.
    """
    table, costs = memory_table(study), cost_table(study)
    sheet = memory_sheet(study, table)
    drawings = figures(study)
    html = partial(_page, study, table, costs, sheet, drawings)
    standalone = sheet.standalone(study.notes)
    latex = table_for_latex(study, table, latex_metrics(), partial(memory_sheet, study))
    written = {"memory": table} | files(costs)
    return write_page(folder / "memory.html", html, written, drawings, standalone, study.records, latex)


def tables(study: TableResults) -> dict[str, pd.DataFrame]:
    """Returns the table, by the name of its file."""
    return {"memory": memory_table(study)} | files(cost_table(study))


def figures(study: TableResults) -> Figures:
    """Returns every figure."""
    inside = inside_tasks.numbers((", ".join(row.identity), row.records) for row in study.rows)
    return {
        "memory_panels": (memory_panels, memory_panels.numbers(memory_table(study))),
        **({"accuracy_over_steps": (inside_tasks, inside)} if len(inside) else {}),
        **plugins.numbers(study),
    }


def overview(study: TableResults) -> str:
    """Returns what a reader sees first of a memory study, also while it goes on: warnings and the table."""
    table = memory_table(study)
    return page.notes(warnings(table, study.comparable, study.notes)) + as_html(memory_sheet(study, table))


def memory_table(study: TableResults) -> pd.DataFrame:
    """Returns one row a `TableRow`, beside tables 9 and 10 of the paper.

    Columns: row, method, memory, settings (text), then n, diverged and those of `with_printed_rows` for A_T, a_1, a_t
    and F_T, as in `comparison_table`.
    """
    printed = _printed_rows(study) if study.printed_beside else [{} for _ in study.rows]
    beside = with_printed_rows([row.records for row in study.rows], printed, PRINTED_METRICS, PRINTED_METRICS)
    named = [(row.label, row.method, row.memory, settings_text(row.settings)) for row in study.rows]
    return pd.DataFrame(named, columns=["row", "method", "memory", "settings"]).join(beside)


def memory_notes(study: TableResults) -> list[tuple[str, ...]]:
    """Returns the footnotes of each row: they are about the main tables, so only rows with their memory have any."""
    return [
        footnotes(study.dataset, row.method)
        if study.printed_beside and row.memory == main_memory(study.dataset, row.method)
        else ()
        for row in study.rows
    ]


def leaves_out(study: TableResults) -> bool:
    """Returns whether the paper has printed rows that are not in the table, because the sizes are others."""
    return not study.printed_beside and any(_printed_rows(study))


def latex_metrics() -> tuple[str, ...]:
    """Returns the metrics that the LaTeX table can have."""
    return PRINTED_METRICS


def memory_sheet(study: TableResults, table: pd.DataFrame, metrics: Sequence[str] = ()) -> Sheet:
    """Returns the table for people, from the `memory_table`: one row a method and size of its memory.

    metrics: its columns, of which `table` must have the numbers; empty for all.
    """
    title = f"Size of the episodic memory on {dataset_label(study.dataset)}"
    printed = "" if leaves_out(study) else "the paper's memory study"
    # Beside the method, because a line of the figure is several rows here.
    sizes = (("memory", "per class, task"),)
    return printed_sheet(study, table, title, memory_notes(study), metrics or PRINTED_METRICS, printed, sizes)


def _printed_rows(study: TableResults) -> list[dict[str, Printed]]:
    """Returns the printed row of each row; empty where the paper prints none."""
    return [printed_memory_row(study.dataset, row.method, row.memory) for row in study.rows]


def _page(study: TableResults, table: pd.DataFrame, costs: pd.DataFrame, sheet: Sheet, drawings: Figures) -> str:
    # Without a point the figure would be empty axes.
    count = len(drawings["memory_panels"][1])
    panels = draw_figures(drawings).values() if count else [page.paragraphs("No member has been measured yet.")]
    body = [
        page.notes(warnings(table, study.comparable, study.notes)),
        page.section("Metrics against the memory", *panels),
        page.section(f"Results{' beside the printed table' if study.printed_beside else ''}", as_html(sheet)),
        costs_section(study, costs),
        orders_section(study),
        appendix.configuration(study.config),
        appendix.machine(study.facts),
    ]
    methods, sizes = table["row"].nunique(), table["memory"].nunique()
    stream = stream_label(study.config, "evaluation stream")
    lead = f"{count_text(methods, 'method')} with {count_text(sizes, 'size')} of memory, on the {stream}."
    title = f"{sheet.title} — {study.name}"
    return page.page(title, study.name, sheet.title, lead, "\n".join(body), "Memory study ·")
