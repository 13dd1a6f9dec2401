"""Figures in the style of a paper: their size, their names, their looks without colours."""

from __future__ import annotations

import json
import math

import pytest

import epsearch
from results.figures import best_so_far, parameter_curve, seed_differences
from results.figures.paper import INCH, paper_style
from tests.support.synthetic import study
from tests.support.synthetic_points import learning_rates


@pytest.mark.slow
@pytest.mark.parametrize("width", [3.3, 6.9])
def test_epsilon_against_accuracy_has_the_size_of_a_column(width: float) -> None:
    figure = parameter_curve.draw(parameter_curve.numbers(study(repeats=3)))
    before = json.loads(figure.to_json())
    styled = epsearch.paper_style(figure, width)
    assert json.loads(figure.to_json()) == before, "the figure itself stays"
    assert styled.layout.width == pytest.approx(INCH * width)
    assert styled.layout.height / styled.layout.width == pytest.approx(150 / 245)
    assert styled.layout.paper_bgcolor == "white" and 0.75 * styled.layout.font.size == pytest.approx(7)
    assert len(list(styled.select_xaxes())) == 1 and not styled.layout.annotations
    assert styled.layout.legend.yref == "paper" and styled.layout.legend.y <= 1, "inside"
    # Nothing lies behind the legend: the axis goes on above the data.
    low, high = styled.layout.yaxis.range
    highest = max(float(y) for trace in styled.data if trace.y is not None for y in trace.y if y is not None)
    assert highest < low + 0.9 * (high - low)


@pytest.mark.slow
def test_traces_have_names_and_markers_of_their_own() -> None:
    for results in (study(repeats=4), learning_rates()):
        styled = paper_style(parameter_curve.draw(parameter_curve.numbers(results)))
        assert all(trace.name for trace in styled.data)
        listed = [trace for trace in styled.data if trace.showlegend is not False]
        assert len({trace.name for trace in listed}) == len(listed) == 5
        marks = [(trace.mode, trace.marker.symbol) for trace in listed]
        assert len(set(marks)) == len(marks), "told apart without colours"
        means = {trace.marker.color for trace in styled.data if trace.meta == "means"}
        assert len(means) == 1, "rounds have no colours"


@pytest.mark.slow
def test_other_figures_have_the_style_too() -> None:
    results = study(repeats=2)
    for module in (best_so_far, seed_differences):
        styled = paper_style(module.draw(module.numbers(results)), 3.3)
        assert styled.layout.width == pytest.approx(3.3 * INCH) and all(trace.name for trace in styled.data)


@pytest.mark.parametrize("width", [0, -1, 12.5, math.nan, math.inf, "3.3"])
def test_another_width_is_one_line(width: float) -> None:
    with pytest.raises(ValueError, match=r"^width must be in \(0, 12\] inches, got ") as caught:
        epsearch.paper_style(None, width)
    assert "\n" not in str(caught.value)
