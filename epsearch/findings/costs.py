"""The cost of the rows of a table: bytes kept, steps, FLOP, tuning."""

from epsearch.loop.jobs import Run
from epsearch.loop.table import Row, TableLoop
from results.table import RowCost
from trainers.streams import DataError


def row_costs(loop: TableLoop) -> tuple[RowCost, ...]:
    """Returns the cost of each row of a study, in their order; nothing where its data are not here."""
    try:
        return tuple(_cost(loop, row) for row in loop.rows)
    except DataError:
        return ()


def _cost(loop: TableLoop, row: Row) -> RowCost:
    """Returns the cost of a row; no method's cost depends on the seed or the order: the first stands for all."""
    from trainers.cost.storage import bytes_kept  # brings torch along

    run = loop.runs(row)[0]
    flop, steps = loop.cost_of(run)
    bytes_by_kind = bytes_kept(run.learner, loop.stream(run.phase, run.order), loop.study.architecture)
    return RowCost(bytes_by_kind, steps, flop, _tuning(loop, row))


def _tuning(loop: TableLoop, row: Row) -> float:
    """Returns the SGD steps of all members that tune a row."""
    if not loop.study.searches:
        return 0.0
    _, steps = loop.cost_of(Run("cv", row.learner(loop.study.seeds[0])))
    return len(row.candidates()) * len(loop.study.units) * steps
