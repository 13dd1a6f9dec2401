"""What is seen of a run besides its result."""

import numpy as np
import pytest

from tests.trainers.foreign.conftest import SOFTMAX
from trainers.foreign.process import Observations
from trainers.plugins.calls import ForeignError

GREEDY = """
    import numpy as np

    def train(values, stream, seed, report):
        for task in stream.tasks:
            stream.train(task)
            if task == 1:
                np.ones(values["bytes"] // 8).sum()  # for a moment, and given back
            report(task, lambda inputs, task: [0] * len(inputs))
"""


@pytest.fixture
def watched(tmp_path, trained, monkeypatch):
    """watched(text, …) -> (result, what was seen)."""
    from trainers.foreign import running

    seen = Observations()
    real = running.train
    monkeypatch.setattr("tests.trainers.foreign.conftest.train", lambda *given: real(*given, watched=seen))
    return lambda *given, **more: (trained(*given, **more), seen)


@pytest.mark.slow
def test_the_peak_is_that_of_a_moment_between_two_looks(watched, monkeypatch):
    monkeypatch.setattr("trainers.foreign.process.LOOK_SECONDS", 3600.0)  # only after each task
    _, small = watched(GREEDY, {"bytes": 8})
    before = small.peak
    _, large = watched(GREEDY, {"bytes": 3 * 10**8})
    assert before > 10 * 2**20
    assert before + 2.9e8 < large.peak < before + 4e8


@pytest.mark.slow
def test_every_task_is_seen_in_its_turn(watched):
    result, seen = watched(SOFTMAX, {"lr": 0.2})
    assert 0 < seen.begun < seen.tasks[0] and sorted(seen.tasks) == seen.tasks and len(seen.tasks) == 3
    assert seen.ahead == 0 and seen.refusal == "" and np.isfinite(result.accuracies[0][-1]).all()


@pytest.mark.slow
def test_a_read_ahead_is_counted_also_where_it_ends_the_run(watched):
    ahead = "def train(values, stream, seed, report):\n    stream.train(0)\n    stream.train(2)\n"
    seen = Observations()
    with pytest.raises(ForeignError, match="task 2 cannot be read before task 1"):
        _, seen = watched(ahead)
    _, seen = watched(SOFTMAX, {"lr": 0.2})
    assert seen.ahead == 1 and seen.refusal.startswith("task 2 cannot be read before task 1 has been reported")


@pytest.mark.slow
def test_there_is_no_task_is_no_read_ahead(watched):
    beyond = """
        def train(values, stream, seed, report):
            try:
                stream.train(3)
            except ValueError:
                pass
            for task in stream.tasks:
                report(task, lambda inputs, task: [0] * len(inputs))
    """
    assert watched(beyond)[1].ahead == 0


@pytest.mark.slow
def test_data_may_be_another_seeds(trained):
    """The trainer below draws nothing: with the data of seed 1, whatever its own seed is, it is the same."""
    one, other = (trained(SOFTMAX, {"lr": 0.2}, seed=seed, data_seed=1) for seed in (1, 7))
    assert one.fingerprints[0] == other.fingerprints[0] != trained(SOFTMAX, {"lr": 0.2}, seed=7).fingerprints[0]
