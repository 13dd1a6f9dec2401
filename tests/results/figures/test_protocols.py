from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from results.figures import protocol_choices, protocol_costs, protocol_schedules
from results.figures.protocol_costs import CLOSE, RING
from results.figures.style import line_style
from results.protocol_tables import protocol_table
from tests.support.synthetic_protocols import BEST, always, protocol, protocols


def traces(drawing: Any, name: str) -> list[Any]:
    """The traces of a figure with this name."""
    return [trace for trace in drawing.data if trace.name == name]


@pytest.mark.slow
def test_regret_stands_against_steps_with_its_interval() -> None:
    results = protocols()
    points = protocol_costs.numbers(results)
    (trace,) = traces(protocol_costs.draw(points), "first task")
    row = protocol_table(results).set_index("protocol").loc["first-task"]
    assert trace.x[0] == pytest.approx(row["steps"]) and trace.y[0] == row["regret"]
    assert trace.error_y.array[0] == pytest.approx(row["regret_high"] - row["regret"])
    assert protocol_costs.draw(points).layout.xaxis.type == "log"


@pytest.mark.slow
def test_bounds_are_hollow_and_last_and_who_peeks_has_a_ring() -> None:
    points = protocol_costs.numbers(protocols())
    drawing = protocol_costs.draw(points)
    hollow = {
        trace.name for trace in drawing.data if str(trace.marker.symbol).endswith("-open") and trace.error_y.array
    }
    assert hollow == {"hindsight"}
    (rings,) = [trace for trace in drawing.data if trace.marker.size == RING["size"]]
    peeking = points[points["peeks"]]
    assert list(rings.y) == peeking["regret"].tolist() and len(peeking) == 2
    plain = protocol_costs.draw(protocol_costs.numbers(protocols(protocol("a", always(*[0.2] * 5)))))
    assert {trace.name for trace in plain.data} == {"a"}
    assert "Hollow" not in protocol_costs.caption(protocol_costs.numbers(protocols(protocol("a", always(*[0.2] * 5)))))


@pytest.mark.slow
def test_the_looks_of_more_than_seven_are_not_hollow() -> None:
    points = protocol_costs.numbers(protocols(*(protocol(f"p{i}", always(*[0.2] * 5)) for i in range(9))))
    drawing = protocol_costs.draw(points)
    assert line_style(8)[2].endswith("-open")
    assert not any(str(trace.marker.symbol).endswith("-open") for trace in drawing.data)
    assert len({(trace.marker.color, trace.marker.symbol) for trace in drawing.data}) == 9


@pytest.mark.slow
def test_protocols_that_cost_the_same_do_not_cover_each_other() -> None:
    points = protocol_costs.numbers(protocols(*(protocol(f"p{i}", always(*[0.2] * 5)) for i in range(4))))
    places = sorted(math.log10(trace.x[0]) for trace in protocol_costs.draw(points).data)
    assert all(later - one > CLOSE for one, later in pairwise(places))
    assert sum(places) / 4 == pytest.approx(math.log10(points["steps"][0]))


@pytest.mark.slow
def test_choices_without_a_step_stand_left_of_all_others() -> None:
    drawing = protocol_costs.draw(protocol_costs.numbers(protocols()))
    (free,) = traces(drawing, "library default")
    others = [trace.x[0] for trace in drawing.data if trace.name != "library default" and trace.x[0] is not None]
    assert 0 < free.x[0] < min(others) / 2
    ticks = dict(zip(drawing.layout.xaxis.ticktext, drawing.layout.xaxis.tickvals, strict=True))
    assert ticks["0"] == free.x[0] and ticks["10k"] == 10_000
    all_free = protocol_costs.draw(protocol_costs.numbers(protocols(protocol("a", always(*[0.2] * 5), steps=0.0))))
    assert all_free.layout.xaxis.ticktext == ("0",)


@pytest.mark.slow
def test_one_unit_has_no_bar_and_what_is_not_trained_no_point() -> None:
    points = protocol_costs.numbers(protocols(orders=1, seeds=1))
    assert len(points) == 6 and all(trace.error_y.array in (None, (0,)) for trace in protocol_costs.draw(points).data)
    none = protocol("a", always(*[0.2] * 5), trained=False)
    assert protocol_costs.numbers(protocols(none)).empty
    assert protocol_costs.numbers(replace(protocols(), constants={})).empty


@pytest.mark.slow
def test_choices_are_counted_over_orders() -> None:
    data = protocol_choices.numbers(protocols())
    assert data is not None
    counts = data[1].set_index(["protocol", "value"])["n"].to_dict()
    assert counts["first-task", 0.5] == 3 and counts["first-task", 1.0] == 2 and counts["cv-tasks", BEST] == 3
    assert "current-task-validation" not in set(data[1]["protocol"])
    orders = data[1].set_index(["protocol", "value"])["orders"].to_dict()
    assert orders["first-task", 1.0] == "1 3"
    drawing = protocol_choices.draw(data)
    (dots,) = traces(drawing, "choice")
    assert dict(zip(map(int, dots.text), dots.marker.size, strict=True))[5] == max(dots.marker.size)
    rows = dict(zip(drawing.layout.yaxis.ticktext, drawing.layout.yaxis.tickvals, strict=True))
    assert [rows[name] for name in ("library default", "first task", "cv tasks")] == [0, -1, -2]
    assert list(drawing.data[0].x) == [BEST, BEST] and "of 5 orders" in protocol_choices.caption(data)


@pytest.mark.slow
def test_a_bound_that_chooses_once_is_hollow() -> None:
    data = protocol_choices.numbers(protocols(protocol("a", always(*[0.2] * 5), bound=True)))
    (dots,) = traces(protocol_choices.draw(data), "bound")
    assert dots.marker.symbol == "circle-open" and not traces(protocol_choices.draw(data), "choice")


def test_one_order_has_no_counts() -> None:
    data = protocol_choices.numbers(protocols(orders=1))
    assert protocol_choices.draw(data).data[1].mode == "markers" and "Numbers" not in protocol_choices.caption(data)


@pytest.mark.slow
def test_an_axis_of_values_is_logarithmic_only_above_zero() -> None:
    row = protocol("a", always(*[0.2] * 5))
    axis = protocol_choices.draw(protocol_choices.numbers(protocols(row, log=True))).layout.xaxis
    assert axis.type == "log"
    zero = replace(protocols(row), log=True)
    assert protocol_choices.draw(protocol_choices.numbers(zero)).layout.xaxis.type == "linear"


def test_values_over_tasks() -> None:
    schedule = ((0, 0.05), (2, 0.2), (4, 0.1))
    data = protocol_schedules.numbers(protocols(protocol("a", [schedule] * 5), protocol("b", always(*[0.2] * 5))))
    assert data is not None and set(data[1]["protocol"]) == {"a"}
    one = data[1][data[1]["order"] == 3]
    assert one["task"].tolist() == [1, 2, 3, 4, 5] and one["value"].tolist() == [0.05, 0.05, 0.2, 0.2, 0.1]


@pytest.mark.parametrize("log", [False, True])
def test_lines_of_orders_stand_apart_but_near_their_value(log: bool) -> None:
    schedule = ((0, 0.05), (2, 0.1), (3, 1.0))
    data = protocol_schedules.numbers(protocols(protocol("a", [schedule] * 5), log=log))
    drawing = protocol_schedules.draw(data)
    lines = [trace for trace in drawing.data if str(trace.name).startswith("order")]
    assert len(lines) == 5 and len({trace.y[0] for trace in lines}) == 5
    for trace in lines:
        nearest = [min((0.05, 0.1, 1.0), key=lambda value: abs(value - y)) for y in trace.y]
        assert nearest == trace.customdata.tolist() == [0.05, 0.05, 0.1, 1.0, 1.0]
    assert [trace.y[0] for trace in lines][2] == pytest.approx(0.05), "the middle one is where it is"
    low, high = drawing.layout.yaxis.range
    ends = [math.log10(y) if log else y for trace in lines for y in trace.y]
    assert low < min(ends) and max(ends) < high


def test_a_value_that_never_changes_is_a_level_line() -> None:
    row = replace(protocol("a", always(*[0.2] * 2)), per_task=True)
    data = protocol_schedules.numbers(protocols(row, orders=2))
    lines = [trace for trace in protocol_schedules.draw(data).data if str(trace.name).startswith("order")]
    assert all(set(trace.y) == {0.2} for trace in lines)


def test_nothing_to_show() -> None:
    assert protocol_choices.numbers(protocols(protocol("a", []))) is None
    assert protocol_schedules.numbers(protocols(protocol("a", always(0.1)), orders=1)) is None
