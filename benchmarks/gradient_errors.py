"""How far g_ref of every CPU path is from float64's, for a trained member and batches of its episodic memory."""

from collections.abc import Iterator

import numpy as np
import torch
from agreement import double, layers_of, logits
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from trainers import Learner
from trainers.engines.compiled.lazy import make_passes
from trainers.networks import MLP
from trainers.networks.base import Batch
from trainers.numeric_path import NumericPath
from trainers.pool import Pool
from trainers.streams.base import Examples, PixelStream

CPU_PATHS = tuple(
    str(NumericPath(products=products, sparse=kind == "sparse", lazy=kind == "lazy", subtracted=subtracted))
    for subtracted in (False, True)
    for products, kinds in (("mkl", ("", "sparse", "lazy")), ("onednn", ("", "sparse", "lazy")), ("torch", ("",)))
    for kind in kinds
)


def reference_errors(
    row: NDArray[np.float32], stream: PixelStream, learner: Learner, hidden: tuple[int, ...], draws: int
) -> dict[str, list[float]]:
    """‖g_ref − exact‖/‖exact‖ by numeric path, for as many reference batches of the stream's last task.

    row [D]: a member's parameters at the end of that task. Exact is float64's autograd, of the same parameters, on a
    loss that has no difference of near numbers either: in float64, too, p − 1 is rounding where p is 1 − 10⁻¹⁶.
    """
    sizes = (stream.inputs, *hidden, stream.outputs)
    layers = [(w.requires_grad_(), b.requires_grad_()) for w, b in layers_of(sizes, row)]
    parameters = [part for layer in layers for part in layer]
    errors: dict[str, list[float]] = {name: [] for name in CPU_PATHS}
    for batch in _last_references(stream, learner, draws):
        x, labels = double(batch, stream.largest)
        loss = _stable_loss(logits(layers, x), labels)
        exact = torch.cat([part.reshape(-1) for part in torch.autograd.grad(loss, parameters)])
        for name, values in errors.items():
            g_ref = reference_gradient(NumericPath.parse(name), row, stream, hidden, batch)
            ours = torch.cat([part.reshape(-1) for layer in layers_of(sizes, g_ref) for part in layer])
            values.append(float((ours - exact).norm() / exact.norm()))
    return errors


def reference_gradient(
    path: NumericPath, row: NDArray[np.float32], stream: PixelStream, hidden: tuple[int, ...], batch: Examples
) -> NDArray[np.float32]:
    """g_ref [D] over a batch as the path's engine makes it, with the engine's padding."""
    net = MLP((stream.inputs, *hidden, stream.outputs), path.subtracted)
    params, into = torch.from_numpy(row), torch.zeros(net.row)
    if path.products == "torch":
        x = torch.from_numpy(batch.inputs)[None].float().div_(stream.largest)
        labels, rows = torch.from_numpy(batch.labels)[None], len(batch.labels)
        weight = torch.full((1, rows, 1), 1 / rows)
        net.gradients(params[None], {}, Batch(x, labels, None), weight, (rows,), [into[None]])
    else:
        passes = make_passes(net, stream.largest, path)
        inputs = passes.examples(batch.inputs)
        inputs.take(np.arange(len(batch.labels)))
        inputs.split(0)
        passes.gradient(passes.layers(params), inputs, batch.labels, passes.layers(into))
    return into.numpy()


def _stable_loss(z: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy as ln(1 + Σ_{c≠y} exp(z_c − z_y)), of logits z [B, classes]."""
    rows = torch.arange(len(z))
    others = z.clone()
    others[rows, labels] = -torch.inf
    return softplus(others.logsumexp(1) - z[rows, labels]).mean()


def _last_references(stream: PixelStream, learner: Learner, draws: int) -> Iterator[Examples]:
    """Reference batches of the last task's last steps."""
    pool = Pool(stream, learner.seed, learner.declared, learner.hyperparameters)
    for task in range(len(stream.tasks)):
        segments = pool.load_task(task)
        pool.remember(task)
    for rows in segments[0].rows[-draws:, segments[0].current :]:
        yield Examples(pool.inputs[rows], pool.labels[rows])
