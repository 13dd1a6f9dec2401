"""Engines on a GPU that there is not: fake CUDA tensors have devices, types and shapes, and no values."""

from contextlib import contextmanager
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.support.learners import engine_of, untrained
from tests.support.numeric_paths import TWIN
from trainers.engines.base import Learners
from trainers.numeric_path import NumericPath

HOST = (torch.ops.aten._local_scalar_dense, torch.ops.aten.nonzero, torch.ops.aten.lift_fresh)
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "convolution")


class NotRecordable(AssertionError):
    """An operator that a CUDA graph cannot hold."""


class WithoutFloat64(TorchDispatchMode):
    """Raises TypeError where something in float64 is to be on the GPU, as Apple's do."""

    def __torch_dispatch__(self, operator, types, arguments=(), named=None):
        result = operator(*arguments, **(named or {}))
        for one in tree_leaves((arguments, named, result)):
            if isinstance(one, torch.Tensor) and one.device.type == "cuda" and one.dtype == torch.float64:
                raise TypeError(f"{operator} in float64")
        return result


class Audit(TorchDispatchMode):
    """Raises NotRecordable where a step looks at the host, draws a random number, or multiplies in float64."""

    operators = 0

    def __torch_dispatch__(self, operator, types, arguments=(), named=None):
        _check(operator, [one for one in tree_leaves((arguments, named)) if isinstance(one, torch.Tensor)])
        result = operator(*arguments, **(named or {}))
        _check(operator, [one for one in tree_leaves(result) if isinstance(one, torch.Tensor)])
        self.operators += 1
        return result


def _check(operator, tensors):
    if operator.overloadpacket in HOST or any(one.device.type != "cuda" for one in tensors):
        raise NotRecordable(f"{operator} looks at the host")
    if torch.Tag.nondeterministic_seeded in operator.tags:
        raise NotRecordable(f"{operator} draws a random number")
    if operator.overloadpacket.__name__ in PRODUCTS and any(one.dtype == torch.float64 for one in tensors):
        raise NotRecordable(f"{operator} multiplies in float64")


@contextmanager
def fake_gpu():
    """What is on "cuda" meanwhile is fake, gradients by autograd included."""
    with FakeTensorMode(allow_non_fake_inputs=True), mock.patch("torch.autograd.grad", gradients), torch.no_grad():
        yield


def step_without_float64(one, stream, architecture):
    """Makes an engine for two learners like this one on a GPU like Apple's, and takes a step. Raises TypeError.

    Under the name "cuda", since this torch has no other fake tensors; its products are those of all other devices.
    """
    with torch.no_grad():
        real = untrained(engine_of(one, stream, TWIN, architecture), [one, one])
    own = {name: value.tolist() for name, value in real.own.items()}
    products = mock.patch(
        "trainers.methods.inner.sum_in_float64", lambda rows, vector: (rows @ vector[:, :, None])[..., 0]
    )
    with mock.patch("trainers.numeric_path.WITHOUT_FLOAT64", {"cuda"}), products, fake_gpu(), WithoutFloat64():
        engine = engine_of(one, stream, NumericPath("cuda"), architecture)
        params = real.params.to("cuda")
        learners = Learners.of(params, real.seed.to("cuda"), own, engine.state(params))
        engine.load_task(1)
        engine._one_step(learners, len(engine._segments) - 1, 0)


def audited_step(one, stream, architecture):
    """The operators of a step of two learners like this one that a CUDA graph would hold. Raises NotRecordable.

    As when it is recorded, another step was taken before. Of the stream's second task, which has a reference batch.
    """
    with torch.no_grad():
        real = untrained(engine_of(one, stream, TWIN, architecture), [one, one])
    with fake_gpu():
        engine = engine_of(one, stream, NumericPath("cuda"), architecture)
        own, state = ({name: value.to("cuda") for name, value in some.items()} for some in (real.own, real.state))
        rest = (value.to("cuda") for value in (real.first_bad, real.projected))
        learners = Learners(real.params.to("cuda"), real.seed.to("cuda"), own, *rest, state)
        engine.load_task(1)
        last = len(engine._segments) - 1
        engine._one_step(learners, last, 0)
        with Audit() as audit:
            engine._one_step(learners, last, 0)
    return audit.operators


def gradients(loss, leaves, materialize_grads=False):
    """As torch.autograd.grad, in Python: torch's own asks the driver for the device of each tensor."""
    waiting, found = {loss.grad_fn: {0: torch.ones_like(loss)}}, {}
    with torch.no_grad():
        for node in _in_order(loss.grad_fn):
            at = waiting.pop(node)
            given = [_as_put_out(at.get(slot), known) for slot, known in enumerate(node._input_metadata)]
            if (variable := getattr(node, "variable", None)) is not None:
                found[id(variable)] = given[0]
                continue
            results = getattr(node, "apply", node)(*given)  # the first of a Function of ours
            results = results if isinstance(results, tuple) else (results,)
            for (behind, slot), gradient in zip(node.next_functions, results, strict=True):
                if behind is not None:
                    into = waiting.setdefault(behind, {})
                    into[slot] = into[slot] + gradient if slot in into else gradient
    return tuple(found[id(leaf)] if id(leaf) in found else torch.zeros_like(leaf) for leaf in leaves)


def _as_put_out(gradient, known):
    """Summed over what was broadcast, as autograd does between two nodes."""
    return gradient if gradient is None else gradient.sum_to_size(known.shape)


def _in_order(last):
    """Nodes behind this one, each after all that lead to it."""
    order, seen = [], set()

    def visit(node):
        if node is not None and node not in seen:
            seen.add(node)
            for behind, _ in node.next_functions:
                visit(behind)
            order.append(node)

    visit(last)
    return reversed(order)
