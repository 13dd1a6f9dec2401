"""What was found, for Python and notebooks: tables as DataFrames, figures of plotly."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from epsearch.findings.reports import REPORTS, AnyResults
from epsearch.plugins.registration import added, maximising
from epsearch.study.description import Study
from results.search import SearchResults

if TYPE_CHECKING:
    import pandas as pd

    from results.pages.writing import Figures


class _Shown(ABC):
    """What has tables and figures, as their pages have them. A notebook shows the main table."""

    @property
    @abstractmethod
    def tables(self) -> "dict[str, pd.DataFrame]":
        """Every table by its name, the main one first."""

    @property
    @abstractmethod
    def drawings(self) -> "Figures":
        """Module and numbers of every figure, by its name."""

    @property
    def table(self) -> "pd.DataFrame":
        """The main table."""
        return next(iter(self.tables.values()))

    @property
    def figures(self) -> dict[str, Any]:
        """Every figure by its name, drawn by plotly: as the value of a notebook's cell it is shown there."""
        return {name: module.draw(numbers) for name, (module, numbers) in self.drawings.items()}

    @property
    def captions(self) -> dict[str, str]:
        """What each figure shows, in words."""
        return {name: module.caption(numbers) for name, (module, numbers) in self.drawings.items()}

    def _repr_html_(self) -> str:
        return self._heading() + self.table.to_html(index=False, float_format="{:.4g}".format)

    def _heading(self) -> str:
        return ""


@dataclass(frozen=True)
class Found(_Shown):
    """What was found by a study, finished or not. Tables and figures are made when they are first asked for."""

    study: Study
    """As the ledger has it."""
    results: AnyResults
    """What was found, in the shape that the report takes."""

    @cached_property
    def tables(self) -> "dict[str, pd.DataFrame]":
        """Every table of the report by the name of its file, the main one first: evaluation, comparison or memory."""
        return REPORTS[self.study.kind].tables(self.results)

    @cached_property
    def drawings(self) -> "Figures":
        """Module and numbers of every figure of the report, by its name."""
        return REPORTS[self.study.kind].figures(self.results)

    @property
    def runs(self) -> "pd.DataFrame":
        """One row a member that was trained, with metrics and hyperparameters, as in the report's runs.csv."""
        from results.export import runs_table

        with added(self.study.shown()):
            return runs_table(REPORTS[self.study.kind].records(self.results))

    @property
    def accuracies(self) -> "pd.DataFrame":
        """One row an accuracy that was measured, a fraction in [0, 1], as in the report's accuracies.csv."""
        from results.export import accuracies_table

        return accuracies_table(REPORTS[self.study.kind].records(self.results))

    @property
    def answer(self) -> str:
        """What was found in a sentence or two; "" of a study that searches nothing."""
        return REPORTS[self.study.kind].answer(self.results)

    def _heading(self) -> str:
        return f"<p><b>{escape(self.study.name)}</b> {escape(self.answer)}</p>"


@dataclass(frozen=True)
class SideBySide(_Shown):
    """Several searches on one stream, set side by side."""

    searches: tuple[SearchResults, ...]
    """Their results; the first is what the others differ from."""

    def maximised(self) -> AbstractContextManager[None]:
        """Within it, tables know what they maximise, which is the same."""
        return maximising(self.searches[0].config)

    @cached_property
    def tables(self) -> "dict[str, pd.DataFrame]":
        """The table, one row a search."""
        from results.pages import side_by_side

        with self.maximised():
            return side_by_side.tables(self.searches)

    @cached_property
    def drawings(self) -> "Figures":
        """Module and numbers of every figure, by its name."""
        from results.pages import side_by_side

        with self.maximised():
            return side_by_side.figures(self.searches)
