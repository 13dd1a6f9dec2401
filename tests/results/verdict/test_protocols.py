from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from results.ledger.record import RunRecord
from results.protocol_tables import regrets
from results.protocols import Evidence, ProtocolResults
from results.verdict.protocols import MOST_ROWS, answer, choice_text, peeking, sight, standing, summary, visibility
from tests.support.synthetic_protocols import BEST, always, protocol, protocols


def stands(results: ProtocolResults) -> dict[str, str]:
    return {row.name: standing(results, row) for row in results.rows}


def test_who_loses_and_who_does_not() -> None:
    assert stands(protocols()) == {
        "library-default": "loses",
        "first-task": "loses",
        "cv-tasks": "level",
        "end-of-training-on-test": "level",
        "current-task-validation": "gains",
        "hindsight": "gains",
    }


def moved(record: RunRecord, points: float) -> RunRecord:
    return replace(record, key=f"{record.key}{points}", accuracies=np.clip(record.accuracies + points / 100, 0, 1))


def lucky() -> ProtocolResults:
    """Two of three orders favour 0.1 a little, and each of the other values shines in one: the best is partly luck."""
    bonus = {0.1: (0.9, 0.8, 0.7, 0.0), 0.05: (0.0, 0.0, 0.0, 2.3)}
    results = protocols(protocol("a", always(*[1.0] * 4)), orders=4)
    level = {one.unit: one for one in results.constants[0.2]}
    constants = {
        value: tuple(
            moved(level[unit], bonus.get(value, (0,) * 4)[unit.order] - (9.0 if value not in bonus else 0.0))
            for unit in level
        )
        for value in results.candidates
    }
    members = tuple(moved(level[unit], 0.0 if unit.order < 3 else -0.5) for unit in level)
    return replace(results, constants=constants, rows=(replace(results.rows[0], records=members),))


def test_a_loss_to_luck_alone_is_no_loss() -> None:
    results = lucky()
    (row,) = results.rows
    first, others = regrets(results, row)
    assert first.low > 0 > others.low
    assert standing(results, row) == "level"
    assert any(
        text.startswith("The best constant in hindsight is partly luck: to one that") for text in answer(results)
    )


def test_the_answer_in_words() -> None:
    sentences = answer(protocols())
    assert sentences[0].startswith("To the best constant in hindsight, ε = 0.1, these protocols lose points of A_T")
    assert sentences[0].index("library default") < sentences[0].index("first task"), "the smallest first"
    assert "Not shown to lose: end of training on test 0 (chose that value), cv tasks 0." in sentences[2]
    assert sentences[3] == "The bound hindsight, which nobody can reach, has a regret of −1.05 (−1.71 to −0.39)."
    assert sentences[4] == "Flattered, as tests that judge them also choose: end of training on test."
    assert "may stay unseen" in sentences[-1] and "one order" not in sentences[-1]


def test_one_order_says_nothing_about_others() -> None:
    assert "With 3 seeds, 80 % of such studies see a regret of" in visibility(protocols(orders=1))
    assert "about one order of tasks" in visibility(protocols(orders=1))


def test_one_unit_sees_nothing() -> None:
    results = protocols(orders=1, seeds=1)
    assert visibility(results) == "" and "not known yet" in summary(results).trust
    assert set(stands(results).values()) == {"level"}


def test_before_anything_is_trained() -> None:
    results = replace(protocols(protocol("a", [], trained=False)), constants={})
    assert answer(results) == (
        "No protocol can be compared yet: members of the constant values or of the choices are missing.",
    )
    assert summary(results).answer == "no protocol can be compared yet"


def test_protocols_without_a_result_are_named() -> None:
    rows = (
        protocol("a", always(*[BEST] * 5)),
        protocol("b", [], remark="No split is held out.", trained=False),
        protocol("c", always(*[0.2] * 5), trained=False),
        protocol("d", always(*[0.2] * 5), diverged=15),
    )
    sentences = answer(protocols(*rows))
    assert "No choice: b (No split is held out)." in sentences
    assert "Not compared: c, whose members are not all trained." in sentences
    assert "Not compared: d, whose members all diverged." in sentences


@pytest.mark.parametrize(
    ("evidence", "text"),
    [
        ((0, 10, 0), "it sees no test, so it does not peek"),
        ((1200, 1000, 0), "it does not peek: none of its 1,200 tests is among the 1,000 that judge it"),
        ((1200, 1000, 3), "it peeks: 3 of the 1,000 tests that judge it also choose"),
    ],
)
def test_peeking_is_said_by_counts(evidence: tuple[int, int, int], text: str) -> None:
    row = replace(protocol("a", always(0.1)), evidence=Evidence(*evidence))
    assert peeking(row) == text
    assert sight(row) == f"A sees what its name says; {text}."


def test_choices_in_words() -> None:
    assert choice_text(protocol("a", always(0.1, 0.1))) == ("0.1", "")
    assert choice_text(protocol("a", always(0.5, 0.1, 0.2))) == ("0.2", "0.1 to 0.5")
    late = [((0, 0.1), (3, 0.5)), ((0, 0.1), (2, 0.2), (4, 0.5))]
    assert choice_text(protocol("a", late)) == ("2 to 3 values, from task 3", "0.1 to 0.5, median 0.2")
    assert choice_text(protocol("a", [])) == ("–", "")


@pytest.mark.slow
def test_the_summary_fits_into_twelve_lines() -> None:
    brief = summary(protocols())
    assert brief.answer == "best constant: ε = 0.1; 2 of 5 protocols lose, first task most (6.46 points)"
    assert [row[0] for row in brief.rows][1:] == [
        "first task (misleads)",
        "cv tasks",
        "end of training on test (peeks)",
        "current task validation",
        "hindsight (bound)",
    ]
    assert {len(row) for row in brief.rows} == {1 + len(brief.metrics)}
    table = [(brief.tasks, *brief.metrics), *brief.rows]
    assert sum(max(len(row[column]) for row in table) for column in range(4)) + 2 * 4 <= 80, "no line is broken"
    assert max(len(brief.answer), len(brief.trust) + len("trust  ")) <= 80
    many = summary(protocols(*(protocol(f"p{i}", always(*[0.2] * 5)) for i in range(13))))
    assert len(many.rows) == MOST_ROWS and many.rows[-1][0] == "and 6 others, see the report"
    lines = 1 + 1 + len(many.rows) + 1 + 1  # answer, head, rows, trust, next step
    assert lines <= 12


def test_no_loss_is_said_as_not_shown() -> None:
    brief = summary(protocols(protocol("a", always(*[BEST] * 5))))
    assert brief.answer.endswith("none of 1 protocol is shown to lose")
    assert brief.rows[0][2] == "0.00"


def test_a_single_protocol_says_what_it_has_chosen() -> None:
    one = summary(protocols(protocol("a", [((0, 0.2), (2, 0.5))]))).answer
    assert one.startswith("a: ε = 0.2, from task 3 0.5; best constant: ε = 0.1"), one
    several = summary(protocols(protocol("a", [((0, 0.2),), ((0, 0.5),), ((0, 0.2),)]))).answer
    assert several.startswith("a: ε = 0.2, 0.2 to 0.5; "), several
