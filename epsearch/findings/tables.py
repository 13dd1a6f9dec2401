"""What a finished comparison or memory study found, in the shape that its report takes."""

from collections.abc import Mapping
from typing import cast

from epsearch.loop.rows import Row
from epsearch.loop.table import TableLoop
from epsearch.session.session import unfinished
from epsearch.study.kinds import Comparison
from results.table import ComparedRow, ComparisonResults, MemoryResults, MemoryRow
from search_spaces.published.definition import load_definition


def comparison(loop: TableLoop, facts: Mapping[str, str]) -> ComparisonResults:
    """Every row with its members."""
    study = cast(Comparison, loop.study)
    rows = tuple(
        ComparedRow(row.label, row.method, row.shown(), loop.found(loop.runs(row)), _remark(loop, row))
        for row in loop.rows
    )
    sizes = study.hyperparameters.memory == load_definition(study.dataset).memory
    notes = tuple(_notes(loop))
    return ComparisonResults(study.name, study.dataset, rows, study.shown(), facts, notes, sizes and _full_size(loop))


def memory_study(loop: TableLoop, facts: Mapping[str, str]) -> MemoryResults:
    """Every method and size with its members."""
    study = loop.study
    rows = tuple(
        MemoryRow(row.label, row.method, row.shown(), loop.found(loop.runs(row)), row.hyperparameters.memory)
        for row in loop.rows
    )
    return MemoryResults(study.name, study.dataset, rows, study.shown(), facts, tuple(_notes(loop)), _full_size(loop))


def _remark(loop: TableLoop, row: Row) -> str:
    if row.label in loop.untuned:
        return "Every candidate of the tuning lost a seed; trained with the definition's values."
    return ""


def _full_size(loop: TableLoop) -> bool:
    """Whether tasks, examples and batches are the paper's, so that its printed rows are a yardstick.

    Another reading of a method may still be set beside them: which one made them is a question that this answers.
    """
    study, definition = loop.study, load_definition(loop.study.dataset)
    return study.examples_per_task is None and (
        (study.tasks, study.cv_tasks, study.hyperparameters.batch_size, study.hyperparameters.memory_batch)
        == (definition.tasks, definition.cv_tasks, definition.batch_size, definition.memory_batch)
        and (study.classes_per_task or definition.classes, study.image_size)
        == (definition.classes, definition.image_size)
        and (study.network, study.pretrained) == (definition.network, definition.pretrained)
    )


def _notes(loop: TableLoop) -> list[str]:
    study = loop.study
    notes = unfinished(loop)
    if "soft_agem" in study.methods and load_definition(study.dataset).reported_epsilon is None:
        notes.append(f"The paper reports no ε for this dataset; ε = {study.hyperparameters.epsilon:.6g} is used here.")
    return notes
