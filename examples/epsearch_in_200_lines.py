"""The search for ε of ε-SOFT-GEM in one file: permuted digits, A-GEM, interval narrowing, and a verdict.

    uv run python examples/epsearch_in_200_lines.py --tasks 5 --examples-per-task 400 --points 5 --repeats 2 --seeds 3

It draws the same tasks, networks, batches and memories as epsearch. Up to rounding, its numbers are those of

    uv run epsearch run --choose tried --tasks 5 --examples-per-task 400 --points 5 --repeats 2 --seeds 3

Rounding decides a test image here and there, more of them after many steps; so it does between two processors.

Left out: resuming, parallel training, other methods and strategies, runs that diverge, confidence intervals, reports.
"""

import argparse
import zlib
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import product

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import one_hot, softplus


@dataclass(frozen=True)
class Settings:
    """The defaults are those of `epsearch run --dataset permuted_digits`."""

    tasks: int = 20
    cv_tasks: int = 3  # ε is chosen on these first tasks (cross-validation), and evaluated on the others
    examples_per_task: int = 1442  # training images
    seeds: int = 6
    points: int = 11  # N, values of ε in a grid
    repeats: int = 4  # M, grids
    batch_size: int = 10
    lr: float = 0.03
    memory: int = 25  # images stored of each class and task
    memory_batch: int = 40  # images drawn from the memory at each step


Ledger = dict[tuple[range, float, int], float]  # (tasks, ε, seed) -> A_T, a fraction


def generator(seed: int, purpose: str, task: int) -> np.random.Generator:
    """Makes the generator of one random choice: no choice depends on ε, so all ε of a seed see the same examples."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode()), task])


def load_images() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Loads pixels [1797, 64] in [0, 1], labels [1797], and which are for testing: every fifth image of a class."""
    pixels, labels = load_digits(return_X_y=True)
    test = np.zeros(len(labels), dtype=bool)
    for label in range(10):
        test[np.flatnonzero(labels == label)[4::5]] = True
    return torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(labels), torch.tensor(test)


PIXELS, LABELS, TEST = load_images()


def load_task(seed: int, task: int, examples: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the training inputs and labels of a task in the order of training, and its test inputs and labels."""
    pixels = PIXELS[:, generator(seed, "permutation", task).permutation(64)]
    order = generator(seed, "order", task).permutation(int((~TEST).sum()))[:examples]
    return pixels[~TEST][order], LABELS[~TEST][order], pixels[TEST], LABELS[TEST]


def choose_for_memory(seed: int, task: int, labels: torch.Tensor, per_class: int) -> np.ndarray:
    """Draws the examples of a finished task that are stored: so many of each class, without replacement."""
    rng = generator(seed, "memory", task)
    classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return np.concatenate([np.sort(rng.permutation(members)[:per_class]) for members in classes])


def make_network(seed: int, first_task: int) -> torch.nn.Sequential:
    """Makes a perceptron 64-256-256-10: weights truncated normal (σ = 0.1, cut at 2σ), biases 0.1, as in A-GEM."""
    rng = generator(seed, "init", first_task)
    linears = [torch.nn.Linear(64, 256), torch.nn.Linear(256, 256), torch.nn.Linear(256, 10)]
    for linear in linears:
        values = rng.standard_normal(linear.weight.shape, dtype=np.float32)
        while (outside := np.abs(values) > 2).any():
            values[outside] = rng.standard_normal(int(outside.sum()), dtype=np.float32)
        linear.weight.data = torch.from_numpy(values * np.float32(0.1))
        linear.bias.data.fill_(0.1)
    return torch.nn.Sequential(linears[0], torch.nn.ReLU(), linears[1], torch.nn.ReLU(), linears[2])


def gradient(network: torch.nn.Sequential, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Computes the gradient [D] of the mean cross-entropy by all parameters."""
    logits = network(inputs)
    # log(1 + Σ exp(z_c − z_y)) over the wrong classes c. torch's cross_entropy has the gradient p_y − 1 at the label y,
    # which is rounding noise once p_y is almost 1, as on a memory that is fitted; ε-SOFT-GEM divides by its norm.
    margins = (logits - logits.gather(1, labels[:, None])).masked_fill(one_hot(labels, 10).bool(), -torch.inf)
    parts = torch.autograd.grad(softplus(margins.logsumexp(1)).mean(), list(network.parameters()))
    return torch.cat([part.reshape(-1) for part in parts])


def direction(g: torch.Tensor, g_ref: torch.Tensor, epsilon: float) -> torch.Tensor:
    """Projects the gradient g where it conflicts with g_ref, the gradient on the memory (ε-SOFT-GEM, Algorithm 1)."""
    if g @ g_ref >= 0 or g.norm() < 1e-15 or g_ref.norm() < 1e-15:
        return g
    if epsilon == 0:  # A-GEM: the nearest vector that has no component against g_ref
        return g - (g @ g_ref) / (g_ref @ g_ref) * g_ref
    g, g_ref = g / g.norm(), g_ref / g_ref.norm()  # unit vectors from here on, and so is the step's scale
    return g - (g @ g_ref - epsilon) * g_ref  # its product with g_ref is ε


def train(tasks: range, epsilon: float, seed: int, settings: Settings) -> float:
    """Trains a new network on the tasks, one after the other, and returns its mean test accuracy on them, A_T."""
    network, tests = make_network(seed, tasks.start), []
    memory = (torch.empty(0, 64), torch.empty(0, dtype=torch.int64))
    for task in tasks:
        inputs, labels, *test = load_task(seed, task, settings.examples_per_task)
        tests.append(test)
        draw, stored = generator(seed, "reference", task), len(memory[1])
        for start in range(0, len(labels), settings.batch_size):
            batch = slice(start, start + settings.batch_size)
            step = gradient(network, inputs[batch], labels[batch])
            if stored:  # not in the first task, which is plain SGD
                size = min(stored, settings.memory_batch)
                rows = draw.choice(stored, size, replace=False, shuffle=False)
                step = direction(step, gradient(network, memory[0][rows], memory[1][rows]), epsilon)
            parameters = torch.nn.utils.parameters_to_vector(network.parameters()).detach()
            torch.nn.utils.vector_to_parameters(parameters - settings.lr * step, network.parameters())
        kept = choose_for_memory(seed, task, labels, settings.memory)
        memory = (torch.cat([memory[0], inputs[kept]]), torch.cat([memory[1], labels[kept]]))
    with torch.no_grad():
        return float(np.mean([(network(x).argmax(1) == y).double().mean() for x, y in tests]))


def narrow(scores: list[float]) -> tuple[int, int] | None:
    """Returns the indices of the ends of the next interval: the best two points, each with a neighbour beyond.

    None stops the search. Ties go to the smaller ε as the best, and to its neighbour as the second best.
    """
    last = len(scores) - 1
    best = min(range(last + 1), key=lambda i: (-scores[i], i))
    second = min({*range(last + 1)} - {best}, key=lambda i: (-scores[i], abs(i - best) != 1, i))
    low, high = min(best, second), max(best, second)
    if (low, high) == (0, last):  # the rule of the paper: the two ends say nothing about what is between them
        return None
    span = (max(low - 1, 0), min(high + 1, last))
    if span == (0, last):  # the same interval again, of which the paper says nothing: best ± one step
        span = (max(best - 1, 0), min(best + 1, last))
    return None if span == (0, last) else span


def search(settings: Settings) -> tuple[float, Ledger]:
    """Chooses ε on the first tasks and evaluates it and A-GEM on the others; returns ε and all results."""
    ledger: Ledger = {}

    def scores(tasks: range, epsilon: float) -> list[float]:
        for seed in range(settings.seeds):
            if (tasks, epsilon, seed) not in ledger:  # nothing is trained twice
                ledger[tasks, epsilon, seed] = train(tasks, epsilon, seed, settings)
        return [ledger[tasks, epsilon, seed] for seed in range(settings.seeds)]

    first, others = range(settings.cv_tasks), range(settings.cv_tasks, settings.tasks)
    means: dict[float, float] = {}
    low, high = Fraction(0), Fraction(1)  # exact, so that a point of two grids has one key in the ledger
    for _ in range(settings.repeats):
        delta = (high - low) / (settings.points - 1)
        grid = [float(low + i * delta) for i in range(settings.points)]
        means |= {epsilon: float(np.mean(scores(first, epsilon))) for epsilon in grid}
        if (span := narrow([means[epsilon] for epsilon in grid])) is None:
            break
        low, high = low + span[0] * delta, low + span[1] * delta
    chosen = min(means, key=lambda epsilon: (-means[epsilon], epsilon))
    scores(others, chosen)
    scores(others, 0.0)
    return chosen, ledger


def verdict(chosen: float, ledger: Ledger, settings: Settings) -> str:
    """Says in two sentences which ε was chosen, and whether it is better than A-GEM on tasks that did not choose it."""
    first, others = range(settings.cv_tasks), range(settings.cv_tasks, settings.tasks)
    a, b, c = (
        np.array([100 * ledger[tasks, epsilon, seed] for seed in range(settings.seeds)])
        for tasks, epsilon in ((first, chosen), (others, chosen), (others, 0.0))
    )
    choice = f"The search chose ε = {chosen:.6g}, with A_T {a.mean():.2f} % on the first {len(first)} tasks."
    if chosen == 0:
        return f"{choice} That is A-GEM, which reaches {c.mean():.2f} % on the other {len(others)} tasks."
    # Exact sign-flip test: were the two equal, each seed's difference could as well have the other sign.
    flips = np.array(list(product((-1, 1), repeat=settings.seeds))) @ (b - c)
    p = np.mean(np.abs(flips) >= abs((b - c).sum()) * (1 - 1e-12))
    return (
        f"{choice} On the other {len(others)} tasks it reaches {b.mean():.2f} %, {(b - c).mean():+.2f} points from "
        f"A-GEM's {c.mean():.2f} %, higher in {(b > c).sum()} of {settings.seeds} seeds (p = {p:.3g})."
    )


if __name__ == "__main__":
    torch.set_num_threads(1)  # the matrices are so small that more are slower
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in fields(Settings):
        parser.add_argument("--" + field.name.replace("_", "-"), type=type(field.default), default=field.default)
    chosen_settings = Settings(**vars(parser.parse_args()))
    print(verdict(*search(chosen_settings), chosen_settings))
