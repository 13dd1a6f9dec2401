"""Something with the parts of avalanche-lib that our trainer of its strategies calls, and with signatures like its own.

What it learns is plain SGD. It is for names, signatures, and what is handed over; the real one is tested in an
environment of its own, by `tests/test_avalanche.py`.
"""

FILES = {
    "avalanche/__init__.py": "",
    "avalanche/training/__init__.py": "",
    "avalanche/training/plugins.py": "class EvaluationPlugin: pass\n",
    "avalanche/training/supervised.py": """
from typing import List, Optional, Sequence, Union

import random


def default(): pass


class Template:
    def __init__(self, *, model, optimizer, criterion, train_mb_size, train_epochs, device, evaluator):
        self.model, self._optimizer, self._criterion, self._size = model, optimizer, criterion, train_mb_size
        self._epochs, self.seen = train_epochs, []
        assert str(device) == "cpu" and type(evaluator).__name__ == "EvaluationPlugin"

    def train(self, experience, shuffle):
        import torch

        assert experience.current_experience == len(self.seen) and experience.task_labels == [0]
        self.seen.append(experience)
        x, y = experience.dataset
        for _ in range(self._epochs):
            rows = torch.randperm(len(y)) if shuffle else torch.arange(len(y))
            for some in rows.split(self._size):
                self._optimizer.zero_grad()
                self._criterion(self.model.train()(x[some]), y[some]).backward()
                self._optimizer.step()


class AGEM(Template):
    def __init__(self, *, model: object, optimizer: object, criterion, patterns_per_exp: int,
                 sample_size: int = 64, train_mb_size: int = 1, train_epochs: int = 1,
                 eval_mb_size: Optional[int] = None, device: Union[str, bytes] = "cpu",
                 plugins: Optional[List[object]] = None, evaluator=default, eval_every=-1, **base_kwargs):
        super().__init__(model=model, optimizer=optimizer, criterion=criterion, train_mb_size=train_mb_size,
                         train_epochs=train_epochs, device=device, evaluator=evaluator)
        assert type(patterns_per_exp) is int, patterns_per_exp
        import torch

        with torch.no_grad():  # as its memory does, it draws from Python's generator
            next(model.parameters()).add_(random.random() / 100)


class EWC(Template):
    def __init__(self, *, model: object, optimizer: object, criterion,
                 ewc_lambda: Union[float, Sequence[float]], mode: str = "separate",
                 decay_factor: Optional[float] = None, keep_importance_data: bool = False, alpha=-1.0,
                 train_mb_size: int = 1, train_epochs: int = 1, device="cpu", evaluator=default):
        super().__init__(model=model, optimizer=optimizer, criterion=criterion, train_mb_size=train_mb_size,
                         train_epochs=train_epochs, device=device, evaluator=evaluator)
        assert (mode == "online") == (decay_factor is not None) and keep_importance_data is (mode == "online")


class Diverging(AGEM):
    def train(self, experience, shuffle):
        import torch

        with torch.no_grad():
            next(self.model.parameters()).fill_(float("nan"))


class CWRStar(AGEM):
    def __init__(self, *, model, optimizer, cwr_layer_name: str, lr: float = 0.5): pass


class ICaRL:
    def __init__(self, *, feature_extractor, optimizer): pass
    def train(self): pass
""",
    "avalanche/models.py": """
import torch


def avalanche_forward(model, x, task_labels):
    assert not model.training and not task_labels.any()
    return model(x)


class SimpleMLP(torch.nn.Sequential):
    def __init__(self, num_classes=10, input_size=784):
        super().__init__(torch.nn.Linear(input_size, 8), torch.nn.Dropout(), torch.nn.Linear(8, num_classes))
""",
    "avalanche/benchmarks/__init__.py": """
from types import SimpleNamespace


def benchmark_from_datasets(train):
    (dataset,) = train  # one task alone
    return SimpleNamespace(train_stream=[SimpleNamespace(dataset=dataset)])


def with_classes_timeline(benchmark):
    return benchmark


def with_task_labels(benchmark):
    benchmark.train_stream[0].task_labels = [0]
    return benchmark
""",
    "avalanche/benchmarks/utils.py": """
def _make_taskaware_tensor_classification_dataset(x, y, task_labels):
    assert task_labels == 0 and str(x.dtype) == "torch.float32" and str(y.dtype) == "torch.int64"
    return x, y
""",
    "avalanche_lib-0.6.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: avalanche-lib\nVersion: 0.6.0\n",
}


def stand_in(folder, version="0.6.0"):
    """Writes it into a folder, for processes that have it on their PYTHONPATH."""
    for name, text in FILES.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text.replace("0.6.0", version), encoding="utf-8")
