"""ε = 0 is A-GEM in ε-SOFT-GEM alone: where another method has an ε, nothing calls it so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from results.figures import parameter_curve
from results.pages.search.report import write_report
from results.pages.side_by_side import write_strategies
from results.points import point_label
from results.search import SearchResults
from results.verdict.answer import answer
from results.verdict.assessment import trust, trust_as_json
from results.verdict.peak import peak, table
from tests.support.synthetic import study
from tests.support.synthetic_points import mixed

NAME = "A-GEM"


def of_another_method(results: SearchResults) -> SearchResults:
    return replace(
        results,
        method="mine",
        search=tuple(replace(r, method="mine") for r in results.search),
        evaluation=tuple(replace(r, method="mine") for r in results.evaluation),
    )


STUDIES = {
    "chosen inside": lambda: study(repeats=2, points=5, seeds=3),
    "0 chosen": lambda: replace(study(repeats=1, points=5, seeds=3, peak=0.0), chosen=(0.0,)),
    "best near 0, not evaluated": lambda: study(repeats=1, seeds=3, peak=-0.05, evaluated=False),
    "several": lambda: mixed(baseline=(0.0, 0.1, 25, "raw")),
}


@pytest.mark.slow
@pytest.mark.few(2)
@pytest.mark.parametrize("make", STUDIES.values(), ids=STUDIES)
def test_nothing_that_is_written_names_it(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    results = of_another_method(make())
    write_report(results, tmp_path)
    assert not files_that_name_it(tmp_path)
    told = (answer(results), trust(results).verdict, trust_as_json(trust(results)))
    assert NAME not in json.dumps(told, default=str)


@pytest.mark.slow
def test_nor_does_the_page_of_several(tmp_path: Path) -> None:
    results = of_another_method(STUDIES["0 chosen"]())
    write_strategies([results, replace(results, name="other")], tmp_path)
    assert not files_that_name_it(tmp_path)


def files_that_name_it(folder: Path) -> list[str]:
    written = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert len(written) > 5
    return [path.name for path, content in written.items() if NAME.encode() in content]


def test_of_soft_gem_it_is_named() -> None:
    text = answer(STUDIES["0 chosen"]())
    assert "which is plain A-GEM" in text and "A-GEM reaches" in text
    assert point_label("soft_agem", ("epsilon", "lr"), (0.0, 0.1)) == "A-GEM (ε = 0), learning rate = 0.1"
    assert point_label("mine", ("epsilon", "lr"), (0.0, 0.1)) == "mine, ε = 0, learning rate = 0.1"


def test_where_no_other_formula_holds_zero_is_part_of_the_curve() -> None:
    results = study(repeats=1)
    ours, other = peak(results), peak(of_another_method(results))
    assert ours is not None and other is not None
    assert ours.curve is not None and other.curve is not None
    away = [abs(one.curve["mean"].iloc[0] - table(results)[0].mean()) for one in (ours, other)]
    assert away[0] > 3 * away[1], "the curve goes through the scores of ε = 0 where it has no other formula"
    captions = [parameter_curve.caption(parameter_curve.numbers(r)) for r in (results, of_another_method(results))]
    assert (
        "with another formula, is no part of it" in captions[0] and "where the formula switches to A-GEM" in captions[0]
    )
    assert "formula" not in captions[1] and "Diamond and dashed line: the baseline ε = 0 (" in captions[1]
