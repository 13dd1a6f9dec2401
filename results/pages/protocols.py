"""The page of a study of protocols, and its numbers."""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from results.figures import inside_tasks, over_tasks, plugins, protocol_choices, protocol_costs, protocol_schedules
from results.html import appendix, page
from results.labels import (
    MISSING,
    bytes_text,
    count_text,
    dataset_label,
    flop_text,
    method_label,
    number_text,
    stream_label,
)
from results.metrics import METRICS
from results.pages.cells import warnings
from results.pages.sheet import Cell, Line, Sheet, as_html, number_texts
from results.pages.writing import Figures, draw_figures, write_page
from results.points import parameter_label, value_text
from results.protocol_tables import (
    WORST_CASE,
    choice_table,
    constant_table,
    in_table_order,
    order_table,
    protocol_table,
)
from results.protocols import ProtocolResults, ProtocolRow
from results.verdict import wording
from results.verdict.protocols import DIGITS, answer, choice_text, interval_text, relative_text, sight

BOUND = "A bound that nobody can reach: it chooses by what nobody has at that time."
PEEKS = "Peeks: tests that judge it also choose, so its A_T is too high and its regret too small."
"""Footnotes of the table."""


def write_protocols(results: ProtocolResults, folder: Path) -> Path:
    """Writes the page of a study of protocols into `folder`, and returns its path.

    Files: protocols.html, protocols.md, protocols.csv, choices.csv, orders.csv, constants.csv, figures/*.csv and the
    exported runs, as `write_page` writes them.
    """
    table, drawings = protocol_table(results), figures(results)
    sheet = protocol_sheet(results, table)
    html = partial(_page, results, table, sheet, drawings)
    return write_page(
        folder / "protocols.html",
        html,
        tables(results),
        drawings,
        sheet.standalone(_notes(results, table)),
        results.records,
    )


def tables(results: ProtocolResults) -> dict[str, pd.DataFrame]:
    """Returns every table, by the name of its file; the first has a row a protocol."""
    return {
        "protocols": protocol_table(results),
        "choices": choice_table(results),
        "orders": order_table(results),
        "constants": constant_table(results),
    }


def figures(results: ProtocolResults) -> Figures:
    """Returns every figure. A new figure is one line here."""
    rows = [(row.title, row.records) for row in in_table_order(results)]
    costs, inside = protocol_costs.numbers(results), inside_tasks.numbers(rows)
    once, per_task = protocol_choices.numbers(results), protocol_schedules.numbers(results)
    return {
        **({"protocol_costs": (protocol_costs, costs)} if len(costs) else {}),
        **({"protocol_choices": (protocol_choices, once)} if once else {}),
        **({"protocol_schedules": (protocol_schedules, per_task)} if per_task else {}),
        "accuracy_curve": (over_tasks, over_tasks.numbers(rows, "A_k")),
        **({"accuracy_over_steps": (inside_tasks, inside)} if len(inside) else {}),
        **plugins.numbers(results),
    }


def overview(results: ProtocolResults) -> str:
    """Returns what a reader sees first, also while the study goes on: the answer, warnings and the table."""
    table = protocol_table(results)
    return _answer(results) + page.notes(_notes(results, table)) + as_html(protocol_sheet(results, table))


def protocol_sheet(results: ProtocolResults, table: pd.DataFrame) -> Sheet:
    """Returns the table for people, from the `protocol_table`: one row a protocol, bounds in grey at the end."""
    rows = {row.name: row for row in results.rows}
    records = table.to_dict("records")
    footnotes, marks = number_texts(_footnotes(record) for record in records)
    inside = f"{WORST_CASE}_mean" in table
    others = bool(table["regret_others"].notna().any())
    header = (
        ("protocol", ""),
        (parameter_label(results.parameter), "chosen"),
        ("A_T", "%"),
        ("F_T", "%"),
        *(((WORST_CASE, "%"),) if inside else ()),
        ("regret", "points"),
        *((("to others’ best", "points"),) if others else ()),
        ("smallest", "visible"),
        ("cost", "steps, FLOP"),
        ("kept", "bytes"),
        ("peeks", "at tests"),
    )
    cells = tuple(
        _cells(rows[str(record["protocol"])], record, mark, inside, others)
        for record, mark in zip(records, marks, strict=True)
    )
    title = f"Protocols that choose {parameter_label(results.parameter)} on {dataset_label(results.dataset)}"
    return Sheet(title, header, cells, footnotes, tuple(_remarks(results, table)))


def _cells(
    row: ProtocolRow, record: Mapping[Any, Any], marks: tuple[str, ...], inside: bool, others: bool
) -> tuple[Cell, ...]:
    """Returns the cells of a protocol; those of a bound are set softly."""
    choice, spread = choice_text(row)
    label = "bound" if row.bound else ""
    cost, none = bool(row.cost), (MISSING, "")
    steps = relative_text(record["relative_steps"])
    lines: tuple[tuple[str, ...], ...] = (
        (row.title, label),
        (choice, spread),
        (METRICS["A_T"].mean_std_text(record["A_T_mean"], record["A_T_std"]), _members(record)),
        (METRICS["F_T"].mean_std_text(record["F_T_mean"], record["F_T_std"]), ""),
        *(((_worst_case(record), ""),) if inside else ()),
        _with_interval(record, "regret"),
        *((_with_interval(record, "regret_others"),) if others else ()),
        (number_text(record["smallest_visible"], DIGITS), ""),
        (steps, f"{record['steps']:,.0f}", flop_text(record["flop"])) if record["steps"] > 0 else (steps, ""),
        (bytes_text(record["kept"]) if record["kept"] else "none", "") if cost else none,
        ("yes" if row.evidence.peeks else "no", f"{row.evidence.shared:,} of {row.evidence.judged:,}"),
    )
    soft = "soft" if row.bound else ""
    cells = [(Line(text, soft), *(Line(line, "soft") for line in below if line)) for text, *below in lines]
    name, *rest = cells
    return ((name[0]._replace(marks=marks), *name[1:]), *rest)


def _with_interval(record: Mapping[Any, Any], name: str) -> tuple[str, str]:
    ends = interval_text(record[f"{name}_low"], record[f"{name}_high"])
    return number_text(record[name], DIGITS), "" if ends == MISSING else ends


def _worst_case(record: Mapping[Any, Any]) -> str:
    return METRICS["A_T"].mean_std_text(record[f"{WORST_CASE}_mean"], record[f"{WORST_CASE}_std"])


def _members(record: Mapping[Any, Any]) -> str:
    return f"{record['diverged']} of {record['n'] + record['diverged']} diverged" if record["diverged"] else ""


def _footnotes(record: Mapping[Any, Any]) -> tuple[str, ...]:
    """Returns the footnotes of a row: bound, peeking, and its remark. That a bound peeks goes without saying."""
    remark = str(record["remark"])
    misleads = f"Misleads: {remark}" if record["most_values"] else remark
    peeks = PEEKS if record["peeks"] and not record["bound"] else ""
    return tuple(filter(None, (BOUND if record["bound"] else "", peeks, misleads if remark else "")))


def _remarks(results: ProtocolResults, table: pd.DataFrame) -> Iterator[str]:
    """Yields what a reader of the table has to know."""
    orders = {record.unit.order for record in results.records}
    units = wording.units(results.records)
    yield f"A_T and F_T: mean ± standard deviation of the sample over {units}; a lower F_T is better."
    of = "the means of orders, as seeds of an order are no evidence about orders" if len(orders) > 1 else "seeds"
    yield (
        "Regret: A_T of the best constant value in hindsight minus that of the protocol, in points, paired by order "
        f"and seed; below it the 95 % t interval over {of}. Each interval is about these seeds and stands alone: of "
        "twenty, one misses."
    )
    if table["regret_others"].notna().any():
        yield (
            "To others’ best: the same to the constant that is best on the other orders, without the luck of hindsight."
        )
    if len(orders) > 1:
        label = parameter_label(results.parameter)
        yield f"{wording.heading(label)}: the median over orders, the lower one of two, and below it the range."
    yield (
        "Smallest visible: the regret that a two-sided test at 5 % finds in 80 % of such studies, from the standard "
        f"deviation over {'orders' if len(orders) > 1 else 'seeds'}; none where no unit differs."
    )
    yield (
        "Steps, FLOP and bytes kept from task to task are those of the choice in one order, all its seeds together, "
        "without the training that is judged; × is relative to that training."
    )


def _notes(results: ProtocolResults, table: pd.DataFrame) -> list[str]:
    return warnings(table.rename(columns={"title": "row"}), True, results.notes)


def _answer(results: ProtocolResults) -> str:
    """Returns the answer in words, its first sentence as the headline."""
    first, *others = answer(results)
    return page.banner("", "Answer", first, "\n\n".join(others))


def _page(results: ProtocolResults, table: pd.DataFrame, sheet: Sheet, drawings: Figures) -> str:
    html = draw_figures(drawings)
    protocol_figures = ("protocol_costs", "protocol_choices", "protocol_schedules")
    # Without a member the figures would be empty axes. Their numbers are still in the files.
    learning = (
        [figure for name, figure in html.items() if name not in protocol_figures] if (table["n"] > 0).any() else []
    )
    choices = [html[name] for name in protocol_figures[1:] if name in html]
    label = parameter_label(results.parameter)
    body = [
        _answer(results),
        page.notes(_notes(results, table)),
        html.get("protocol_costs", ""),
        page.section("Protocols", f'<div class="wide">{as_html(sheet)}</div>'),
        page.section("What may see what", page.facts(_sights(results))),
        page.section("Chosen values", *choices, _order_rows(results)),
        page.section("Constant values", _constants(results)),
        page.section("While learning", *learning) if learning else "",
        appendix.configuration(results.config),
        appendix.machine(results.facts),
    ]
    judged = f"judged on the {stream_label(results.config, 'evaluation stream')}"
    lead = (
        f"{count_text(len(results.rows), 'protocol')} that choose {label} of {method_label(results.method)}, each "
        f"{judged}: {wording.units(results.records)}."
    )
    title = f"{sheet.title} — {results.name}"
    return page.page(title, results.name, sheet.title, lead, "\n".join(body), "Protocols ·")


def _sights(results: ProtocolResults) -> dict[str, str]:
    """Returns title -> what a protocol may see, whether it peeks, and its source."""
    source = {row.title: f" Source: {row.source}." if row.source else "" for row in results.rows}
    return {row.title: f"{sight(row)}{source[row.title]}" for row in in_table_order(results)}


def _order_rows(results: ProtocolResults) -> str:
    """Returns the table of choices by order, folded, a group a protocol."""
    table = order_table(results)
    if table.empty:
        return page.paragraphs("No protocol has chosen yet.")
    header = [
        ("order", ""),
        (parameter_label(results.parameter), "chosen"),
        ("A_T", "%"),
        ("regret", "points"),
        ("SGD steps", "to choose"),
        ("FLOP", "to choose"),
        ("kept", ""),
    ]
    rows: list[tuple[str, list[str]]] = []
    for title, part in table.groupby("title", sort=False):
        rows.append(("group", [str(title)]))
        rows += [("", _order_cells(record)) for record in part.to_dict("records")]
    caption = "Choices by order of tasks"
    return page.fold(caption, page.table(header, rows, caption))


def _order_cells(record: Mapping[Any, Any]) -> list[str]:
    cost = not math.isnan(record["steps"])
    return [
        str(record["order"]),
        str(record["choice"]),
        METRICS["A_T"].number_text(record["A_T"]),
        number_text(record["regret"], DIGITS),
        f"{record['steps']:,.0f}" if cost else MISSING,
        flop_text(record["flop"]) if cost and record["flop"] else MISSING,
        bytes_text(record["kept"]) if cost and record["kept"] else MISSING,
    ]


def _constants(results: ProtocolResults) -> str:
    """Returns the table of the constant values, which is the curve that hindsight sees."""
    header = [(parameter_label(results.parameter), ""), ("A_T", "%"), ("F_T", "%"), ("n", "members")]
    rows = [
        (
            "chosen" if record["best"] else "",
            [
                value_text(record["value"]) + (" (best in hindsight)" if record["best"] else ""),
                METRICS["A_T"].mean_std_text(record["A_T_mean"], record["A_T_std"]),
                METRICS["F_T"].mean_std_text(record["F_T_mean"], record["F_T_std"]),
                str(record["n"]) + (f", {record['diverged']} diverged" if record["diverged"] else ""),
            ],
        )
        for record in constant_table(results).to_dict("records")
    ]
    text = (
        "The value stays throughout. Mean ± standard deviation of the sample; no value of which a member diverged is "
    )
    return page.table(header, rows, "Constant values") + page.small(f"{text}the best in hindsight.")
