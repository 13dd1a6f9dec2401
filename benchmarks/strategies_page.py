"""The section of docs/strategies.md that compares strategies, from benchmarks/results/strategies.json."""

from charts import Range, bars, table
from machine import Figures

FIGURE = "strategies-regret.svg"
VERDICTS = ("resolved", "one-sided", "edge", "level", "open")
HEAD = (
    *("strategy", "error of ε", "regret, points", "best tried", "members", "more", "coverage", "width"),
    *VERDICTS,
)


def section(figures: Figures) -> tuple[str, dict[str, str]]:
    """(Markdown, {name of a plot: SVG})."""
    objectives = figures["objectives"]
    parts = [f"**{name}**\n\n{table(list(HEAD), rows(one))}" for name, one in objectives.items()]
    plot = {FIGURE: figure(objectives)}
    ways = table(["strategy", "curve", "best tried", "more"], chosen(figures))
    picture = f"![Mean regret of every strategy](images/{FIGURE})"
    return "\n\n".join([f"**All curves, by what is chosen**\n\n{ways}", picture, *parts]), plot


def chosen(figures: Figures) -> list[list[str]]:
    """Mean regret in points of each way of choosing, and the paired difference with its standard error."""
    rows = []
    for name, ways in figures["ways"].items():
        more, error = (100 * value for value in ways["tried"]["more"])
        regrets = (f"{100 * ways[way]['regret']:.4f}" for way in ("curve", "tried"))
        rows.append([name, *regrets, f"{more:+.4f} ± {error:.4f}".replace("-", "−")])
    return rows


SECTION = (section, "uv run python benchmarks/strategies.py")


def rows(figures: Figures) -> list[list[str]]:
    """One row a strategy; one that made fewer searches than the others says how many."""
    most = max(one["searches"] for one in figures.values())
    names = (
        name if one["searches"] == most else f"{name} ({one['searches']} searches)" for name, one in figures.items()
    )
    return [[name, *cells(one)] for name, one in zip(names, figures.values(), strict=True)]


def cells(one: Figures) -> list[str]:
    share = {kind: f"{100 * count / one['searches']:.1f} %" for kind, count in one["verdicts"].items()}
    curve, tried = one["curve"], one["tried"]
    return [
        "–" if curve["error"] is None else f"{curve['error']:.3f}",
        f"{100 * curve['regret']:.3f}",
        f"{100 * tried['regret']:.3f}",
        f"{one['members']:.0f}",
        f"{one['more']:.1f}",
        "–" if one["coverage"] is None else f"{100 * one['coverage']:.1f} %",
        f"{one['width']:.2f}",
        *(share[kind] for kind in VERDICTS),
    ]


def figure(objectives: Figures) -> str:
    """Mean regret in percentage points, whiskers from the 10 % to the 90 % quantile; the flat curve has none."""
    curved = {
        name: figures for name, figures in objectives.items() if any(one["curve"]["regret"] for one in figures.values())
    }
    names = list(next(iter(curved.values())))
    groups = {
        name: [Range(*(100 * figures[name]["curve"][key] for key in ("regret", "regret_10", "regret_90")))
               for figures in curved.values() if name in figures]
        for name in names
    }  # fmt: skip
    return bars(
        list(curved), groups, "mean regret in percentage points of A_T; whiskers from the 10 % to the 90 % quantile"
    )
