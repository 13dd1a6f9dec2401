"""The mark `few(n)`: which cases of a test are default, slow and exhaustive."""

import pytest

from tests.support.cases import far_apart, mark_cases


class Case:
    """As much of a collected case as its marks need."""

    def __init__(self, number, *marks):
        self.nodeid, self.marks = f"test_many.py::test_it[{number}]", {mark.name: mark for mark in marks}

    def get_closest_marker(self, name):
        return self.marks.get(name)

    def add_marker(self, name):
        self.marks[name] = getattr(pytest.mark, name).mark


FEW, SLOW = pytest.mark.few(2).mark, pytest.mark.slow.mark


def numbers(cases, *marks):
    return [number for number, case in enumerate(cases) if {*case.marks} == {*marks}]


def test_as_many_are_slow_as_are_default_and_the_others_exhaustive():
    cases = [Case(number, FEW) for number in range(9)]
    mark_cases(cases)
    first = far_apart(9)
    assert numbers(cases, "few") == sorted(first[:2])
    assert numbers(cases, "few", "slow") == sorted(first[2:4])
    assert numbers(cases, "few", "exhaustive") == sorted(first[4:])


def test_cases_that_are_slow_themselves_are_never_default_and_count_among_the_others():
    cases = [Case(number, FEW, SLOW) for number in range(7)] + [Case(7, FEW)]
    mark_cases(cases)
    assert numbers(cases, "few") == [7]
    assert len(numbers(cases, "few", "slow")) == 2 and len(numbers(cases, "few", "slow", "exhaustive")) == 5


def test_others_keep_their_marks():
    cases = [Case(0), Case(1, SLOW)]
    mark_cases(cases)
    assert numbers(cases) == [0] and numbers(cases, "slow") == [1]
