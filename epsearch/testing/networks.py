"""Promises of plug-in networks: `network_checks`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from epsearch.testing.promises import Check, checks_of, sure

Inputs: TypeAlias = int | tuple[int, int, int]
Factory: TypeAlias = Callable[[Any, int], Any]
"""(inputs, outputs) -> torch.nn.Module; inputs: P of pixels, or (3, H, W) of images."""
ROWS, FEW = 6, 2
SEEDS = (0, 1)


@dataclass(frozen=True)
class NetworkCase:
    """A factory of networks, with shapes of inputs and outputs."""

    factory: Factory
    inputs: Inputs
    outputs: int

    def make(self, seed: int = 0) -> nn.Module:
        """Returns a new module for a seed, without changing torch's generator."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made = self.factory(self.inputs, self.outputs)
        sure(isinstance(made, nn.Module), f"a factory must return a torch.nn.Module, got {type(made).__name__}")
        return made  # type: ignore[no-any-return]

    def batch(self, rows: int = ROWS) -> Tensor:
        """Returns the first rows of a fixed batch."""
        shape = (self.inputs,) if isinstance(self.inputs, int) else self.inputs
        return torch.rand(ROWS, *shape, generator=torch.Generator().manual_seed(0))[:rows]


def network_checks(factory: Factory, inputs: Inputs = 64, outputs: int = 10) -> list[Check]:
    """Returns checks of a factory (inputs, outputs) -> torch.nn.Module; inputs: P pixels, or (3, H, W)."""
    return checks_of(PROMISES, NetworkCase(factory, inputs, outputs))


def every_call_makes_a_new_module(case: NetworkCase) -> None:
    """Members must not share modules."""
    module, other = case.make(), case.make()
    sure(module is not other, "a factory must make a new module at every call")
    shared = {value.data_ptr() for value in module.parameters()} & {value.data_ptr() for value in other.parameters()}
    sure(not shared, "two modules of a factory must not share parameters")


def parameters_are_numbers_that_can_be_trained(case: NetworkCase) -> None:
    """Parameters are float32 on the CPU, not lazy, and share no memory."""
    module = case.make()
    places: dict[int, str] = {}
    for name, value in module.named_parameters(remove_duplicate=False):
        sure(not nn.parameter.is_lazy(value), f"parameter {name} has no shape yet; give lazy layers their sizes")
        kind = f"{str(value.dtype).removeprefix('torch.')} on {value.device}"
        sure(
            value.dtype == torch.float32 and value.device.type == "cpu",
            f"{name} must be float32 on the CPU, got {kind}",
        )
        sure(value.requires_grad, f"{name} must require a gradient; what is not trained is a buffer")
        other = places.setdefault(value.data_ptr(), name)
        sure(other == name, f"{name} shares its memory with {other}; each parameter needs its own")
    sure(places, "a network must have parameters")


def starts_follow_from_torchs_seed(case: NetworkCase) -> None:
    """Members of a seed begin alike, so that comparisons are paired; those of another seed do not."""
    first, again, other = (dict(case.make(seed).named_parameters()) for seed in (0, 0, 1))
    sure(first.keys() == again.keys() == other.keys(), "a factory must make the same parameters at every call")
    same = all(torch.equal(value, again[name]) for name, value in first.items())
    sure(same, "the same seed of torch must give the same start; draw from torch's generator alone")
    apart = any(not torch.equal(value, other[name]) for name, value in first.items())
    sure(apart, "another seed of torch must give another start")


def outputs_are_logits(case: NetworkCase) -> None:
    """Float32 [B, outputs], finite, in training and in inference; of any number of rows."""
    module = case.make()
    for training in (True, False):
        module.train(training)
        for rows in (ROWS, FEW):
            logits, expected = module(case.batch(rows)), (rows, case.outputs)
            sure(isinstance(logits, Tensor), f"it must return a tensor of logits, got {type(logits).__name__}")
            shape = tuple(logits.shape)
            sure(shape == expected, f"logits must have shape {list(expected)} for {rows} rows, got {list(shape)}")
            kind = str(logits.dtype).removeprefix("torch.")
            sure(logits.dtype == torch.float32, f"logits must be float32, got {kind}")
            sure(
                bool(torch.isfinite(logits).all()),
                f"logits must be finite, got {int((~torch.isfinite(logits)).sum())} that are not",
            )


def nothing_is_drawn_in_a_pass(case: NetworkCase) -> None:
    """Neither dropout nor noise: a member must be the same in any cohort."""
    for training in (True, False):
        first, second = (_pass(case.make().train(training), case.batch(), seed) for seed in SEEDS)
        mode = "training" if training else "inference"
        sure(
            torch.equal(first, second),
            f"the same batch must give the same logits whatever torch's seed is, without "
            f"dropout or noise; in {mode} it does not",
        )


def inference_looks_at_examples_one_by_one(case: NetworkCase) -> None:
    """Tests are cut into batches of any size."""
    module = case.make().eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    with torch.no_grad():
        whole, part = module(case.batch()), module(case.batch(FEW))
    close = torch.allclose(whole[:FEW], part, atol=1e-5, rtol=1e-4)
    sure(close, "in inference an example's logits must not depend on the others of its batch")
    moved = [name for name, value in module.state_dict().items() if not torch.equal(value, before[name])]
    sure(not moved, f"inference must change nothing of the module; it changes {', '.join(moved)}")


def every_parameter_has_a_gradient(case: NetworkCase) -> None:
    """All gradients are finite."""
    module = case.make().train()
    labels = torch.arange(ROWS) % case.outputs
    nn.functional.cross_entropy(module(case.batch()), labels).backward()  # type: ignore[no-untyped-call]
    for name, value in module.named_parameters():
        sure(value.grad is not None, f"the logits must depend on {name}, which has no gradient")
        finite = value.grad is not None and bool(torch.isfinite(value.grad).all())
        sure(finite, f"the gradient of {name} must be finite")


PROMISES = (
    every_call_makes_a_new_module,
    parameters_are_numbers_that_can_be_trained,
    starts_follow_from_torchs_seed,
    outputs_are_logits,
    nothing_is_drawn_in_a_pass,
    inference_looks_at_examples_one_by_one,
    every_parameter_has_a_gradient,
)


def _pass(module: nn.Module, batch: Tensor, seed: int) -> Tensor:
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        return module(batch)  # type: ignore[no-any-return]
