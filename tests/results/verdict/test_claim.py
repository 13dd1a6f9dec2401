"""Claims: their form, and their answers by hand."""

import math

import pytest

from results.claims import Claim, StoredClaim
from results.statistics.regret import smallest_visible
from results.verdict.claim import answer, as_json, excess, in_brief, sentences, visible

DIFFERENCES = (1.5, 2.0, 1.25, 2.5, 1.75, 3.0)


def stored(text="a > b + 1", differences=DIFFERENCES, missing=0, extended=False, diverged=0, earlier=0):
    second = {unit: 90.0 + unit for unit in range(len(differences))}
    first = {unit: second[unit] + difference for unit, difference in enumerate(differences)}
    return StoredClaim(Claim.of(text), "0123456789abcdef", first, second, missing, diverged, earlier, extended)


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("soft_agem > agem + 1", Claim("soft_agem", True, "agem", 1.0)),
        ("soft_agem>agem+1", Claim("soft_agem", True, "agem", 1.0)),
        (" ewc <  er - 0.25 ", Claim("ewc", False, "er", -0.25)),
        ("my.module:ER > a-b.c:D", Claim("my.module:ER", True, "a-b.c:D", 0.0)),
        ("a > b + 0.000001", Claim("a", True, "b", 0.000001)),
        ("a > b - 99.123456", Claim("a", True, "b", -99.123456)),
    ],
)
def test_the_form_of_a_claim(text, claim):
    assert Claim.of(text) == claim and Claim.of(str(claim)) == claim


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a > ",
        "a = b",
        "a >= b",
        "a > b + x",
        "a > b + 100",
        "a > b + 1e3",
        "a > b + 0.0000001",
        "a > b > c",
        "a > b + 1 + 2",
        "a > a",
    ],
)
def test_other_texts_are_one_line(text):
    with pytest.raises(ValueError, match=r"^claim must compare two .*") as error:
        Claim.of(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > b + 1", "supported"),  # six differences, each above 1: p = 2/64
        ("a > b", "supported"),
        ("a < b", "refuted"),
        ("a > b + 3.5", "refuted"),
        ("a < b + 3.5", "supported"),
        ("a > b + 1.5", "cannot tell"),  # 0, .5, −.25, 1, .25, 1.5
        ("a > b + 2", "cannot tell"),
    ],
)
def test_the_answer_is_that_of_the_sign_flip_test(text, expected):
    assert answer(stored(text)) == expected


def test_five_pairs_never_decide():
    one = stored("a > b", DIFFERENCES[:5])
    assert answer(one) == "cannot tell" and math.isnan(visible(one_excess := excess(one))) and one_excess.n == 5
    assert "5 pairs cannot reach p < 0.05, 6 can" in sentences(one)[1]


def test_a_unit_that_diverged_is_no_pair():
    one = stored("a > b")
    assert excess(StoredClaim(one.claim, "", {0: 1.0, 7: 3.0}, {0: 0.5, 1: 2.0}, 0, 0, 0, False)).differences == (0.5,)


def test_lost_seeds_decide_nothing():
    """The others alone would favour the method that loses its bad seeds."""
    one = stored(diverged=4)
    assert answer(one) == "cannot tell" and in_brief(one) == "a > b + 1: cannot tell (4 members diverged)"
    assert as_json(one)["diverged"] == 4


def test_a_claim_that_came_after_members_is_not_tested():
    one = stored(earlier=2)
    assert answer(one) == "stored too late" and in_brief(one) == "a > b + 1: stored too late"
    assert sentences(one)[1] == "The evaluation has 2 members older than the claim: it is not tested."


def test_no_answer_before_the_last_member():
    one = stored(missing=1)
    assert answer(one) == "not evaluated yet" and in_brief(one) == "a > b + 1: not evaluated yet"
    assert as_json(one)["answer"] == "not evaluated yet"
    assert "power" not in " ".join(sentences(one))


def test_numbers_are_those_of_the_differences():
    one = stored()
    beyond = excess(one)
    assert beyond.differences == pytest.approx([difference - 1 for difference in DIFFERENCES])
    assert excess(stored("a < b + 1")).differences == pytest.approx([1 - difference for difference in DIFFERENCES])
    mean = sum(DIFFERENCES) / 6
    deviation = math.sqrt(sum((each - mean) ** 2 for each in DIFFERENCES) / 5)
    assert visible(beyond) == pytest.approx(smallest_visible(deviation, 6))
    assert in_brief(one) == f"a > b + 1: supported (difference +{mean:.2f} ± {deviation / math.sqrt(6):.2f}, p = 0.031)"
    assert f"80 % power for {visible(beyond):.2f} points beyond the margin" in sentences(one)[1]
    data = as_json(one)
    assert data["hash"] == "0123456789abcdef" and data["p"] == 2 / 64 and data["pairs"] == 6
    assert data["excess"] == pytest.approx(mean - 1)


def test_an_extended_study_is_named():
    assert len(sentences(stored())) == 2
    assert "may exceed 5 %" in sentences(stored(extended=True))[2]
