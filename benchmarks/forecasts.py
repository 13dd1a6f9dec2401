"""Judges what few tasks say about many, on the matrices of benchmarks/along.py: regret, coverage, "cannot tell".

    uv run python benchmarks/forecasts.py

A search has k tasks, three seeds and all values of a row of benchmarks/along.yaml; what it chooses is judged by A_T of
the evaluation, whose tasks are others. Writes benchmarks/results/forecasts.json, of which benchmarks/page.py makes
docs/along.md.
"""

import itertools
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
import numpy as np
from along import STAGES, Row, identity, rows, unpacked
from machine import Figures

from epsearch.loop.strategy_driver.prediction import search_stages
from epsearch.study.kinds import Search
from results.files import write_atomically
from results.statistics.extrapolation import INDIFFERENCE, Extrapolation
from search_spaces.space import Parameter, Point, Space

SEEN = (3, 4, 5, 10)
"""k: tasks of a search."""
SEEDS, MOST = 3, 4
"""Seeds of a search, and so many searches of different seeds."""
FIRST, FURTHER = 4, (5, 10)
"""Tasks that all values of a search along tasks see, and the most that some may see."""
Rule = Callable[[np.ndarray, int], np.ndarray]
"""rule(accuracies [K, S, k, k], T): predicted A_T [K]."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A member as a search reads it; each is its own key of what is computed once."""

    accuracies: np.ndarray


class Stream(NamedTuple):
    """A row with all that is measured; only values of which no member diverged."""

    row: Row
    values: tuple[float, ...]
    search: np.ndarray
    """[K, S, k, k] accuracies."""
    truth: np.ndarray
    """[K, R] A_T of the evaluation, accuracy."""
    tasks: int
    """T."""

    @property
    def x(self) -> np.ndarray:
        """The values [K, 1] in the unit interval of their axis."""
        along = np.array(self.values) if self.row.method == "soft_agem" else np.log(self.values)
        return np.asarray((along - along[0]) / (along[-1] - along[0]))[:, None]


def streams(figures: Figures) -> Iterator[Stream]:
    """Yields rows whose evaluation has two seeds or more, and whose search has as many as a search takes."""
    stored = {identity(one): unpacked(one["accuracies"]) for one in figures["members"]}
    for row in rows():
        whole = {
            stage: [
                seed
                for seed in range(row.first_seed, row.first_seed + row.seeds)
                if all((row.name, stage, seed, value) in stored for value in row.values)
            ]
            for stage in STAGES
        }
        elsewhere = evaluated(row)
        if len(whole["search"]) < SEEDS or (elsewhere is None and len(whole["evaluation"]) < 2):
            continue
        search, evaluation = (
            np.array([[stored[row.name, stage, seed, value] for seed in whole[stage]] for value in row.values])
            for stage in STAGES
        )
        truth = evaluation[:, :, -1].mean(axis=2) if elsewhere is None else elsewhere
        there = ~(np.isnan(search[:, :, -1]).any(axis=(1, 2)) | np.isnan(truth).any(axis=1))
        values = tuple(itertools.compress(row.values, there))
        yield Stream(row, values, search[there], truth[there], row.evaluation[1])


def evaluated(row: Row) -> np.ndarray | None:
    """A_T [K, R] from the results that the row names; None where it names none."""
    if row.truth is None:
        return None
    members = json.loads((machine.RESULTS / f"{row.truth}.json").read_text(encoding="utf-8"))["members"]
    own = {"phase": "eval", "tasks": row.evaluation[1], "images": row.images, "formula": "exact"}
    own |= {"dataset": row.dataset}
    by = {
        (one["epsilon"], one["seed"]): one["A_T"]
        for one in members
        if all(one.get(name, value) == value for name, value in own.items())
    }
    seeds = sorted({seed for _, seed in by})
    return np.array([[by[value, seed] for seed in seeds] for value in row.values], float) / 100


def plain(a: np.ndarray, tasks: int) -> np.ndarray:
    """The highest A_k: what a search of today chooses by."""
    return np.asarray(a[:, :, -1].mean(axis=(1, 2)))


def line(a: np.ndarray, tasks: int) -> np.ndarray:
    """Forgetting is a line over age, one a value."""
    return _by_age(a, tasks, lambda age: np.stack([np.ones(len(age)), age], axis=1))


def proportional(a: np.ndarray, tasks: int) -> np.ndarray:
    """Forgetting is proportional to age."""
    return _by_age(a, tasks, lambda age: age[:, None])


def root(a: np.ndarray, tasks: int) -> np.ndarray:
    """Forgetting grows as the square root of age."""
    return _by_age(a, tasks, lambda age: np.sqrt(age)[:, None])


def steady(a: np.ndarray, tasks: int) -> np.ndarray:
    """Returns A_T by the loss at the first later task, then one constant rate."""
    k, a = a.shape[-1], a.mean(axis=1)
    first = np.mean([a[:, j, j] - a[:, j + 1, j] for j in range(k - 1)], axis=0)
    rate = np.mean([a[:, i - 1, j] - a[:, i, j] for i in range(2, k) for j in range(i - 1)], axis=0)
    learned, age = np.diagonal(a, axis1=1, axis2=2).mean(axis=1), np.arange(tasks)[:, None]
    return np.asarray(learned - np.where(age > 0, first + (age - 1) * rate, 0.0).mean(axis=0))


def trend(a: np.ndarray, tasks: int) -> np.ndarray:
    """A line through A_1…A_k."""
    k, a = a.shape[-1], a.mean(axis=1)
    means = np.array([a[:, i, : i + 1].mean(axis=1) for i in range(k)])
    slope, level = np.polyfit(np.arange(1, k + 1), means, 1)
    return np.asarray(level + slope * tasks)


def _by_age(a: np.ndarray, tasks: int, basis: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Least squares of forgetting [K, pairs] on a basis of age, taken to T tasks."""
    k, a = a.shape[-1], a.mean(axis=1)
    pairs = [(i, j) for i in range(1, k) for j in range(i)]
    lost = np.array([a[:, j, j] - a[:, i, j] for i, j in pairs])
    weights = np.linalg.lstsq(basis(np.array([i - j for i, j in pairs], float)), lost, rcond=None)[0]
    learned = np.diagonal(a, axis1=1, axis2=2).mean(axis=1)
    return np.asarray(learned - (basis(np.arange(1.0, tasks)) @ weights).sum(axis=0) / tasks)


RULES: dict[str, Rule] = {
    "highest A_k": plain,
    "line over age": line,
    "proportional to age": proportional,
    "root of age": root,
    "first loss, then a rate": steady,
    "line through A_k": trend,
}
MODEL = "the model"


def judged(stream: Stream, k: int) -> Figures:
    """Returns choices and predictions of searches on k tasks, by every rule and the model; accuracies in points."""
    searches = [stream.search[:, list(seeds), :k, :k] for seeds in picks(stream)]
    forecasts = [Extrapolation.fit(stream.x, search, stream.tasks) for search in searches]
    predicted = {name: [rule(search, stream.tasks) for search in searches] for name, rule in RULES.items()}
    predicted[MODEL] = [one.mean for one in forecasts]
    mean = stream.truth.mean(axis=1)
    rules = {name: scored(mean, each) for name, each in predicted.items()}
    chosen = {name: [int(np.argmax(one)) for one in each] for name, each in predicted.items()}
    # Paired by the evaluation's seeds: what the model's choices are better by than the plain ones.
    better = np.mean(
        [stream.truth[a] - stream.truth[b] for a, b in zip(chosen[MODEL], chosen["highest A_k"], strict=True)], axis=0
    )
    inside = [(one.low <= mean) & (mean <= one.high) for one in forecasts]
    ahead = [mean[one.choice] - mean for one in forecasts]
    apart = [(one.behind_low <= real) & (real <= one.behind_high) for one, real in zip(forecasts, ahead, strict=True)]
    return {
        "tasks seen": k,
        "rules": rules,
        "better": [points(better.mean()), points(better.std(ddof=1) / np.sqrt(len(better)))],
        "covered": round(float(np.mean(inside)), 4),
        "differences covered": round(float(np.sum(apart) - len(apart)) / (len(apart) * (len(mean) - 1)), 4),
        "half width": points(np.median([(one.high - one.low) / 2 for one in forecasts])),
        "half width of differences": points(
            np.median(
                np.concatenate(
                    [(one.behind_high - one.behind_low)[one.behind_high != one.behind_low] / 2 for one in forecasts]
                )
            )
        ),
        # Values that cannot win, by the model, and whether the one that does is among them.
        "ruled out": round(float(np.mean([np.mean(one.behind_low > 0) for one in forecasts])), 4),
        "best ruled out": round(float(np.mean([one.behind_low[mean.argmax()] > 0 for one in forecasts])), 4),
        "unresolved": [
            round(float(np.mean([not one.resolved(size) for one in forecasts])), 4) for size in (0.0, INDIFFERENCE)
        ],
    }


def along(stream: Stream, most: int) -> Figures:
    """Returns what searches along tasks from `FIRST` to at most so many choose, as `--protocol extrapolated` does.

    steps: of all members, in those of a search whose values all see `SEEN[-1]` tasks.
    """
    mean, regrets, steps, unclear = stream.truth.mean(axis=1), [], [], []
    axis = Parameter(stream.row.method, stream.values[0], stream.values[-1], log=stream.row.method != "soft_agem")
    for seeds in picks(stream):
        study = SimpleNamespace(
            space=Space((axis,)),
            units=seeds,
            tasks=FIRST + stream.tasks,
            cv_tasks=FIRST,
            further_tasks=most - FIRST,
        )

        def record_of(point: Point, seed: int, more: int) -> Any:
            k = FIRST + more
            return Trained(stream.search[stream.values.index(point[0]), seed, :k, :k])

        stages, _ = search_stages(cast(Search, study), [(value,) for value in stream.values], record_of)
        regrets.append(mean.max() - mean[stream.values.index(stages[-1].choice[0])])
        trained = FIRST * len(mean) + sum(len(stage.points) for stage in stages[1:])
        steps.append(trained / (SEEN[-1] * len(mean)))
        unclear.append(not stages[-1].resolved)
    return {
        "most": most,
        "regret": points(np.mean(regrets)),
        "worst": points(np.max(regrets)),
        "steps": round(float(np.mean(steps)), 4),
        "unresolved": round(float(np.mean(unclear)), 4),
    }


def picks(stream: Stream) -> list[tuple[int, ...]]:
    """The seeds of each search."""
    return list(itertools.islice(itertools.combinations(range(stream.search.shape[1]), SEEDS), MOST))


def scored(mean: np.ndarray, predicted: list[np.ndarray]) -> Figures:
    """Regrets of the choices by predicted A_T, their error over all values, and their correlation with the truth."""
    regrets = [mean.max() - mean[int(np.argmax(one))] for one in predicted]
    errors = [np.sqrt(np.mean(np.square(one - mean))) for one in predicted]
    return {
        "regret": points(np.mean(regrets)),
        "worst": points(np.max(regrets)),
        "error": points(np.mean(errors)),
        "r": round(float(np.mean([np.corrcoef(one, mean)[0, 1] for one in predicted])), 4),
    }


def points(accuracy: Any) -> float:
    """In percent, to a hundredth of the last digit that is shown."""
    return round(100 * float(accuracy), 4)


def results(figures: Figures) -> Figures:
    """Returns the content of the file: facts of the matrices, and a row for each stream."""
    made = []
    for stream in streams(figures):
        facts = {"stream": stream.row.name, "judge": stream.row.judge, "values": len(stream.values)}
        facts |= {"seeds": stream.search.shape[1], "evaluated": stream.truth.shape[1], "tasks": stream.tasks}
        spread = stream.truth.mean(axis=1)
        facts |= {"gap": points(spread.max() - spread.min()), "searches": [judged(stream, k) for k in SEEN]}
        made.append(facts | {"along": [along(stream, most) for most in FURTHER]})
        print(f"{stream.row.name}: done", flush=True)
    return {"facts": figures["facts"], "members": len(figures["members"]), "streams": made}


def main() -> None:
    figures = json.loads((machine.RESULTS / "along.json").read_text(encoding="utf-8"))
    write_atomically(machine.RESULTS / "forecasts.json", (json.dumps(results(figures), indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
