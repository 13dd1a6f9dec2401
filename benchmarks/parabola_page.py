"""The measured part of docs/parabola.md, from benchmarks/results/parabola.json, however much of it is there."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from charts import Range, Series, curves, dark, table
from machine import Figures
from parabola import EXACT, SUBTRACTION, Sizes, curve_of
from parabola import curves as wanted

from epsearch.loop.strategy_driver.choice import choose
from results.labels import MISSING, about_text, count_text, number_text, signed_text
from results.statistics.confidence_set import best_interval
from results.statistics.paired import mean_estimate
from search_spaces import Parameter, Space

METRICS = {"A_T": ("A_T %", 2), "F_T": ("F_T", 3), "a_1": ("a_1 %", 2), "a_t": ("a_t %", 2)}
STREAMS = {"cv": "search stream", "eval": "evaluation stream"}
GRADIENTS = {EXACT: "exact", SUBTRACTION: "by subtraction"}
SPACE = Space((Parameter("epsilon", 0.0, 1.0, apart=(0.0,)),))  # ε = 0 is A-GEM, another formula


class Part(NamedTuple):
    """Curves that differ in the seed alone, those that are whole."""

    phase: str
    tasks: int
    images: int
    formula: str
    epsilons: tuple[float, ...]
    scores: dict[str, np.ndarray]
    """Metric -> [K, R]; NaN where a member diverged, and so in means of its value."""
    seeds: tuple[int, ...]
    expected: int
    """Seeds that there are to be."""

    @property
    def title(self) -> str:
        return f"{STREAMS[self.phase]}, {self.tasks} tasks × {self.images:,} images"

    @property
    def means(self) -> np.ndarray:
        """A_T [K]."""
        return self.scores["A_T"].mean(axis=1)

    @property
    def best(self) -> int:
        """The row of the best tried value."""
        return int(np.nanargmax(self.means))


def parts_of(figures: Figures) -> list[Part]:
    """All of them, also those without a whole curve yet, in the order in which they are trained."""
    sizes = Sizes(**{**figures["sizes"], **{name: tuple(figures["sizes"][name]) for name in ("fewer", "epsilons")}})
    members = {(curve_of(one), one["epsilon"]): one for one in figures["members"]}
    every: dict[tuple[Any, ...], list[Any]] = {}
    for curve in wanted(sizes):
        every.setdefault(curve[:-1], []).append(curve)
    return [_part(key, seeds, sizes.epsilons, members) for key, seeds in every.items()]


def _part(key: Sequence[Any], every: Sequence[Any], epsilons: tuple[float, ...], members: Figures) -> Part:
    whole = [curve for curve in every if all((curve, epsilon) in members for epsilon in epsilons)]
    scores = {
        metric: np.array(
            [[members[curve, epsilon][metric] for curve in whole] for epsilon in epsilons], dtype=np.float64
        )
        for metric in METRICS
    }
    return Part(*key, epsilons, scores, tuple(curve.seed for curve in whole), len(every))


def section(figures: Figures) -> tuple[str, dict[str, str]]:
    """(Markdown, {name of a plot: SVG})."""
    every = parts_of(figures)
    parts = sorted(
        (part for part in every if part.seeds and not np.isnan(part.means).all()), key=lambda one: one[:4]
    )  # by streams, tasks and images
    full, plots = figures["sizes"]["full"], {}
    text = [to_come(every)]
    streams = [[part for part in parts if (part.phase, part.tasks, part.images) == key] for key in both(full)]
    streams = [stream for stream in streams if stream]
    if streams:
        plots["parabola-streams.svg"] = drawn({at[0].title: at for at in streams}, ["A_T"], by_gradient, 2)
        plots["parabola-streams-dark.svg"] = dark(plots["parabola-streams.svg"])  # for the README
        plots["parabola-metrics.svg"] = drawn(
            {at[0].title: at for at in streams}, ["F_T", "a_1", "a_t"], by_gradient, 3
        )
        text += ["### Both streams at full size", *map(highest, streams)]
        text += ["![A_T over ε on both streams](images/parabola-streams.svg)"]
        text += [f"{stream[0].title[:1].upper()}{stream[0].title[1:]}:\n\n{values(stream)}" for stream in streams]
        text += [ABOUT, "![F_T, a_1 and a_t over ε on both streams](images/parabola-metrics.svg)"]
    if flanks := [sentence for stream in streams for sentence in rounding(stream)]:
        text += ["### How much of it is rounding", *flanks]
    exact = [part for part in parts if part.formula == EXACT]
    shorter = {
        "by images a task": [one for one in exact if (one.phase, one.tasks) == ("cv", 3)],
        "by tasks": [one for one in exact if one.images == full],
    }
    if any(len(some) > 1 for some in shorter.values()):
        some = {name: group for name, group in shorter.items() if group}
        plots["parabola-sizes.svg"] = drawn(some, ["A_T"], by_size, 2)
        text += ["### Fewer images, more tasks", moves(shorter), "![A_T over ε by size](images/parabola-sizes.svg)"]
    if parts:
        text += ["### Where the maximum lies", WHERE, maxima(parts)]
    if costs := list(losses(parts, full)):
        head = ["chosen on", "gradient", "ε", "A_T % on the evaluation stream", "best ε there", "lost, points"]
        text += ["### What a choice on the search stream costs", COSTS, table(head, costs)]
    return "\n\n".join([*text, origin(figures["members"])]), plots


def origin(members: Sequence[Figures]) -> str:
    """With which arithmetic and which code they were trained; sessions may be of several commits."""
    paths, commits = (", ".join(sorted({one[name] for one in members})) for name in ("numeric_path", "commit"))
    return f"Numeric paths: {paths}. Commits: {commits}."


ABOUT = (
    "Means over the seeds; *exact minus subtraction* is paired by seed, ± its standard error where there are several "
    "seeds. A value of which a member diverged has no mean (–). Whiskers in the figures reach from the lowest to the "
    "highest seed."
)
WHERE = (
    "*Best tried* is the value with the highest mean. *Curve* is what `epsearch run` names, the top of a curve through "
    "all scores, and *95 %* the interval in which its report says that the best value lies; both need two seeds."
)
COSTS = (
    "The best tried value of each search, taken to the evaluation stream, against the value that is the best one "
    "there. *Lost* is the mean over the seeds of the evaluation, ± its standard error where there are several. As the "
    "best value there is the highest of noisy means, the loss is rather too large than too small."
)


def both(full: int) -> list[tuple[str, int, int]]:
    return [("cv", 3, full), ("eval", 17, full)]


def to_come(every: Sequence[Part]) -> str:
    """Which parts are not complete yet."""
    missing = [
        f"{one.title}, {GRADIENTS[one.formula]} ({len(one.seeds)} of {count_text(one.expected, 'seed')})"
        for one in every
        if len(one.seeds) < one.expected
    ]
    if not missing:
        return f"All of it is measured: {len(every)} curves, {count_text(every[0].expected, 'seed')} each."
    return f"Still to come, by the same command: {'; '.join(missing)}."


def highest(stream: Sequence[Part]) -> str:
    """Where A_T is highest on a stream, by both formulas."""
    places = " and ".join(
        f"at ε = {one.epsilons[one.best]:g} {with_gradient(one)} ({number_text(one.means[one.best], 2)} %, "
        f"{count_text(len(one.seeds), 'seed')})"
        for one in stream
    )
    tried = len(stream[0].epsilons)
    return f"On the {stream[0].title}, A_T of the {tried} tried values is highest {places}."


def with_gradient(part: Part) -> str:
    return "with the exact gradient" if part.formula == EXACT else "with the subtraction"


def values(stream: Sequence[Part]) -> str:
    """All metrics of a stream, and what rounding takes."""
    rows = []
    for metric, (label, digits) in METRICS.items():
        for one in stream:
            means = one.scores[metric].mean(axis=1)
            rows.append([f"{label}, {GRADIENTS[one.formula]}", *(number_text(mean, digits) for mean in means)])
        if pair := paired(stream, metric):
            cells = (with_error(row, digits) for row in pair[0].scores[metric] - pair[1].scores[metric])
            rows.append([f"{label}, exact minus subtraction", *cells])
    return table(["ε", *(f"{epsilon:g}" for epsilon in stream[0].epsilons)], rows)


def paired(stream: Sequence[Part], metric: str) -> tuple[Part, Part] | None:
    """(exact, by subtraction) with the seeds that both have; None without any."""
    by = {one.formula: one for one in stream}
    if len(by) < 2 or not (shared := sorted({*by[EXACT].seeds} & {*by[SUBTRACTION].seeds})):
        return None
    cut = [
        one._replace(scores={metric: one.scores[metric][:, [one.seeds.index(seed) for seed in shared]]})
        for one in (by[EXACT], by[SUBTRACTION])
    ]
    return cut[0], cut[1]


def with_error(differences: np.ndarray, digits: int) -> str:
    """Mean ± standard error; the mean alone of one seed, and nothing where a member diverged."""
    if np.isnan(differences).any():
        return MISSING
    mean, error = mean_estimate(differences)
    return signed_text(mean, digits) + (f" ± {number_text(error, digits)}" if math.isfinite(error) else "")


def rounding(stream: Sequence[Part]) -> Iterator[str]:
    """How far A_T falls to the right by each formula, and where rounding costs most."""
    if not (pair := paired(stream, "A_T")):
        return
    exact, other = pair
    falls = [one.scores["A_T"][one.best] - one.scores["A_T"][-1] for one in pair]
    apart = exact.scores["A_T"] - other.scores["A_T"]
    if np.isnan(falls).any():
        yield f"On the {exact.title}, a member of the largest ε diverged."
        return
    last, seeds = exact.epsilons[-1], f"{count_text(apart.shape[1], 'seed')}"
    most = int(np.nanargmax(np.abs(apart.mean(axis=1))))
    both_ways = (number_text(float(fall.mean()), 2) for fall in falls)
    yield (
        "On the {title} ({seeds}), from its highest value to ε = {last:g} A_T falls by {0} points with the exact "
        "gradient and by {1} with the subtraction: the difference, {points} points, is rounding. Exact and subtraction "
        "are farthest apart at ε = {where:g}: {far} points."
    ).format(
        *both_ways,
        title=exact.title,
        seeds=seeds,
        last=last,
        points=with_error(falls[1] - falls[0], 2).lstrip("+"),
        where=exact.epsilons[most],
        far=with_error(apart[most], 2),
    )


def moves(shorter: dict[str, list[Part]]) -> str:
    """Where the best tried value lies at each size."""
    sentences = []
    for name, parts in shorter.items():
        tops = (f"{by_size(name, one)}: {one.epsilons[one.best]:g}" for one in parts)
        sentences.append(f"The best tried ε with the exact gradient, {name}: {'; '.join(tops)}.")
    return " ".join(sentences)


def maxima(parts: Sequence[Part]) -> str:
    """A row for each part: the best tried value, the curve's, the interval, both ends."""
    rows = []
    for one in parts:
        scores = np.where(np.isnan(one.means)[:, None], np.nan, one.scores["A_T"])
        best = best_by_curve(one.epsilons, scores) if len(one.seeds) > 1 else (MISSING, MISSING)
        means = (number_text(one.means[row], 2) for row in (one.best, 0, -1))
        where = [one.title, GRADIENTS[one.formula], str(len(one.seeds)), f"{one.epsilons[one.best]:g}", *best]
        rows.append([*where, *means])
    head = ["stream", "gradient", "seeds", "best tried", "curve", "95 %", "A_T % there", "at ε = 0", "at ε = 1"]
    return table(head, rows)


def best_by_curve(epsilons: Sequence[float], scores: np.ndarray) -> tuple[str, str]:
    """Returns the value that `epsearch run` names, and its 95 % set; scores: [K, R] in percent, two seeds or more."""
    shares = scores / 100
    choice = choose(SPACE, [(epsilon,) for epsilon in epsilons], shares)
    apart = [row for row, epsilon in enumerate(epsilons) if epsilon == 0]
    maximum = best_interval(epsilons, shares, 0.0, 1.0, apart=apart)
    point = MISSING if choice.point is None else f"{choice.point[0]:g}"
    return point, about_text((maximum.low, maximum.high), maximum.worse_ends)


def losses(parts: Sequence[Part], full: int) -> Iterator[list[str]]:
    """A row for each search: what its choice loses on the evaluation stream."""
    evaluated = {one.formula: one for one in parts if one.phase == "eval"}
    for one in parts:
        if one.phase == "eval" or one.formula not in evaluated:
            continue
        final = evaluated[one.formula]
        lost = final.scores["A_T"][final.best] - final.scores["A_T"][one.best]
        reached = number_text(final.means[one.best], 2)
        values = (f"{one.epsilons[one.best]:g}", reached, f"{one.epsilons[final.best]:g}")
        yield [one.title, GRADIENTS[one.formula], *values, with_error(lost, 2).lstrip("+")]


def by_gradient(_: str, part: Part) -> str:
    return f"{GRADIENTS[part.formula]} ({count_text(len(part.seeds), 'seed')})"


def by_size(name: str, part: Part) -> str:
    if "images" in name:
        return f"{part.images:,} images"
    return f"{part.tasks} tasks" + (", evaluation stream" if part.phase == "eval" else "")


def drawn(panels: dict[str, list[Part]], metrics: Sequence[str], label: Any, across: int) -> str:
    """A panel for each group and metric, a line for each part: means over seeds, from the lowest to the highest."""
    plots: dict[str, Series] = {
        f"{METRICS[metric][0]}, {name}": {label(name, one): line(one, metric) for one in parts}
        for name, parts in panels.items()
        for metric in metrics
    }
    return curves(plots, next(iter(panels.values()))[0].epsilons[::2], across)


def line(part: Part, metric: str) -> list[tuple[float, Range]]:
    rows = zip(part.epsilons, part.scores[metric], strict=True)
    return [(x, Range(row.mean(), row.min(), row.max())) for x, row in rows if not np.isnan(row).any()]


SECTION = (section, "uv run python benchmarks/parabola.py --data-dir FOLDER")
