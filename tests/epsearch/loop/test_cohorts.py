"""How members are cut into cohorts."""

import pytest

from epsearch.loop.cohorts import cut, kind_of
from epsearch.loop.jobs import Run
from trainers.cohort import Learner


def members(kinds, seeds=3, values=(0.0, 0.5)):
    """Members of several first parts of one stream."""
    return [
        Run("validation", Learner.of("soft_agem", seed, epsilon=value), prefix=(tasks, None))
        for tasks in range(1, kinds + 1)
        for seed in range(seeds)
        for value in values
    ]


def sizes(cohorts):
    return [len(runs) for runs, _ in cohorts]


def test_many_kinds_are_no_reason_for_cohorts_of_one():
    """10 kinds of 6 members for 2 workers: an eighth of the work is 8 members, so most kinds stay whole."""
    runs = members(10)
    cohorts = cut(runs, 2, "cpu", lambda run: 1.0)
    assert sizes(cohorts)[:8] == [6] * 8 and sizes(cohorts)[-1] == 1
    assert sorted(map(str, (run for part, _ in cohorts for run in part))) == sorted(map(str, runs))
    for part, certify in cohorts:
        assert certify is None and len(set(map(kind_of, part))) == 1
        assert [run.learner.seed for run in part] == sorted(run.learner.seed for run in part)


def test_no_cohort_has_more_than_its_share_of_all_work():
    """Work by hand: kinds of 1, 2 and 3 a member; 36 in all, an eighth is 4.5, which is 2, 3 and 5 members."""
    cohorts = cut(members(3), 2, "cpu", lambda run: float(run.prefix[0]))
    largest = {tasks: max(len(part) for part, _ in cohorts if part[0].prefix[0] == tasks) for tasks in (1, 2, 3)}
    assert largest[3] == 2 and largest[2] <= 3 and largest[1] <= 5
    works = [len(part) * part[0].prefix[0] for part, _ in cohorts]
    assert works == sorted(works, reverse=True)


@pytest.mark.parametrize(("workers", "expected"), [(1, [6, 6]), (2, [3, 3, 3, 3])])
def test_a_gpu_has_one_cohort_of_a_kind_for_each_worker(workers, expected):
    assert sizes(cut(members(2), workers, "cuda", lambda run: 1.0)) == expected
