"""The sections of the report of a search, as HTML."""

from collections.abc import Iterator, Sequence

from results.html import page
from results.labels import (
    MISSING,
    STREAM_LABELS,
    count_text,
    dataset_label,
    interval_text,
    method_label,
    network_label,
    signed_text,
    strategy_label,
)
from results.ledger.record import RunRecord, steps_taken
from results.metrics import METRICS, mean_std
from results.pages.cells import paired_text
from results.pages.search.confidence import KIND_LABELS, evaluation_notes
from results.pages.search.evaluation import metric_text
from results.points import parameter_label, value_text
from results.search import SearchResults
from results.search_tables import baseline_pair, search_table
from results.verdict import along_tasks, certificates, forecast, wording
from results.verdict.answer import answer
from results.verdict.assessment import trust
from results.verdict.peak import is_inert

DIGITS = METRICS["A_T"].digits
SEARCH_METRICS = ("A_T", "F_T", "a_1", "a_t")
"""The metrics of the table of all points; FWT and LCA_10 are not measured in a search."""


def answer_in_full(results: SearchResults, judged: bool = True) -> str:
    """Returns headline numbers and the answer in words; judged: see `answer`."""
    said = f'<div class="answer">{page.paragraphs(answer(results, judged))}</div>'
    return page.tiles(_headlines(results)) + said


def warnings(results: SearchResults) -> list[str]:
    """Returns what a reader must not miss.

    A choice on the evaluation stream, an unfinished evaluation, other choices that were evaluated on the same stream,
    certificates that differ, then the caller's notes.
    """
    selected = "ε was selected" if results.of_epsilon else f"The {wording.subject(results)} was selected"
    biased = (
        f"{selected} on the evaluation stream itself. The evaluation figures on this page are therefore biased "
        "upwards: the same test data made the choice and scored it."
    )
    trusted, changed = trust(results), certificates.warning(results)
    notes = (
        # An inert search chose by no score, so its evaluation is not biased.
        (biased, results.score_on == "eval" and not is_inert(results)),
        ("The evaluation has not run yet; the sections about it are empty.", not results.evaluation),
        *((note, True) for note in evaluation_notes(trusted.evaluated_choices, trusted.choice_number)),
        (changed, changed),
        (later := forecast.caution(results), later),
    )
    return [*(note for note, holds in notes if holds), *results.notes]


def what_was_run(results: SearchResults) -> str:
    """Returns the section that lists the study's main options and sizes.

    What is not listed here is in the configuration further down.
    """
    members, subject = results.search, wording.heading(wording.subject(results))
    share = results.config.get("validation")
    tried = count_text(len(results.points), f"different {'point' if len(results.parameters) > 1 else 'value'}")
    of = "" if len(results.parameters) > 1 else f" of {wording.subject(results)}"
    shared = len({record.key for record in members} & {record.key for record in results.evaluation})
    items = {
        "Dataset": dataset_label(results.dataset),
        "Trainer" if results.trainer_repeats is not None else "Method": method_label(results.method),
        **({} if results.trainer_repeats is not None else {"Network": network_label(results.config)}),
        f"{subject} chosen on": STREAM_LABELS[results.score_on]
        + (f", {along_tasks.first_tasks(results)}" if members else ""),
        **({"The choice may see": results.seen} if results.seen else {}),
        **({"Held out to choose by": f"{100 * share:g} % of each task's training examples"} if share else {}),
        "Strategy": strategy_label(results.strategy),
        **dict(_domains(results)),
        wording.heading(wording.round_nouns(results)): f"{len(results.searching)} ({tried}{of})",
        "Seeds": ", ".join(map(str, results.seeds)),
        **({"Orders of tasks": f"{results.orders}, each with every seed"} if results.orders > 1 else {}),
        "Members trained": f"{len(members)} in the search, "
        + (f"{count_text(len(results.grown), 'further task')} of these, " if results.grown else "")
        + f"{len(results.evaluation)} in the evaluation"
        + (f" (of these {shared} are members of the search)" if shared else "")
        + (f", {len(results.beside)} of reference rows" if results.beside else ""),
        **({"Before it was extended": "; ".join(results.earlier)} if results.earlier else {}),
        **({} if results.trainer_repeats is not None else {"SGD steps": f"{steps_taken(results.records):,}"}),
    }
    return page.section("What was run", page.facts(items), unfolds=True)


def _domains(results: SearchResults) -> Iterator[tuple[str, str]]:
    """Yields (label, text) of what was searched, one for each parameter."""
    for i, (name, ends) in enumerate(zip(results.parameters, results.domain, strict=True)):
        of = "" if results.of_epsilon else f" of {parameter_label(name)}"
        if ends is None:
            # In the order of the first try: the results do not keep what else could have been chosen.
            tried = dict.fromkeys(point[i] for r in results.rounds for point in r.points)
            yield f"Choices{of}", ", ".join(map(value_text, tried))
        else:
            scale = ", logarithmic" if name in results.log else ""
            yield f"Searched interval{of}", f"{interval_text(ends)}{scale}"


def search(results: SearchResults) -> str:
    """Returns the section with every point of every round, in the order of the suggestions.

    A point of two rounds has a row in each, with the same members.
    """
    header = [
        *((parameter_label(name), "") for name in results.parameters),
        *((metric, METRICS[metric].display_unit) for metric in _metrics(results)),
        ("n", "seeds"),
        ("diverged", "seeds"),
        ("rank", "of its round, predicted" if results.stages else "of its round"),
    ]
    remark = "Mean ± standard deviation over the seeds that did not diverge. F_T: lower is better."
    heading = "The search, point by point"
    table = page.table(header, _search_rows(results), heading)
    return page.section(heading, table, page.small(remark), unfolds=True)


def stages(results: SearchResults) -> str:
    """Returns the section with every stage of a search along tasks; "" for others."""
    if not results.stages:
        return ""
    header = [
        ("tasks", ""),
        ("values", ""),
        ("choice", ""),
        ("predicted A_T", "%, 95 % interval"),
        ("rivals", ""),
    ]
    rows = (("", along_tasks.row(results, stage)) for stage in results.stages)
    heading = "Along tasks"
    remark = f"Rivals: values that may be above the choice by more than a point. {along_tasks.sight(results)}"
    return page.section(heading, page.table(header, rows, heading), page.small(remark))


def certificates_section(results: SearchResults) -> str:
    """Returns the section on the certificates; "" without any."""
    text = "\n\n".join(filter(None, (certificates.summary(results), certificates.rounding(results))))
    return page.section("Equivalence", page.paragraphs(text), unfolds=True) if text else ""


def _headlines(results: SearchResults) -> Iterator[tuple[str, str, str]]:
    """Yields (label, value, detail) of the tiles: the choice, its score in search and evaluation, paired difference."""
    for i, (name, value) in enumerate(zip(results.parameters, results.chosen, strict=True)):
        yield f"Chosen {parameter_label(name)}", value_text(value), "" if i else _detail(results)
    stream = STREAM_LABELS[results.score_on]
    members = results.members_of(results.chosen)
    selected = "" if is_inert(results) else f" ({wording.subject(results)} selected on them)"
    yield from _score_tile(results, stream, members, selected)
    if results.score_on != "eval":  # else it is the same number again
        yield from _score_tile(results, STREAM_LABELS["eval"], results.evaluation_of(results.chosen), "")
    pair = baseline_pair(results, evaluation=True)
    if pair.n:
        several = pair.n > 1  # one pair has no standard error
        yield (
            f"{results.objective} minus {wording.baseline_name(results)}'s, evaluation",
            paired_text(pair.mean, pair.error, DIGITS) if several else signed_text(pair.mean, DIGITS),
            f"percentage points, paired{', ± standard error' if several else ''}; higher in {pair.wins} of "
            f"{count_text(pair.n, 'seed')}",
        )


def _detail(results: SearchResults) -> str:
    """Returns the verdict in a word or two, and its interval; or for how many tasks the choice is predicted."""
    if results.stages:
        return along_tasks.in_brief(results)
    trusted = trust(results)
    where = f"; best in {trusted.peak.text}" if trusted.peak is not None else ""
    return f"{KIND_LABELS[trusted.verdict.kind]}{where}"


def _score_tile(
    results: SearchResults, stream: str, members: Sequence[RunRecord], remark: str
) -> Iterator[tuple[str, str, str]]:
    """Yields a tile with mean ± spread of what was maximised; none before anything was trained."""
    if members:
        size = f"{count_text(members[0].tasks, 'task')}, {count_text(len(members), 'seed')}"
        text = metric_text(mean_std(members, [results.objective]), results.objective)
        yield f"{results.objective}, {stream}", f"{text} %", f"{size}{remark}"


def _metrics(results: SearchResults) -> tuple[str, ...]:
    """Returns the metrics of the table of all points: what was maximised first."""
    return tuple(dict.fromkeys((results.objective, *SEARCH_METRICS)))


def _search_rows(results: SearchResults) -> Iterator[tuple[str, list[str]]]:
    """Yields (class, cells) of the rows: a heading for each round, then its points."""
    table, inert = search_table(results), is_inert(results)
    for r in results.rounds:
        span = f": {interval_text(r.span)}" if r.span else ""
        note = f" — {r.note}" if r.note and not r.named else ""
        yield "group", [f"{wording.heading(wording.round_name(r))}{span}{note}"]
        rows = table[table["repeat"] == r.number]
        for point, (_, row) in zip(r.points, rows.iterrows(), strict=True):
            # An inert search has winners, too, but only by their places: all scores are equal.
            rank = "" if inert else {1: "best", 2: "second"}.get(int(row["best"]), "")
            kind = "chosen" if point == results.chosen else ""
            values = [value_text(value) for value in point]
            # Where the formula switches, the row is another method's.
            values[0] += " (A-GEM)" if results.zero_is_agem and point[0] == 0 else ""
            yield (
                kind,
                [
                    *values,
                    *(metric_text(row, metric) for metric in _metrics(results)),
                    str(int(row["n"])),
                    str(int(row["diverged"]) or MISSING),
                    rank,
                ],
            )
