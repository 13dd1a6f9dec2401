"""Independent references: the update rules in float64 NumPy from the papers' text, and one member in plain PyTorch."""

import copy
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Facts(NamedTuple):
    """Facts of a step that rules take besides gradients."""

    sizes: tuple[int, int] = (1, 1)
    tasks: int = 1
    losses: tuple[float, float] = (1.0, 1.0)
    sensitivity: float = 1e-10
    """Of MEGA-I; as in its authors' code."""


ALONE = Facts()


def step_direction(
    method: str, g: Vector, r: Vector, epsilon: float = 0.0, scale: str = "unit", facts: Facts = ALONE
) -> Vector:
    """Algorithm 1 of the ε-SOFT-GEM paper, one branch after the other, for one member; others from their papers."""
    if method in OF_ANY_LENGTH:
        return OF_ANY_LENGTH[method](g, r, facts)
    if math.sqrt(sum(g * g)) < 1e-15 or math.sqrt(sum(r * r)) < 1e-15:
        return g
    if method in ("agem", "agem_r") or (method == "soft_agem" and epsilon == 0):
        return g if g @ r >= 0 else g - (g @ r) / (r @ r) * r
    unit_g, unit_r = g / np.linalg.norm(g), r / np.linalg.norm(r)
    c = unit_g @ unit_r
    if method == "mega2":
        return mega2_direction(unit_g, unit_r, *facts.losses) * np.linalg.norm(g)
    if c >= 0:
        return g
    if scale == "raw":
        return (g + r) / 2 if method == "a_agem" else g - (c - epsilon) * r
    if method == "a_agem":
        return (unit_g + unit_r) / 2
    return unit_g - (c - epsilon) / (unit_r @ unit_r) * unit_r


def mega2_direction(unit_g: Vector, unit_r: Vector, loss: float, reference_loss: float) -> Vector:
    """ĝ rotated towards ĝ_ref by the angle at which the derivative of MEGA-II's objective is zero."""
    c = min(max(unit_g @ unit_r, -1.0), 1.0)
    beyond = unit_r - c * unit_g
    if (sine := np.linalg.norm(beyond)) == 0:
        return unit_g
    beta = math.atan2(reference_loss * sine, loss + reference_loss * c)
    return math.cos(beta) * unit_g + math.sin(beta) * beyond / sine


def er_agem_direction(g: Vector, r: Vector, facts: Facts) -> Vector:
    """The gradient of the joint loss, projected on the half-space of g_ref."""
    joint = g / facts.tasks + (1 - 1 / facts.tasks) * r
    return joint if joint @ r >= 0 else joint - (joint @ r) / (r @ r) * r


def mega1_direction(g: Vector, r: Vector, facts: Facts) -> Vector:
    return g + facts.losses[1] / facts.losses[0] * r if facts.losses[0] > facts.sensitivity else r


OF_ANY_LENGTH: dict[str, Callable[[Vector, Vector, Facts], Vector]] = {
    "van": lambda g, r, facts: g,
    "er": lambda g, r, facts: (facts.sizes[0] * g + facts.sizes[1] * r) / sum(facts.sizes),
    "er_agem": er_agem_direction,
    "mega1": mega1_direction,
}
"""The rules that need no gradient's direction."""


class PlainLearner:
    """One member as anyone would write it: torch.nn.Sequential, autograd, flattened gradients, no batching."""

    normalises = False
    per_task: int | None = None
    """Outputs of each task, of which those of tasks so far compete; None where all do."""
    task = 0
    apart = False
    """Whether every task has outputs of its own, which others leave as they are."""

    def __init__(self, sizes: tuple[int, ...], weights: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        layers: list[torch.nn.Module] = []
        for (inputs, outputs), (weight, bias) in zip(itertools.pairwise(sizes), weights, strict=True):
            linear = torch.nn.Linear(inputs, outputs)
            with torch.no_grad():
                linear.weight.copy_(weight)
                linear.bias.copy_(bias)
            layers += [linear, torch.nn.ReLU()]
        self.network = torch.nn.Sequential(*layers[:-1])

    def outputs(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(x)

    def outputs_of(self, label: int) -> list[int]:
        """The outputs that compete on an example with this label."""
        return list(range(self.per_task * (self.task + 1) if self.per_task else self.network[-1].out_features))

    def known(self) -> list[tuple[list[int], list[int]]]:
        """(outputs that the last task's network has learnt, those that this one has beside), each softened apart."""
        return [(self.outputs_of(0),) * 2] if self.task else []

    def gradient(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._flat_gradient(torch.nn.functional.cross_entropy(self.network(x), y))

    def sensitivity(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._flat_gradient((self.network(x) ** 2).sum())

    def _flat_gradient(self, loss: torch.Tensor) -> torch.Tensor:
        self.loss = float(loss.detach())
        grads = torch.autograd.grad(loss, list(self.network.parameters()))
        return torch.cat([grad.reshape(-1) for grad in grads])

    def step(self, direction: torch.Tensor, learning_rate: float) -> None:
        start = 0
        with torch.no_grad():
            for parameter in self.network.parameters():
                part = direction[start : start + parameter.numel()].view_as(parameter)
                parameter -= learning_rate * part
                start += parameter.numel()

    def flat(self) -> torch.Tensor:
        return torch.cat([parameter.detach().reshape(-1) for parameter in self.network.parameters()])

    def accuracy(self, x: torch.Tensor, y: torch.Tensor) -> float:
        with torch.no_grad():
            return float((self.network(x)[:, self.outputs_of(0)].argmax(1) == y).double().mean())


class PenaltyReference:
    """EWC, PI, MAS, RWALK and SI step by step for one member, in float64, as the sources say it."""

    damping = 0.1

    def __init__(self, method: str, theta: Vector, **values: Any) -> None:
        self.method = method
        vars(self).update(values)
        self.importance = np.zeros_like(theta)
        self.anchor, self.since = theta.copy(), theta.copy()
        self.fisher, self.squares, self.path, self.gain, self.score = (np.zeros_like(theta) for _ in range(5))
        self.tasks = 0

    def before_step(self, theta: Vector, step: int) -> None:
        if self.method not in ("ewc", "rwalk") or (step + 1) % self.every:
            return
        if self.method == "rwalk":
            distance = self.fisher * (theta - self.since) ** 2 / (2 if self.form == "paper" else 1)
            self.gain = self.gain + np.maximum(0, self.path / (distance + 1e-3))
            self.path, self.since = np.zeros_like(theta), theta.copy()
        self.fisher = 0.1 * self.fisher + 0.9 * self.squares / self.every
        if self.method == "ewc" or self.form == "paper":
            self.squares = np.zeros_like(theta)

    def direction(self, theta: Vector, g: Vector) -> Vector:
        direction = g + 2 * self.strength * self.importance * (theta - self.anchor)
        self.squares = self.squares + g**2
        return direction

    def after_step(self, g: Vector, change: Vector) -> None:
        self.path = self.path - g * change

    def end_task(self, theta: Vector, sensitivities: list[Vector], examples: int) -> None:
        zero = np.zeros_like(theta)
        if self.method == "ewc":
            self.importance = self._scaled(self.fisher)
        elif self.method == "pi":
            self.importance = self.importance + np.maximum(0, self.path / ((theta - self.anchor) ** 2 + 1e-3))
        elif self.method == "si":
            found = self.path / ((theta - self.anchor) ** 2 + self.damping)
            self.importance = np.maximum(0, self.importance + found)
        elif self.method == "mas":
            found = sum(np.abs(one) for one in sensitivities) / examples
            self.importance = found + (self.importance if self.form == "paper" else 0)
        else:
            gain = 2 * self.gain if self.tasks == 0 else self.gain
            half = (self.score + gain) / 2
            self.score = half if self.form == "paper" else self.score + half
            self.importance = self._scaled(self.fisher) + self._scaled(self.score)
        self.squares, self.path, self.gain = zero, zero, zero
        self.anchor, self.since = theta.copy(), theta.copy()
        self.tasks += 1

    @staticmethod
    def _scaled(values: Vector) -> Vector:
        return (values - values.min()) / (values.max() - values.min() + 1e-32)


class LossesReference:
    """DER, DER++, ER-ACE and LwF for one member: losses of examples one by one, differentiated by torch."""

    def __init__(self, method: str, values: Any) -> None:
        self.method, self.values = method, values
        self.rate = values.lr
        self.stored: dict[bytes, torch.Tensor] = {}
        """Of each example, by its bytes, the outputs when it was first shown."""
        self.teacher: Any = None

    def gradient(self, network: PlainLearner, batches: list[Any], names: list[list[bytes]]) -> torch.Tensor:
        """batches: (x, y) of the mini-batch and of each draw; names: the bytes of their examples."""
        # With batch normalisation, draws move the statistics first.
        draws = [network.outputs(x) for x, _ in batches[1:]]
        now = network.outputs(batches[0][0])
        labels = batches[0][1]
        loss = self.entropy(network, now, labels, labels.tolist() if self.method == "er_ace" else None)
        if self.method == "lwf" and network.known():
            loss = loss / (network.task + 1) + self.distilled(network, now, batches[0][0])
        if draws:
            loss = loss + self.replayed(network, draws, [y for _, y in batches[1:]], names[1:])
        for name, logits in zip(names[0], now.detach(), strict=True):
            self.stored.setdefault(name, logits)
        return network._flat_gradient(loss)

    def end_task(self, network: PlainLearner) -> None:
        self.teacher = copy.deepcopy(network.network).eval()

    def distilled(self, network: PlainLearner, outputs: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """(1 − 1/N) · T² · the mean over examples and groups of Σ q (log q − log p)."""
        t, terms = self.values.temperature, []
        with torch.no_grad():
            asked = self.teacher(x)
        for z, wanted in zip(outputs / t, asked / t, strict=True):
            for old, beside in network.known():
                q, p = torch.softmax(wanted[old], 0), torch.softmax(z[beside], 0)
                terms.append(sum(a * (a.log() - p[beside.index(k)].log()) for a, k in zip(q, old, strict=True)))
        return self.values.distillation * (1 - 1 / (network.task + 1)) * t**2 * torch.stack(terms).mean()

    def replayed(
        self, network: PlainLearner, draws: list[torch.Tensor], labels: list[torch.Tensor], names: list[list[bytes]]
    ) -> torch.Tensor:
        if self.method == "er_ace":
            return self.entropy(network, draws[0], labels[0])
        squares = [
            sum((z[k] - self.stored[name][k]) ** 2 for k in network.outputs_of(int(label))) / len(z)
            for z, label, name in zip(draws[0], labels[0], names[0], strict=True)
        ]
        loss = self.values.alpha * torch.stack(squares).mean()
        if self.method == "derpp":
            loss = loss + self.values.beta * self.entropy(network, draws[1], labels[1])
        return loss

    @staticmethod
    def entropy(
        network: PlainLearner, outputs: torch.Tensor, labels: torch.Tensor, only: list[int] | None = None
    ) -> torch.Tensor:
        """The mean over examples; only: the classes that compete, of those that else would."""
        losses = []
        for z, label in zip(outputs, labels.tolist(), strict=True):
            compete = [k for k in network.outputs_of(label) if only is None or k in only]
            losses.append(torch.logsumexp(z[compete], 0) - z[label])
        return torch.stack(losses).mean()


class SubspacesReference:
    """GPM for one member, in float64, by its algorithm 1: orthonormal columns of what each layer has had as inputs."""

    def __init__(self, values: Any) -> None:
        self.values, self.rate = values, values.lr
        self.bases: list[Vector] = []

    def direction(self, network: PlainLearner, g: Vector) -> Vector:
        """g without what lies in the span, layer by layer; a bias is the weight of an input that is 1."""
        found, start = [], 0
        for number, linear in enumerate(network.network[::2]):
            outputs, inputs = linear.weight.shape
            weight = g[start : start + outputs * inputs].reshape(outputs, inputs)
            start += weight.size + outputs
            layer = np.column_stack([weight, g[start - outputs : start]])
            if number < len(self.bases):
                layer = layer - (layer @ self.bases[number]) @ self.bases[number].T
            found += [layer[:, :-1].ravel(), layer[:, -1]]
        return np.concatenate(found)

    def end_task(self, network: PlainLearner, x: torch.Tensor) -> None:
        layers = network.network[:-1] if network.apart else network.network
        known = iter(self.bases or [None] * len(network.network))
        found = []
        for number in range(0, len(layers), 2):
            with torch.no_grad():
                inputs = network.network[:number](x).double().numpy()
            threshold = self.values.hidden_threshold if number else self.values.input_threshold
            columns = np.column_stack([inputs, np.ones(len(inputs))]).T
            found.append(grown_basis(next(known), columns, threshold + network.task * self.values.threshold_growth))
        self.bases = found


def grown_basis(basis: Vector | None, inputs: Vector, threshold: float) -> Vector:
    """The basis [k, r] of earlier tasks with directions of inputs [k, n], until both have the share of their energy."""
    basis = np.zeros((len(inputs), 0)) if basis is None else basis
    left = inputs - basis @ (basis.T @ inputs)
    directions, sizes, _ = np.linalg.svd(left)
    total, count = np.linalg.norm(inputs) ** 2, 0
    covered = max(0.0, (total - np.linalg.norm(left) ** 2) / total)
    while covered < threshold and count < len(sizes) and sizes[count] > 1e-6 * total**0.5:
        covered += sizes[count] ** 2 / total
        count += 1
    return np.column_stack([basis, directions[:, :count]])


def gem_direction(g: Vector, references: list[Vector], margin: float) -> Vector:
    """GEM's projection with a general solver: min ½ v'Pv + q'v, v >= margin, by sequential least squares."""
    from scipy.optimize import nnls

    rows = np.stack(references)
    if (rows @ g >= 0).all():
        return g
    matrix, linear = rows @ rows.T + 1e-3 * np.eye(len(rows)), rows @ g
    # With v = margin + u and P = RᵀR: ½ u'Pu + (q + P·margin)'u = ½ ‖R u − b‖² + const, Rᵀb = −(q + P·margin), u >= 0.
    upper = np.linalg.cholesky(matrix).T
    target = np.linalg.solve(upper.T, -(linear + margin * matrix.sum(axis=1)))
    return g + rows.T @ (margin + nnls(upper, target)[0])
