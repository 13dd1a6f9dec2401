"""Tables of numbers by order of tasks and seed, for the statistics of orders."""

import math
from collections.abc import Iterable

import numpy as np

from results.ledger.record import RunRecord, Unit
from results.metrics import METRICS
from results.search import SearchResults


def by_unit(records: Iterable[RunRecord], metric: str, orders: tuple[int, ...], seeds: tuple[int, ...]) -> np.ndarray:
    """Returns a metric [orders, seeds] of the records of one point, in the units of `summarize`.

    NaN where a member was not trained or diverged.
    """
    values = {record.unit: METRICS[metric].of(record) for record in records}
    rows = [[values.get(Unit(order, seed), math.nan) for seed in seeds] for order in orders]
    return np.array(rows, dtype=np.float64).reshape(len(orders), len(seeds))


def units(records: Iterable[RunRecord]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the orders and the seeds of records, each ascending."""
    records = tuple(records)
    return tuple(sorted({record.unit.order for record in records})), tuple(sorted({record.seed for record in records}))


def scores(results: SearchResults, metric: str = "") -> np.ndarray:
    """Returns a metric [points, orders, seeds] of the search, rows as `results.points`; by default what was maximised.

    Orders and seeds are those of `units(results.search)`.
    """
    orders, seeds = units(results.search)
    tables = [by_unit(results.members_of(p), metric or results.objective, orders, seeds) for p in results.points]
    return np.array(tables, dtype=np.float64).reshape(len(tables), len(orders), len(seeds))
