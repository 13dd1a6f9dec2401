"""Records and rows of eleven methods made up for tests: values near those of the paper's Permuted MNIST table."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from results.ledger.record import RunRecord
from results.table import TableResults, TableRow
from tests.support.synthetic import record

# label, method, settings, (accuracy after learning, forgotten share after 16 more tasks)
METHODS = (
    ("VAN", "van", {"lr": 0.1}, 0.962, 0.52),
    ("EWC", "ewc", {"lr": 0.1, "λ": 10}, 0.957, 0.31),
    ("PI", "pi", {"lr": 0.1, "λ": 0.1}, None, None),
    ("MAS", "mas", {"lr": 0.1, "λ": 0.1}, 0.952, 0.27),
    ("RWALK", "rwalk", {"lr": 0.1, "λ": 1}, 0.931, 0.072),
    ("ER, reference batch 256", "er", {"lr": 0.1}, 0.942, 0.04),
    ("ER, reference batch 10", "er", {"lr": 0.1}, 0.951, 0.09),
    ("A-GEM", "agem", {"lr": 0.1}, 0.96, 0.067),
    ("A-A-GEM", "a_agem", {"lr": 0.1}, 0.958, 0.11),
    ("A-A-GEM (raw average)", "a_agem", {"lr": 0.1, "scale": "raw"}, 0.957, 0.05),
    ("ε-SOFT-GEM, ε = 0.07185", "soft_agem", {"lr": 0.1}, 0.951, 0.041),
    ("GEM", "gem", {"lr": 0.1, "margin": 0.5}, 0.95, 0.035),
    ("PROGNN", "prognn", {"lr": 0.1}, 0.935, 0.0),
)


def member(
    method: str, seed: int, learned: float = 0.95, lost: float = 0.05, tasks: int = 17, diverged: bool = False
) -> RunRecord:
    """One member on the evaluation stream; forgetting grows with the square root of the tasks since."""
    rng = np.random.default_rng([seed, *method.encode(), tasks, round(1e4 * learned), round(1e4 * lost)])
    k, j = np.indices((tasks, tasks))
    age = np.clip(k - j, 0, None) / 16
    level = 0.002 * np.random.default_rng(seed).standard_normal() - 0.08 * lost * rng.standard_normal() * age
    a = (
        learned
        + level
        - 1.5 * lost * np.sqrt(age)
        + 0.004 * rng.standard_normal((tasks, tasks)) * (0.5 if lost else 0.05)
    )
    a[j > k] = 0.105 + 0.02 * rng.standard_normal(int((j > k).sum()))
    a[j > k + 1] = np.nan
    b = np.arange(11) / 10
    speed = 0.1 + (0.15 + 0.4 * learned - 0.3 * lost) * np.sqrt(b) + 0.01 * rng.standard_normal((tasks, 11))
    plain = record(0.0, seed, tasks, "eval", diverged=diverged)
    content = {**plain.content, "method": method, "learned": learned, "lost": lost}
    return replace(
        plain,
        key=hashlib.sha256(repr(content).encode()).hexdigest(),
        method=method,
        accuracies=plain.accuracies if diverged else np.clip(a, 0, 1),
        within=plain.within if diverged else np.clip(speed, 0, 1),
        content=content,
    )


def compared_row(
    label: str = "A-GEM", method: str = "agem", seeds: int = 3, diverged: int = 0, learned: float = 0.95
) -> TableRow:
    """A row of `seeds` members, the first `diverged` of them diverged."""
    members = tuple(member(method, s, learned, diverged=s < diverged) for s in range(seeds))
    return TableRow(label, method, {"lr": 0.1}, members)


def comparison(
    *rows: TableRow, dataset: str = "permuted_mnist", comparable: bool = True, seeds: int = 3
) -> TableResults:
    """A comparison of these rows, or of all methods."""
    return TableResults(
        name="demo",
        dataset=dataset,
        rows=rows or tuple(_full_row(*values, seeds) for values in METHODS),  # type: ignore[arg-type]
        config={"dataset": dataset, "seeds": tuple(range(seeds)), "sizes": {"train": 55000, "test": 10000}},
        facts={"Machine": "8 cores", "torch": "2.8.0", "Wall time": "2 h 41 min"},
        notes=(),
        comparable=comparable,
    )


def memory_study(comparable: bool = True, seeds: int = 3, dataset: str = "permuted_mnist") -> TableResults:
    """Three methods with three sizes of memory each."""
    methods = (("A-GEM", "agem", 0.07), ("A-A-GEM", "a_agem", 0.05), ("ε-SOFT-GEM, ε = 0.07185", "soft_agem", 0.045))
    rows = tuple(
        TableRow(
            label,
            method,
            {"lr": 0.1},
            tuple(member(method, s, 0.955 - 1e-4 * memory, lost / (memory / 25) ** 0.4) for s in range(seeds)),
            memory,
        )
        for label, method, lost in methods
        for memory in (25, 50, 100)
    )
    return TableResults("demo", dataset, rows, {"dataset": dataset}, {"Machine": "8 cores"}, (), comparable)


def _full_row(
    label: str, method: str, settings: dict[str, object], learned: float | None, lost: float | None, seeds: int
) -> TableRow:
    remark = "Trained with half of the test images." if method == "prognn" else ""
    if learned is None or lost is None:
        members = tuple(member(method, s, diverged=True) for s in range(seeds))
    else:
        members = tuple(member(method, s, learned, lost) for s in range(seeds))
    return TableRow(label, method, settings, members, remark=remark)
