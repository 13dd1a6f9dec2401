"""How the engine of tensors cuts steps into CUDA graphs, with a device that is said to be one."""

from types import SimpleNamespace

import pytest
import torch

from tests.support.learners import engine_of, learner, untrained
from tests.support.numeric_paths import TWIN
from tests.support.toy_streams import toy


@pytest.mark.parametrize(
    ("method", "every", "graphs", "alone"),
    [
        ("van", 10, 1, 12),
        ("ewc", 10, 1, 10),
        ("rwalk", 5, 1, 5),
        ("ewc", 2, 1, 2),
        ("ewc", 1, 0, 60),
        ("pi", 10, 1, 12),
    ],
)
def test_steps_are_replayed_between_refreshes(method, every, graphs, alone, monkeypatch):
    """60 steps, asked for in one piece: how many graphs are recorded, and how many steps taken outside of them."""
    one = learner(method, batch_size=1, fisher_every=every)
    engine = engine_of(one, toy(range(2), examples=60), TWIN)
    with torch.inference_mode():
        learners = untrained(engine, [one])
        engine.load_task(0)
        taken, recorded, replayed = [], [], []

        def capture(learners, number, start):
            graph = SimpleNamespace(replay=lambda: replayed.append(engine._graph_steps))
            engine._graphs[learners.params.data_ptr(), number] = graph
            recorded.append(graph)
            return graph

        monkeypatch.setattr(engine, "_device", SimpleNamespace(type="cuda"))
        monkeypatch.setattr(engine, "_one_step", lambda *arguments: taken.append(1))
        monkeypatch.setattr(engine, "_capture", capture)
        engine.train(learners, 0, 60)
    assert len(recorded) == graphs and sum(replayed) + len(taken) == 60
    assert len(taken) == alone
