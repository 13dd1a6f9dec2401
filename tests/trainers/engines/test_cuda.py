"""The engine of tensors with CUDA graphs. Its twin on the CPU runs in the other tests."""

import numpy as np
import pytest
import torch

from tests.support.made_images import made_images
from tests.support.numeric_paths import TWIN
from tests.support.plain_run import STRENGTHS
from tests.support.toy_streams import digits
from trainers import Cohort, Member, TrainConfig
from trainers.methods import METHODS
from trainers.numeric_path import NumericPath
from trainers.population import train_cohort
from trainers.streams.images.split import SplitStream


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
class TestCuda:
    gpu = NumericPath("cuda")
    members = tuple(Member(epsilon, seed) for seed in (0, 1) for epsilon in (0.0, 0.3))

    def test_it_agrees_with_its_twin(self):
        cohort, config = Cohort("soft_agem", self.members), TrainConfig(memory=5)
        cpu, gpu = (train_cohort(cohort, digits(examples=400), config, path) for path in (TWIN, self.gpu))
        assert np.allclose(cpu.accuracies, gpu.accuracies, atol=0.03, equal_nan=True)
        assert np.allclose(cpu.violations, gpu.violations, atol=0.15, equal_nan=True)

    @pytest.mark.parametrize("method", METHODS)
    def test_every_method_agrees_with_its_twin(self, method):
        members = tuple(Member(0.3, seed, strength=STRENGTHS.get(method)) for seed in (0, 1))
        config = TrainConfig(memory=5, learning_rate=0.03)
        cpu, gpu = (train_cohort(Cohort(method, members), digits(examples=400), config, p) for p in (TWIN, self.gpu))
        assert np.allclose(cpu.accuracies, gpu.accuracies, atol=0.03, equal_nan=True)

    def test_graphs_take_the_same_steps_as_no_graphs(self, monkeypatch):
        cohort, config = Cohort("soft_agem", self.members), TrainConfig(memory=5)
        with_graphs = train_cohort(cohort, digits(examples=400), config, self.gpu)
        monkeypatch.setattr("trainers.engines.batched.engine.GRAPH_STEPS", 10**9)
        without = train_cohort(cohort, digits(examples=400), config, self.gpu)
        assert np.allclose(with_graphs.accuracies, without.accuracies, atol=0.03, equal_nan=True)

    @pytest.mark.parametrize("method", METHODS)
    def test_residual_networks_agree_with_their_twin(self, method):
        """20 steps a task: some from a graph, some alone; seeds are trained one after another."""
        members = tuple(Member(0.3, seed, strength=STRENGTHS.get(method)) for seed in (0, 1))
        stream = SplitStream(made_images(classes=6, train=40, test=20, size=16), range(3), 2)
        config = TrainConfig(0.03, batch_size=4, memory=3, memory_batch=6, network="reduced_resnet18")
        cpu, gpu = (train_cohort(Cohort(method, members), stream, config, path) for path in (TWIN, self.gpu))
        assert np.allclose(cpu.accuracies, gpu.accuracies, atol=0.1, equal_nan=True)

    def test_tf32_stays_close(self):
        cohort, config = Cohort("agem", self.members[:1]), TrainConfig(memory=5)
        full = train_cohort(cohort, digits(examples=400), config, self.gpu)
        short = train_cohort(cohort, digits(examples=400), config, NumericPath("cuda", "tf32"))
        assert np.allclose(full.accuracies, short.accuracies, atol=0.05, equal_nan=True)
