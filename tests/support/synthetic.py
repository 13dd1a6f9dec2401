"""Records and studies made up for tests: A_T is a parabola of ε with its top at `peak`, plus noise that a
seed shares over all ε.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np

from results.ledger.record import RunRecord
from results.metrics import average_accuracy
from results.search import SearchResults, SearchRound
from tests.support.limits import HANGS

ROOT = Path(__file__).parents[2]
DAY = "2025-11-21T00:00:00+00:00"


def accuracies(epsilon: float, seed: int, tasks: int, peak: float) -> np.ndarray:
    """[T, T] with NaN above the first superdiagonal."""
    shared = np.random.default_rng(seed)
    own = np.random.default_rng([seed, round(epsilon * 1e9), tasks])
    level = 0.93 - (0.012 if epsilon == 0 else 0.25 * (epsilon - peak) ** 2) + 0.003 * shared.standard_normal()
    k, j = np.indices((tasks, tasks))
    forgotten = np.clip(k - j, 0, None) * (0.006 + 0.02 * (epsilon - peak) ** 2)
    a = level - forgotten + 0.002 * own.standard_normal((tasks, tasks))
    a[j > k] = 0.1 + 0.02 * own.standard_normal(int((j > k).sum()))
    a[j > k + 1] = np.nan
    return np.clip(a, 0.0, 1.0)


def record(
    epsilon: float = 0.1,
    seed: int = 0,
    tasks: int = 3,
    phase: str = "cv",
    peak: float = 0.12,
    diverged: bool = False,
) -> RunRecord:
    """One member; a diverged one measured only its first task."""
    a = accuracies(epsilon, seed, tasks, peak)
    within = np.linspace(0.1, 0.6, 11) + np.zeros((tasks, 1))
    violations = np.full(tasks, 0.3)
    violations[0] = np.nan
    if diverged:
        a[1:] = np.nan
        within[1:] = np.nan
    content = {
        "dataset": "permuted_mnist",
        "method": "soft_agem",
        "tasks": tasks,
        "phase": phase,
        "epsilon": epsilon,
        "seed": seed,
        "network": {"hidden": [256, 256], "lr": 0.1},
    }
    return RunRecord(
        key=hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest(),
        phase=phase,
        method="soft_agem",
        epsilon=epsilon,
        seed=seed,
        accuracies=a,
        initial=np.full(tasks, 0.1),
        within=within,
        violations=violations,
        status="diverged" if diverged else "ok",
        diverged_task=1 if diverged else None,
        diverged_step=17 if diverged else None,
        steps=5500 * tasks,
        seconds=1.5,
        content=content,
        created=DAY,
        fingerprint=hashlib.sha256(a.tobytes()).hexdigest(),
        cohort=f"cohort-{seed}",
    )


@cache  # dozens of tests look at the same one
def study(
    repeats: int = 5,
    points: int = 11,
    seeds: int = 5,
    tasks: int = 3,
    evaluated: bool = True,
    score_on: str = "cv",
    diverged: tuple[float, ...] = (),
    peak: float = 0.12,
    eval_tasks: int = 17,
) -> SearchResults:
    """A whole search by the paper's narrowing rule, and the evaluation of its best ε."""
    members: dict[tuple[float, int], RunRecord] = {}
    rounds, low, high = [], 0.0, 1.0
    for number in range(1, repeats + 1):
        delta = (high - low) / (points - 1)
        grid = tuple(round(low + i * delta, 12) for i in range(points))
        for epsilon in grid:
            for seed in range(seeds):
                members[epsilon, seed] = record(
                    epsilon, seed, tasks, score_on, peak, diverged=epsilon in diverged and seed == 0
                )
        scores = tuple(
            None
            if e in diverged
            else float(np.mean([average_accuracy(members[e, s].accuracies) for s in range(seeds)]))
            for e in grid
        )
        p, q = sorted(range(points), key=lambda i: -1.0 if scores[i] is None else float(scores[i]), reverse=True)[:2]
        rounds.append(SearchRound(number, tuple((e,) for e in grid), scores, (low, high), (p, q), ""))
        i, j = min(p, q), max(p, q)
        low, high = grid[max(i - 1, 0)], grid[min(j + 1, points - 1)]
    value, chosen = max((s, e) for r in rounds for s, (e,) in zip(r.scores, r.points, strict=True) if s is not None)
    search = tuple(members.values())
    if score_on == "eval":
        evaluation = tuple(r for r in search if r.epsilon in (0.0, chosen))
    else:
        evaluation = tuple(
            record(e, s, eval_tasks, "eval", peak) for e in dict.fromkeys((chosen, 0.0)) for s in range(seeds)
        )
    return SearchResults(
        name="demo",
        dataset="permuted_mnist",
        method="soft_agem",
        score_on=score_on,
        printed_epsilon=0.07185,
        chosen=(chosen,),
        chosen_score=value,
        baseline=(0.0,),
        domain=((0.0, 1.0),),
        limits={"epsilon": (0.0, 1.0)},
        seeds=tuple(range(seeds)),
        eval_seeds=tuple(range(seeds)),
        rounds=tuple(rounds),
        search=search,
        evaluation=evaluation if evaluated else (),
        config={
            "dataset": "permuted_mnist",
            "method": "soft_agem",
            "strategy": {"name": "narrowing", "points": points, "repeats": repeats},
            "seeds": tuple(range(seeds)),
        },
        facts={"Machine": "2 cores", "torch": "2.8.0", "Wall time": "41 s"},
        notes=(),
    )


def process(url: str, *lines: str) -> subprocess.Popen[str]:
    """Another Python process with `store` open and `record` at hand; it waits for locks as long as it must."""
    start = ["import sys", "from tests.support.synthetic import record"]
    patient = ["from results.ledger.dialects import sqlite", f"sqlite.BUSY_SECONDS = {HANGS}"]
    opened = ["from results.ledger.store import Store", f"store = Store.open({url!r})"]
    code = "\n".join([*start, *patient, *opened, *lines])
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, text=True, **pipes)
