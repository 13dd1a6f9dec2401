"""Scores that are all equal bit for bit: one verdict, its own words, and nothing beside it that judges."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from results.inert import all_equal
from results.pages.search.report import write_report
from results.pages.side_by_side import write_strategies
from results.pages.side_by_side_numbers import strategies_table
from results.search import SearchResults
from results.statistics.confidence_set import best_interval
from results.statistics.power import in_words, resolution
from results.verdict.answer import answer
from results.verdict.assessment import trust, trust_as_json
from results.verdict.curve import verdict
from results.verdict.peak import peak
from results.verdict.points import verdict_of_points
from tests.support.synthetic import record, study
from tests.support.synthetic_points import learning_rates, mixed

SAME = 0.9
JUDGING = (
    "brings no benefit",
    ", the best of",
    "selected on",
    "resamples of the",
    "On this evidence",
    "confidence",
)


def alike(results: SearchResults, networks: bool = True) -> SearchResults:
    """The same search, had every member of a seed come to the same accuracies; and to the same network, or not."""
    by_seed = {r.seed: record(0.3, r.seed, r.tasks, r.phase) for r in results.search}
    search = tuple(
        r
        if r.status != "ok"
        else replace(
            r,
            accuracies=by_seed[r.seed].accuracies,
            fingerprint=by_seed[r.seed].fingerprint if networks else r.fingerprint,
        )
        for r in results.search
    )
    scored = [tuple(None if score is None else SAME for score in r.scores) for r in results.rounds]
    rounds = tuple(replace(r, scores=scores) for r, scores in zip(results.rounds, scored, strict=True))
    first = rounds[0].points[0]
    return replace(results, search=search, rounds=rounds, chosen=first, chosen_score=SAME)


SEARCHES = {
    "one number": lambda: alike(study(repeats=2, points=5, seeds=3)),
    "one seed": lambda: alike(study(repeats=1, points=5, seeds=1)),
    "on the evaluation stream": lambda: alike(study(repeats=1, points=5, seeds=3, score_on="eval")),
    "not evaluated": lambda: alike(study(repeats=1, points=5, seeds=3, evaluated=False)),
    "learning rates": lambda: alike(learning_rates()),
    "several": lambda: alike(mixed()),
    "many lost": lambda: alike(study(repeats=1, points=5, seeds=3, diverged=(0.25, 0.5, 0.75))),
    "networks differ": lambda: alike(study(repeats=1, points=5, seeds=3), networks=False),
}


@pytest.mark.parametrize("make", SEARCHES.values(), ids=SEARCHES)
def test_equal_scores_are_inert_and_nothing_else(make) -> None:  # type: ignore[no-untyped-def]
    results = make()
    found = trust(results)
    assert found.verdict.kind == "inert" and found.peak is None is peak(results)
    assert math.isnan(found.verdict.low) and found.comparisons == 0 and math.isnan(found.probability)
    scored = {s for r in results.rounds for s, v in zip(r.points, r.scores, strict=True) if v is not None}
    assert set(found.rivals) == scored - {results.chosen}
    told = trust_as_json(found)
    assert (told["kind"], told["interval"], told["curve"], told["smallest_p"]) == ("inert", None, None, None)
    text = answer(results)
    assert "have the same score bit for bit" in text and "The search kept " in text and "the rule for ties" in text
    assert not [word for word in JUDGING if word in text]


def test_the_words_say_whether_networks_differ() -> None:
    same, other = (trust(SEARCHES[name]()).verdict for name in ("one number", "networks differ"))
    assert same.text.startswith("All ") and "so the search says nothing about ε: the trained networks are" in same.text
    assert same.advice == "Search ε where it has an effect (on more or longer tasks), or search another hyperparameter."
    assert (
        other.text == "All 5 values of ε have the same score bit for bit (3 seeds), so the search says nothing about ε."
    )
    assert other.advice.startswith("Use more tasks or test examples"), "ε has no wider range than [0, 1]"
    several = trust(SEARCHES["several"]()).verdict.text
    assert several.startswith("All 25 points of ε, learning rate, memory and scale have the same score bit for bit")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one number", "several", "on the evaluation stream"])
def test_the_report_has_no_other_verdict(name: str, tmp_path: Path) -> None:
    html = write_report(SEARCHES[name](), tmp_path).read_text(encoding="utf-8")
    page = re.sub(r"<(script|style).*?</\1>", " ", html, flags=re.DOTALL)
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert (
        page.count('class="banner inert"') == 1
        and "inert: all score the same" in text
        and not re.search(r"\bnan\b", text)
    )
    assert not [word for word in (*JUDGING, "best may lie", "gaussian process") if word in text.lower()]


def test_side_by_side_each_has_its_own_verdict(tmp_path: Path) -> None:
    both = [replace(SEARCHES["one number"](), name="dead"), replace(study(repeats=1), name="alive")]
    table = strategies_table(both)
    assert table["kind"].tolist() == ["inert", "resolved"] and math.isnan(table["low"][0])
    html = write_strategies(both, tmp_path).read_text(encoding="utf-8")
    assert 'class="banner inert"' in html and "inert: all score the same" in html


def test_a_race_and_a_study_that_grew_have_gaps() -> None:
    assert all_equal(np.array([[0.5, 0.6, 0.7], [0.5, 0.6, math.nan], [0.5, math.nan, math.nan]]))
    assert not all_equal(np.array([[0.5, 0.6, 0.7], [0.5, 0.6, math.nan], [0.5, math.nan, 0.8]]))
    assert not all_equal(np.array([[0.5, math.nan], [math.nan, 0.5]])), "no seed in common"
    assert not all_equal(np.full((3, 2), math.nan)) and not all_equal(np.empty((0, 0)))
    results = SEARCHES["one number"]()
    raced = replace(results, search=tuple(r for r in results.search if r.seed < 2 or r.epsilon < 0.4))
    assert trust(raced).verdict.kind == "inert"
    almost = [replace(r, accuracies=np.nextafter(r.accuracies, 1)) if r.epsilon == 0.5 else r for r in results.search]
    assert trust(replace(results, search=tuple(almost))).verdict.kind != "inert"


def test_nobody_who_asks_for_a_verdict_gets_another_one() -> None:
    x, scores = [0.0, 0.25, 0.5, 0.75, 1.0], np.tile([90.0, 91.0, 89.5], (5, 1))
    lost = np.zeros(scores.shape, dtype=bool)
    lost[1:4, 0] = True
    for gone in (None, lost):
        assert verdict(best_interval(x, scores, 0, 1), scores, gone).kind == "inert"
        assert verdict_of_points(scores, gone).kind == "inert"
    one = verdict_of_points(scores[:1])
    assert one.kind == "open" and "nothing to compare" in one.text, "one value is not equal to others"


def test_a_plan_finds_no_noise_in_equal_scores() -> None:
    found = resolution(5, np.tile([0.9, 0.91, 0.89], (4, 1)))
    assert found.inert and math.isnan(found.noise)
    assert list(in_words(found)) == [
        "All values tried so far score the same bit for bit: more seeds would show no difference."
    ]


@pytest.mark.slow
def test_an_evaluation_in_which_both_are_equal_is_not_tested() -> None:
    results = study(repeats=1)
    chosen = {r.seed: r.accuracies for r in results.evaluation_of(results.chosen)}
    evaluation = tuple(replace(r, accuracies=chosen[r.seed]) for r in results.evaluation)
    text = answer(replace(results, evaluation=evaluation))
    assert "Both score the same bit for bit on the same 5 seeds: there is nothing to test." in text
    assert "sign-flip" not in text.lower() and "sign-flip" in answer(results).lower()
