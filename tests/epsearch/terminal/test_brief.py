"""The first lines of a table: the row with the highest A_T, and how many samples it rests on."""

from dataclasses import replace

from epsearch.terminal import brief
from tests.support.synthetic_methods import memory_study


def test_a_memory_study_names_the_size_of_its_best_row():
    lines, below = brief.memory(memory_study())
    assert str(lines[0]).startswith("highest A_T: ") and ", memory " in str(lines[0])
    assert below["trust"].startswith("3 seeds; ")


def test_several_orders_are_counted_as_pairs():
    study = memory_study()
    rows = tuple(
        replace(
            row,
            records=tuple(
                replace(one, content=dict(one.content) | {"order": at}) for at, one in enumerate(row.records)
            ),
        )
        for row in study.rows
    )
    _, below = brief.memory(replace(study, rows=rows))
    assert below["trust"].startswith("3 order-seed pairs; ")
