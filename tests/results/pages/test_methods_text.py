"""What a paper can quote of a search: the paragraph, the BibTeX entries, the formula."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from results.pages.search.methods_text import bibtex, formula, methods_paragraph
from results.pages.search.report import write_report
from results.points import LEFT_OUT
from results.search import EvaluatedChoice
from results.verdict.assessment import trust
from tests.support.synthetic import study
from tests.support.synthetic_points import learning_rates, mixed

PROOF = "3 tasks × 5 seeds and 17 × 5: 15 and 85 different permutations, none shared"


def test_the_paragraph_says_what_was_searched_and_by_which_rule() -> None:
    results = replace(study(), disjointness=PROOF, facts={"epsearch": "9.8.7"})
    text = methods_paragraph(results)
    assert "\n" not in text
    for part in (
        "We searched ε of ε-SOFT-GEM on Permuted MNIST with epsearch 9.8.7, over ε in [0, 1], by interval narrowing (",
        "cross-validation stream of 3 tasks with 5 seeds (0 to 4), and scored by its mean final average accuracy A_T",
        "ε = 0.135 was chosen, by the scores of the tried ε.",
        "On an evaluation stream of 17 other tasks with 5 seeds (0 to 4), A_T was 8",
        "with ε = 0 (A-GEM) (mean ± standard deviation over seeds); the paired difference was +1.38 ± 0.06 percentage",
        "exact two-sided sign-flip test, p = 0.062",
        trust(results).verdict.text,
        PROOF,
    ):
        assert part in text, part


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"epochs": 2}, "2 passes over each task"),
        ({"steps": 9}, "9 steps a"),
        ({"optimizer": "adam"}, "optimizer Adam"),
        ({"momentum": 0.9}, "momentum 0.9"),
        ({"weight_decay": 0.01}, "weight decay 0.01"),
        ({"lr_factor": 0.5}, "a learning rate 0.5 times as large with each task"),
    ],
)
def test_the_paragraph_names_passes_and_an_optimizer_that_are_not_usual(config: dict[str, int], words: str) -> None:
    usual = replace(study(), config=study().config | LEFT_OUT | {"steps": "none"})
    text = methods_paragraph(usual)
    assert text == methods_paragraph(study()) and words not in text
    assert words in methods_paragraph(replace(usual, config=dict(usual.config) | config))


@pytest.mark.slow
def test_the_paragraph_does_not_hide_what_weakens_the_choice() -> None:
    assert "has not been evaluated yet" in methods_paragraph(study(repeats=1, evaluated=False))
    assert "on the evaluation stream itself" in methods_paragraph(study(repeats=2, score_on="eval", tasks=5))
    looks = (EvaluatedChoice("ε = 0.3", "2025-11-20", False), EvaluatedChoice("ε = 0.135", "2025-11-21", True))
    assert "1 other choice had been evaluated" in methods_paragraph(replace(study(), evaluated_choices=looks))
    results = study(repeats=1)
    swapped = replace(results, chosen=(0.0,), baseline=results.chosen)
    assert "The evaluation rejects the choice" in methods_paragraph(swapped)


@pytest.mark.parametrize("make", [mixed, learning_rates, lambda: study(repeats=1, seeds=1)])
def test_any_search_has_a_paragraph(make: object) -> None:
    text = methods_paragraph(make())  # type: ignore[operator]
    assert text.startswith("We searched ") and not re.search(r"\bnan\b|None", text) and "  " not in text


def test_the_paragraph_names_the_scenario() -> None:
    results = study()
    found = methods_paragraph(replace(results, config={**results.config, "scenario": "class"}))
    assert "Each value was trained on a class-incremental cross-validation stream of 3 tasks" in found


def test_bibtex_has_whole_entries() -> None:
    text = bibtex(replace(study(), facts={"epsearch": "9.8.7"}))
    assert re.findall(r"^@(\w+)\{(\w+),$", text, flags=re.MULTILINE) == [
        ("misc", "hu2020gradient"),
        ("software", "epsearch"),
    ]
    assert text.count("{") == text.count("}") and "version = {9.8.7}" in text


def test_the_formula_follows_the_options() -> None:
    results = study(repeats=1)
    assert formula(results) == "g̃ = g if c ≥ 0, else ĝ − (c − ε) ĝ_ref; c = ⟨ĝ, ĝ_ref⟩; for ε = 0: A-GEM"
    other = {**results.config, "trigger": "epsilon", "scale": "raw", "satisfied": "unit"}
    assert formula(replace(results, config=other)).startswith("g̃ = ĝ if c ≥ ε, else g − (c − ε) g_ref")
    assert formula(mixed()) == "", "the scale was searched: there is no one formula"
    assert formula(replace(results, method="agem")).endswith("g − (⟨g, g_ref⟩ / ⟨g_ref, g_ref⟩) g_ref")
    assert formula(replace(results, method="a_agem")).startswith("g̃ = g if c ≥ 0, else (ĝ + ĝ_ref) / 2")
    assert formula(replace(results, method="ewc")) == formula(replace(results, trainer_repeats=True)) == ""


@pytest.mark.slow
def test_they_are_on_the_page(tmp_path: Path) -> None:
    html = write_report(study(repeats=1), tmp_path).read_text(encoding="utf-8")
    assert "ĝ − (c − ε) ĝ<sub>ref</sub>" in html
    for name in ("methods-paragraph", "bibtex", "next-step", "configuration"):
        assert html.count(f'<pre id="{name}"') == html.count(f'data-copy="{name}"') == 1
