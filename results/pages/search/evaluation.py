"""The section with the evaluation, beside the printed rows."""

import math
from collections.abc import Iterator, Mapping

import pandas as pd

from results.html import page
from results.labels import (
    MISSING,
    count_text,
    epsilon_text,
    method_label,
)
from results.metrics import METRICS, undefined_metrics
from results.pages.cells import left_out_text, lower_text, paired_text, units_text
from results.paper.differences import spread_name
from results.paper.reference import footnotes
from results.search import SearchResults
from results.search_tables import difference_table, evaluation_table, leaves_out, printed_methods
from results.verdict import wording

PAPER_TASKS = 17
"""Tasks of the evaluation in the paper."""


def evaluation(results: SearchResults, *figures: str) -> str:
    """Returns the section with the chosen point and the baseline beside the paper's printed rows.

    All metrics, as mean ± standard deviation over the seeds that did not diverge; then the difference of the two,
    paired by seed, ± its standard error. figures: HTML above the table, which unfolds.
    """
    frame = evaluation_table(results)
    if frame.empty:
        nothing = "The evaluation has not run yet, and "
        nothing += "printed rows are left out." if leaves_out(results) else "the paper prints no row for this dataset."
        return page.section("Evaluation", page.paragraphs(nothing))
    ours = frame["source"] != "paper"
    rows = [
        *_evaluation_rows(frame[ours], results.of_epsilon),
        *_difference_rows(results),
        *_evaluation_rows(frame[~ours], results.of_epsilon),
    ]
    header = [("method", ""), *((name, metric.display_unit) for name, metric in METRICS.items()), ("n", "seeds")]
    table = page.table(header, rows, "Evaluation of the chosen point")
    remarks = map(page.small, _remarks(results, frame))
    return page.section("Evaluation", *figures, page.fold("All metrics", "".join((table, *remarks))))


def metric_text(row: pd.Series | Mapping[str, float], metric: str) -> str:
    """Returns mean ± standard deviation of a metric in a row of `by_point` or `mean_std`, for people."""
    return METRICS[metric].mean_std_text(float(row[f"{metric}_mean"]), float(row[f"{metric}_std"]))


def _evaluation_rows(frame: pd.DataFrame, of_epsilon: bool) -> Iterator[tuple[str, list[str]]]:
    """Yields (class, cells) of rows of an `evaluation_table`; the first of this study is the chosen point."""
    for position, (_, row) in enumerate(frame.iterrows()):
        paper = row["source"] == "paper"
        kind = "paper" if paper else "chosen" if position == 0 else ""
        n = MISSING if math.isnan(float(row["n"])) else str(int(row["n"]))
        label = str(row["row"])
        # Our own labels name the value already.
        if paper and of_epsilon and row["epsilon"] > 0:
            label += f", ε = {epsilon_text(row['epsilon'])}"
        yield kind, [label, *(metric_text(row, metric) for metric in METRICS), n]


def _difference_rows(results: SearchResults) -> Iterator[tuple[str, list[str]]]:
    """Yields a row with chosen point minus baseline; none where they are the same or were not both evaluated."""
    pairs = difference_table(results).set_index("metric")
    if len(pairs):
        # A metric without a pair, as LCA_10 with fewer than ten mini-batches, has no row of its own.
        every = pairs.reindex(list(METRICS))
        means, errors = every["mean"], every["standard_error"]
        cells = [
            paired_text(metric.display_factor * means[name], metric.display_factor * errors[name], metric.digits)
            for name, metric in METRICS.items()
        ]
        yield "", ["difference, paired ± s.e.", *cells, str(pairs["n"].iloc[0])]


def _remarks(results: SearchResults, frame: pd.DataFrame) -> Iterator[str]:
    """Yields what a reader of the table has to know, one paragraph each."""
    # Without a baseline there is no such row, and nothing to say of it.
    named = f"chosen {wording.subject(results)} minus {wording.baseline_name(results)}"
    pair = named if wording.has_baseline(results) else ""
    if not results.evaluation:
        yield "The evaluation of this study has not run yet; only the paper's printed rows are shown."
    any_printed = bool((frame["source"] == "paper").any())
    yield (
        f"Mean ± {spread_name(any_printed)}{',' if any_printed else ''} over seeds. {units_text(METRICS)} "
        f"{lower_text(METRICS)}"
        + (f" The difference row is {pair} on the same seeds, ± the standard error of its mean." if pair else "")
    )
    yield from undefined_metrics(results.evaluation)
    if leaves_out(results):
        yield left_out_text(results.name)
    if any_printed:
        of_epsilon = " and gives ε only for Permuted MNIST and Split CIFAR-100" if results.zero_is_agem else ""
        # Metrics of streams of another length are other quantities, whatever the configuration says.
        tasks = results.evaluation[0].tasks if results.evaluation else PAPER_TASKS
        other = f" This evaluation has {count_text(tasks, 'task')}, so the printed rows cannot be compared with it."
        yield (
            f"Printed rows: the paper's main tables, {PAPER_TASKS} tasks, 5 runs, full training sets; comparable only "
            f"if the configuration below has the same sizes.{other if tasks != PAPER_TASKS else ''} "
            f"The paper prints no LCA_10{of_epsilon}."
        )
    for method in printed_methods(results):  # none where their rows are left out
        yield from (f"On the printed {method_label(method)} row: {note}" for note in footnotes(results.dataset, method))
