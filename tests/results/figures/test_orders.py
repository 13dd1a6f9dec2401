from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import epsearch
from results.figures import orders
from results.ledger.record import RunRecord
from results.metrics import average_accuracy
from results.orders import by_unit, scores, units
from results.pages.search.report import figures, write_report
from results.points import Value, is_number
from results.search import SearchResults
from results.search_tables import compare
from results.verdict.peak import table
from tests.support.synthetic import study
from tests.support.synthetic_points import learning_rates, mixed


def with_orders(results: SearchResults, drop: dict[int, float]) -> SearchResults:
    """The search in several orders of tasks; in order k all A_T are lower by drop[k]·|value − 0.5|."""
    value = {r.key: point[0] for point in results.points for r in results.members_of(point)}

    def moved(record: RunRecord, order: int) -> RunRecord:
        lower = np.clip(record.accuracies - drop[order] * _distance(value[record.key]), 0, 1)
        content = {**record.content, **({"order": order} if order else {})}
        return replace(record, key=f"{record.key}{order}", accuracies=lower, content=content)

    return replace(results, search=tuple(moved(one, order) for order in drop for one in results.search))


def _distance(value: Value) -> float:
    return abs(float(value) - 0.5) if is_number(value) else 0.0


def test_units_are_paired_and_not_seeds(in_three: SearchResults) -> None:
    """Three orders of five seeds are fifteen columns and fifteen pairs."""
    assert table(in_three).shape == (11, 15) and not np.isnan(table(in_three)).any()
    assert compare(in_three.members_of((0.3,)), in_three.members_of((0.7,))).n == 15


@pytest.fixture(scope="module")
def in_three() -> SearchResults:
    return with_orders(study(repeats=1), {0: 0.0, 2: 0.4, 5: 0.01})


def test_tables_by_order_and_seed(in_three: SearchResults) -> None:
    assert units(in_three.search) == ((0, 2, 5), (0, 1, 2, 3, 4))
    table = scores(in_three)
    assert table.shape == (11, 3, 5)
    (one,) = (r for r in in_three.members_of((0.3,)) if r.unit.order == 2 and r.seed == 4)
    assert table[3, 1, 4] == 100 * float(average_accuracy(one.accuracies))
    part = by_unit([one], "F_T", (0, 2), (4, 9))
    assert np.isnan(part).tolist() == [[True, True], [False, True]] and 0 <= part[1, 0] < 1
    assert scores(replace(in_three, search=())).shape == (0, 0, 0)


def test_numbers(in_three: SearchResults) -> None:
    found = orders.numbers(in_three)
    assert found is not None
    frame = found[1]
    assert len(frame) == 33 and set(frame["n"]) == {5} and set(frame["missing"]) == {0}
    means = scores(in_three).mean(axis=2)
    for place, order in enumerate((0, 2, 5)):
        rows = frame[frame["order"] == order]
        assert rows["mean"].tolist() == pytest.approx(means[:, place])
        assert rows["below"].tolist() == pytest.approx(means[:, place].max() - means[:, place])
        (best,) = rows.loc[rows["best"], "epsilon"]
        assert best == in_three.points[int(means[:, place].argmax())][0]
    best = frame.loc[frame["best"]].set_index("order")["epsilon"]
    assert best[2] > best[0], "the made order has its top further right"


@pytest.mark.slow
def test_one_order_has_no_figure_and_choices_neither() -> None:
    assert orders.numbers(study(repeats=1)) is None and "orders" not in figures(study(repeats=1))
    assert "orders" not in figures(with_orders(mixed(), {0: 0, 1: 0}))


def test_the_drawing(in_three: SearchResults) -> None:
    found = orders.numbers(in_three)
    assert found is not None
    drawn = orders.draw(found)
    chosen, tried, best = drawn.data
    assert (tried.name, best.name, chosen.name) == ("tried", "best of the order", f"chosen ε = {in_three.chosen[0]}")
    axis = drawn.layout.yaxis
    assert list(best.y) == [0, -1, -2] == list(axis.tickvals) and axis.ticktext == ("0", "2", "5")
    opacity = dict(zip(zip(tried.y, tried.x, strict=True), tried.marker.opacity, strict=True))
    assert all(opacity[place] == 1 for place in zip(best.y, best.x, strict=True))
    assert min(opacity.values()) == pytest.approx(orders.PALEST) and len(set(opacity.values())) > 5
    assert set(chosen.x) == {in_three.chosen[0]} and chosen.y == axis.range[::-1] == (0.5, -2.5)
    styled = epsearch.paper_style(drawn)
    low, high = styled.layout.yaxis.range
    assert low < -2 and high > 0.3, "the legend hides no order"


def test_a_logarithmic_axis() -> None:
    results = with_orders(learning_rates(), {0: 0.0, 1: 0.1})
    found = orders.numbers(results)
    assert found is not None
    drawn = orders.draw(found)
    assert drawn.layout.xaxis.type == "log" and set(drawn.data[0].x) == {results.chosen[0]}


def test_the_caption_and_the_table(in_three: SearchResults) -> None:
    found = orders.numbers(in_three)
    assert found is not None
    best = found[1].loc[found[1]["best"], "epsilon"]
    text = orders.caption(found)
    assert f"In 3 orders it lies between {best.min():g} and {best.max():g}." in text and "points on" in text
    assert orders.tables(found)["orders"] is found[1]


def test_values_without_every_run_are_shown_but_never_best() -> None:
    results = with_orders(study(repeats=1, diverged=(0.1,)), {0: 0.0, 1: 0.0})
    found = orders.numbers(results)
    assert found is not None
    rows = found[1][found[1]["epsilon"] == 0.1]
    assert rows["n"].tolist() == [4, 4] and rows["missing"].tolist() == [1, 1] and not rows["best"].any()
    assert found[1]["best"].sum() == 2 and len(orders.draw(found).data[1].x) == 22


def test_equal_scores_have_no_best(in_three: SearchResults) -> None:
    level = in_three.search[0].accuracies
    found = orders.numbers(replace(in_three, search=tuple(replace(r, accuracies=level) for r in in_three.search)))
    assert found is not None and not found[1]["best"].any()
    assert orders.draw(found).data and "it lies between" not in orders.caption(found)


@pytest.mark.slow
def test_the_report_has_it(in_three: SearchResults, tmp_path: Path) -> None:
    assert "orders" in figures(in_three)
    page = write_report(in_three, tmp_path).read_text(encoding="utf-8")
    assert "ε by order of tasks" in page and "Best ε by order of tasks" in page
    assert len((tmp_path / "figures" / "orders.csv").read_text(encoding="utf-8").splitlines()) == 34
