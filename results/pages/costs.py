"""The section with the cost of each row of a table of methods, and with what differs between rows."""

import math
from collections.abc import Iterator

import pandas as pd

from results.html import page
from results.labels import MISSING, bytes_text, number_text
from results.table import TableResults

KINDS = ("examples", "logits", "arrays", "bases", "columns")
"""Kinds of what methods keep, in the order of the columns."""


def cost_table(results: TableResults) -> pd.DataFrame:
    """Returns one row a `TableRow`; empty where the data of the study are not here.

    Columns: row, method, memory (of a memory study), kept_bytes, <kind>_bytes, steps and flop of a member, seconds (the
    mean wall time of a member, of its share of a cohort), tuning_steps (of all members that tuned the row).
    """
    rows = []
    for row, cost in zip(results.rows, results.costs(), strict=False):
        seconds = [record.seconds for record in row.records]
        rows.append(
            {
                "row": row.label,
                "method": row.method,
                **({} if row.memory is None else {"memory": row.memory}),
                "kept_bytes": sum(cost.kept.values()),
                **{f"{kind}_bytes": cost.kept.get(kind, 0) for kind in KINDS},
                "steps": cost.steps,
                "flop": cost.flop,
                "seconds": sum(seconds) / len(seconds) if seconds else math.nan,
                "tuning_steps": cost.tuning,
            }
        )
    return pd.DataFrame(rows)


def files(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Returns the table by the name of its file; nothing where it is empty."""
    return {} if table.empty else {"costs": table}


def differences(results: TableResults, table: pd.DataFrame) -> str:
    """Returns what the rows do not share, one sentence; "" where they share all.

    table: of `cost_table`. Learning rates that were tuned alike are not named.
    """
    parts = list(_differences(results, table)) if len(table) else []
    return f"The rows differ in {', '.join(parts)}." if parts else ""


def costs_section(results: TableResults, table: pd.DataFrame) -> str:
    """Returns the section, with a note of what the rows do not share; "" where the data are not here."""
    if table.empty:
        return ""
    kinds = [kind for kind in KINDS if table[f"{kind}_bytes"].any()]
    tuned = bool(table["tuning_steps"].any())
    sized = "memory" in table
    header = [("row", ""), *([("memory", "per class, task")] if sized else []), ("kept", "bytes")]
    header += [(kind, "bytes") for kind in kinds] if len(kinds) > 1 else []
    header += [("steps", "a member"), ("FLOP", "a member"), ("seconds", "a member")]
    header += [("tuning", "steps, all members")] if tuned else []
    rows = [
        (
            "",
            [
                str(row["row"]),
                *([str(row["memory"])] if sized else []),
                _bytes(row["kept_bytes"]),
                *([_bytes(row[f"{kind}_bytes"]) for kind in kinds] if len(kinds) > 1 else []),
                f"{row['steps']:,.0f}",
                f"{row['flop']:.2g}",
                MISSING if math.isnan(row["seconds"]) else number_text(row["seconds"], 2),
                *([f"{row['tuning_steps']:,.0f}"] if tuned else []),
            ],
        )
        for _, row in table.iterrows()
    ]
    said = differences(results, table)
    return page.section(
        "Cost of the rows",
        page.notes([said]) if said else "",
        page.table(header, rows, "Cost of the rows"),
        page.small(
            "Kept: bytes that a method keeps from task to task beside one network; images as they are stored, with a "
            "byte for each label. FLOP include tests. Seconds: a member's share of the wall time of its cohort."
        ),
    )


def _differences(results: TableResults, table: pd.DataFrame) -> Iterator[str]:
    """Yields each thing that the rows do not share, with its smallest and largest value."""
    low, high = table["kept_bytes"].min(), table["kept_bytes"].max()
    if low < high:
        yield f"bytes kept ({bytes_text(low)} to {bytes_text(high)})"
    rates = [float(row.settings["lr"]) for row in results.rows if "lr" in row.settings]
    # Rates that were tuned with the same budget are what a fair tuning has found.
    fair = table["tuning_steps"].nunique() == 1 and table["tuning_steps"].iloc[0] > 0
    if not fair and len(set(rates)) > 1:
        yield f"learning rate ({min(rates):g} to {max(rates):g})"
    for column, name in (("steps", "SGD steps of a member"), ("tuning_steps", "member-steps of tuning")):
        low, high = table[column].min(), table[column].max()
        if low < high:
            yield f"{name} ({low:,.0f} to {high:,.0f})"


def _bytes(count: float) -> str:
    return bytes_text(count) if count else "none"
