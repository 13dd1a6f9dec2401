"""The numbers of an episodic-memory study: the same methods with memories of different sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from results.labels import settings_text
from results.pages.comparison_numbers import TableResults, TrainedRow
from results.paper.comparison import beside_printed
from results.paper.reference import footnotes, main_memory, printed_memory_row

if TYPE_CHECKING:
    import pandas as pd

MEMORY_METRICS = ("A_T", "a_1", "a_t", "F_T")
"""The metrics of the paper's memory tables, in their order."""


@dataclass(frozen=True, eq=False)
class MemoryRow(TrainedRow):
    """A row of `epsearch memory`: one method with one size of memory.

    Its label names the method's line in the figure, the same for every size. Raises ValueError where `memory` is
    below 1.
    """

    memory: int
    """Examples per class and task."""

    @property
    def identity(self) -> tuple[object, ...]:
        """The method's label and the size of its memory."""
        return (self.label, f"memory {self.memory}")

    def __post_init__(self) -> None:
        if self.memory < 1:
            raise ValueError(f"memory must be >= 1 example per class and task, got {self.memory}")
        super().__post_init__()


class MemoryResults(TableResults[MemoryRow]):
    """Everything that the page of `epsearch memory` prints."""


def memory_table(study: MemoryResults) -> pd.DataFrame:
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


def memory_notes(study: MemoryResults) -> list[tuple[str, ...]]:
    """Returns the footnotes of each row: they are about the main tables, so only rows with their memory have any."""
    return [
        footnotes(study.dataset, row.method) if row.memory == main_memory(study.dataset, row.method) else ()
        for row in study.rows
    ]
