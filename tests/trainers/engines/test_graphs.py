"""Steps recorded and replayed, with a recorder on the CPU in the place of a device's."""

import numpy as np
import pytest
import torch

from epsearch.testing.toy import suit_stream
from tests.support.emulated_graphs import Emulated, emulated, stands_still
from tests.support.learners import IN_SEQUENCE, engine_of, few, learner, untrained
from tests.support.numeric_paths import TWIN
from tests.support.toy_streams import toy
from trainers import Architecture, Cohort
from trainers.engines import make_engine
from trainers.engines.batched import graphs
from trainers.engines.batched.graphs import GraphMismatch, prove, refuse
from trainers.methods import METHODS, Columns
from trainers.notes import redirect_notes
from trainers.population import Training, train_rest

SMALL = Architecture(hidden=(16, 16))


@pytest.fixture(autouse=True)
def no_graph_was_refused(monkeypatch):
    monkeypatch.setattr(graphs, "_refused", [])


def trained(method, engine_of):
    """Two learners through three tasks: 30 steps each, so that looks and refreshes cut them."""
    learners = (few(method, lr=0.05, batch_size=2), few(method, lr=0.1, batch_size=2))
    cohort = Cohort(learners)
    training = Training(suit_stream(cohort.declared, toy()), SMALL, TWIN)
    return train_rest(cohort, training, training.checkpoints(cohort), {}, engine_of=engine_of)


@pytest.mark.slow
@pytest.mark.few(6)
@pytest.mark.parametrize("method", [name for name in IN_SEQUENCE if not isinstance(METHODS[name].rule, Columns)])
def test_graphs_take_the_same_steps_as_no_graphs(method):
    made = []

    def make(*given):
        made.append(emulated()(*given))
        return made[-1]

    with_graphs, without = trained(method, make), trained(method, make_engine)
    assert with_graphs.fingerprints.tolist() == without.fingerprints.tolist()
    np.testing.assert_array_equal(with_graphs.accuracies, without.accuracies)
    np.testing.assert_array_equal(with_graphs.violations, without.violations)
    assert made[0].graphs.recorded >= 2 if method != "gem" else made[0].graphs is None
    assert method == "gem" or not made[0].graphs.used  # all were given up in the end


def steps_of(take, engine, learners, count):
    """Numbers of the steps that the engine takes itself."""
    taken, step = [], engine._one_step
    engine._one_step = lambda *given: (taken.append(1), step(*given))[1]
    engine.train(learners, 0, count)
    return len(taken)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "every", "alone"), [("van", 10, 5), ("ewc", 10, 5), ("ewc", 3, 60), ("pi", 10, 5)])
def test_a_graph_is_recorded_once_and_replayed_across_refreshes(method, every, alone):
    """Of 60: two that warm up, one that is recorded, two to compare with; refreshes cut runs too short for it."""
    one = learner(method, batch_size=1, fisher_every=every)
    engine = engine_of(one, toy(range(2), examples=60), TWIN)
    with torch.no_grad():
        learners = untrained(engine, [one])
        engine.load_task(0)
        engine.graphs = Emulated()
        assert steps_of(engine.train, engine, learners, 60) == alone
    assert engine.graphs.recorded == (alone < 60)


def test_other_arrays_have_a_graph_of_their_own():
    one = learner("van", batch_size=1)
    engine = engine_of(one, toy(range(2), examples=60), TWIN)
    with torch.no_grad():
        first, second = untrained(engine, [one]), untrained(engine, [one])
        engine.load_task(0)
        engine.graphs = Emulated()
        engine.train(first, 0, 20)
        engine.train(second, 0, 20)
        assert engine.graphs.recorded == 2 and torch.equal(first.params, second.params)
        engine.load_task(1)
        assert not engine.graphs.used


def test_a_replay_that_stands_still_ends_the_training():
    with pytest.raises(GraphMismatch, match="takes other steps than the code it was recorded from"):
        trained("agem", emulated(stands_still))


class TestProving:
    def arrays(self):
        return [torch.ones(3), torch.zeros(1, dtype=torch.int64)]

    def test_the_outcome_is_that_of_the_code(self):
        arrays = self.arrays()

        def step():
            arrays[0].mul_(3.0)
            arrays[1].add_(1)

        prove(step, step, arrays, 2)
        assert arrays[0].tolist() == [9.0] * 3 and arrays[1].item() == 2

    def test_values_that_are_no_numbers_are_alike(self):
        arrays = [torch.full((3,), torch.nan)]
        prove(lambda: None, lambda: None, arrays)

    @pytest.mark.parametrize(("off", "passes"), [(1e-6, True), (1e-3, False)])
    def test_code_that_does_not_repeat_itself_allows_as_much(self, off, passes):
        """As sums by atomic operations, whose order is another one each time."""
        arrays, calls = self.arrays(), []

        def step():
            calls.append(1)
            arrays[0].mul_(2 + 1e-6 * len(calls))

        def replay():
            arrays[0].mul_(2 + off)

        if passes:
            prove(replay, step, arrays, 2)
        else:
            with pytest.raises(GraphMismatch):
                prove(replay, step, arrays, 2)


def test_after_a_refusal_no_graph_is_recorded_and_the_user_is_told_once():
    told = []
    with redirect_notes(told.append):
        refuse("it may not be")
        refuse("nor may others")
    assert told == ["steps are taken without CUDA graphs: it may not be"]
    made = []
    trained("van", lambda *given: made.append(emulated()(*given)) or made[-1])
    assert made[0].graphs.recorded == 0
