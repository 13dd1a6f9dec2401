"""Studies of other hyperparameters than ε: A_T falls with the distance of each value from its best, on its own axis."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from results.ledger.record import RunRecord
from results.metrics import average_accuracy
from results.points import Point, Value
from results.search import SearchResults, SearchRound
from tests.support.synthetic import record, study

BEST: dict[str, Value] = {"lr": 0.1, "strength": 10.0, "epsilon": 0.12, "memory": 25, "scale": "raw"}
IN_CONFIG = {"lr": "learning_rate"}


def member(
    names: Sequence[str], point: Point, seed: int, tasks: int = 3, phase: str = "cv", diverged: bool = False
) -> RunRecord:
    """One member with these values; of ε = 0, as A-GEM is stored: without what it does not use."""
    values = dict(zip(names, point, strict=True))
    cost = sum(_cost(name, value) for name, value in values.items())
    epsilon = float(values.get("epsilon", 0.0))
    plain = record(0.12, seed, tasks, phase, diverged=diverged)
    config = {IN_CONFIG.get(n, n): v for n, v in values.items() if n not in ("epsilon", "strength")}
    method = "agem" if "epsilon" in values and epsilon == 0 else "soft_agem" if "epsilon" in values else "ewc"
    if method == "agem" and "scale" in config:
        config["scale"] = None
    content = {"method": method, "seed": seed, "tasks": tasks, "phase": phase, "epsilon": epsilon, "config": config}
    content |= {"strength": values["strength"]} if "strength" in values else {}
    key = hashlib.sha256(repr((content, diverged)).encode()).hexdigest()
    rng = np.random.default_rng(int(key[:8], 16))
    a = np.clip(plain.accuracies - cost + 0.002 * rng.standard_normal(plain.accuracies.shape), 0, 1)
    return replace(plain, key=key, method=method, epsilon=epsilon, accuracies=a, content=content)


def search(
    names: tuple[str, ...],
    points: Sequence[Point],
    baseline: Point | None = None,
    strategy: str = "grid",
    batch: int = 0,
    seeds: int = 3,
    log: tuple[str, ...] = (),
    diverged: Sequence[Point] = (),
    evaluated: bool = True,
) -> SearchResults:
    """A search in batches of `batch` settings (0: all in one) and the evaluation of its best."""
    by_key: dict[str, RunRecord] = {}
    rounds: list[SearchRound] = []
    size = batch or len(points)
    for number, start in enumerate(range(0, len(points), size), start=1):
        part = tuple(points[start : start + size])
        groups = [[member(names, s, i, diverged=s in diverged and i == 0) for i in range(seeds)] for s in part]
        by_key |= {r.key: r for group in groups for r in group}
        scores = [
            None
            if any(r.status != "ok" for r in group)
            else float(np.mean([average_accuracy(r.accuracies) for r in group]))
            for group in groups
        ]
        rounds.append(SearchRound(number, part, tuple(scores), None, None, ""))
    scored = [(v, s) for r in rounds for v, s in zip(r.scores, r.points, strict=True) if v is not None]
    value, chosen = max(scored, key=lambda pair: pair[0])
    evaluation = [member(names, s, i, 17, "eval") for s in dict.fromkeys((chosen, baseline)) if s for i in range(seeds)]
    return replace(
        study(repeats=1, points=3, seeds=1),
        method="soft_agem" if "epsilon" in names else "ewc",
        parameters=names,
        log=log,
        strategy=strategy,
        chosen=chosen,
        chosen_score=value,
        baseline=baseline,
        domain=tuple(_domain(points, i) for i in range(len(names))),
        rounds=tuple(rounds),
        search=tuple(by_key.values()),
        evaluation=tuple(evaluation) if evaluated else (),
        seeds=tuple(range(seeds)),
        eval_seeds=tuple(range(seeds)),
        config={"dataset": "permuted_mnist", "strategy": strategy},
    )


def learning_rates(**more: object) -> SearchResults:
    """Seven learning rates from 0.001 to 1, evenly on a logarithmic axis."""
    rates = [(float(f"{10**x:.12g}"),) for x in np.linspace(-3, 0, 7)]
    return search(("lr",), rates, (0.1,), log=("lr",), **more)  # type: ignore[arg-type]


def mixed(**more: object) -> SearchResults:
    """ε, the learning rate, the memory and the scale, drawn at random."""
    rng = np.random.default_rng(5)
    points = [
        (
            float(rng.uniform(0, 0.5)),
            float(10 ** rng.uniform(-2, 0)),
            int(rng.integers(5, 60)),
            str(rng.choice(["raw", "unit"])),
        )
        for _ in range(23)
    ]
    names = ("epsilon", "lr", "memory", "scale")
    return search(
        names, [*points, (0.1, 0.1, 27, "raw"), (0.0, 0.1, 25, "raw")], strategy="tpe", batch=5, log=("lr",), **more
    )  # type: ignore[arg-type]


def _cost(name: str, value: Value) -> float:
    best = BEST[name]
    if isinstance(value, str) or isinstance(best, str):
        return 0.0 if value == best else 0.02
    if name == "epsilon":
        return 0.25 * (value - best) ** 2
    return 0.03 * math.log10(value / best) ** 2


def _domain(points: Sequence[Point], i: int) -> tuple[float, float] | None:
    values = [s[i] for s in points]
    numbers = [float(v) for v in values if not isinstance(v, str)]
    return (min(numbers), max(numbers)) if len(numbers) == len(values) else None
