"""The page that compares several finished searches, and its files."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from results.figures import races, tried
from results.html import page
from results.labels import (
    STREAM_LABELS,
    count_text,
    dataset_label,
    mean_std_text,
    method_label,
    strategy_label,
)
from results.metrics import METRICS
from results.pages.cells import paired_text
from results.pages.latex import remarks, with_scores
from results.pages.search.confidence import KIND_LABELS, evaluation_notes
from results.pages.sheet import Cell, Line, Sheet, as_html
from results.pages.side_by_side_numbers import (
    all_evaluated_choices,
    check_studies,
    differing_options,
    row_labels,
    strategies_table,
)
from results.pages.writing import Figures, draw_figures, write_page
from results.search import SearchResults
from results.search_tables import by_seed
from results.verdict import wording
from results.verdict.assessment import trust

DIGITS = METRICS["A_T"].digits
EVALUATION = 2  # column of the scores of the evaluation
# Always shown: a table of strategies invites to read a ranking into it.
ONE_DRAW = (
    "One run of each strategy is one draw: another seed of the strategy, or of the training, may reverse the order. "
    "docs/strategies.md has a benchmark over many runs."
)


def write_strategies(studies: Sequence[SearchResults], folder: Path) -> Path:
    """Writes the page that compares several searches into `folder`, and returns its path.

    Files: strategies.html, strategies.csv, strategies.md, strategies.tex and figures/*.csv, as `write_page` writes
    them; the runs are in the folder of each search. Raises ValueError for studies that cannot be compared, see
    `side_by_side_numbers.check_studies`.
    """
    check_studies(studies)
    table, drawings = strategies_table(studies), figures(studies)
    sheet, notes = strategies_sheet(studies, table), _warnings(studies)
    html = partial(_page, studies, sheet, notes, drawings)
    latex = _latex(studies, table, sheet).standalone(notes)
    standalone = sheet.standalone(notes)
    return write_page(folder / "strategies.html", html, {"strategies": table}, drawings, standalone, latex=latex)


def tables(studies: Sequence[SearchResults]) -> dict[str, pd.DataFrame]:
    """Returns the table, by the name of its file."""
    return {"strategies": strategies_table(studies)}


def figures(studies: Sequence[SearchResults]) -> Figures:
    """Returns every figure."""
    labelled = list(zip(row_labels(studies), studies, strict=True))
    return {"tried": (tried, tried.numbers(labelled)), "best_so_far": (races, races.numbers(labelled))}


def strategies_parts(studies: Sequence[SearchResults]) -> tuple[str, str, str]:
    """Returns heading, lead (both plain text) and body (HTML) of the comparison, for another page.

    Raises ValueError as `write_strategies` does.
    """
    check_studies(studies)
    sheet = strategies_sheet(studies, strategies_table(studies))
    return _parts(studies, sheet, _warnings(studies), figures(studies))


def strategies_sheet(studies: Sequence[SearchResults], table: pd.DataFrame) -> Sheet:
    """Returns the table for people, from the `strategies_table`: one row a study, the first is what others differ from.

    Scores in percent, mean ± standard deviation; differences are paired by seed, ± standard error.
    """
    rows = tuple(
        _cells(label, study, row)
        for label, study, (_, row) in zip(row_labels(studies), studies, table.iterrows(), strict=True)
    )
    header = (
        ("strategy", ""),
        ("chosen", ""),
        (studies[0].objective, "evaluation, %"),
        ("difference", "to the first, ± s.e."),
        (studies[0].objective, "search, %"),
        ("member runs", "search"),
        ("points", "tried"),
        ("verdict", ""),
    )
    stream = STREAM_LABELS[studies[0].score_on]
    remark = (
        f"{studies[0].objective}: mean ± standard deviation over the seeds, on the {stream} of the "
        "search (biased upwards, because the point was chosen there) and on the evaluation stream. Difference: that of "
        "the evaluation minus that of the first row, mean over their common seeds ± its standard error. The interval "
        "under a verdict is where the best value may lie (95 % confidence)."
    )
    return Sheet(f"Strategies on {dataset_label(studies[0].dataset)}", header, rows, (), (remark,))


def _latex(studies: Sequence[SearchResults], table: pd.DataFrame, sheet: Sheet) -> Sheet:
    """Returns the LaTeX table; in bold only a mean of the evaluation, as that of the search is biased upwards."""
    objective = studies[0].objective
    scores = [by_seed(study.evaluation_of(study.chosen), objective) for study in studies]
    made, bold = with_scores(sheet, EVALUATION, objective, scores, [*table["evaluation_std"]])
    return replace(made, remarks=(*made.remarks, *remarks(bold)))


def _cells(label: str, study: SearchResults, row: pd.Series) -> tuple[Cell, ...]:
    """Returns the cells of one study, one for each column of the sheet."""
    peak = trust(study).peak
    where = (Line(peak.text, "soft"),) if peak is not None else ()
    return (
        # A longer label has the study's name already.
        (Line(label), Line(study.name, "soft")) if label == strategy_label(study.strategy) else (Line(label),),
        tuple(Line(text) for text in row["chosen"].split(", ")),  # a line for each hyperparameter
        (Line(mean_std_text(row["evaluation_mean"], row["evaluation_std"], DIGITS)),),
        (Line(paired_text(row["difference"], row["standard_error"], DIGITS)),),
        (Line(mean_std_text(row["search_mean"], row["search_std"], DIGITS)),),
        (Line(str(row["members"])),),
        (Line(str(row["settings"])),),
        (Line(KIND_LABELS[row["kind"]]), *where),
    )


def _page(studies: Sequence[SearchResults], sheet: Sheet, notes: Sequence[str], drawings: Figures) -> str:
    heading, lead, body = _parts(studies, sheet, notes, drawings)
    names = ", ".join(s.name for s in studies)
    return page.page(heading, names, heading, lead, body, f"Comparison of {_nouns(studies)} ·")


def _parts(
    studies: Sequence[SearchResults], sheet: Sheet, notes: Sequence[str], drawings: Figures
) -> tuple[str, str, str]:
    html = draw_figures(drawings)
    first = studies[0]
    verdicts = [(label, trust(s).verdict) for label, s in zip(row_labels(studies), studies, strict=True)]
    body = [
        page.notes(notes),
        page.section("Side by side", as_html(sheet)),
        page.section("Every tried point", html["tried"]),
        page.section("What the searches trained", html["best_so_far"]),
        page.section(
            "The verdicts",
            *(page.banner(v.kind, f"{label}: {KIND_LABELS[v.kind]}", v.text, v.advice) for label, v in verdicts),
        ),
    ]
    # Searches of different hyperparameters, or methods, on one stream can be compared, too.
    what = wording.searched_parameters(first) if len({s.parameters for s in studies}) == 1 else "Hyperparameters"
    methods = " and ".join(dict.fromkeys(method_label(s.method) for s in studies))
    heading = f"{wording.heading(what)} for {methods} on {dataset_label(first.dataset)}: {_nouns(studies)} compared"
    lead = f"{count_text(len(studies), 'search')}, scored by {first.objective} on the {STREAM_LABELS[first.score_on]}."
    return heading, lead, "\n".join(body)


def _nouns(studies: Sequence[SearchResults]) -> str:
    return "strategies" if len({s.strategy for s in studies}) > 1 else "searches"


def _warnings(studies: Sequence[SearchResults]) -> list[str]:
    """Returns the notes at the top: one draw each, other differences, choices on the evaluation stream."""
    compared: dict[str, set[object]] = {
        "method": {s.method for s in studies},
        "searched parameters": {s.parameters for s in studies},
        "seeds of the search": {s.seeds for s in studies},
    }
    others = [*(what for what, values in compared.items() if len(values) > 1), *differing_options(studies)]
    missing = [s.name for s in studies if not s.evaluation]
    biased = "All of them chose on the evaluation stream itself, so its figures are biased upwards."
    notes = (
        (ONE_DRAW, True),
        (f"They differ in more than the strategy: {', '.join(others)}.", others),
        (biased, studies[0].score_on == "eval"),  # `check_studies` has seen that all have this stream
        (f"Not evaluated yet: {', '.join(missing)}.", missing),
    )
    return [*(note for note, holds in notes if holds), *evaluation_notes(all_evaluated_choices(studies))]
