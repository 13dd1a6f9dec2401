"""Trainers for the strategies of Avalanche.

Those that are made from numbers and words: attribute `AGEM` is the trainer of its AGEM. What can be searched are the
arguments of the strategy's constructor, found from its signature, and a few of how it is trained: `model`, `optimizer`,
`lr`, `momentum`, `shuffle`. Avalanche gets one task after another, as an experience of its own, and is tested by
epsearch alone.

Source: the installed avalanche-lib, 0.6; https://avalanche.continualai.org.
"""

import importlib
import inspect
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np

from trainers.hyperparameters import LARGEST, Value
from trainers.plugins.calls import ForeignError, blamed
from trainers.plugins.source import source_of
from trainers.spelling import did_you_mean

if TYPE_CHECKING:
    from trainers.foreign.inside.stream_api import Report, Stream

LIBRARY = "avalanche-lib"
MOST = 10**9  # of whole numbers
HIDDEN = (256, 256)  # units of the model `mlp`, as of our own studies
OURS = ("mlp", "simple_mlp")
TRUTHS = {"False": False, "True": True}
# What the trainer gives itself, and what has to do with Avalanche's own tests, which are not taken.
GIVEN = ("model", "optimizer", "criterion", "device", "plugins", "evaluator")
UNUSED = (*GIVEN, "eval_mb_size", "eval_every", "peval_mode", "verbose")
WORDS = {"mode": ("separate", "online")}  # that an argument may be; no signature says so
LEAST = {"train_mb_size": 1, "train_epochs": 1}
HOW: dict[str, dict[str, Any]] = {
    "model": {
        "default": OURS[0],
        "choices": OURS,
        "network": True,
        "help": "mlp: as our studies have; simple_mlp: Avalanche's; or a function (inputs, outputs).",
    },
    "optimizer": {"default": "sgd", "choices": ("sgd", "adam"), "help": "Of torch."},
    "lr": {"default": 0.1, "low": 0, "closed": False, "help": "Learning rate of the optimizer."},
    "momentum": {"default": 0.0, "low": 0, "high": 1, "help": "Of sgd."},
    "shuffle": {
        "default": "False",
        "choices": tuple(TRUTHS),
        "help": "Whether Avalanche shuffles a task; else examples come as the stream shows them, as to our methods.",
    },
}


class Strategy:
    """A strategy as a trainer, as `trainers.foreign` describes them."""

    requires = (LIBRARY, "torch")

    def __init__(self, made: type) -> None:
        self._made, self._arguments = made, _arguments(made)

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Searchable parameters: those of the constructor, which precede ours of the same name, and ours."""
        return {name: _declared(one) for name, one in self._arguments.items()} | HOW

    def train(self, values: Mapping[str, Value], stream: "Stream", seed: int, report: "Report") -> None:
        """Trains the strategy on one task after another. Raises ForeignError for a network that cannot be made."""
        import torch
        from avalanche.models import avalanche_forward
        from avalanche.training.plugins import EvaluationPlugin

        device = "cuda" if torch.cuda.is_available() else "cpu"
        network = _network(str(values["model"]), stream, seed).to(device)
        given = {
            "model": network,
            "optimizer": _optimizer(values, network),
            "criterion": torch.nn.CrossEntropyLoss(),
            "device": device,
            "evaluator": EvaluationPlugin(),  # which measures nothing and writes nothing
        }
        taken = inspect.signature(self._made).parameters
        strategy = self._made(
            **{name: one for name, one in given.items() if name in taken},
            **{name: _value(one, values[name]) for name, one in self._arguments.items()},
        )

        def predict(inputs: Any, task: int) -> Any:
            """Among the labels that the task can have."""
            model, known = strategy.model.eval(), torch.as_tensor(stream.labels(task))
            with torch.no_grad():
                x = torch.as_tensor(inputs).to(device)
                scores = avalanche_forward(model, x, torch.zeros(len(x), dtype=torch.int64, device=device)).cpu()
            return known[scores[:, known].argmax(1)]

        report(-1, predict)
        for task in stream.tasks:
            strategy.train(_experience(stream, task), shuffle=TRUTHS[str(values["shuffle"])])
            if not all(bool(torch.isfinite(one).all()) for one in strategy.model.parameters()):
                report(task, diverged=True)
            report(task, predict)


def __getattr__(name: str) -> Strategy:
    """The trainer of a strategy. Raises ForeignError, in one line, where there is none."""
    if name.startswith("_"):
        raise AttributeError(name)
    found = _strategies()
    if name not in found:
        hint = did_you_mean(name, found, f"it has {', '.join(sorted(found))}")
        raise ForeignError(f"Avalanche has no strategy {name!r}{hint}")
    return Strategy(found[name])


@cache
def _strategies() -> dict[str, type]:
    """Name -> class, of those that train a model with an optimizer."""
    try:
        version(LIBRARY)
        library = importlib.import_module("avalanche.training.supervised")
    except (PackageNotFoundError, ImportError) as error:
        raise ForeignError(f"Avalanche cannot be imported, {error}; pip install 'epsearch[avalanche]'") from error
    made = {name: one for name, one in vars(library).items() if inspect.isclass(one) and hasattr(one, "train")}
    return {name: one for name, one in made.items() if not name.startswith("_") and _takes(one)}


def _takes(made: type) -> bool:
    return {"model", "optimizer"} <= inspect.signature(made).parameters.keys()


def _arguments(made: type) -> dict[str, inspect.Parameter]:
    """Returns those of a constructor that are numbers or words. Raises ForeignError where it needs others, too."""
    given = inspect.signature(made).parameters
    named = {name: one for name, one in given.items() if one.kind is one.KEYWORD_ONLY and name not in UNUSED}
    found = {name: one for name, one in named.items() if name in WORDS or _kinds(one) & {bool, int, float}}
    if others := [name for name, one in named.items() if one.default is one.empty and name not in found]:
        raise ForeignError(
            f"strategy {made.__name__} of Avalanche needs {', '.join(others)}, which no number or word can be; "
            "write a trainer of your own that makes it"
        )
    return {name: one for name, one in found.items() if name not in HOW}


def _kinds(one: inspect.Parameter) -> set[type]:
    """Types of its values."""
    if one.annotation is one.empty:
        return {type(one.default)}
    return {*get_args(one.annotation)} or {one.annotation}


def _declared(one: inspect.Parameter) -> dict[str, Any]:
    """Returns an argument as a trainer declares a parameter; of one that may be None, 0 stands for that."""
    kinds, required = _kinds(one), one.default is one.empty
    default = None if required else one.default
    if one.name in WORDS:
        return {"default": default, "choices": WORDS[one.name]}
    if bool in kinds:
        return {"default": None if required else str(default), "choices": tuple(TRUTHS)}
    if type(None) in kinds:
        return {"default": default or 0, "low": 0, "whole": float not in kinds, "help": "0: as Avalanche has it."}
    low = LEAST.get(one.name, min(0, default or 0))
    if float not in kinds:
        return {"default": default, "low": low, "high": MOST, "whole": True}
    return {"default": default, "low": low, "high": LARGEST}


def _value(one: inspect.Parameter, value: Value) -> Any:
    """As the constructor takes it."""
    kinds = _kinds(one)
    if bool in kinds and isinstance(value, str):
        return TRUTHS[value]
    if type(None) in kinds and value == 0:
        return None
    return value


def _optimizer(values: Mapping[str, Value], network: Any) -> Any:
    import torch

    lr = float(cast(float, values["lr"]))
    if values["optimizer"] == "adam":
        return torch.optim.Adam(network.parameters(), lr=lr)
    return torch.optim.SGD(network.parameters(), lr=lr, momentum=float(cast(float, values["momentum"])))


def _network(name: str, stream: "Stream", seed: int) -> Any:
    """Returns a module. Raises ForeignError where a function of a user's own makes none."""
    from torch import nn

    inputs = stream.shape[0] if len(stream.shape) == 1 else stream.shape
    if name == "mlp":
        return _mlp(int(np.prod(stream.shape)), stream.outputs, seed)
    if name == "simple_mlp":
        from avalanche.models import SimpleMLP

        return SimpleMLP(stream.outputs, int(np.prod(stream.shape)))
    module, _, attribute = name.partition(":")
    with blamed(f"network {name} failed with", source_of(module)):
        made = getattr(importlib.import_module(module), attribute)(inputs, stream.outputs)
    if not isinstance(made, nn.Module):
        raise ForeignError(f"network {name} must return a torch.nn.Module, got a {type(made).__name__}")
    return made


def _mlp(inputs: int, outputs: int, seed: int) -> Any:
    """Returns the network of our studies of pixels, with a start drawn as theirs."""
    import torch
    from torch import nn

    from trainers.networks.mlp import MLP
    from trainers.schedule import generator

    net = MLP((inputs, *HIDDEN, outputs))
    layers = net.layers(torch.from_numpy(net.init(generator(seed, "init")))[None])
    parts: list[nn.Module] = [nn.Flatten()]
    for before, after, (weight, bias) in zip(net.sizes, net.sizes[1:], layers, strict=False):
        linear = nn.Linear(before, after)
        with torch.no_grad():
            linear.weight.copy_(weight[0, :before, :after].T)
            linear.bias.copy_(bias[0, :after])
        parts += [linear, nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def _experience(stream: "Stream", task: int) -> Any:
    """A task as Avalanche's, without any other: all of it has the task label 0, as of one head for all tasks."""
    import torch
    from avalanche.benchmarks import benchmark_from_datasets, with_classes_timeline, with_task_labels
    from avalanche.benchmarks.utils import _make_taskaware_tensor_classification_dataset as tensors

    inputs, labels = stream.train(task)
    dataset = tensors(torch.from_numpy(inputs), torch.from_numpy(labels), task_labels=0)
    benchmark = with_task_labels(with_classes_timeline(benchmark_from_datasets(train=[dataset])))
    experience = benchmark.train_stream[0]
    experience.current_experience = task
    return experience
