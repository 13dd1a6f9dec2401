"""The sections of the report, as HTML, from the results of a study."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from results import equivalence, page
from results.answer import answer, near_best
from results.labels import (
    METRIC_DIGITS,
    METRIC_UNITS,
    MISSING,
    STREAM_LABELS,
    count_text,
    dataset_label,
    epsilon_text,
    mean_std_text,
    method_label,
    network_label,
    number_text,
    signed_text,
)
from results.metrics import METRICS
from results.record import RunRecord
from results.reference import footnotes
from results.study import StudyResults
from results.tables import by_epsilon, compare, difference_table, evaluation_table, search_table

if TYPE_CHECKING:
    import pandas as pd

PAPER_TASKS = 17
METRIC_COLUMNS = [(metric, METRIC_UNITS[metric]) for metric in METRICS]


def overview(results: StudyResults) -> str:
    """Headline numbers, warnings and the answer in words."""
    words = f'<div class="answer">{page.paragraphs(answer(results))}</div>'
    return page.tiles(_headlines(results)) + page.notes(warnings(results)) + words


def warnings(results: StudyResults) -> list[str]:
    """What a reader must not miss: how ε was chosen, an unfinished evaluation, members that alone come out
    otherwise, then the caller's notes.
    """
    found = []
    if results.score_on == "eval":
        found.append(
            "ε was selected on the evaluation stream itself. The evaluation figures on this page are "
            "therefore flattered: the same test data chose the winner and scored it."
        )
    if not results.evaluation:
        found.append("The evaluation has not run yet; the sections about it are empty.")
    changed = equivalence.warning(results)
    if changed:
        found.append(changed)
    return [*found, *results.notes]


def what_was_run(results: StudyResults) -> str:
    """The study in one list."""
    members, seeds = results.search, {r.seed for r in results.search}
    low, high = min(r.low for r in results.rounds), max(r.high for r in results.rounds)
    items = {
        "Dataset": dataset_label(results.dataset),
        "Method": method_label(results.method),
        "Network": network_label(results.config),
        "ε chosen on": STREAM_LABELS[results.score_on]
        + (f", {count_text(members[0].tasks, 'task')}" if members else ""),
        "Searched interval": f"[{epsilon_text(low)}, {epsilon_text(high)}]",
        "Repeats": f"{len(results.rounds)} ({len(results.epsilons)} different values of ε)",
        "Seeds": ", ".join(str(s) for s in sorted(seeds)),
        "Members trained": f"{len(members)} in the search, {_evaluated(results)}",
        "SGD steps": f"{sum(r.steps for r in _members(results)):,}",
    }
    return page.section("What was run", page.facts(items))


def search(results: StudyResults) -> str:
    """Every repeat and every ε."""
    header = [
        ("ε", ""),
        ("A_T", "%"),
        ("F_T", ""),
        ("a_1", "%"),
        ("a_t", "%"),
        ("n", "seeds"),
        ("diverged", "seeds"),
        ("", ""),
    ]
    remark = "Mean ± population standard deviation over the seeds that did not diverge. F_T: lower is better."
    return page.section("The search, point by point", page.table(header, _search_rows(results)), page.small(remark))


def evaluation(results: StudyResults) -> str:
    """The chosen ε and A-GEM beside the paper's printed rows."""
    frame = evaluation_table(results)
    if frame.empty:
        return page.section(
            "Evaluation",
            page.paragraphs("The evaluation has not run yet, and the paper prints no row for this dataset."),
        )
    measured, printed = frame[frame["source"] != "paper"], frame[frame["source"] == "paper"]
    rows = [*_evaluation_rows(measured), *_difference_rows(results), *_evaluation_rows(printed)]
    header = [("", ""), *METRIC_COLUMNS, ("n", "seeds")]
    return page.section(
        "Evaluation", page.table(header, rows), *(page.small(text) for text in _remarks(results, frame))
    )


def certificates(results: StudyResults) -> str:
    """What training members again, alone, showed; nothing where that was not done."""
    text = equivalence.summary(results)
    return page.section("Equivalence", page.paragraphs(text)) if text else ""


def _headlines(results: StudyResults) -> Iterator[tuple[str, str, str]]:
    yield "Chosen ε", epsilon_text(results.chosen_epsilon), _rivals(results)
    stream = STREAM_LABELS[results.score_on]
    yield from _score_tile(f"A_T, {stream}", results, results.search, " (ε selected on them)")
    if results.score_on != "eval":
        yield from _score_tile(f"A_T, {STREAM_LABELS['eval']}", results, results.evaluation, "")
    pair = compare(results.evaluation, results.chosen_epsilon, 0.0)
    if pair.n and results.chosen_epsilon != 0:
        error = f" ± {number_text(pair.error, 2)}" if pair.n > 1 else ""
        detail = f"points, paired{', ± standard error' if error else ''}; higher in {pair.wins} of {pair.n}"
        yield "A_T minus A-GEM's, evaluation", f"{signed_text(pair.mean, 2)}{error}", detail


def _rivals(results: StudyResults) -> str:
    if len({r.seed for r in results.search}) < 2:
        return "one seed: no estimate of the noise"
    return f"{len(near_best(results))} other tried ε within one standard error"


def _score_tile(
    label: str, results: StudyResults, records: Iterable[RunRecord], remark: str
) -> Iterator[tuple[str, str, str]]:
    members = [r for r in records if r.epsilon == results.chosen_epsilon]
    if members:
        size = f"{count_text(members[0].tasks, 'task')}, {count_text(len(members), 'seed')}"
        yield label, f"{_cell(by_epsilon(members).iloc[0], 'A_T')} %", f"{size}{remark}"


def _search_rows(results: StudyResults) -> Iterator[tuple[str, list[str]]]:
    table = search_table(results)
    for r in results.rounds:
        note = f" — {r.note}" if r.note else ""
        yield "group", [f"Repeat {r.number}: [{epsilon_text(r.low)}, {epsilon_text(r.high)}]{note}"]
        for _, row in table[table["repeat"] == r.number].iterrows():
            cells = [_cell(row, metric) for metric in ("A_T", "F_T", "a_1", "a_t")]
            rank = {1: "best", 2: "second"}.get(int(row["best"]), "")
            kind = "chosen" if row["epsilon"] == results.chosen_epsilon else ""
            label = epsilon_text(row["epsilon"]) + (" (A-GEM)" if row["epsilon"] == 0 else "")
            yield kind, [label, *cells, str(int(row["n"])), str(int(row["diverged"]) or MISSING), rank]


def _evaluation_rows(frame: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    for position, (_, row) in enumerate(frame.iterrows()):
        paper = row["source"] == "paper"
        kind = "paper" if paper else "chosen" if position == 0 else ""
        n = MISSING if math.isnan(float(row["n"])) else str(int(row["n"]))
        label = f"{row['row']}, ε = {epsilon_text(row['epsilon'])}" if paper and row["epsilon"] > 0 else str(row["row"])
        yield kind, [label, *(_cell(row, metric) for metric in METRICS), n]


def _difference_rows(results: StudyResults) -> Iterator[tuple[str, list[str]]]:
    pairs = difference_table(results).set_index("metric")
    if not pairs.empty:
        yield (
            "",
            [
                "difference, paired ± s.e.",
                *(_difference_cell(pairs, m) for m in METRICS),
                str(pairs["n"].iloc[0]),
            ],
        )


def _difference_cell(pairs: pd.DataFrame, metric: str) -> str:
    if metric not in pairs.index:
        return MISSING
    digits = METRIC_DIGITS[metric]
    mean, error = (float(pairs[name][metric]) for name in ("mean", "standard_error"))
    return f"{signed_text(mean, digits)} ± {number_text(error, digits)}"


def _remarks(results: StudyResults, frame: pd.DataFrame) -> Iterator[str]:
    if not results.evaluation:
        yield "The evaluation of this study has not run yet; only the paper's printed rows are shown."
    yield (
        "Mean ± population standard deviation over seeds; F_T and LCA_10 are fractions, the rest percent. "
        "F_T is better when lower. "
        "The difference row is chosen ε minus A-GEM on the same seeds, ± the standard error of its mean."
    )
    if (frame["source"] == "paper").any():
        tasks = results.evaluation[0].tasks if results.evaluation else PAPER_TASKS
        other = (
            f" This evaluation has {tasks} tasks, so the printed rows are no yardstick for it."
            if tasks != PAPER_TASKS
            else ""
        )
        yield (
            f"Printed rows: the paper's main tables, {PAPER_TASKS} tasks, 5 runs, full training sets; "
            f"comparable only where the configuration below has the same sizes.{other} "
            "The paper prints no LCA_10 and gives ε only for Permuted MNIST and Split CIFAR-100."
        )
    for method in dict.fromkeys((results.method, "agem")):
        yield from (f"On the printed {method_label(method)} row: {note}" for note in footnotes(results.dataset, method))


def _cell(row: pd.Series, metric: str) -> str:
    return mean_std_text(float(row[f"{metric}_mean"]), float(row[f"{metric}_std"]), METRIC_DIGITS[metric])


def _members(results: StudyResults) -> Iterable[RunRecord]:
    return {r.key: r for r in (*results.search, *results.evaluation)}.values()


def _evaluated(results: StudyResults) -> str:
    shared = {r.key for r in results.search} & {r.key for r in results.evaluation}
    text = f"{len(results.evaluation)} in the evaluation"
    return f"{text} (of these {len(shared)} are members of the search)" if shared else text
