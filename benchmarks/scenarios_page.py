"""The measured part of docs/scenarios.md, from benchmarks/results/scenarios.json, however much of it is there."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from charts import Range, Series, curves, dark, table
from machine import Figures
from parabola import EPSILONS
from parabola_page import SPACE, origin, with_error
from scenarios import SEEDS, STREAMS, Curve, curve_of

from epsearch.loop.strategy_driver.choice import choose
from results.labels import MISSING, about_text, count_text, number_text
from results.statistics.confidence_set import best_interval
from results.statistics.paired import sign_flip_p
from search_spaces import load_definition

WORDS = {"task": "task-incremental", "domain": "domain-incremental", "class": "class-incremental"}


class Part(NamedTuple):
    """The whole curves of a stream."""

    dataset: str
    scenario: str
    seeds: tuple[int, ...]
    scores: dict[str, np.ndarray]
    """Metric -> [values of ε, seeds]; NaN where a member diverged."""

    @property
    def title(self) -> str:
        return f"{load_definition(self.dataset).title}, {WORDS[self.scenario]}"

    @property
    def means(self) -> np.ndarray:
        """A_T [K]."""
        return np.asarray(self.scores["A_T"].mean(axis=1))

    @property
    def best(self) -> int:
        """The row of the best tried ε."""
        return int(np.nanargmax(self.means))


def parts_of(figures: Figures) -> list[Part]:
    """Those with a whole curve."""
    members = {(curve_of(one), one["epsilon"]): one for one in figures["members"]}
    parts = []
    for stream in STREAMS:
        seeds = tuple(seed for seed in SEEDS if all((Curve(*stream, seed), e) in members for e in EPSILONS))
        scores = {
            metric: np.array([[members[Curve(*stream, seed), e][metric] for seed in seeds] for e in EPSILONS], float)
            for metric in ("A_T", "F_T")
        }
        parts.append(Part(*stream, seeds, scores))
    return [part for part in parts if part.seeds and not np.isnan(part.means).all()]


def section(figures: Figures) -> tuple[str, dict[str, str]]:
    """(Markdown, {name of a plot: SVG})."""
    parts = parts_of(figures)
    missing = len(STREAMS) * len(SEEDS) - sum(len(part.seeds) for part in parts)
    state = "All of it is measured."
    if missing:
        state = f"Still to come, by the same command: {count_text(missing, 'curve')}."
    if not parts:
        return state, {}
    plot = drawn(parts)
    text = [
        state,
        "![A_T over ε in each scenario](images/scenarios.svg)",
        " ".join(map(answer, parts)),
        table(HEAD, [row(part) for part in parts]),
        ABOUT,
        *(f"{part.title}:\n\n{values(part)}" for part in parts),
        origin(figures["members"]),
    ]
    return "\n\n".join(text), {"scenarios.svg": plot, "scenarios-dark.svg": dark(plot)}


HEAD = ("stream", "seeds", "best tried ε", "curve", "95 %", "A_T % there", "A-GEM", "difference", "p")
ABOUT = (
    "*Curve* is the value that a search names, the top of a curve through all scores, and *95 %* its confidence set. "
    "*Difference* is the best tried ε minus A-GEM (ε = 0), paired by seed, ± its standard error; as the best of many "
    "noisy means it is rather too large than too small. *p* is of the exact sign-flip test; five seeds cannot reach "
    "0.05. Whiskers in the figure reach from the lowest to the highest seed."
)


def row(part: Part) -> list[str]:
    """A stream in the first table."""
    apart = part.scores["A_T"][part.best] - part.scores["A_T"][0]
    named, interval, p = MISSING, MISSING, MISSING
    if len(part.seeds) > 1:
        scores = part.scores["A_T"] / 100
        choice = choose(SPACE, [(epsilon,) for epsilon in EPSILONS], scores)
        named = MISSING if choice.point is None else f"{choice.point[0]:.2g}"
        maximum = best_interval(EPSILONS, scores, 0.0, 1.0, apart=[0])
        interval = about_text((maximum.low, maximum.high), maximum.worse_ends)
        p = f"{sign_flip_p(apart):.2g}" if apart.any() else MISSING
    where = [part.title, str(len(part.seeds)), f"{EPSILONS[part.best]:g}", named, interval]
    return [*where, *(number_text(part.means[at], 2) for at in (part.best, 0)), with_error(apart, 2), p]


def answer(part: Part) -> str:
    """Returns a sentence on the best tried ε beside A-GEM."""
    apart = part.scores["A_T"][part.best] - part.scores["A_T"][0]
    if part.best == 0:
        return f"**{part.title}**: no tried ε is above A-GEM."
    better = int((apart > 0).sum())
    return (
        f"**{part.title}**: the best tried ε, {EPSILONS[part.best]:g}, is {with_error(apart, 2)} points above A-GEM, "
        f"on {better} of {count_text(len(apart), 'seed')}."
    )


def values(part: Part) -> str:
    """A_T and F_T of every ε: mean ± standard deviation over the seeds."""
    rows = [
        [name, *(spread(part.scores[name][at], digits, factor) for at in range(len(EPSILONS)))]
        for name, digits, factor in (("A_T", 1, 1), ("F_T", 1, 100))
    ]
    return table(["%, ε =", *(f"{epsilon:g}" for epsilon in EPSILONS)], rows)


def spread(scores: np.ndarray, digits: int, factor: float) -> str:
    if np.isnan(scores).any():
        return MISSING
    deviation = f" ± {factor * scores.std(ddof=1):.{digits}f}" if len(scores) > 1 else ""
    return number_text(factor * float(scores.mean()), digits) + deviation


def drawn(parts: Sequence[Part]) -> str:
    """A panel for each stream: means over seeds, from the lowest to the highest."""
    panels: dict[str, Series] = {
        f"A_T %, {part.title}": {count_text(len(part.seeds), "seed"): line(part)} for part in parts
    }
    return curves(panels, EPSILONS[::2], 2)


def line(part: Part) -> list[tuple[float, Range]]:
    rows = zip(EPSILONS, part.scores["A_T"], strict=True)
    return [(x, Range(row.mean(), row.min(), row.max())) for x, row in rows if not np.isnan(row).any()]


SECTION = (section, "uv run python benchmarks/scenarios.py --data-dir FOLDER")
