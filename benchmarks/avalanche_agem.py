"""Avalanche's A-GEM as a candidate (see turns.py), in an environment of its own: it is no dependency of the project.

    uv run --no-project --with avalanche-lib==0.6.0 --with torch==VERSION python avalanche_agem.py own|tensors
        --threads N --memory-batch B --data-dir FOLDER

`own` is Avalanche's own PermutedMNIST, `tensors` the same tasks as float tensors in memory. Measured is the second
task: one reference batch and one mini-batch of ten a step, no evaluation, no logger, no worker processes.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import images as pictures
import numpy as np
import torch
import turns
from flops import BATCH, SIZES
from torch import nn

from trainers.streams.base import Images

warnings.filterwarnings("ignore")

from avalanche.benchmarks import benchmark_from_datasets  # noqa: E402
from avalanche.benchmarks.classic import PermutedMNIST  # noqa: E402
from avalanche.benchmarks.utils import _make_taskaware_tensor_classification_dataset as tensor_dataset  # noqa: E402
from avalanche.training import Naive  # noqa: E402
from avalanche.training.plugins import AGEMPlugin, EvaluationPlugin, SupervisedPlugin  # noqa: E402


class Turns(SupervisedPlugin):
    """Holds the training loop between two requests; a turn is whole iterations, loading of batches included."""

    def __init__(self) -> None:
        super().__init__()
        self._requests, self._left, self._answer = turns.requests(), 0, None

    def before_training_iteration(self, strategy: Any, **kwargs: Any) -> None:
        if self._left == 0:
            if self._answer is not None:
                self._answer({"steps": self._steps, "seconds": time.perf_counter() - self._started})
            request, self._answer = next(self._requests, (None, None))
            if request is None:
                raise SystemExit
            self._steps = self._left = request["steps"]
            self._started = time.perf_counter()
        self._left -= 1


def own(data: Images) -> list[Any]:
    """Both experiences of Avalanche's PermutedMNIST; torchvision finds the files and downloads nothing."""
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "MNIST" / "raw"
        raw.mkdir(parents=True)
        for name, part in (("train", data.train), ("t10k", data.test)):
            _write_idx(raw / f"{name}-images-idx3-ubyte", part.inputs.reshape(-1, 28, 28))
            _write_idx(raw / f"{name}-labels-idx1-ubyte", part.labels.astype(np.uint8))
        return list(PermutedMNIST(2, seed=0, dataset_root=folder).train_stream)


def _write_idx(path: Path, array: Any) -> None:
    path.write_bytes(bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">i4").tobytes() + array.tobytes())


def tensors(data: Images) -> list[Any]:
    """Two experiences whose images are permuted once, as one float tensor each."""
    x = torch.tensor(data.train.inputs, dtype=torch.float32) / data.largest
    y = torch.tensor(data.train.labels)
    made = [tensor_dataset(x[:, torch.randperm(x.shape[1])], y, task_labels=0) for _ in range(2)]
    return list(benchmark_from_datasets(train=made).train_stream)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("own", "tensors"))
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--memory-batch", type=int, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    first, second = {"own": own, "tensors": tensors}[arguments.kind](pictures.real(arguments.data_dir))
    inputs, hidden, _, classes = SIZES
    body = [nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes)]
    network = nn.Sequential(nn.Flatten(), *body)
    # 250 patterns, as 25 per class; 256 for a reference batch of 256, or its loader would deliver short batches
    agem = AGEMPlugin(max(250, arguments.memory_batch), arguments.memory_batch)
    agem.update_memory(first.dataset)
    Naive(
        model=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=0.1),
        criterion=nn.CrossEntropyLoss(),
        train_mb_size=BATCH,
        train_epochs=10**9,
        evaluator=EvaluationPlugin(),
        plugins=[agem, Turns()],
    ).train(second)


if __name__ == "__main__":
    main()
