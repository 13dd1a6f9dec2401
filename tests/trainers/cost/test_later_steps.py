"""What a step takes beside other steps follows from counted FLOP and from the rule, whatever the method is called."""

import pytest

from tests.support.learners import SMALL, few
from tests.support.toy_streams import toy
from trainers.cost.flops import ARRAY, OVERHEAD, WHOLE, later_steps, run_flop, works_of
from trainers.forks import steps_of

STREAM = toy(range(4))


def in_examples(method, stream=STREAM, **values):
    """What a step takes, in examples that pass through the network and back."""
    one = few(method, **values)
    return later_steps(one, stream, SMALL, True).each / works_of(one, stream, SMALL)[0].training_flop(1, 0)


def test_plain_sgd_is_its_mini_batch_and_a_fixed_part():
    assert in_examples("van") == pytest.approx(10 + OVERHEAD) and in_examples("van", batch_size=5) == 5 + OVERHEAD


def test_a_reference_batch_is_added():
    assert in_examples("agem") == in_examples("soft_agem") == pytest.approx(10 + 8 + OVERHEAD)
    assert in_examples("gem") == pytest.approx(10 + (12 + 24 + 36) / 3 + OVERHEAD)  # 3 of each of 4 classes a task


@pytest.mark.parametrize(("method", "arrays"), [("pi", 3), ("ewc", 4), ("rwalk", 8)])
def test_a_penalty_has_its_arrays(method, arrays):
    assert in_examples(method) - in_examples("van") == pytest.approx(WHOLE + ARRAY * arrays)


def test_looking_back_at_a_task_is_one_more_pass():
    """At the end of two of the three later tasks."""
    assert in_examples("mas") - in_examples("van") == pytest.approx(WHOLE + 2 * ARRAY + 10 * 2 / 3)


def test_a_network_that_grows_takes_more():
    assert in_examples("prognn") > in_examples("van") + 5


def test_the_first_task_is_left_out_unless_it_is_the_only_one():
    one = few("agem")
    assert later_steps(one, STREAM, SMALL, True).steps == sum(steps_of(one, STREAM)[1:])
    single, alone = toy(range(1)), few("van")
    found = later_steps(alone, single, SMALL, True)
    training = sum(run_flop(alone, single, SMALL, transfer=False)[0])
    assert found.steps == steps_of(alone, single)[0] and found.each > training / found.steps


@pytest.mark.parametrize("transfer", [True, False])
@pytest.mark.parametrize("method", ["agem", "mas", "prognn"])
def test_all_tests_are_in_it(method, transfer):
    """Those of the first task are where its steps are, so that nothing of a run is left out."""
    one = few(method)
    found, (training, tests) = later_steps(one, STREAM, SMALL, transfer), run_flop(one, STREAM, SMALL, transfer)
    assert found.tests == pytest.approx(sum(tests[1:]))
    besides = sum(steps_of(one, STREAM)) * (found.each - sum(training[1:]) / found.steps)
    assert found.work + found.first == pytest.approx(sum(training) + sum(tests) + besides)
    tasks = zip(training, tests, found.weights, steps_of(one, STREAM), strict=True)
    own = besides / sum(steps_of(one, STREAM))
    assert all(weight * count == pytest.approx(a + b + own * count) for a, b, weight, count in tasks)


def test_a_single_task_has_its_tests():
    one, single = few("van"), toy(range(1))
    assert later_steps(one, single, SMALL, True).tests == sum(run_flop(one, single, SMALL, True)[1]) > 0
