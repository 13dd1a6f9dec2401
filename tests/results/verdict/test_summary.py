"""The short lines at the end of a run: answer, evaluation, trust and one next step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epsearch.loop import cautions
from results.ledger.record import Certificate
from results.search import SearchResults
from results.verdict.assessment import trust
from results.verdict.judge import REJECTED, UNCONFIRMED, objection
from results.verdict.summary import Summary, command_in, summary
from tests.results.verdict.test_inert import alike
from tests.support.synthetic import study
from tests.support.synthetic_points import learning_rates, search


def lines(said: Summary) -> list[str]:
    return [said.answer, said.tasks, *(" ".join(row) for row in said.rows), said.trust, said.next_step]


STUDIES = {
    "resolved": lambda: study(repeats=1),
    "at the end": lambda: study(repeats=1, peak=1.0),
    "one seed": lambda: study(repeats=1, seeds=1),
    "not evaluated": lambda: replace(study(repeats=1), evaluation=()),
    "diverging": lambda: study(repeats=1, diverged=tuple(i / 10 for i in range(1, 9))),
    "inert": lambda: alike(study(repeats=1)),
    "a learning rate": lambda: learning_rates(seeds=5),
    "several": lambda: search(("epsilon", "memory"), [(e, m) for e in (0.0, 0.5) for m in (5, 25)], seeds=4),
    "chosen on the evaluation": lambda: replace(study(repeats=1), score_on="eval"),
}


@pytest.mark.parametrize("name", STUDIES)
def test_every_answer_is_short(name: str) -> None:
    said = summary(STUDIES[name]())
    assert said.answer and said.trust and said.next_step
    assert len(" ".join(lines(said)).split()) <= 90 and max(map(len, (said.answer, said.trust))) <= 100


def test_the_answer_names_the_choice_and_the_textbook_set() -> None:
    results = study(repeats=1)
    said = summary(results)
    low, high = trust(results).verdict.low, trust(results).verdict.high
    assert said.answer.startswith(f"ε = {results.chosen[0]:g}   (95 % confidence set ")
    assert 0 <= low < results.chosen[0] < high <= 0.2 and "resolved" not in said.answer
    assert summary(study(repeats=1, peak=1.0)).answer.endswith("; ε cannot exceed 1)")
    assert "not resolved by 1 seed" in summary(study(repeats=1, seeds=1)).answer
    assert summary(alike(study(repeats=1))).answer == "no answer: all tried ε have the same score bit for bit"


def test_the_table_has_the_evaluated_points_and_their_paired_difference() -> None:
    said = summary(study(repeats=1))
    assert said.metrics == ("A_T %", "F_T %") and said.tasks.startswith("17 new tasks, ")
    chosen, agem, *_, difference = said.rows
    assert (
        chosen[0].startswith("ε-SOFT-GEM, ε = ")
        and agem[0] == "A-GEM (ε = 0)"
        and difference[0] == "difference, ± s.e."
    )
    assert difference[1].startswith("+") and difference[2].startswith("−"), "A_T is higher, and F_T lower"
    assert summary(study(repeats=1)).trust.startswith("A_T higher on 5 of 5 seeds; sign-flip test p = ")
    assert summary(replace(study(repeats=1), evaluation=())).rows == ()


def test_several_orders_give_pairs_and_no_more_seeds() -> None:
    ordered = replace(study(repeats=1), orders=5)
    assert "A_T higher on 5 of 5 order-seed pairs; sign-flip" in summary(ordered).trust
    assert "not resolved by 1 order-seed pair)" in summary(replace(study(repeats=1, seeds=1), orders=5)).answer


def test_where_nothing_was_chosen_no_choice_is_trusted() -> None:
    assert summary(alike(study(repeats=1))).trust == "nothing was chosen, as the scores do not differ"


def rejected(results: SearchResults, by: float) -> SearchResults:
    """The same study whose chosen point is worse in the evaluation by some points, with a little noise."""

    def moved(record):  # type: ignore[no-untyped-def]
        if record not in results.evaluation_of(results.chosen):
            return record
        base = next(one for one in results.evaluation_of((0.0,)) if one.seed == record.seed)
        last = base.accuracies.copy()
        last[-1] -= (by + 0.2 * (record.seed % 3)) / 100
        return replace(record, accuracies=last)

    return replace(results, evaluation=tuple(map(moved, results.evaluation)))


def test_an_evaluation_against_the_choice_comes_first() -> None:
    results = study(repeats=1)
    assert objection(results) is None
    clear = rejected(results, 3.0)
    assert objection(clear) == REJECTED
    assert summary(clear).trust == "the evaluation rejects the choice: take A-GEM"
    assert not summary(clear).next_step.startswith("epsearch run --extend"), "more seeds would not change that"
    vague = rejected(results, -0.15)
    assert objection(vague) == UNCONFIRMED
    assert summary(vague).trust == "the evaluation does not confirm the choice: take A-GEM, or add seeds"


@pytest.mark.slow
def test_the_next_step_is_one_that_helps() -> None:
    results = study(repeats=1)
    assert summary(results).next_step == f"epsearch run --extend --name {results.name} --seeds 6", (
        "5 seeds cannot reach 0.05"
    )
    assert summary(results).trust.endswith("(p < 0.05 needs 6 seeds)")
    six = study(repeats=1, seeds=6)
    assert summary(six).next_step == f"epsearch report {six.name} --figures pdf"
    caution = cautions.FEW_SEARCH_TASKS.format(tasks=3, evaluated=17, command=cautions.COMMAND.format(dataset="x"))
    assert summary(replace(six, notes=("Other.", caution))).next_step == cautions.COMMAND.format(dataset="x")
    assert summary(replace(results, evaluation=())).next_step == f"epsearch resume {results.name}"
    others = replace(results, seeds=(5, 7, 8, 9, 12), eval_seeds=(5, 7, 8, 9, 12))
    assert summary(others).next_step.endswith("--seeds 5,7,8,9,12,13"), "new seeds come last"
    apart = replace(study(repeats=1, seeds=6), evaluation=results.evaluation, eval_seeds=results.seeds)
    assert summary(apart).next_step == f"epsearch run --extend --name {apart.name} --eval-seeds 6"
    narrow = replace(study(repeats=1, peak=1.0), domain=((0.2, 0.9),))
    assert summary(narrow).next_step.endswith("--interval 0.2 1"), "ε may go on to 1"
    rates = search(("lr",), [(r,) for r in (0.001, 0.003, 0.01, 0.03)], seeds=6, log=("lr",))
    said = summary(rates)
    assert not said.next_step.startswith("epsearch ") and "search a wider" in said.next_step


def test_no_wider_interval_is_advised_than_a_search_may_have() -> None:
    rates = search(("lr",), [(r,) for r in (0.001, 0.003, 0.01, 0.03)], seeds=6, log=("lr",))
    assert summary(rates).answer.endswith(", at the upper end)")
    assert trust(rates).verdict.advice == "Better values may lie above 0.03: search a wider interval."
    limited = replace(rates, limits={"lr": (0.0, 0.03)})
    said = summary(limited)
    assert said.answer.endswith("; learning rate cannot exceed 0.03)")
    assert said.next_step == f"epsearch report {rates.name} --figures pdf"
    advice = "learning rate cannot go beyond 0.03, so the end itself is a valid answer: take learning rate = 0.03."
    assert trust(limited).verdict.advice.startswith(advice)


def test_a_caution_ends_with_its_command() -> None:
    for text in (cautions.FEWER_IMAGES, cautions.FEWER_IMAGES_AND_TASKS, cautions.FEW_SEARCH_TASKS, cautions.ZERO):
        filled = text.format(images=1, full=2, tasks=3, evaluated=4, command="epsearch run --seeds 6")
        assert command_in(filled) == "epsearch run --seeds 6"
    assert command_in(cautions.SMALL_STREAM).startswith("epsearch run --dataset permuted_mnist")
    assert command_in("Something: else.") == ""


def test_a_result_that_did_not_repeat_itself_comes_before_all_else() -> None:
    results = study(repeats=1)
    record = results.search[0]
    other = Certificate(record.key, 0.5, 0.1, "2026-01-01T00:00:00+00:00")
    said = summary(replace(results, certificates=(other,)))
    assert said.trust == "a member trained again has another result than its stored one: see why"


@pytest.mark.parametrize(("dataset", "spread"), [("permuted_mnist", "σ"), ("permuted_digits", "sd")])
def test_the_spread_is_the_population_s_beside_printed_rows_alone(dataset: str, spread: str) -> None:
    results = replace(study(repeats=1), dataset=dataset)
    assert results.printed_beside and summary(results).tasks.endswith(f"± {spread}")
