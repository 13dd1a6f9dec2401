"""Split CIFAR-100 in docs/parabola.md and docs/comparison.md, from benchmarks/results/split_cifar.json.

However much of it is there.
"""

import math
from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np
from charts import Range, curves, table
from machine import Figures
from parabola_page import best_by_curve, with_error
from split_cifar import METHODS, Member, Sizes, Studies, member_of, record_of, replay

from epsearch.loop.table import Row, row_label
from results import metrics
from results.labels import MISSING, count_text, method_label, number_text, signed_text
from results.ledger.record import RunRecord
from results.pages.comparison import comparison_sheet
from results.pages.comparison_numbers import comparison_table
from results.pages.sheet import as_markdown
from results.statistics.anova import no_difference
from results.statistics.extrapolation import Extrapolation
from results.statistics.paired import mean_estimate
from results.statistics.power import resolution
from results.table import TableResults, TableRow
from search_spaces.published.definition import load_definition

LEAST_PAIRS = 5
"""Pairs of members from which rounding noise is estimated."""


class Scores(NamedTuple):
    """Members of the search by value and seed; NaN where one diverged or is not trained yet."""

    epsilons: tuple[float, ...]
    """[K] ascending."""
    metrics: dict[str, np.ndarray]
    """Metric -> [K, R], in percent."""

    @property
    def whole(self) -> np.ndarray:
        """[K] bool: the values that have every seed."""
        return ~np.isnan(self.metrics["A_T"]).any(axis=1)

    def only(self, rows: np.ndarray) -> "Scores":
        """Returns some values; rows: [K] bool."""
        epsilons = tuple(epsilon for epsilon, row in zip(self.epsilons, rows, strict=True) if row)
        return Scores(epsilons, {name: values[rows] for name, values in self.metrics.items()})


MEASURES = {
    "A_T": metrics.average_accuracy,
    "F_T": metrics.forgetting,
    "a_1": metrics.first_task_accuracy,
    "a_t": metrics.last_task_accuracy,
}


def search_members(members: list[Figures]) -> list[Figures]:
    """Returns the members of the search without those from moved starts."""
    return [one for one in members if one["phase"] == "cv" and not one.get("moved")]


def scores_of(members: list[Figures], seeds: int) -> Scores:
    """Returns the scores of the members of the search."""
    own = search_members(members)
    epsilons = tuple(sorted({one["epsilon"] for one in own}))
    scores = {name: np.full((len(epsilons), seeds), np.nan) for name in MEASURES}
    for one in own:
        if one["status"] == "ok":
            accuracies = np.array(one["accuracies"], dtype=np.float64)  # null becomes NaN
            for name, of in MEASURES.items():
                scores[name][epsilons.index(one["epsilon"]), one["seed"]] = 100 * of(accuracies)
    return Scores(epsilons, scores)


def section(figures: Figures) -> tuple[str, dict[str, str]]:
    """Returns (Markdown, {name of a plot: SVG}): the search on three tasks; the evaluation as far as it is there."""
    scores = scores_of(figures["members"], figures["sizes"]["seeds"])
    text, plots = [f"{state(figures['members'])} {choice_of_the_paper(figures)}".strip()], {}
    if scores.whole.sum() > 1:
        whole = scores.only(scores.whole)
        plots["parabola-cifar.svg"] = figure(whole)
        text += [rise(whole, figures["sizes"]["points"]), noise(whole), best_value(whole)]
        text += [prediction(figures["members"], whole.epsilons, figures["sizes"]), rounding(figures["members"])]
        text += ["![A_T over ε on three tasks of Split CIFAR-100](images/parabola-cifar.svg)", values(scores)]
        text += [ABOUT]
    return "\n\n".join(text), plots


ABOUT = (
    "Means over the seeds; *minus ε = 0* is paired by seed, ± its standard error. Values that the narrowing search has "
    "not finished yet have fewer seeds and no difference. Whiskers in the figure reach from the lowest to the highest "
    "seed."
)


def state(members: list[Figures]) -> str:
    """Says how much of the search and of the evaluation is trained."""
    phases = Counter((one["phase"], one["method"]) for one in members if not one.get("moved"))
    search = sum(count for (phase, _), count in phases.items() if phase == "cv")
    evaluated = [f"{method_label(name)} {count}" for (phase, name), count in phases.items() if phase == "eval"]
    evaluation = f"of the evaluation {', '.join(evaluated)}" if evaluated else "none of the evaluation"
    return f"Of the search {count_text(search, 'member')} are trained, {evaluation}; the same command goes on."


def choice_of_the_paper(figures: Figures) -> str:
    """Says which value the paper's search names, once it is complete; "" before."""
    choice = choice_of(figures)
    return "" if choice is None else f"The paper's search is complete, and names ε = {choice:.4g}."


def choice_of(figures: Figures) -> float | None:
    """Returns the value that the paper's search names; None before it is complete."""
    stored = {member_of(one): record_of(one) for one in figures["members"]}
    return replay(Studies("data", Sizes(**figures["sizes"])).searches[0], stored)[1]


def rounding(members: list[Figures]) -> str:
    """Says how much of the spread between seeds is rounding, from members that were trained again from moved starts."""
    searched = [one for one in members if one["phase"] == "cv" and one["status"] == "ok"]
    a_t = {member_of(one): 100 * metrics.average_accuracy(record_of(one).accuracies) for one in searched}
    pairs = [(float(a_t[one._replace(moved=False)]), float(value)) for one, value in a_t.items() if one.moved]
    if len(pairs) < LEAST_PAIRS:
        return "The rounding noise is not measured yet."
    apart = np.array(pairs) @ (-1.0, 1.0)
    noise, others = math.sqrt(float((apart**2).mean()) / 2), scores_of(members, 1 + max(one.seed for one in a_t))
    within = math.sqrt(float(others.only(others.whole).metrics["A_T"].var(axis=1, ddof=1).mean()))
    return (
        f"From starts moved by 1e-7 of themselves {len(pairs)} members have another A_T, by up to "
        f"{number_text(float(np.abs(apart).max()), 1)} points: rounding alone has a standard deviation of "
        f"{number_text(noise, 2)}, the seeds of a value, which differ in order, memory and start, one of "
        f"{number_text(within, 2)}."
    )


def rise(scores: Scores, points: int) -> str:
    """Says whether the first grid rises to the printed value, as in the paper, where every value beats ε = 0."""
    printed = load_definition("split_cifar").reported_epsilon
    grid = scores.only(np.isin(np.round(scores.epsilons, 6), np.round(np.linspace(0, 1, points), 6)))
    means, a_t = grid.metrics["A_T"].mean(axis=1), grid.metrics["A_T"]
    if printed not in grid.epsilons or 0.0 not in grid.epsilons:
        return "The first grid is not complete yet."
    above, top = int((means[1:] > means[0]).sum()), grid.epsilons[int(means.argmax())]
    gain = with_error(a_t[grid.epsilons.index(printed)] - a_t[0], 2)
    return (
        f"In the paper every value of the first grid beats A-GEM (ε = 0), and {printed:g} is best. Here {above} "
        f"of {len(means) - 1} are above ε = 0, the highest mean is at ε = {top:.4g}, and ε = {printed:g} differs from "
        f"ε = 0 by {gain} points (± standard error, {count_text(a_t.shape[1], 'seed')})."
    )


def noise(scores: Scores) -> str:
    """Says whether the values differ by more than chance, and what so many seeds could show."""
    a_t = scores.metrics["A_T"]
    means, p = a_t.mean(axis=1), no_difference(a_t)
    seen = resolution(a_t.shape[1], a_t / 100)
    verdict = "no more than chance explains" if p >= 0.05 else "by more than chance explains"
    error = mean_estimate(a_t[int(means.argmax())]).error
    return (
        f"All {len(means)} values lie between {number_text(float(means.min()), 2)} and "
        f"{number_text(float(means.max()), 2)} %, {verdict} (F test with seeds as blocks: p = {p:.2g}); the standard "
        f"error of the highest mean alone is {number_text(error, 2)}. With {count_text(seen.seeds, 'seed')} a "
        f"difference of two values below {number_text(seen.points, 1)} points lies within its 95 % interval of chance."
    )


def best_value(scores: Scores) -> str:
    """Says which value a curve through all scores names, and which may be the best."""
    point, interval = best_by_curve(scores.epsilons, scores.metrics["A_T"])
    return f"A curve through all scores names ε = {point}; its 95 % set of the best value is {interval}."


def prediction(members: list[Figures], epsilons: tuple[float, ...], sizes: Figures) -> str:
    """Says what the model along tasks expects at the end of the evaluation, from the same three tasks."""
    stored = {(one["epsilon"], one["seed"]): one["accuracies"] for one in search_members(members)}
    table = [[stored[epsilon, seed] for seed in range(sizes["seeds"])] for epsilon in epsilons]
    a = np.array(table, dtype=np.float64)
    tasks = sizes["tasks"] - a.shape[-1]
    fit = Extrapolation.fit(np.array(epsilons)[:, None], a, tasks)  # ε lies in the unit interval
    expected = f"[The model along tasks](along.md) expects from them that after {tasks} tasks ε = "
    if fit.choice == 0:
        return f"{expected}{epsilons[0]:g} is the best."
    low, high = (signed_text(100 * float(ends[0]), 1) for ends in (fit.behind_low, fit.behind_high))
    unclear = ", so it cannot tell them apart either" if fit.behind_low[0] < 0 else ""
    apart = signed_text(100 * float(fit.mean[fit.choice] - fit.mean[0]), 1)
    return (
        f"{expected}{epsilons[fit.choice]:.4g} is the best, {apart} points from ε = {epsilons[0]:g} (95 %: {low} to "
        f"{high}){unclear}."
    )


def values(scores: Scores) -> str:
    """Returns the table of all values."""
    seeds, whole = (~np.isnan(scores.metrics["A_T"])).sum(axis=1), scores.whole
    a_t = scores.metrics["A_T"]
    base = a_t[scores.epsilons.index(0.0)] if 0.0 in scores.epsilons else np.full(a_t.shape[1], math.nan)
    rows = []
    for row, epsilon in enumerate(scores.epsilons):
        means = (float(np.nanmean(each[row])) if seeds[row] else math.nan for each in scores.metrics.values())
        apart = MISSING if epsilon == 0 or not whole[row] else with_error(a_t[row] - base, 2)
        rows.append([f"{epsilon:.4g}", str(seeds[row]), *(number_text(mean, 2) for mean in means), apart])
    return table(["ε", "seeds", *(f"{name} %" for name in scores.metrics), "A_T minus ε = 0"], rows)


def figure(scores: Scores) -> str:
    """Returns the figure of the values that have every seed."""
    rows = zip(scores.epsilons, scores.metrics["A_T"], strict=True)
    line = [(epsilon, Range(row.mean(), row.min(), row.max())) for epsilon, row in rows]
    label = f"ResNet-18, 3 tasks × 2,500 images ({count_text(scores.metrics['A_T'].shape[1], 'seed')})"
    return curves({"A_T %, search stream": {label: line}}, [0.0, 0.1, 0.25, 0.5, 0.75, 1.0], 1)


def evaluation(figures: Figures) -> tuple[str, dict[str, str]]:
    """Returns (Markdown, no plots): the members of the evaluation beside the printed rows, as far as they are there."""
    studies, groups = Studies("data", Sizes(**figures["sizes"])), defaultdict[Member, list[RunRecord]](list)
    for one in sorted(figures["members"], key=lambda one: METHODS.index(one["method"])):
        if one["phase"] == "eval":
            groups[member_of(one)._replace(seed=0)].append(record_of(one))
    rows = []
    for member, records in groups.items():
        values = studies.learner(member).hyperparameters
        row = Row(row_label(member.method, values), member.method, values)
        rows.append(TableRow(row.label, row.method, row.short_values(), tuple(records)))
    if not rows:
        return "No member of the evaluation is trained yet.", {}
    comparison = TableResults("split-cifar", "split_cifar", tuple(rows), {}, {}, (), comparable=True)
    sheet = comparison_sheet(comparison, comparison_table(comparison))
    text = as_markdown(sheet).partition("\n\n")[2].strip()  # the page has a heading of its own
    return f"{text}\n\n{row_of_the_choice(figures)}".strip(), {}


def row_of_the_choice(figures: Figures) -> str:
    """Says which row has the value that the paper's search names; "" before it is complete."""
    choice = choice_of(figures)
    if choice is None:
        return ""
    row = "the row of A-GEM" if choice == 0 else "a row of its own"
    return f"The value that the search on three tasks names, ε = {choice:.4g}, has {row}."


COMMAND = "uv run python benchmarks/split_cifar.py --data-dir FOLDER"
EVALUATION = (evaluation, COMMAND)
SECTION = (section, COMMAND)
