"""The section of docs/strategies.md on what a race drops, from benchmarks/results/races.json."""

from charts import table
from machine import Figures


def section(figures: Figures) -> tuple[str, dict[str, str]]:
    """(Markdown, no plots): how often the best value is dropped, and what more seeds for some bring."""
    cells, budgets = figures["cells"], figures["budgets"]
    races, worst = cells[0]["races"], max(100 * one["dropped"] for one in cells)
    sizes = list(dict.fromkeys((one["values"], one["seeds"]) for one in cells))
    head = ["the best value is dropped in % of the rounds", *(f"{values} × {seeds}" for values, seeds in sizes)]
    about = (
        f"Each cell: {races:,} rounds of so many values × seeds, all with the same mean but for the noise, which is "
        "the hardest case. The best value is the first one, at an end of the interval. Smooth noise hangs together "
        "over 0.3 of the interval; with a slope of each seed the ends move by two standard deviations of the noise, in "
        f"opposite directions. At most {worst:.1f} %."
    )
    saved = "Members that a race saves on one grid of equally spaced values over the right side of the steep parabola:"
    more = (
        "`--most-seeds` on one grid of 11 values, on the curves above, with equal noise: regret in points of A_T, and "
        "members. Races with the same largest number of seeds differ only once one value is left."
    )
    objectives = list(dict.fromkeys(one["objective"] for one in budgets))
    kinds = list(dict.fromkeys((one["seeds"], one["most"]) for one in budgets))
    by = {(one["objective"], one["seeds"], one["most"]): one for one in budgets}
    rows = [
        [name, *(f"{100 * by[name, *kind]['regret']:.3f} ({by[name, *kind]['members']:.0f})" for kind in kinds)]
        for name in objectives
    ]
    seeds = ["curve", *(f"{first} seeds" if first == most else f"{first} to {most}" for first, most in kinds)]
    noises = list(dict.fromkeys(one["noise"] for one in cells))
    tables = [
        table([*first, *head[1:]], [[noise, *percents(cells, noise, key)] for noise in noises])
        for first, key in (([head[0]], "dropped"), (["saved, %"], "saved"))
    ]
    return "\n\n".join([about, tables[0], saved, tables[1], more, table(seeds, rows)]), {}


SECTION = (section, "uv run python benchmarks/races.py")


def percents(cells: list[Figures], noise: str, key: str) -> list[str]:
    """A figure of a kind of noise, for every size."""
    return [f"{100 * one[key]:.1f}" for one in cells if one["noise"] == noise]
