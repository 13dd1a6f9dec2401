"""The answer of a study in a few lines, as the end of a run prints it."""

import math
from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any, TypeAlias

import pandas as pd
from rich.console import RenderableType
from rich.text import Text

from epsearch.terminal.consoles import table
from results.labels import count_text, method_label
from results.metrics import METRICS
from results.pages import comparison_numbers
from results.pages import memory as memory_page
from results.paper.differences import spread_name
from results.protocols import ProtocolResults
from results.search import SearchResults
from results.table import TableResults
from results.verdict import claim
from results.verdict import reproduction as against
from results.verdict.protocols import summary as protocol_summary
from results.verdict.summary import Summary, summary
from results.verdict.wording import samples
from search_spaces.published.pack import packs

Brief: TypeAlias = tuple[list[RenderableType], dict[str, str]]
"""Lines, and facts below them by name; a next step that is a command begins with the name of the program."""


def search(results: SearchResults) -> Brief:
    """Returns the answer, the evaluation of two metrics, trust and next step."""
    return _in_brief(summary(results))


def protocols(results: ProtocolResults) -> Brief:
    """Returns who loses how much, a line a protocol, and the smallest loss that could have been seen."""
    return _in_brief(protocol_summary(results))


def _in_brief(brief: Summary) -> Brief:
    """Returns answer, rows and what stands below them."""
    lines: list[RenderableType] = [Text(brief.answer, style="bold")]
    if brief.rows:
        lines.append(table([(f"  {label}", *cells) for label, *cells in brief.rows], brief.tasks, *brief.metrics))
    lines += map(Text, brief.references)
    claimed = {"claim": brief.claim} if brief.claim else {}
    return lines, {**claimed, "trust": brief.trust, "next": brief.next_step}


def reproduction(answer: against.Answer) -> Brief:
    """Returns whether the printed row is reproduced, its numbers, and the seeds that an answer needs."""
    titles = (f"  {answer['metric']}", "ours", "printed", "difference", f"{100 * against.TOST:.0f} % interval")
    lines: list[RenderableType] = [
        Text(against.headline(answer), style="bold"),
        table([(f"  {method_label(answer['method'])}", *against.cells(answer))], *titles),
    ]
    needed, ours = answer.get("seeds_needed"), answer["name"] in packs()
    step = "epsearch reproduce --table"
    if needed:
        step = f"epsearch reproduce {answer['name']} --seeds {needed}" if ours else f"the same with --seeds {needed}"
    below = {"trust": against.how_far(answer), "needs": against.remedy(answer), "source": shorten(answer["source"], 70)}
    if answer["anomalies"]:
        below["known"] = f"{count_text(len(answer['anomalies']), 'remark')} on this row, with --why"
    return lines, {name: text for name, text in below.items() if text} | {"next": step}


def comparison(results: TableResults) -> Brief:
    """Returns the answer of a row against print, or the method with the highest A_T and how rankings agree.

    Then a line a row; of a study with the row of a pack alone, the numbers of the test.
    """
    if (answer := against.reproduction(results)) is not None and len(results.rows) == 1:
        return reproduction(answer)
    rows = comparison_numbers.comparison_table(results)
    lines, below = _table_in_brief(results, rows, ("row",), comparison_numbers.leaves_out(results))
    tau = comparison_numbers.ranking(results)[1] if results.printed_beside else math.nan
    if answer is not None:
        lines.insert(0, Text(against.headline(answer), style="bold"))
    if math.isfinite(tau):
        below["trust"] += f"; Kendall's τ with the printed ranking {tau:.2f}"
    claimed = {} if results.claim is None else {"claim": claim.in_brief(results.claim)}
    return lines, claimed | below


def memory(results: TableResults) -> Brief:
    """Returns the method and size of memory with the highest A_T, and a line a row."""
    rows = memory_page.memory_table(results)
    return _table_in_brief(results, rows, ("row", "memory"), memory_page.leaves_out(results))


def _table_in_brief(results: TableResults, rows: pd.DataFrame, titles: Sequence[str], left_out: bool) -> Brief:
    """Returns the row with the highest A_T, and a line a row with A_T, the printed A_T, if any, and F_T.

    titles: of the columns that name a row, which are also those of `rows`.
    """
    measured = rows[rows["n"] > 0]
    best = "no row has been measured yet"
    if len(measured):
        first = measured.sort_values("A_T_mean").iloc[-1]
        more = "".join(f", {title} {first[title]}" for title in titles[1:])
        best = f"highest A_T: {first[titles[0]]}{more}, {_cell(first, 'A_T')} %"
    printed = bool((rows["A_T_printed"] != "").any()) if "A_T_printed" in rows else False
    lines = [
        (
            *(f"  {row[title]}" for title in titles),
            _cell(row, "A_T"),
            *([str(row["A_T_printed"]).replace("-", "−")] if printed else []),
            _cell(row, "F_T"),
        )
        for row in rows.to_dict("records")
    ]
    body = table(lines, *(f"  {title}" for title in titles), "A_T %", *(["printed"] if printed else []), "F_T %")
    orders = len({record.unit.order for row in results.rows for record in row.records})
    seeds = "" if measured.empty else f"{samples(int(measured['n'].min()), orders)}; ± {spread_name(printed)}"
    step = f"epsearch report {results.name} {'--with-printed' if left_out else '--figures pdf'}"
    return [Text(best, style="bold"), body], {**({"trust": seeds} if seeds else {}), "next": step}


def _cell(row: Mapping[Any, Any] | pd.Series, metric: str) -> str:
    return METRICS[metric].mean_std_text(float(row[f"{metric}_mean"]), float(row[f"{metric}_std"]))
