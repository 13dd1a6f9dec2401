"""The answer of a study that holds a row against print: within the margin of its pack, outside, or cannot tell."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from results.labels import (
    count_text,
    dataset_label,
    duration_text,
    method_label,
    number_text,
    settings_text,
    signed_text,
)
from results.ledger.record import RunRecord
from results.metrics import METRICS
from results.statistics.equivalence import OPEN, SPREADS, equivalence, seeds_needed
from results.statistics.paired import ALPHA, CONFIDENCE
from results.table import TableResults

Answer = dict[str, Any]
TOST = 1 - 2 * ALPHA
"""Confidence of the interval that must lie inside the margin."""


def reproduction(results: TableResults) -> Answer | None:
    """Returns the answer of a study as `answer_of` has it; None without a pack, or a row of its method."""
    if (pack := results.config.get("from_pack")) is None:
        return None
    row = next((row for row in results.rows if row.method == pack["method"]), None)
    return None if row is None else answer_of(pack, row.records)


def answer_of(pack: Mapping[str, Any], records: Sequence[RunRecord]) -> Answer:
    """Returns the answer with its numbers, as `of_scores`; records: members of the row, one a unit.

    pack: as `Pack.as_data` has it. Where a member diverged, nothing can be told.
    """
    metric = METRICS[pack["metric"]]
    scores = [metric.display_factor * metric.of(record) for record in records if record.status == "ok"]
    answer = of_scores(pack, scores, len(records) - len(scores))
    return answer | {"seconds": round(sum(record.seconds for record in records), 1)}


def of_scores(pack: Mapping[str, Any], scores: Sequence[float], diverged: int = 0) -> Answer:
    """Returns the answer with its numbers, JSON-able, in the unit that people see; None for unknown ones.

    scores: of the seeds that did not diverge; without one, nothing can be told.
    """
    printed, values, n = pack["printed"], np.array(scores, float), len(scores)
    error = 0.0 if printed["spread"] is None else SPREADS[printed["spread_is"]](printed["spread"], printed["n"])
    answer: Answer = {
        **{name: pack[name] for name in ("name", "source", "dataset", "method", "metric", "margin")},
        "printed": printed["mean"],
        "printed_error": error,
        "exact": printed["spread"] is None,
        "n": n,
        "diverged": diverged,
        "changed": list(pack.get("changed", ())),
        "anomalies": list(pack["anomalies"]),
        "settings": dict(pack["settings"]),
        "mean": float(values.mean()) if n else None,
        "sd": float(values.std(ddof=1)) if n > 1 else None,
        "answer": OPEN,
        "difference": None,
    }
    if not n:
        return answer
    tested = equivalence(values, printed["mean"], error, printed["n"] or 1, pack["margin"])
    answer["difference"] = tested.difference
    if n > 1:
        answer |= {"interval_90": tested.interval(TOST), "interval_95": tested.interval(CONFIDENCE), "p": tested.p}
    if diverged:
        return answer
    answer["answer"] = tested.answer
    if tested.answer == OPEN:
        answer["seeds_needed"] = seeds_needed(tested, n, error, printed["n"] or 1)
    return answer


def headline(answer: Answer) -> str:
    """Returns the answer in a line."""
    others = f" with other {', '.join(answer['changed'])}" if answer["changed"] else ""
    span = f"±{answer['margin']:g} of the printed {answer['printed']:g}"
    if answer["answer"] == OPEN:
        return f"{answer['name']}{others}: cannot tell at n = {answer['n']} whether within {span}"
    return f"{answer['name']}{others}: {answer['answer']} {span} (n = {answer['n']})"


def how_far(answer: Answer) -> str:
    """Returns what the test rests on, in a line."""
    if answer["diverged"]:
        return f"{count_text(answer['diverged'], 'seed')} diverged, and the others alone say nothing"
    rests = "printed mean taken as exact" if answer["exact"] else f"print ± {answer['printed_error']:.2g} (s.e.)"
    return f"{count_text(answer['n'], 'seed')}, ± sd; {rests}; two one-sided tests at 5 %"


def remedy(answer: Answer) -> str:
    """Returns how many seeds would be needed, in a sentence; "" where there is an answer."""
    if answer["answer"] != OPEN or answer["diverged"]:
        return ""
    needed = answer.get("seeds_needed", 2)
    if needed is None:
        return "more seeds would not tell: print too vague, or difference at the margin"
    return f"{needed} seeds would tell 4 times in 5, if difference and spread stay"


def cells(answer: Answer) -> tuple[str, str, str, str]:
    """Returns ours, printed, difference, and the interval of the test, for tables."""
    digits = METRICS[answer["metric"]].digits
    ours = "–" if answer["mean"] is None else number_text(answer["mean"], digits)
    ours += "" if answer["sd"] is None else f" ± {number_text(answer['sd'], digits)}"
    low, high = answer.get("interval_90", (None, None))
    span = "–" if low is None else f"{signed_text(low, digits)} to {signed_text(high, digits)}"
    apart = "–" if answer["difference"] is None else signed_text(answer["difference"], digits)
    return ours, f"{answer['printed']:g}", apart, span


def sentences(results: TableResults) -> list[str]:
    """Returns all that is known of the answer, a sentence each; none for a study without a pack."""
    if (answer := reproduction(results)) is None:
        return []
    ours, printed, apart, span = cells(answer)
    values = f"{answer['metric']}: {ours} against {printed}, a difference of {apart}"
    tests = f", {100 * TOST:.0f} % interval {span}, p = {answer['p']:.2g}" if "p" in answer else ""
    subject = f"{method_label(answer['method'])} on {dataset_label(answer['dataset'])}, {answer['source']}"
    cost = f"trained in {duration_text(answer['seconds'])}, all seeds together"
    how = f"with {settings_text(answer['settings']) or 'the settings of the dataset'}"
    lines = [
        f"{headline(answer)}.",
        f"{subject}. {values}{tests}.",
        f"{how_far(answer)}.",
        remedy(answer),
        f"{cost}, {how}",
    ]
    return [*filter(None, lines), *(f"known: {text}" for text in answer["anomalies"])]
