"""Sentences on orders of tasks: whether the best value moves with them, and what they add to the variance."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from results.ledger.record import RunRecord
from results.metrics import METRICS
from results.orders import by_unit, scores, units
from results.points import parameter_label
from results.search import SearchResults
from results.statistics import order_effect
from results.statistics.variance_shares import sentence, variance_shares
from results.table import TableResults
from results.verdict import wording


@lru_cache(maxsize=16)  # the terminal and several sections of a report ask for it
def of_search(results: SearchResults) -> str:
    """Returns whether the best value moves with the order, and the shares of the variance in the evaluation.

    Of what was maximised with the chosen point, and of its difference to the baseline. "" with one order.
    """
    parts = [_effect(results), _shares(results.evaluation_of(results.chosen), results.objective)]
    if results.baseline is not None and results.baseline != results.chosen:
        pair = [results.evaluation_of(point) for point in (results.chosen, results.baseline)]
        name = f"the difference of {results.objective} to {wording.baseline_name(results)}"
        parts.append(_shares(pair[0], results.objective, pair[1], name))
    return " ".join(filter(None, parts))


def of_rows(results: TableResults) -> tuple[str, ...]:
    """Returns the shares of the variance of A_T, a sentence for each row that has several orders."""
    named = ((", ".join(row.identity), _shares(row.records, "A_T")) for row in results.rows)
    return tuple(f"{label}: {text}" for label, text in named if text)


def _effect(results: SearchResults) -> str:
    """Returns whether the best value moves with the order; "" with one order, or where no number alone was searched."""
    if not results.is_curve:
        return ""
    # ε = 0 of ε-SOFT-GEM is another formula, whose level is no part of the curve.
    rows = [k for k, point in enumerate(results.points) if not (results.zero_is_agem and point == (0.0,))]
    values = np.array([float(results.points[k][0]) for k in rows])
    return order_effect.sentence(values, scores(results)[rows], parameter_label(results.parameters[0])) or ""


def _shares(members: Sequence[RunRecord], metric: str, less: Sequence[RunRecord] = (), name: str = "") -> str:
    """Returns the shares of the variance of a metric, or of its differences to other members; "" with one order."""
    orders, seeds = units(members)
    if len(orders) < 2:
        return ""
    declared = METRICS[metric]
    table = by_unit(members, metric, orders, seeds) - (by_unit(less, metric, orders, seeds) if less else 0.0)
    shares = variance_shares(declared.display_factor * table)
    unit = "points" if declared.display_unit == "%" else declared.display_unit
    return "" if shares is None else sentence(shares, name or metric, unit)
