"""A user's network for M members, rows of a matrix [M, D].

By torch.func all at once, or one after another. One after another, the module itself runs, and its parameters lie in
the member's row. All at once, `functional_call` runs it with those of every member under `vmap`. What of both is right
was found before (trial.py).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, vmap

from trainers.capacity import out_of_memory
from trainers.cohort import Plugged
from trainers.networks.base import Batch, Pull, Statistics
from trainers.networks.by_autograd import ByAutograd
from trainers.networks.heads import Views
from trainers.networks.layout import Layout
from trainers.networks.own.making import LARGEST, Inputs, NetworkError, make
from trainers.plugins.calls import ForeignError, blamed


@dataclass(frozen=True, eq=False)
class Facts:
    """Properties of a network for some inputs and outputs, known before it is trained."""

    plugged: Plugged
    inputs: Inputs
    outputs: int
    layout: Layout
    """Of the parameters, by the module's names."""
    moving: Layout
    """Of the buffers that training moves: a network's statistics."""
    start: Mapping[str, Tensor]
    """The buffers of an untrained network, by name."""
    saved: tuple[str, ...]
    """The names in its state_dict."""
    normalises: bool = False
    """Whether an example's output in training depends on the batch that it is in."""
    least: int = 1
    """Examples of the smallest batch that it can be trained on."""
    unbatchable: str = ""
    """Why torch.func cannot batch members, in one line; "" where it can."""
    flop: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """As `cost.network_flops.Work` has it."""
    kept: float = 0.0
    """Bytes that one example's forward pass keeps for the backward pass."""


@dataclass(eq=False)
class OwnNetwork(ByAutograd):
    """A user's network, for one thread: each thread runs a module of its own. subtracted: see `losses.output_delta`."""

    facts: Facts
    subtracted: bool = False
    _modules: dict[tuple[torch.device, torch.dtype], "_Module"] = field(default_factory=dict)
    recordable = False  # a graph holds no decisions of a module's own, nor what it copies from the host

    @property
    def normalises(self) -> bool:
        """True if an example's output in training depends on the batch that it is in."""
        return self.facts.normalises

    @property
    def least(self) -> int:
        """Number of examples in the smallest batch that it can be trained on."""
        return self.facts.least

    @property
    def together(self) -> bool:
        """True if torch.func can batch members."""
        return not self.facts.unbatchable

    @property
    def layout(self) -> Layout:
        """Layout of the parameters, by the module's names."""
        return self.facts.layout

    def way(self, one_by_one: bool) -> str:
        """Returns in words how members are trained; one_by_one: whether the numeric path takes them in turn anyway."""
        if self.facts.unbatchable:
            return f"members in turn, as torch.func cannot batch them: {self.facts.unbatchable}"
        if one_by_one:
            return "members in turn, so that each is the same in any cohort; torch.func could batch them"
        return "members together, batched by torch.func"

    def init(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """Returns one row: the factory's parameters from a seed that is drawn. Raises NetworkError and ForeignError."""
        facts = self.facts
        module = make(facts.plugged, facts.inputs, facts.outputs, int(rng.integers(LARGEST)))
        made = dict(module.named_parameters())
        if tuple((name, tuple(value.shape)) for name, value in made.items()) != self.layout.shapes:
            raise NetworkError(f"network {facts.plugged.name}: its factory makes other parameters at every call")
        row = torch.zeros(1, self.row)
        for name, view in self.layout.views(row).items():
            view[0] = made[name].detach()
        return cast(NDArray[np.float32], row[0].numpy())

    def statistics(self, params: Tensor) -> Statistics:
        """Returns the statistics of untrained networks, on the device of params [M, D].

        {} where the module moves no buffers.
        """
        if not self.facts.moving.shapes:
            return {}
        matrix = params.new_zeros(len(params), self.facts.moving.row)
        for name, view in self.facts.moving.views(matrix).items():
            view.copy_(self.facts.start[name].expand_as(view))
        return {"statistics": matrix}

    def state_dict(self, params: Tensor, statistics: Tensor | None) -> dict[str, Tensor]:
        """Returns the state_dict of one member, as the user's own module loads it.

        params [D], statistics [S] or None where it has none.
        """
        state = dict(self.facts.start)
        state |= {name: view[0].clone() for name, view in self.layout.views(params[None]).items()}
        if statistics is not None:
            state |= {name: view[0].clone() for name, view in self.facts.moving.views(statistics[None]).items()}
        return {name: state[name] for name in self.facts.saved}

    def logits(self, params: Tensor, statistics: Statistics, x: Tensor) -> Tensor:
        """Returns [M, B, outputs] for x [1 or M, B, …], in inference mode."""

        def of(rows: slice) -> Tensor:
            return super(OwnNetwork, self).logits(params[rows], _part(statistics, rows), _of(x, rows))

        return self._in_turns(len(params), x, of)

    def gradients(
        self,
        params: Tensor,
        statistics: Statistics,
        batch: Batch,
        row_weight: Tensor,
        parts: Sequence[int],
        into: Sequence[Tensor],
    ) -> Tensor:
        """Writes gradients and returns losses, as `Network.gradients`.

        Reference batches pass before the mini-batch, whose statistics weigh more.
        """

        def of(rows: slice) -> Tensor:
            allowed = None if batch.allowed is None else _of(batch.allowed, rows)
            batch_of_rows = Batch(_of(batch.x, rows), _of(batch.labels, rows), allowed)
            buffers = [gradient[rows] for gradient in into]
            return super(OwnNetwork, self).gradients(
                params[rows], _part(statistics, rows), batch_of_rows, _of(row_weight, rows), parts, buffers
            )

        return self._in_turns(len(params), batch.x, of)

    def pull_back(
        self, params: Tensor, statistics: Statistics, x: Tensor, parts: Sequence[int], pull: Pull, into: Tensor
    ) -> None:
        """Writes the gradient, as `Network.pull_back`, of one member, or of members that can be batched."""
        with self._theirs(x):
            super().pull_back(params, statistics, x, parts, pull, into)

    def sensitivity(
        self, params: Tensor, statistics: Statistics, x: Tensor, allowed: Tensor | None, into: Tensor
    ) -> None:
        """Writes the gradient, as `Network.sensitivity`, in inference mode."""

        def of(rows: slice) -> Tensor:
            masks = None if allowed is None else _of(allowed, rows)
            super(OwnNetwork, self).sensitivity(params[rows], _part(statistics, rows), _of(x, rows), masks, into[rows])
            return into[rows]

        self._in_turns(len(params), x, of)

    def outputs_and_leaves(
        self, params: Tensor, statistics: Statistics, x: Tensor, training: bool
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Returns (outputs [1, B, outputs] of one member, what they can be differentiated by)."""
        with self._theirs(x), torch.enable_grad():
            leaves = self._leaves(params)
            return self._forward(leaves, statistics, x, training), leaves

    def _in_turns(self, count: int, x: Tensor, of: Callable[[slice], Tensor]) -> Tensor:
        """Returns [M, …] of `count` members, together or one after another; what the module raises is its user's."""
        with self._theirs(x):
            if count == 1 or self.together:
                return of(slice(count))
            return torch.cat([of(slice(row, row + 1)) for row in range(count)])

    @contextmanager
    def _theirs(self, x: Tensor) -> Iterator[None]:
        """Turns errors of the module into one line, within the context.

        A lack of memory is not turned, as fewer members take less.
        """
        plugged = self.facts.plugged
        try:
            yield
        except (NetworkError, ForeignError):
            raise
        except (Exception, SystemExit) as error:
            if out_of_memory(error):
                raise
            shape = list(channels_first(x).shape[1:])
            with blamed(f"network {plugged.name} failed on a batch {shape} with", plugged.source):
                raise

    def _leaves(self, params: Tensor) -> Views:
        """Returns the leaves; of one member the module's own parameters, which lie in its row from now on."""
        if len(params) > 1:
            return super()._leaves(params)
        return self._module(params).bind(self.layout.views(params))

    def _forward(self, leaves: Views, statistics: Statistics, x: Tensor, training: bool) -> Tensor:
        matrix = statistics.get("statistics")
        moving = {} if matrix is None else self.facts.moving.views(matrix)
        x, like = channels_first(x), next(iter(leaves.values()))
        module = self._module(like).as_in(training)
        if leaves is module.parameters:
            return self._check_logits(module.alone(moving, x[0]), x[0])[None]

        def one(params: Views, buffers: Views, x: Tensor) -> tuple[Tensor, Views]:
            # Copies: what is moved in place here is not what came in.
            tensors = params | {name: buffer.clone() for name, buffer in buffers.items()}
            output = self._check_logits(functional_call(module.module, tensors, (x,)), x)
            return output, {name: tensors[name] for name in buffers}

        shared = len(x) == 1
        run = vmap(one, in_dims=(0, 0, None if shared else 0))
        output, moved = run(leaves, moving, x[0] if shared else x)
        if training:
            for name, view in moving.items():
                view.copy_(moved[name].detach())
        return output

    def _check_logits(self, output: Any, x: Tensor) -> Tensor:
        """Returns the logits [B, outputs] of a batch. Raises NetworkError where they are anything else."""
        shape = (len(x), self.facts.outputs)
        if isinstance(output, Tensor) and output.shape == shape and output.dtype == x.dtype:
            return output
        is_tensor = isinstance(output, Tensor)
        got = f"{_dtype_name(output.dtype)} {list(output.shape)}" if is_tensor else type(output).__name__
        raise NetworkError(
            f"network {self.facts.plugged.name} must return logits {_dtype_name(x.dtype)} {list(shape)} for a batch "
            f"{list(x.shape)}, got {got}"
        )

    def _module(self, like: Tensor) -> "_Module":
        """Returns the module of this network on the device and of the type of a tensor."""
        key = (like.device, like.dtype)
        if key not in self._modules:
            facts = self.facts
            made = make(facts.plugged, facts.inputs, facts.outputs, seed=0)
            self._modules[key] = _Module(made.to(*key), tuple(name for name, _ in facts.moving.shapes))
        return self._modules[key]


class _Module:
    """A module whose parameters, and the buffers that move, are lent to it. moving: the names of these buffers."""

    def __init__(self, module: nn.Module, moving: Sequence[str]) -> None:
        self.module = module.train()  # all of it, as some layers may have been left in inference mode
        self.parameters: Views = dict(module.named_parameters())
        places = ((name, *name.rpartition(".")[::2]) for name in moving)
        self._moving = [(name, module.get_submodule(owner), buffer) for name, owner, buffer in places]

    def bind(self, views: Views) -> Views:
        """Returns the module's parameters, which are the only row [1, …] of the views from now on."""
        for name, parameter in self.parameters.items():
            parameter.data = views[name][0]
        return self.parameters

    def as_in(self, training: bool) -> "_Module":
        """Returns the same, in training or inference mode."""
        if self.module.training != training:
            self.module.train(training)
        return self

    def alone(self, moving: Views, x: Tensor) -> Tensor:
        """Returns the module's output for x [B, …]; moves the only row of these buffers as the module does."""
        for name, owner, buffer in self._moving:
            owner._buffers[buffer] = moving[name][0]
        output = self.module(x)
        with torch.no_grad():
            for name, owner, buffer in self._moving:
                if owner._buffers[buffer] is not None:
                    _write(moving[name][0], cast(Tensor, owner._buffers[buffer]))
        return cast(Tensor, output)


def _write(view: Tensor, value: Tensor) -> None:
    """Copies a buffer that a module has put in the place of the lent one."""
    if value.data_ptr() != view.data_ptr():
        view.copy_(value.detach())


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def channels_first(x: Tensor) -> Tensor:
    """Returns pixels as they are, images [1 or M, B, H, W, 3] with their channels first, as torch's modules."""
    return x if x.dim() == 3 else x.permute(0, 1, 4, 2, 3).contiguous()


def _of(x: Tensor, rows: slice) -> Tensor:
    """Returns the part of some members, or the whole of a tensor that all members share."""
    return x if len(x) == 1 else x[rows]


def _part(statistics: Statistics, rows: slice) -> Statistics:
    return {name: value[rows] for name, value in statistics.items()}
