"""Stored results for Python and notebooks: tables as DataFrames, figures of plotly."""

import threading
import time
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsearch.events import Event, Listener, Note, Progress, Warned
from epsearch.failures.errors import UsageError
from epsearch.findings.reports import REPORTS, AnyResults
from epsearch.plugins.registration import add_plugins, set_objective
from epsearch.study.description import Study
from results.labels import duration_text
from results.search import SearchResults

if TYPE_CHECKING:
    import pandas as pd

    from results.pages.writing import Figures
    from results.verdict.summary import Summary

SECONDS = 0.25
"""Between two updates of a notebook's progress."""


class _PageData(ABC):
    """Tables and figures of a page. A notebook shows the main table."""

    @property
    @abstractmethod
    def tables(self) -> "dict[str, pd.DataFrame]":
        """Tables by name, the main table first."""

    @property
    @abstractmethod
    def drawings(self) -> "Figures":
        """Module and numbers of the figures, by name."""

    @property
    def table(self) -> "pd.DataFrame":
        """The main table."""
        return next(iter(self.tables.values()))

    @property
    def figures(self) -> dict[str, Any]:
        """Figures of plotly by name."""
        return {name: module.draw(numbers) for name, (module, numbers) in self.drawings.items()}

    @property
    def captions(self) -> dict[str, str]:
        """Captions of the figures by name."""
        return {name: module.caption(numbers) for name, (module, numbers) in self.drawings.items()}

    def _repr_html_(self) -> str:
        return self.table.to_html(index=False, float_format="{:.4g}".format)

    def _repr_markdown_(self) -> str:
        titles, rows = [*map(str, self.table.columns)], self.table.astype(object).to_numpy().tolist()
        texts = [[f"{value:.4g}" if isinstance(value, float) else str(value) for value in row] for row in rows]
        cells = [[escape(text).replace("|", r"\|") for text in row] for row in texts]
        return "\n".join(f"| {' | '.join(row)} |" for row in (titles, ["---"] * len(titles), *cells))


@dataclass(frozen=True)
class StoredStudy(_PageData):
    """A study with its results, finished or not. Tables and figures are made when they are first read."""

    study: Study
    """Its description in the ledger."""
    results: AnyResults
    """Results, as in its report."""

    @cached_property
    def tables(self) -> "dict[str, pd.DataFrame]":
        """Tables of the report by the name of their file, the main table first: evaluation, comparison or memory."""
        return REPORTS[self.study.kind].tables(self.results)

    @cached_property
    def drawings(self) -> "Figures":
        """Module and numbers of the figures of the report, by name."""
        return REPORTS[self.study.kind].figures(self.results)

    @property
    def runs(self) -> "pd.DataFrame":
        """One row a stored member, with metrics and hyperparameters, as in the report's runs.csv."""
        from results.export import runs_table

        with add_plugins(self.study.to_dict()):
            return runs_table(REPORTS[self.study.kind].records(self.results))

    @property
    def search_runs(self) -> "pd.DataFrame":
        """Those of `runs` on the cross-validation stream."""
        return self.runs[self.runs["phase"] == "cv"].reset_index(drop=True)

    @property
    def evaluation_runs(self) -> "pd.DataFrame":
        """Those of `runs` on the evaluation stream: the chosen point, the baseline, rows of tables."""
        return self.runs[self.runs["phase"] == "eval"].reset_index(drop=True)

    @property
    def accuracies(self) -> "pd.DataFrame":
        """One row a measured accuracy, a fraction in [0, 1], as in the report's accuracies.csv."""
        from results.export import accuracies_table

        return accuracies_table(REPORTS[self.study.kind].records(self.results))

    @property
    def answer(self) -> str:
        """The answer of a search in words; empty for other studies."""
        with add_plugins(self.results.config):
            return REPORTS[self.study.kind].answer(self.results)

    @property
    def summary(self) -> "Summary | None":
        """The answer of a search in a few lines, which a notebook shows; None for other studies."""
        with add_plugins(self.results.config):
            return REPORTS[self.study.kind].summary(self.results)

    def _repr_html_(self) -> str:
        said = self.summary
        html = super()._repr_html_() if said is None else said._repr_html_()
        return f"<h4>{escape(self.study.name)}</h4>{html}"

    def _repr_markdown_(self) -> str:
        said = self.summary
        markdown = super()._repr_markdown_() if said is None else said._repr_markdown_()
        return f"#### {self.study.name}\n\n{markdown}"


@dataclass(frozen=True)
class SideBySide(_PageData):
    """Several searches on one stream, side by side."""

    searches: tuple[SearchResults, ...]
    """Their results; the others are compared with the first."""
    image_files: tuple[Path, ...] = ()
    """Files of the figures for a paper, where they were written."""

    def objective(self) -> AbstractContextManager[None]:
        """Returns a context in which the common objective of the searches is registered."""
        return set_objective(self.searches[0].config)

    @cached_property
    def tables(self) -> "dict[str, pd.DataFrame]":
        """One table, one row a search."""
        from results.pages import side_by_side

        with self.objective():
            return side_by_side.tables(self.searches)

    @cached_property
    def drawings(self) -> "Figures":
        """Module and numbers of every figure, by its name."""
        from results.pages import side_by_side

        with self.objective():
            return side_by_side.figures(self.searches)


def notebook_listener() -> Listener:
    """Returns a listener that shows the progress of a training in a notebook, in one place: `run(study, listener)`.

    Notes and warnings stay below it. Raises UsageError outside of IPython.
    """
    try:
        from IPython.core.getipython import get_ipython
        from IPython.display import HTML, display
    except ImportError:
        raise UsageError("notebook_listener needs IPython, which is not installed") from None
    if get_ipython() is None:
        raise UsageError("notebook_listener needs a notebook; leave it out elsewhere")
    lock, lines, bar, updated = threading.Lock(), list[str](), "planning", -SECONDS
    handle: Any = display(HTML(bar), display_id=True)  # type: ignore[no-untyped-call]

    def listen(event: Event) -> None:
        nonlocal bar, updated
        with lock:  # progress comes from any thread
            if isinstance(event, Progress):
                bar = _bar(event)
                if time.monotonic() - updated < SECONDS and event.known < event.wanted:
                    return
            elif isinstance(event, (Note, Warned)):
                lines.append(f"<small>{escape(str(event))}</small>")
            else:
                return
            updated = time.monotonic()
            handle.update(HTML("<br>".join([bar, *lines])))  # type: ignore[no-untyped-call]

    return listen


def _bar(now: Progress) -> str:
    """Returns a bar of the members of the stage, with the best so far and the time to go, as HTML."""
    eta = "" if now.eta is None else f" · about {duration_text(now.eta)} to go"
    text = f"{now.stage} · {now.known}/{now.wanted} members · {now.headline or 'no score yet'}{eta}"
    bar = f'<progress value="{now.known}" max="{max(now.wanted, 1)}" aria-label="members"></progress>'
    return f"{bar} {escape(text)}"
