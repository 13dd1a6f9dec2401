"""What a study of protocols says: which protocols lose, how sure that is, and what it cannot see."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from results.labels import MISSING, count_text, number_text
from results.metrics import METRICS
from results.orders import units
from results.points import parameter_label, value_text
from results.protocol_tables import hindsight, in_table_order, protocol_table, regrets, schedule_text
from results.protocols import ProtocolResults, ProtocolRow
from results.statistics.paired import CONFIDENCE
from results.statistics.regret import POWER, Regret
from results.verdict import wording
from results.verdict.summary import Summary

DIGITS = METRICS["A_T"].digits
MOST_ROWS = 8
"""Most protocols in the summary, so that it fits into twelve lines."""
INTERVAL = f"{100 * CONFIDENCE:.0f} % interval"

Standing: TypeAlias = Literal["loses", "gains", "level", ""]


def standing(results: ProtocolResults, row: ProtocolRow) -> Standing:
    """Returns whether a protocol is shown to lose to the best constant in hindsight, or to gain; "" if not measured.

    It loses where the interval of its regret lies above 0, and where three orders or more allow it, that of its regret
    to a constant that the other orders choose, too: the best in hindsight is partly luck. It gains where the interval
    lies below 0, as that of a choice per task may.
    """
    first, others = regrets(results, row)
    if math.isnan(first.mean):
        return ""
    if first.high < 0:
        return "gains"
    return "loses" if first.low > 0 and not others.low <= 0 else "level"


def answer(results: ProtocolResults) -> tuple[str, ...]:
    """Returns the answer in sentences: who loses how much, who is not shown to, bounds, and what it cannot see.

    One sentence while nothing can be compared.
    """
    best = hindsight(results)
    comparable = [row for row in in_table_order(results) if standing(results, row)]
    if best is None or not comparable:
        return ("No protocol can be compared yet: members of the constant values or of the choices are missing.",)
    rivals, bounds = ([row for row in comparable if row.bound is is_bound] for is_bound in (False, True))
    groups: dict[Standing, list[ProtocolRow]] = {"loses": [], "gains": [], "level": []}
    for row in rivals:
        groups[standing(results, row)].append(row)
    constant = f"the best constant in hindsight, {parameter_label(results.parameter)} = {value_text(best)}"
    sentences = (
        _list(results, f"To {constant}, these protocols lose points of A_T ({INTERVAL})", groups["loses"]),
        _list(results, f"Better than {constant} (negative regret, {INTERVAL})", groups["gains"]),
        _list(results, "Not shown to lose" if groups["loses"] else f"Not shown to lose to {constant}", groups["level"]),
        *(_luck(results, row) for row in groups["level"]),
        *(_bound(results, row) for row in bounds),
        _flattery(rivals),
        *(_gap(row) for row in in_table_order(results) if row not in comparable),
        visibility(results),
    )
    return tuple(filter(None, sentences))


def visibility(results: ProtocolResults) -> str:
    """Returns which regrets this design could have seen, in a sentence; "" where no protocol has a spread."""
    sizes = _visible(results)
    if not sizes:
        return ""
    single = len(units(results.records)[0]) < 2
    about = " All of it is about one order of tasks: it says nothing about others." if single else ""
    return f"With {wording.units(results.records)}, {_reach(sizes)}: a smaller loss may stay unseen.{about}"


def sight(row: ProtocolRow) -> str:
    """Returns in one sentence what a protocol may see, and whether it peeks, by hashes."""
    return f"{row.sees.rstrip('.')}; {peeking(row)}."


def peeking(row: ProtocolRow) -> str:
    """Returns whether a protocol chooses by tests that judge it, a clause."""
    return row.evidence.clause if row.choices else "it has not chosen yet"


def summary(results: ProtocolResults) -> Summary:
    """Returns the answer in at most twelve lines: the headline, a row for up to `MOST_ROWS` protocols, the limits."""
    rows = [
        (
            f"{row['title']}{f' ({marks})' if (marks := ', '.join(marks_of(row))) else ''}",
            METRICS["A_T"].number_text(row["A_T_mean"]),
            regret_text(row["regret"], row["regret_low"], row["regret_high"]),
            relative_text(row["relative_steps"]),
        )
        for row in protocol_table(results).to_dict("records")
    ]
    if len(rows) > MOST_ROWS:
        others = count_text(len(rows) - MOST_ROWS + 1, "other")
        rows = [*rows[: MOST_ROWS - 1], (f"and {others}, see the report", "", "", "")]
    sizes = _visible(results)
    return Summary(
        answer=_headline(results),
        tasks=wording.units(results.records),
        metrics=("A_T %", f"regret ({100 * CONFIDENCE:.0f} %)", "cost"),
        rows=tuple(rows),
        trust=_reach(sizes) if sizes else "how small a regret can be seen is not known yet",
        next_step=f"epsearch report {results.name} --figures pdf",
    )


def marks_of(row: Mapping[Any, Any]) -> tuple[str, ...]:
    """Returns what sets a row of `protocol_table` apart: "bound", else "peeks", and "misleads", in their order.

    A bound peeks by its nature.
    """
    first = "bound" if row["bound"] else "peeks" if row["peeks"] else ""
    misleads = "misleads" if row["remark"] and row["most_values"] else ""
    return tuple(filter(None, (first, misleads)))


def regret_text(mean: float, low: float, high: float) -> str:
    """Returns a regret with its interval, in points.

    >>> regret_text(1.234, 0.5, 1.968), regret_text(1.0, math.nan, math.nan), regret_text(math.nan, 0.0, 0.0)
    ('1.23 (0.50 to 1.97)', '1.00', '–')
    """
    return number_text(mean, DIGITS) + (f" ({interval_text(low, high)})" if low < mean < high else "")


def interval_text(low: float, high: float) -> str:
    """Returns an interval of points; a dash where there is none, and without a spread.

    >>> interval_text(-0.5, 1.0), interval_text(math.nan, math.nan), interval_text(0.0, 0.0)
    ('−0.50 to 1.00', '–', '–')
    """
    return f"{number_text(low, DIGITS)} to {number_text(high, DIGITS)}" if low < high else MISSING


def relative_text(ratio: float) -> str:
    """Returns a cost relative to the training that is judged.

    >>> relative_text(11.0), relative_text(0.0), relative_text(0.034), relative_text(math.nan)
    ('11.0 ×', 'none', '0.034 ×', '–')
    """
    if math.isnan(ratio):
        return MISSING
    return f"{ratio:.1f} ×" if ratio >= 1 else f"{ratio:.2g} ×" if ratio else "none"


def choice_text(row: ProtocolRow) -> tuple[str, str]:
    """Returns the choice of a protocol in words, and its spread over orders; "" for a part that there is not.

    A value, of several orders the median (the lower of two), or the number of values and where they begin to change.

    >>> from results.protocols import Evidence
    >>> row = ProtocolRow("a", "a", "", "", True, False, Evidence(0, 0, 0), {0: ((0, 0.5), (2, 0.1))}, (), {})
    >>> choice_text(row)
    ('2 values, from task 3', '0.1 to 0.5, median 0.1')
    """
    schedules = tuple(row.choices.values())
    if not schedules:
        return MISSING, ""
    values = sorted(value for schedule in schedules for _, value in schedule)
    middle = value_text(values[(len(values) - 1) // 2])
    spread = f"{value_text(values[0])} to {value_text(values[-1])}" if values[0] != values[-1] else ""
    changes = [schedule[1][0] + 1 for schedule in schedules if len(schedule) > 1]
    if not changes:
        return middle, spread
    counts = sorted(len({value for _, value in schedule}) for schedule in schedules)
    number = str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    return f"{number} values, from task {min(changes)}", f"{spread}, median {middle}"


def _headline(results: ProtocolResults) -> str:
    """Returns the best constant, and how many protocols lose; of a single protocol first what it has chosen."""
    if len(results.rows) == 1 and (row := results.rows[0]).choices:
        values = {*row.choices.values()}
        text = schedule_text(*values) if len(values) == 1 else ", ".join(filter(None, choice_text(row)))
        return f"{row.title}: {parameter_label(results.parameter)} = {text}; {_comparison(results)}"
    return _comparison(results)


def _comparison(results: ProtocolResults) -> str:
    """Returns the best constant, and how many protocols lose."""
    best = hindsight(results)
    rivals = [row for row in results.rows if not row.bound and standing(results, row)]
    if best is None or not rivals:
        return "no protocol can be compared yet"
    constant = f"best constant: {parameter_label(results.parameter)} = {value_text(best)}"
    losing = [row for row in rivals if standing(results, row) == "loses"]
    if not losing:
        return f"{constant}; none of {count_text(len(rivals), 'protocol')} is shown to lose"
    worst = max(losing, key=lambda row: regrets(results, row)[0].mean)
    most = number_text(regrets(results, worst)[0].mean, DIGITS)
    return (
        f"{constant}; {len(losing)} of {count_text(len(rivals), 'protocol')} lose, {worst.title} most ({most} points)"
    )


def _list(results: ProtocolResults, begin: str, rows: Iterable[ProtocolRow]) -> str:
    """Returns a sentence on protocols with their regrets, the smallest first; "" without one."""
    pairs = sorted(((regrets(results, row)[0], row) for row in rows), key=lambda pair: pair[0].mean)
    return f"{begin}: {', '.join(f'{row.title} {_loss(regret)}' for regret, row in pairs)}." if pairs else ""


def _loss(regret: Regret) -> str:
    """Returns a regret with its interval; of a choice that always was the best constant, that it was."""
    same = regret.mean == 0 and not any(regret.by_order)
    return "0 (chose that value)" if same else regret_text(regret.mean, regret.low, regret.high)


def _luck(results: ProtocolResults, row: ProtocolRow) -> str:
    """Returns the regret without luck of a protocol that only seems to lose; "" for others."""
    first, others = regrets(results, row)
    if not first.low > 0:
        return ""
    text = regret_text(others.mean, others.low, others.high)
    return (
        f"The best constant in hindsight is partly luck: to one that the other orders choose, {row.title} has a "
        f"regret of {text}."
    )


def _bound(results: ProtocolResults, row: ProtocolRow) -> str:
    """Returns the regret of a bound, which is negative where the bound is above the best constant."""
    regret = regrets(results, row)[0]
    text = regret_text(regret.mean, regret.low, regret.high)
    return f"The bound {row.title}, which nobody can reach, has a regret of {text}."


def _flattery(rows: Iterable[ProtocolRow]) -> str:
    """Returns which protocols peek; "" for none."""
    titles = [row.title for row in rows if row.evidence.peeks]
    return f"Flattered, as tests that judge them also choose: {', '.join(titles)}." if titles else ""


def _gap(row: ProtocolRow) -> str:
    """Returns why a protocol is not compared."""
    if not row.choices:
        why = f" ({row.remark.rstrip('.')})" if row.remark else ""
        return f"No choice: {row.title}{why}."
    diverged = row.records and all(record.status != "ok" for record in row.records)
    return f"Not compared: {row.title}, whose members {'all diverged' if diverged else 'are not all trained'}."


def _visible(results: ProtocolResults) -> list[float]:
    """Returns the smallest visible regrets of protocols that are no bounds, ascending."""
    sizes = (regrets(results, row)[0].visible for row in results.rows if not row.bound)
    return sorted(size for size in sizes if not math.isnan(size))


def _reach(sizes: Sequence[float]) -> str:
    """Returns which regrets the design finds; sizes: the smallest visible ones, ascending."""
    span = " to ".join(dict.fromkeys(number_text(size, DIGITS) for size in (sizes[0], sizes[-1])))
    varies = ", by protocol" if " to " in span else ""
    return f"{100 * POWER:.0f} % of such studies see a regret of {span} points{varies}"
