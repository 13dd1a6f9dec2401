"""Studies of protocols made up for tests: A_T falls with the distance to a best value, by a slope of each order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from results.ledger.record import RunRecord
from results.protocols import Cost, Evidence, ProtocolResults, ProtocolRow, Schedule
from tests.support.synthetic import record

CANDIDATES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
BEST = 0.1
STEPS = 600
"""SGD steps of a member."""


def judged(
    schedule: Schedule, order: int, seed: int, tasks: int = 5, diverged: bool = False, inside: bool = False
) -> RunRecord:
    """One member on the evaluation stream; the same choice in the same order and seed is the same member."""
    content = {"schedule": [list(pair) for pair in schedule], **({"order": order} if order else {})}
    key = hashlib.sha256(f"{schedule} {order} {seed} {diverged}".encode()).hexdigest()
    values = [value for _, value in schedule]
    loss = float(np.mean([0.1 * abs(value - BEST) for value in values])) - 0.004 * (len(schedule) - 1)
    rng = np.random.default_rng([order, seed])
    own = np.random.default_rng([order, *key.encode()[:4]])
    level = 0.9 + 0.01 * rng.standard_normal() - loss * (1 + 0.3 * np.random.default_rng([order, 7]).standard_normal())
    plain = record(0.0, seed, tasks, "eval", diverged=diverged)
    k, j = np.indices((tasks, tasks))
    a = np.where(j <= k, level - 0.01 * (k - j) + 0.002 * own.standard_normal((tasks, tasks)), np.nan)
    points = np.array([[t, 10, *np.where(np.arange(tasks) <= t, level - 0.02, np.nan)] for t in range(tasks)])
    return replace(
        plain,
        key=key,
        epsilon=values[0],
        accuracies=plain.accuracies if diverged else np.clip(a, 0, 1),
        steps=STEPS // 2 if diverged else STEPS,
        content={**plain.content, **content},
        inside=points if inside and not diverged else None,
    )


def protocol(
    name: str,
    choices: Sequence[Schedule],
    seeds: int = 3,
    evidence: tuple[int, int, int] = (400, 1000, 0),
    bound: bool = False,
    steps: float = 11.0,
    remark: str = "",
    trained: bool = True,
    inside: bool = False,
    diverged: int = 0,
) -> ProtocolRow:
    """A protocol with a choice for each order; steps: of its cost, relative to the training that is judged.

    diverged: how many of its first members are.
    """
    members = [
        judged(choice, order, seed, diverged=order * seeds + seed < diverged, inside=inside)
        for order, choice in enumerate(choices)
        for seed in range(seeds)
    ]
    cost = Cost(steps * seeds * STEPS, 1e9 * steps * seeds * STEPS, 1 << 20 if steps else 0)
    return ProtocolRow(
        name=name,
        title=name.replace("-", " "),
        sees=f"{name.replace('-', ' ').capitalize()} sees what its name says.",
        source="Lee et al. 2024, arXiv 2404.06466",
        per_task=any(len(choice) > 1 for choice in choices),
        bound=bound,
        evidence=Evidence(*evidence),
        choices=dict(enumerate(choices)),
        records=tuple(members) if trained else (),
        cost=dict.fromkeys(range(len(choices)), cost),
        remark=remark,
    )


def always(*values: float) -> list[Schedule]:
    """Choices that stay: a value for each order."""
    return [((0, value),) for value in values]


def protocols(
    *rows: ProtocolRow, orders: int = 5, seeds: int = 3, diverged: tuple[float, ...] = (), log: bool = False
) -> ProtocolResults:
    """A study of these protocols, or of six; diverged: candidates whose first member is."""
    candidates = CANDIDATES[1:] if log else CANDIDATES
    constants = {
        value: tuple(
            judged(((0, value),), order, seed, diverged=value in diverged and not order and not seed)
            for order in range(orders)
            for seed in range(seeds)
        )
        for value in candidates
    }
    return ProtocolResults(
        name="demo",
        dataset="permuted_mnist",
        method="soft_agem",
        parameter="epsilon",
        log=log,
        candidates=candidates,
        constants=constants,
        rows=rows or usual(orders, seeds),
        config={"dataset": "permuted_mnist", "orders": orders, "seeds": tuple(range(seeds))},
        facts={"Machine": "8 cores", "torch": "2.8.0"},
        notes=(),
    )


def usual(orders: int = 5, seeds: int = 3) -> tuple[ProtocolRow, ...]:
    """Six protocols: one bound among them, one that peeks, one that misleads, two that choose per task."""
    later = [((0, 0.05), (2 + order % 2, 0.2), (4, 0.1)) for order in range(orders)]
    greedy = [((0, 0.05), (1, 0.1), (3, 0.05), (4, 0.1)) for _ in range(orders)]
    near = [BEST if order % 3 else 0.05 for order in range(orders)]
    misled = "A memory replays the first task alone, so it says nothing about forgetting."
    return (
        protocol("library-default", always(*[0.5] * orders), seeds, (0, 1000, 0), steps=0.0),
        protocol("hindsight", greedy, seeds, (1000, 1000, 1000), bound=True, steps=30.0),
        protocol("first-task", always(*[1.0 if order % 2 else 0.5 for order in range(orders)]), seeds, remark=misled),
        protocol("cv-tasks", always(*near), seeds, steps=3.2),
        protocol("end-of-training-on-test", always(*[BEST] * orders), seeds, (1000, 1000, 1000), steps=6.0),
        protocol("current-task-validation", later, seeds, steps=7.0),
    )
