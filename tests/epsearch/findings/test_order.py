"""The order of lists, and pages that do not shift."""

import itertools

import pytest

from epsearch.failures.errors import UsageError
from epsearch.findings.listing import Filters
from epsearch.findings.order import FIELDS, NEWEST, behind, place, sort_studies
from epsearch.status import StudyStatus

STUDIES = [
    StudyStatus(name=f"s{number:02}", created=f"2026-01-{1 + number % 7:02}", score=score, submitter=who, state=state)
    for number, (score, who, state) in enumerate(
        itertools.islice(itertools.product((None, 0.5, 0.25), ("ann", "", "bob", None), ("queued", "finished")), 24)
    )
]


def names(rows):
    return [one.name for one in rows]


@pytest.mark.parametrize("sort", [*FIELDS, *(f"-{field}" for field in FIELDS)])
@pytest.mark.parametrize("size", [1, 5, 24])
def test_pages_have_every_study_once_in_order(sort, size):
    rows, left = [], sort_studies(STUDIES, sort)
    while left:
        rows += left[:size]
        left = behind(STUDIES, place(rows[-1], sort), sort)
    assert names(rows) == names(sort_studies(STUDIES, sort)) and len({*names(rows)}) == len(STUDIES)
    values = [getattr(one, sort.removeprefix("-")) for one in rows]
    known = [value for value in values if value not in (None, "", "–")]
    assert values[: len(known)] == known == sorted(known, reverse=sort.startswith("-")), "those without one are last"


@pytest.mark.parametrize("sort", [NEWEST, "created", "name", "-score"])
def test_a_page_goes_on_behind_its_place_whatever_comes_or_goes(sort):
    first = sort_studies(STUDIES, sort)[:10]
    after = place(first[-1], sort)
    more = [StudyStatus(name=name, created=day) for name, day in (("a", "2025"), ("zz", "2027"))]
    now = [one for one in STUDIES if one is not first[-1]] + more
    rows = names(behind(now, after, sort))
    assert not {*rows} & {*names(first)} and {*names(STUDIES)} - {*names(first)} <= {*rows}


@pytest.mark.parametrize("after", ["", "!", "WzFd", "eyJhIjogMX0", place(STUDIES[0], "name"), "é", "A" * 1000])
def test_another_place_is_refused(after):
    with pytest.raises(UsageError, match="after must be the `next` of another page"):
        behind(STUDIES, after, NEWEST)


def test_an_unknown_field_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match=r"no sort 'scor'; known: .*; did you mean 'score'\?"):
        sort_studies(STUDIES, "-scor")


def test_filters_go_together():
    every = Filters("queued", search=" S0 ", submitter="ann").matching(STUDIES)
    assert every and all(one.state == "queued" and one.submitter == "ann" and "s0" in one.name for one in every)
    assert Filters().matching(STUDIES) == Filters("", "", "", "", "").matching(STUDIES) == STUDIES
