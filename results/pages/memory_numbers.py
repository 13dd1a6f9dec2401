"""The numbers of an episodic-memory study: the same methods with memories of different sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from results.labels import settings_text
from results.ledger.record import RunRecord
from results.pages.comparison_numbers import check_members, check_unique
from results.paper.comparison import beside_printed
from results.paper.reference import footnotes, main_memory, printed_memory_row

if TYPE_CHECKING:
    import pandas as pd

MEMORY_METRICS = ("A_T", "a_1", "a_t", "F_T")
"""The metrics of the paper's memory tables, in their order."""


@dataclass(frozen=True, eq=False)
class MemoryRow:
    """One method with one size of memory.

    Raises ValueError where `memory` is below 1, or where its records differ in tasks or share a seed.
    """

    label: str
    """The name of the method's line in the figure, the same for every size of its memory."""
    method: str
    """Our name: "agem", "a_agem", "soft_agem", …"""
    memory: int
    """Examples per class and task."""
    settings: Mapping[str, Any]
    """The other hyperparameters that identify the row; shown in the table."""
    records: tuple[RunRecord, ...]
    """Its members on the evaluation stream, one a seed, diverged ones included; empty where not trained yet."""

    def __post_init__(self) -> None:
        if self.memory < 1:
            raise ValueError(f"memory must be >= 1 example per class and task, got {self.memory}")
        check_members(f"{self.label}, memory {self.memory}", self.records)


@dataclass(frozen=True, eq=False)
class MemoryStudy:
    """Everything the page of `epsearch memory` prints. Raises ValueError where two rows share label and memory."""

    name: str
    """The study's name."""
    dataset: str
    """As after --dataset."""
    rows: tuple[MemoryRow, ...]
    """The rows of the table, in their order."""
    config: Mapping[str, Any]
    """All options of the study, printed as YAML."""
    facts: Mapping[str, str]
    """Label -> text: machine, versions, seconds, …"""
    notes: tuple[str, ...]
    """Warnings of the caller, shown at the top."""
    comparable: bool
    """Whether the sizes are the paper's, so that its printed rows can be compared with ours."""

    def __post_init__(self) -> None:
        check_unique([(row.label, row.memory) for row in self.rows], "labels and memories of rows")


def memory_table(study: MemoryStudy) -> pd.DataFrame:
    """Returns one row a `MemoryRow`, beside tables 9 and 10 of the paper.

    Columns: row, method, memory, settings (text), then n, diverged and those of `beside_printed` for A_T, a_1, a_t and
    F_T. Means and population standard deviations in the units of `summarize`; <m>_difference_se as in
    `comparison_table`.
    """
    rows = study.rows
    printed = [printed_memory_row(study.dataset, row.method, row.memory) for row in rows]
    table = beside_printed([row.records for row in rows], printed, MEMORY_METRICS, MEMORY_METRICS)
    table.insert(0, "row", [row.label for row in rows])
    table.insert(1, "method", [row.method for row in rows])
    table.insert(2, "memory", [row.memory for row in rows])
    table.insert(3, "settings", [settings_text(row.settings) for row in rows])
    return table


def memory_notes(study: MemoryStudy) -> list[tuple[str, ...]]:
    """Returns the footnotes of each row: they are about the main tables, so only rows with their memory have any."""
    return [
        footnotes(study.dataset, row.method) if row.memory == main_memory(study.dataset, row.method) else ()
        for row in study.rows
    ]
