"""The tables of a study of protocols: what each has chosen, what its choices lose, and what they cost.

A_T and WC-ACC are in percent, F_T is a fraction, regrets are in points of A_T. Costs are those of one order of tasks,
all its seeds together, the mean over orders.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import median_low
from typing import Any

import numpy as np
import pandas as pd

from results.continual_evaluation import INSIDE_METRICS
from results.ledger.record import RunRecord, Unit
from results.metrics import mean_std
from results.orders import by_unit, units
from results.points import value_text
from results.protocols import ProtocolResults, ProtocolRow, Schedule
from results.statistics.regret import Regret, best_constant, best_of_others, regret

MAIN = ("A_T", "F_T")
WORST_CASE = "WC-ACC"
"""A metric of tests inside tasks, which few studies measure."""


@lru_cache(maxsize=64)
def regrets(results: ProtocolResults, row: ProtocolRow) -> tuple[Regret, Regret]:
    """Returns the regret of a protocol to the best constant in hindsight, and to the one that the other orders choose.

    See `results.statistics.regret`. NaN where nothing can be compared.
    """
    orders, seeds = units(results.records)
    constants = _constants(results)
    place = best_constant(constants)
    nothing = np.full((len(orders), len(seeds)), math.nan)
    choices = by_unit(row.records, "A_T", orders, seeds)
    best = nothing if place is None else constants[place]
    return regret(best, choices), regret(best_of_others(constants) if len(constants) else nothing, choices)


def hindsight(results: ProtocolResults) -> float | None:
    """Returns the candidate that is best in hindsight; None while no candidate has all its members."""
    place = best_constant(_constants(results))
    return None if place is None else results.candidates[place]


def in_table_order(results: ProtocolResults) -> tuple[ProtocolRow, ...]:
    """Returns the protocols in their order, bounds at the end."""
    return tuple(sorted(results.rows, key=lambda row: row.bound))


def protocol_table(results: ProtocolResults) -> pd.DataFrame:
    """Returns one row a protocol, bounds last.

    Columns: protocol (name), title, per_task, bound, peeks, choice_median, choice_low, choice_high (of all values in
    all orders), most_values (of one order), n and diverged (members), A_T, F_T and, where one has it, WC-ACC with _mean
    and _std (of the sample, over units); regret, _low, _high, _deviation, _units; smallest_visible; regret_others (to a
    constant that other orders choose), _low, _high; steps, judged_steps (of the training that is judged),
    relative_steps (their ratio), flop, kept (bytes), selected, judged, shared (tests); remark, source, sees.
    """
    inside = any(not math.isnan(value) for row in results.rows for value in _worst_cases(row.records))
    return pd.DataFrame([_row(results, row, inside) for row in in_table_order(results)])


def order_table(results: ProtocolResults) -> pd.DataFrame:
    """Returns one row a protocol and order with a choice.

    Columns: protocol, title, order, choice (text), n, diverged, A_T (mean over seeds), regret, regret_others, steps,
    flop, kept.
    """
    orders, _ = units(results.records)
    rows = []
    for row in in_table_order(results):
        losses = [dict(zip(orders, regret.by_order, strict=True)) for regret in regrets(results, row)]
        for order, schedule in sorted(row.choices.items()):
            means = mean_std([record for record in row.records if record.unit.order == order], MAIN)
            cost = row.cost.get(order)
            rows.append(
                {
                    "protocol": row.name,
                    "title": row.title,
                    "order": order,
                    "choice": schedule_text(schedule),
                    "n": means["n"],
                    "diverged": means["diverged"],
                    "A_T": means["A_T_mean"],
                    "regret": losses[0].get(order, math.nan),
                    "regret_others": losses[1].get(order, math.nan),
                    "steps": math.nan if cost is None else cost.steps,
                    "flop": math.nan if cost is None else cost.flop,
                    "kept": math.nan if cost is None else cost.kept,
                }
            )
    names = ["protocol", "title", "order", "choice", "n", "diverged", "A_T", "regret", "regret_others"]
    return pd.DataFrame(rows, columns=[*names, "steps", "flop", "kept"])


def choice_table(results: ProtocolResults) -> pd.DataFrame:
    """Returns one row a value that was chosen: protocol, title, order, task (the first one with it, from 1), value."""
    rows = [
        (row.name, row.title, order, position + 1, value)
        for row in in_table_order(results)
        for order, schedule in sorted(row.choices.items())
        for position, value in schedule
    ]
    return pd.DataFrame(rows, columns=["protocol", "title", "order", "task", "value"])


def constant_table(results: ProtocolResults) -> pd.DataFrame:
    """Returns one row a candidate: value, n, diverged, A_T and F_T with _mean and _std, best (in hindsight)."""
    best = hindsight(results)
    rows = [
        {"value": value, **mean_std(results.constants.get(value, ()), MAIN), "best": value == best}
        for value in results.candidates
    ]
    return pd.DataFrame(rows)


def schedule_text(schedule: Schedule) -> str:
    """Returns a choice in words.

    >>> schedule_text(((0, 0.1),)), schedule_text(((0, 0.1), (2, 0.3)))
    ('0.1', '0.1, from task 3 0.3')
    """
    (_, first), *later = schedule
    return ", ".join([value_text(first), *(f"from task {at + 1} {value_text(value)}" for at, value in later)])


def _constants(results: ProtocolResults) -> np.ndarray:
    """Returns A_T of the candidates [K, orders, seeds] in percent."""
    orders, seeds = units(results.records)
    tables = [by_unit(results.constants.get(value, ()), "A_T", orders, seeds) for value in results.candidates]
    return np.array(tables, dtype=np.float64).reshape(len(tables), len(orders), len(seeds))


def _row(results: ProtocolResults, row: ProtocolRow, inside: bool) -> dict[str, Any]:
    values = [value for schedule in row.choices.values() for _, value in schedule]
    first, others = regrets(results, row)
    worst = _spread(_worst_cases(row.records)) if inside else {}
    return {
        "protocol": row.name,
        "title": row.title,
        "per_task": row.per_task,
        "bound": row.bound,
        "peeks": row.evidence.peeks,
        "choice_median": median_low(values) if values else math.nan,
        "choice_low": min(values, default=math.nan),
        "choice_high": max(values, default=math.nan),
        "most_values": max((len({value for _, value in schedule}) for schedule in row.choices.values()), default=0),
        **mean_std(row.records, MAIN),
        **{f"{WORST_CASE}_{part}": value for part, value in worst.items()},
        "regret": first.mean,
        "regret_low": first.low,
        "regret_high": first.high,
        "regret_deviation": first.deviation,
        "regret_units": first.units,
        "smallest_visible": first.visible,
        "regret_others": others.mean,
        "regret_others_low": others.low,
        "regret_others_high": others.high,
        **_costs(results, row),
        "selected": row.evidence.selected,
        "judged": row.evidence.judged,
        "shared": row.evidence.shared,
        "remark": row.remark,
        "source": row.source,
        "sees": row.sees,
    }


def _costs(results: ProtocolResults, row: ProtocolRow) -> dict[str, float]:
    """Returns the mean costs of an order, beside the steps of the training that is judged."""
    steps, flop, kept = (
        [float(getattr(cost, name)) for cost in row.cost.values()] for name in ("steps", "flop", "kept")
    )
    judged = _judged_steps(results)
    beside = [judged[order] for order in row.cost if judged.get(order)]
    total = math.fsum(beside)
    complete = len(beside) == len(row.cost)
    return {
        "steps": _mean(steps),
        "judged_steps": _mean(beside),
        "relative_steps": math.fsum(steps) / total if total and complete else math.nan,
        "flop": _mean(flop),
        "kept": _mean(kept),
    }


def _judged_steps(results: ProtocolResults) -> dict[int, float]:
    """Returns order -> SGD steps of one member for each of its seeds: the longest, as one that diverged has fewer."""
    longest: dict[Unit, int] = {}
    for record in results.records:
        longest[record.unit] = max(record.steps, longest.get(record.unit, 0))
    orders = {unit.order for unit in longest}
    return {order: float(sum(steps for unit, steps in longest.items() if unit.order == order)) for order in orders}


def _worst_cases(records: Iterable[RunRecord]) -> list[float]:
    return [INSIDE_METRICS[WORST_CASE].of(record) for record in records]


def _spread(values: Sequence[float]) -> dict[str, float]:
    """Returns mean and sample standard deviation of the values that are not NaN."""
    finite = [value for value in values if not math.isnan(value)]
    return {"mean": _mean(finite), "std": float(np.std(finite, ddof=1)) if len(finite) > 1 else math.nan}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
