"""The engine of tensors with CUDA graphs. Its twin on the CPU runs in the other tests."""

import numpy as np
import pytest
import torch

from tests.support.learners import learner, train
from tests.support.made_images import made_images
from tests.support.numeric_paths import TWIN
from tests.support.toy_streams import digits
from trainers import Architecture
from trainers.methods import METHODS
from trainers.numeric_path import NumericPath
from trainers.streams.images.split import SplitStream


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
class TestCuda:
    gpu = NumericPath("cuda")
    learners = tuple(learner("soft_agem", seed, epsilon=value, memory=5) for seed in (0, 1) for value in (0.0, 0.3))

    def trained(self, learners, path):
        return train(learners, digits(examples=400), path, Architecture())

    def test_it_agrees_with_its_twin(self):
        cpu, gpu = (self.trained(self.learners, path) for path in (TWIN, self.gpu))
        assert np.allclose(cpu.accuracies, gpu.accuracies, atol=0.03, equal_nan=True)
        assert np.allclose(cpu.violations, gpu.violations, atol=0.15, equal_nan=True)

    @pytest.mark.parametrize("method", METHODS)
    def test_every_method_agrees_with_its_twin(self, method):
        learners = [learner(method, seed, epsilon=0.3, memory=5, lr=0.03) for seed in (0, 1)]
        cpu, gpu = (self.trained(learners, path) for path in (TWIN, self.gpu))
        assert np.allclose(cpu.accuracies, gpu.accuracies, atol=0.03, equal_nan=True)

    def test_graphs_take_the_same_steps_as_no_graphs(self, monkeypatch):
        import trainers.engines.batched.engine as batched

        with_graphs = self.trained(self.learners, self.gpu)
        monkeypatch.setattr(batched, "GRAPH_STEPS", 10**9)
        without = self.trained(self.learners, self.gpu)
        assert np.allclose(with_graphs.accuracies, without.accuracies, atol=0.03, equal_nan=True)

    @pytest.mark.parametrize("method", METHODS)
    def test_residual_networks_agree_with_their_twin(self, method):
        """20 steps a task: some from a graph, some alone; seeds are trained one after another."""
        values = {"epsilon": 0.3, "lr": 0.03, "batch_size": 4, "memory": 3, "memory_batch": 6}
        learners = [learner(method, seed, **values) for seed in (0, 1)]
        stream = SplitStream(made_images(classes=6, train=40, test=20, size=16), range(3), 2)
        network = Architecture("reduced_resnet18")
        cpu, gpu = (train(learners, stream, path, network) for path in (TWIN, self.gpu))
        assert np.allclose(cpu.accuracies, gpu.accuracies, atol=0.1, equal_nan=True)

    def test_tf32_stays_close(self):
        full, short = (
            self.trained([learner("agem", memory=5)], path) for path in (self.gpu, NumericPath("cuda", "tf32"))
        )
        assert np.allclose(full.accuracies, short.accuracies, atol=0.05, equal_nan=True)
