"""Tries a user's network with tiny batches before any training.

Results are refusals and `Facts`. Members are tried together and one after another, with the same numbers: nothing is
left to be found out in the middle of a training. All of it is on the CPU, once a process for each shape of inputs and
outputs.
"""

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor, nn

from trainers.cohort import Plugged
from trainers.networks.base import Batch
from trainers.networks.layout import Layout
from trainers.networks.own.counting import count_passes
from trainers.networks.own.making import GENERATORS, Inputs, NetworkError, buffers_of, generators, make
from trainers.networks.own.network import Facts, OwnNetwork, channels_first
from trainers.notes import first_line
from trainers.plugins.calls import ForeignError, blamed

MEMBERS, ROWS, FEW = 3, 4, 2  # members and examples that are tried, and the examples of a part of them
CLOSE = 1e-3  # of the norm: rounding in float32 is far below, another number far above
COUNTED_BY_NAME = "num_batches_tracked"  # of batch normalisation; plays no part with a momentum


def own_network(plugged: Plugged, inputs: Inputs, outputs: int, subtracted: bool = False) -> OwnNetwork:
    """Returns the network for such inputs and outputs. Raises NetworkError and ForeignError, in one line each."""
    with GENERATORS:  # threads that ask for the same network at once find it out once
        return OwnNetwork(facts_of(plugged, inputs, outputs), subtracted)


@lru_cache(maxsize=8)
def facts_of(plugged: Plugged, inputs: Inputs, outputs: int) -> Facts:
    """Returns the facts of a network; cached for the last networks. Raises NetworkError and ForeignError."""
    with torch.inference_mode(False), torch.no_grad():
        net = OwnNetwork(_describe(plugged, inputs, outputs))
        trial = _Trial(net)
        trial.check_finiteness()
        trial.check_randomness()
        trial.check_inference()
        trial.check_gradient()
        flop, activations = trial.cost()
        facts = replace(net.facts, normalises=trial.normalises(), least=trial.least(), unbatchable=trial.unbatchable())
        return replace(facts, flop=flop, kept=activations)


def _describe(plugged: Plugged, inputs: Inputs, outputs: int) -> Facts:
    """Returns parameters and buffers, and which of these training moves."""
    module, other = (make(plugged, inputs, outputs, seed) for seed in (0, 1))
    called = f"network {plugged.name}"
    places = {value.data_ptr() for value in module.parameters()}
    if module is other or any(value.data_ptr() in places for value in other.parameters()):
        raise NetworkError(f"{called}: its factory must make a new module at every call, got the same parameters twice")
    shapes, others = (
        tuple((name, tuple(value.shape)) for name, value in made.named_parameters()) for made in (module, other)
    )
    start, again = buffers_of(module), buffers_of(other)
    if shapes != others or start.keys() != again.keys():
        raise NetworkError(f"{called}: its factory makes other parameters or buffers at every call")
    for name, value in start.items():
        if not _same(value, again[name]):
            raise NetworkError(f"{called}: buffer {name!r} starts at random; parameters alone may")
    x = channels_first(_examples(inputs, ROWS)[None])[0]
    moved = _find_changed_buffers(plugged, module.train(), x)
    for name, value in moved.items():
        _check_moving(called, module, name, value)
    if still := list(_find_changed_buffers(plugged, module.eval(), x)):
        raise NetworkError(f"{called}: buffer {still[0]!r} changes in inference mode; training alone may move it")
    moving = Layout(tuple((name, tuple(start[name].shape)) for name in moved if start[name].is_floating_point()))
    state = module.state_dict()
    rest = {name: value for name, value in state.items() if name not in start and name not in dict(shapes)}
    return Facts(plugged, inputs, outputs, Layout(shapes), moving, start | rest, tuple(state))


def _find_changed_buffers(plugged: Plugged, module: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """Returns the buffers that a pass changes, as they were before. Raises NetworkError and ForeignError."""
    before, values = buffers_of(module), {name: value.clone() for name, value in module.named_parameters()}
    with blamed(f"network {plugged.name} failed on a batch {list(x.shape)} with", plugged.source, NetworkError):
        module(x)
    now = buffers_of(module)
    if before.keys() != now.keys():
        raise NetworkError(f"network {plugged.name}: it must have all its buffers before a first batch")
    for name, value in module.named_parameters():
        if not _same(value, values[name]):
            raise NetworkError(f"network {plugged.name}: a forward pass changes parameter {name!r}")
    return {name: value for name, value in before.items() if not _same(value, now[name])}


def _check_moving(called: str, module: nn.Module, name: str, value: Tensor) -> None:
    """Raises NetworkError for a buffer that cannot be a network's statistics."""
    owner, _, buffer = name.rpartition(".")
    if buffer == COUNTED_BY_NAME and getattr(module.get_submodule(owner), "momentum", None) is None:
        raise NetworkError(f"{called}: {owner or 'it'} has momentum None; batch normalisation needs a number")
    if buffer != COUNTED_BY_NAME and value.dtype != torch.float32:
        kind = str(value.dtype).removeprefix("torch.")
        raise NetworkError(f"{called}: training changes buffer {name!r}, which must be float32, got {kind}")


class _Trial:
    """A network with some members, and batches for them."""

    def __init__(self, net: OwnNetwork) -> None:
        self._net, self._called = net, f"network {net.facts.plugged.name}"
        rng = torch.Generator().manual_seed(0)
        made = make(net.facts.plugged, net.facts.inputs, net.facts.outputs, seed=0)
        row = torch.zeros(1, net.row)
        for name, view in net.layout.views(row).items():
            view[0] = dict(made.named_parameters())[name]
        # Members differ, even of a factory that always makes the same: what reads another one's parameters is seen.
        noise = 1 + 0.1 * torch.randn(MEMBERS, net.row, generator=rng)
        self._params = row * noise + 0.01 * torch.randn(MEMBERS, net.row, generator=rng) * net.real
        self._labels = torch.randint(net.facts.outputs, (1, ROWS), generator=rng)

    def check_finiteness(self) -> None:
        """Refuses outputs that are no numbers: nothing can be compared with them."""
        for training in (True, False):
            if not (output := self._output(ROWS, training)).isfinite().all():
                value = "NaN" if output.isnan().any() else "infinite outputs"
                raise NetworkError(f"{self._called} gives {value} for images of this stream in {_mode(training)}")

    def check_randomness(self) -> None:
        """Raises NetworkError for random draws in a pass: members would not be the same in any cohort."""
        for training in (True, False):
            with GENERATORS:
                # More than once: another thread may draw meanwhile.
                drawn = all(self._draws(training) for _ in range(3))
            if drawn or not _close(self._output(ROWS, training), self._output(ROWS, training)):
                raise NetworkError(
                    f"{self._called} gives another output for the same batch in {_mode(training)}; "
                    "leave out dropout, noise and any state beside its buffers"
                )

    def check_inference(self) -> None:
        """Refuses tests that depend on how they are cut into batches."""
        if not _close(self._output(ROWS, False)[:FEW], self._output(FEW, False)):
            raise NetworkError(
                f"{self._called}: in inference an example's output depends on others of its batch; "
                "batch normalisation must track running statistics"
            )

    def check_gradient(self) -> None:
        """Refuses outputs that are made without the parameters."""
        if not self._output(ROWS, True).requires_grad:
            raise NetworkError(f"{self._called}: its outputs do not depend on its parameters")

    def normalises(self) -> bool:
        """Returns whether an example's output in training depends on the others of its batch."""
        least = max(FEW, self.least())
        return least < ROWS and not _close(self._output(ROWS, True)[:least], self._output(least, True))

    def least(self) -> int:
        """Returns the size of the smallest batch that the module takes in training; ROWS is known to work."""
        for rows in range(1, ROWS):
            try:
                self._step(self._net, 1, rows)
            except (ForeignError, NetworkError):
                continue
            return rows
        return ROWS

    def unbatchable(self) -> str:
        """Returns the reason why members cannot be batched, in one line; "" where they can."""
        alone = OwnNetwork(replace(self._net.facts, unbatchable="not to be tried"))
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = self._step(self._net, MEMBERS, ROWS)
        except (ForeignError, NetworkError) as error:
            return first_line(error.__cause__ or error)
        # Where torch.func falls back to members in turn, these do the same without a warning at every step.
        for text in (str(warning.message) for warning in caught):
            if "performance drop" in text:
                return text.partition(". ")[0].strip().partition("\n")[0]
        expected = self._step(alone, MEMBERS, ROWS)
        wrong = [name for name, value in expected.items() if not _close(result[name], value)]
        return f"its {', '.join(wrong)} would be others" if wrong else ""

    def cost(self) -> tuple[tuple[float, float, float, float], float]:
        """Returns (FLOP, bytes kept), as `Facts` has them."""
        few, many = max(FEW, self.least()), 2 * ROWS
        of_few, of_many = self._count(few), self._count(many)
        forward, backward, activations = ((b - a) / (many - few) for a, b in zip(of_few, of_many, strict=True))
        fixed_forward, fixed_backward = max(0.0, of_few[0] - forward * few), max(0.0, of_few[1] - backward * few)
        flop = (forward, backward, fixed_forward, fixed_backward)
        if not sum(flop):  # of operations that torch cannot count: as if every parameter were used once
            numbers = float(self._net.real.sum())
            flop = (2 * numbers, 4 * numbers, 0.0, 0.0)
        return flop, max(0.0, activations)

    @property
    def _inputs(self) -> Inputs:
        return self._net.facts.inputs

    def _output(self, rows: int, training: bool) -> Tensor:
        """Returns [rows, outputs] of one member that has not been trained."""
        return self._try(rows, training)[0][0]

    def _try(self, rows: int, training: bool) -> tuple[Tensor, Mapping[str, Tensor]]:
        params, x = self._params[:1], _examples(self._inputs, rows)[None]
        return self._net.outputs_and_leaves(params, self._net.statistics(params), x, training)

    def _draws(self, training: bool) -> bool:
        before = generators()
        self._output(ROWS, training)
        return generators() != before

    def _step(self, net: OwnNetwork, members: int, rows: int) -> dict[str, Tensor]:
        """Returns the results of all calls of a network in training, by name."""
        params, x = self._params[:members], _examples(self._inputs, rows)[None]
        statistics, into, again = net.statistics(params), torch.zeros_like(params), torch.zeros_like(params)
        weight = torch.full((1, rows, 1), 1 / rows)
        losses = net.gradients(params, statistics, Batch(x, self._labels[:, :rows], None), weight, (rows,), [into])
        net.sensitivity(params, statistics, x, None, again)
        logits = net.logits(params, statistics, x)
        result = {"losses": losses, "gradients": into, "sensitivities": again, "outputs": logits}
        return result | ({"statistics": statistics["statistics"]} if statistics else {})

    def _count(self, rows: int) -> tuple[float, float, float]:
        def forward() -> tuple[Tensor, Iterable[Tensor]]:
            outputs, leaves = self._try(rows, True)
            return outputs, leaves.values()

        return count_passes(forward)


def _mode(training: bool) -> str:
    return "training" if training else "inference"


def _examples(inputs: Inputs, rows: int) -> Tensor:
    """Returns [rows, …] at random, as a stream has them: pixels in [0, 1], images [H, W, 3] around 0."""
    rng = torch.Generator().manual_seed(1)
    if isinstance(inputs, int):
        return torch.rand(rows, inputs, generator=rng)
    channels, height, width = inputs
    return torch.rand(rows, height, width, channels, generator=rng) - 0.5


def _same(one: Tensor, other: Tensor) -> bool:
    """Returns whether they are equal, NaN to NaN."""
    return one.dtype == other.dtype and bool(torch.equal(one.nan_to_num(), other.nan_to_num()))


def _close(one: Tensor, other: Tensor) -> bool:
    """Returns whether nothing but rounding lies between them."""
    if one.shape != other.shape:
        return False
    size, between = float(other.norm()), float((one - other).norm())
    return math.isfinite(size) and between <= CLOSE * size + 1e-6


__all__ = ["facts_of", "own_network"]
