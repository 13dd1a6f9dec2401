"""The page of a comparison of methods, and its files."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from results.figures import inside_tasks, over_tasks, plugins, transfer
from results.html import appendix, page
from results.labels import count_text, dataset_label, number_text, stream_label
from results.metrics import METRICS
from results.pages.cells import printed_sheet, warnings
from results.pages.comparison_numbers import comparison_table, leaves_out, ranking, row_notes
from results.pages.costs import cost_table, costs_section, files
from results.pages.latex import table_for_latex
from results.pages.orders import orders_section
from results.pages.sheet import Sheet, as_html
from results.pages.writing import Figures, draw_figures, write_page
from results.table import TableResults
from results.verdict import claim
from results.verdict.reproduction import sentences


def write_comparison(comparison: TableResults, folder: Path) -> Path:
    """Writes the page of a comparison into `folder`, and returns its path.

    Files: comparison.html, comparison.csv, ranking.csv, costs.csv, comparison.md, comparison.tex, figures/*.csv and the
    exported runs, as `write_page` writes them.
    """
    table, (ranked, tau), costs = comparison_table(comparison), ranking(comparison), cost_table(comparison)
    sheet, drawings = comparison_sheet(comparison, table), figures(comparison)
    return write_page(
        folder / "comparison.html",
        partial(_page, comparison, table, costs, ranked, tau, sheet, drawings),
        {"comparison": table, "ranking": ranked} | files(costs),
        drawings,
        sheet.standalone(comparison.notes),
        comparison.records,
        table_for_latex(comparison, table, latex_metrics(), partial(comparison_sheet, comparison)),
    )


def tables(comparison: TableResults) -> dict[str, pd.DataFrame]:
    """Returns every table, by the name of its file; the first is the comparison."""
    tables = {"comparison": comparison_table(comparison), "ranking": ranking(comparison)[0]}
    return tables | files(cost_table(comparison))


def figures(comparison: TableResults) -> Figures:
    """Returns every figure. A new figure is one line here."""
    rows = [(row.label, row.records) for row in comparison.rows]
    inside = inside_tasks.numbers(rows)
    return {
        "accuracy_curve": (over_tasks, over_tasks.numbers(rows, "A_k")),
        "forgetting_curve": (over_tasks, over_tasks.numbers(rows, "F_k")),
        "transfer": (transfer, transfer.numbers(rows)),
        **({"accuracy_over_steps": (inside_tasks, inside)} if len(inside) else {}),
        **plugins.numbers(comparison),
    }


def overview(comparison: TableResults) -> str:
    """Returns what a reader sees first of a comparison, also while it goes on: headlines, warnings, the table."""
    table = comparison_table(comparison)
    return _overview(comparison, table, *ranking(comparison)) + as_html(comparison_sheet(comparison, table))


def latex_metrics() -> tuple[str, ...]:
    """Returns the metrics that the LaTeX table can have."""
    return tuple(METRICS)


def comparison_sheet(comparison: TableResults, table: pd.DataFrame, metrics: Sequence[str] = ()) -> Sheet:
    """Returns the table for people, from the `comparison_table`, with footnotes on the rows.

    metrics: its columns, of which `table` must have the numbers; empty for all.
    """
    title = f"Methods on the evaluation stream of {dataset_label(comparison.dataset)}"
    printed = "" if leaves_out(comparison) else "the paper's main table"
    return printed_sheet(comparison, table, title, row_notes(comparison), metrics or tuple(METRICS), printed)


def _page(
    comparison: TableResults,
    table: pd.DataFrame,
    costs: pd.DataFrame,
    ranked: pd.DataFrame,
    tau: float,
    sheet: Sheet,
    drawings: Figures,
) -> str:
    # Without a member the figures would be empty axes. Their numbers are still in the files.
    learning = (
        draw_figures(drawings).values()
        if (table["n"] > 0).any()
        else [page.paragraphs("No member has been measured yet.")]
    )
    body = [
        _overview(comparison, table, ranked, tau),
        page.section(f"Results{' beside the printed table' if comparison.printed_beside else ''}", as_html(sheet)),
        costs_section(comparison, costs),
        _ranking_section(ranked, tau) if comparison.printed_beside else "",
        page.section("While learning, and transfer", *learning),
        orders_section(comparison),
        appendix.configuration(comparison.config),
        appendix.machine(comparison.facts),
    ]
    heading = f"Continual-learning methods on {dataset_label(comparison.dataset)}"
    tasks = max((record.tasks for record in comparison.records), default=0)
    stream = f"the {stream_label(comparison.config, 'evaluation stream')}"
    stream += f" ({count_text(tasks, 'task')})" if tasks else ""
    beside = ", our results beside the paper's printed table" if comparison.printed_beside else ""
    lead = f"{count_text(len(table), 'row')} on {stream}{beside}."
    title = f"{heading} — {comparison.name}"
    return page.page(title, comparison.name, heading, lead, "\n".join(body), "Comparison of methods ·")


def _overview(comparison: TableResults, table: pd.DataFrame, ranked: pd.DataFrame, tau: float) -> str:
    noted = page.notes(warnings(table, comparison.comparable, comparison.notes))
    claimed = () if comparison.claim is None else claim.sentences(comparison.claim)
    against = page.paragraphs("\n\n".join((*sentences(comparison), *claimed)))
    return page.tiles(_headlines(table, ranked, tau)) + against + noted


def _headlines(table: pd.DataFrame, ranked: pd.DataFrame, tau: float) -> Iterator[tuple[str, str, str]]:
    """Yields (label, value, detail) of the tiles."""
    measured = table[table["n"] > 0]
    if len(measured):
        best = measured.sort_values("A_T_mean", ascending=False).iloc[0]
        yield "Highest A_T", f"{number_text(best['A_T_mean'], METRICS['A_T'].digits)} %", str(best["row"])
    yield "Rows measured", f"{len(measured)} of {len(table)}", count_text(int(table["n"].sum()), "member")
    if not math.isnan(tau):
        methods = ranked["method"].nunique()
        yield "Kendall's τ, ranking by A_T", number_text(tau, 2), f"ours and printed, {methods} methods"


def _ranking_section(ranked: pd.DataFrame, tau: float) -> str:
    """Returns the section with our order of the rows beside the printed one, and Kendall's τ of the two."""
    if ranked.empty:
        return page.section("Ranking", page.paragraphs("No row has both a measured and a printed A_T."))
    header = [("method", ""), ("rank", "ours"), ("A_T", "ours, %"), ("A_T", "printed, %"), ("rank", "printed")]
    rows = [
        (
            "",
            [
                row["row"],
                str(row["rank"]),
                number_text(row["A_T"], METRICS["A_T"].digits),
                number_text(row["printed_A_T"], 1),  # as the paper prints it: a second decimal would be ours
                str(row["printed_rank"]),
            ],
        )
        for _, row in ranked.iterrows()
    ]
    methods = count_text(ranked["method"].nunique(), "method")
    agreement = (
        f"Kendall's τ-b = {number_text(tau, 2)} over {methods}, each represented by its first row in the table of "
        "results: 1 means the printed order, 0 no relation, −1 the reverse order. "
        if not math.isnan(tau)
        else ""
    )
    shared = "Rows of one method share its printed rank; rows without one of the values are left out."
    return page.section(
        "Ranking", page.table(header, rows, "Ranking by A_T"), page.small(f"Ranked by A_T. {agreement}{shared}")
    )
