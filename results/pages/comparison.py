"""The page of a comparison of methods, and files with all its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from results.export import export_runs
from results.figures import curves, transfer
from results.files import write_atomically, write_csv
from results.labels import count_text, dataset_label, number_text
from results.metrics import METRICS
from results.pages.cells import count_cell, label_cell, metric_cell, metric_header, remarks, warnings
from results.pages.comparison_numbers import ComparisonResults, Ranking, comparison_table, ranking, row_notes
from results.pages.sheet import Sheet, as_html, as_latex, as_markdown, numbered

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["comparison_sheet", "write_comparison"]


def write_comparison(comparison: ComparisonResults, folder: Path) -> Path:
    """Writes the page of a comparison into `folder`, and returns its path.

    Files: comparison.html, comparison.csv, ranking.csv, comparison.md, comparison.tex, figures/*.csv and the exported
    runs. Each is written atomically, the page last, so that a page never shows numbers that are not in the files.
    """
    table, ranked = comparison_table(comparison), ranking(comparison)
    figures = _figures(comparison, table)
    write_csv(folder / "comparison.csv", table)
    write_csv(folder / "ranking.csv", ranked.table)
    for module, numbers in figures.values():
        for name, data in module.tables(numbers).items():
            write_csv(folder / "figures" / f"{name}.csv", data)
    export_runs({r.key: r for row in comparison.rows for r in row.records}.values(), folder)
    plain = comparison_sheet(comparison, table)
    # In a document of its own the table needs the notes that are at the top of the page.
    sheet = replace(plain, remarks=(*plain.remarks, *comparison.notes))
    write_atomically(folder / "comparison.md", as_markdown(sheet).encode())
    write_atomically(folder / "comparison.tex", as_latex(sheet).encode())
    return write_atomically(folder / "comparison.html", _page(comparison, table, ranked, figures).encode())


def comparison_sheet(comparison: ComparisonResults, table: pd.DataFrame) -> Sheet:
    """Returns the table for people, from the `comparison_table`."""
    notes, marks = numbered(row_notes(comparison))
    comparable = comparison.comparable
    rows = tuple(
        (
            label_cell(row, mark, comparable),
            *(metric_cell(row, metric, comparable) for metric in METRICS),
            count_cell(row),
        )
        for (_, row), mark in zip(table.iterrows(), marks, strict=True)
    )
    title = f"Methods on the evaluation stream of {dataset_label(comparison.dataset)}"
    header = (("method", ""), *metric_header(), ("n", "seeds"))
    below = tuple(remarks(table, comparable, "the paper's main table"))
    return Sheet(title, header, rows, notes, below)


def _figures(comparison: ComparisonResults, table: pd.DataFrame) -> dict[str, tuple[ModuleType, Any]]:
    """Returns name -> (module, its numbers) of every figure. A new figure is one line here."""
    rows = [(row.label, row.records) for row in comparison.rows]
    return {
        "accuracy_curve": (curves, curves.numbers(rows, "A_k")),
        "forgetting_curve": (curves, curves.numbers(rows, "F_k")),
        "transfer": (transfer, transfer.numbers(table)),
    }


def _page(
    comparison: ComparisonResults, table: pd.DataFrame, ranked: Ranking, figures: dict[str, tuple[ModuleType, Any]]
) -> str:
    from results.html import appendix, page

    dataset, tasks = dataset_label(comparison.dataset), _tasks(comparison)
    drawn = [page.figure(name, module, numbers) for name, (module, numbers) in figures.items()]
    nothing = page.paragraphs("No member has been measured yet.")
    body = [
        page.tiles(_headlines(table, ranked)) + page.notes(warnings(table, comparison.comparable, comparison.notes)),
        page.section("Results beside the printed table", as_html(comparison_sheet(comparison, table))),
        _ranking_section(ranked),
        page.section("While learning, and transfer", *(drawn if (table["n"] > 0).any() else [nothing])),
        appendix.configuration(comparison.config),
        appendix.machine(comparison.facts),
    ]
    heading = f"Continual-learning methods on {dataset}"
    stream = f"the evaluation stream ({count_text(tasks, 'task')})" if tasks else "the evaluation stream"
    lead = f"{count_text(len(table), 'row')} on {stream}, our results beside the paper's printed table."
    title = f"{heading} — {comparison.name}"
    return page.page(title, comparison.name, heading, lead, "\n".join(body), "Comparison of methods ·")


def _tasks(comparison: ComparisonResults) -> int:
    """Returns the number of tasks of the stream; 0 where nothing was trained."""
    return max((r.tasks for row in comparison.rows for r in row.records), default=0)


def _headlines(table: pd.DataFrame, ranked: Ranking) -> Iterator[tuple[str, str, str]]:
    """Yields (label, value, detail) of the tiles."""
    measured = table[table["n"] > 0]
    if len(measured):
        best = measured.sort_values("A_T_mean", ascending=False).iloc[0]
        yield "Highest A_T", f"{number_text(best['A_T_mean'], METRICS['A_T'].digits)} %", str(best["row"])
    yield "Rows measured", f"{len(measured)} of {len(table)}", count_text(int(table["n"].sum()), "member")
    if not math.isnan(ranked.tau):
        yield "Kendall's τ, ranking by A_T", number_text(ranked.tau, 2), f"ours and printed, {ranked.methods} methods"


def _ranking_section(ranked: Ranking) -> str:
    from results.html import page

    if ranked.table.empty:
        return page.section("Ranking", page.paragraphs("No row has both a measured and a printed A_T."))
    header = [("method", ""), ("rank", "ours"), ("A_T", "ours, %"), ("A_T", "printed, %"), ("rank", "printed")]
    rows = [
        ("", [f"{r['row']}", f"{r['rank']}", *_ranked_values(r), f"{r['printed_rank']}"])
        for _, r in ranked.table.iterrows()
    ]
    tau = (
        f"Kendall's τ-b = {number_text(ranked.tau, 2)} over {count_text(ranked.methods, 'method')}, each represented "
        "by its first row in the table of results: 1 means the printed order, 0 no relation, −1 the reverse order. "
        if not math.isnan(ranked.tau)
        else ""
    )
    shared = "Rows of one method share its printed rank; rows without one of the values are left out."
    text = f"Ranked by A_T. {tau}{shared}"
    return page.section("Ranking", page.table(header, rows, "Ranking by A_T"), page.small(text))


def _ranked_values(row: pd.Series) -> tuple[str, str]:
    return number_text(float(row["A_T"]), METRICS["A_T"].digits), number_text(float(row["printed_A_T"]), 1)
