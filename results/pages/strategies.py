"""The page that compares several finished searches, and files with all its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from results.figures import races, tried
from results.files import write_atomically, write_csv
from results.labels import (
    MISSING,
    STREAM_LABELS,
    about_text,
    count_text,
    dataset_label,
    mean_std_text,
    method_label,
    number_text,
    signed_text,
    strategy_label,
)
from results.metrics import METRICS
from results.pages.search_trust import KIND_LABELS, looks_words
from results.pages.sheet import Cell, Line, Sheet, as_html, as_latex, as_markdown
from results.pages.strategies_numbers import all_looks, check_studies, differing, row_labels, strategies_table
from results.search import SearchResults
from results.verdict import wording
from results.verdict.assessment import trust

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["strategies_sheet", "write_strategies"]

DIGITS = METRICS["A_T"].digits
ONE_DRAW = (
    "One run of each strategy is one draw: another seed of the strategy, or of the training, may reverse the order. "
    "docs/strategies.md has a benchmark over many runs."
)


def write_strategies(studies: Sequence[SearchResults], folder: Path) -> Path:
    """Writes the page that compares several searches into `folder`, and returns its path.

    Files: strategies.html, strategies.csv, strategies.md, strategies.tex and figures/*.csv. Each is written atomically,
    the page last. Raises ValueError for studies that cannot be compared, see `strategies_numbers.check_studies`.
    """
    check_studies(studies)
    table = strategies_table(studies)
    labelled = list(zip(row_labels(studies), studies, strict=True))
    figures: dict[str, tuple[ModuleType, Any]] = {
        "tried": (tried, tried.numbers(labelled)),
        "best_so_far": (races, races.numbers(labelled)),
    }
    write_csv(folder / "strategies.csv", table)
    for module, numbers in figures.values():
        for name, data in module.tables(numbers).items():
            write_csv(folder / "figures" / f"{name}.csv", data)
    sheet = strategies_sheet(studies, table)
    # In a document of its own the table needs the notes that are at the top of the page.
    alone = replace(sheet, remarks=(*sheet.remarks, *_warnings(studies)))
    write_atomically(folder / "strategies.md", as_markdown(alone).encode())
    write_atomically(folder / "strategies.tex", as_latex(alone).encode())
    return write_atomically(folder / "strategies.html", _page(studies, sheet, figures).encode())


def strategies_sheet(studies: Sequence[SearchResults], table: pd.DataFrame | None = None) -> Sheet:
    """Returns the table for people, from the `strategies_table`, which is computed if it is not given."""
    table = strategies_table(studies) if table is None else table
    rows = tuple(
        _cells(label, study, row)
        for label, study, (_, row) in zip(row_labels(studies), studies, table.iterrows(), strict=True)
    )
    header = (
        ("strategy", ""),
        ("chosen", ""),
        ("verdict", ""),
        ("A_T", "evaluation, %"),
        ("difference", "to the first, ± s.e."),
        ("A_T", "search, %"),
        ("member runs", "search"),
        ("points", "tried"),
    )
    remark = (
        f"A_T: mean ± population standard deviation over the seeds, on the {STREAM_LABELS[studies[0].score_on]} of the "
        "search (biased upwards, because the point was chosen there) and on the evaluation stream. Difference: A_T of "
        "the evaluation minus that of the first row, mean over their common seeds ± its standard error. The interval "
        "under a verdict is where the best value may lie (95 % confidence)."
    )
    return Sheet(f"Strategies on {dataset_label(studies[0].dataset)}", header, rows, (), (remark,))


def _cells(label: str, study: SearchResults, row: pd.Series) -> tuple[Cell, ...]:
    kind, peak = str(row["kind"]), trust(study).peak
    where = (Line(about_text((peak.low, peak.high)), "soft"),) if peak is not None else ()
    chosen = str(row["chosen"]).split(", ")
    return (
        (Line(label), Line(study.name, "soft")) if label == strategy_label(study.strategy) else (Line(label),),
        tuple(Line(text) for text in chosen),
        (Line(KIND_LABELS.get(kind, kind)), *where),
        (Line(mean_std_text(row["evaluation_mean"], row["evaluation_std"], DIGITS)),),
        (Line(_difference(row)),),
        (Line(mean_std_text(row["search_mean"], row["search_std"], DIGITS)),),
        (Line(str(row["members"])),),
        (Line(str(row["settings"])),),
    )


def _difference(row: pd.Series) -> str:
    if math.isnan(row["difference"]):
        return MISSING
    return f"{signed_text(row['difference'], DIGITS)} ± {number_text(row['standard_error'], DIGITS)}"


def _page(studies: Sequence[SearchResults], sheet: Sheet, figures: dict[str, tuple[ModuleType, Any]]) -> str:
    from results.html import page

    drawn = {name: page.figure(name, module, numbers) for name, (module, numbers) in figures.items()}
    first = studies[0]
    body = [
        page.notes(_warnings(studies)),
        page.section("Side by side", as_html(sheet)),
        page.section("Every tried point", drawn["tried"]),
        page.section("What the searches trained", drawn["best_so_far"]),
        page.section(
            "The verdicts", *(_verdict(label, s) for label, s in zip(row_labels(studies), studies, strict=True))
        ),
    ]
    what = wording.searched(first) if len({s.parameters for s in studies}) == 1 else "Hyperparameters"
    methods = " and ".join(dict.fromkeys(method_label(s.method) for s in studies))
    heading = f"{wording.heading(what)} for {methods} on {dataset_label(first.dataset)}: strategies compared"
    lead = f"{count_text(len(studies), 'search')}, scored by A_T on the {STREAM_LABELS[first.score_on]}."
    names = ", ".join(s.name for s in studies)
    return page.page(heading, names, heading, lead, "\n".join(body), "Comparison of strategies ·")


def _verdict(label: str, study: SearchResults) -> str:
    from results.html import page

    found = trust(study).verdict
    return page.banner(found.kind, f"{label}: {KIND_LABELS[found.kind]}", found.text, found.advice)


def _warnings(studies: Sequence[SearchResults]) -> list[str]:
    """Returns the notes at the top: one draw each, other differences, choices on the evaluation stream."""
    found = [ONE_DRAW]
    compared: dict[str, set[object]] = {
        "method": {s.method for s in studies},
        "searched parameters": {s.parameters for s in studies},
        "seeds of the search": {s.seeds for s in studies},
    }
    others = [*(what for what, values in compared.items() if len(values) > 1), *differing(studies)]
    if others:
        found.append(f"They differ in more than the strategy: {', '.join(others)}.")
    if studies[0].score_on == "eval":
        found.append("All of them chose on the evaluation stream itself, so its figures are biased upwards.")
    missing = [s.name for s in studies if not s.evaluation]
    if missing:
        found.append(f"Not evaluated yet: {', '.join(missing)}.")
    looks = looks_words(all_looks(studies))
    return [*found, looks] if looks else found
