"""Tables that pages of docs hold, made from benchmarks/results/*.json; a test compares.

uv run python benchmarks/doc_tables.py
"""

import json
import math
from collections.abc import Iterator

import numpy as np
from charts import table
from machine import RESULTS, Figures
from scipy import stats

from trainers.numeric_path import NumericPath


def scores(figures: Figures) -> str:
    """Mean A_T over seeds, and where a seed is more than five points below that mean, the worst one."""
    by_path = {NumericPath.parse(name).subtracted: values for name, values in figures["paths"].items()}
    rows = []
    for subtracted, title in ((True, "subtraction"), (False, "sum")):
        mean, worst = by_path[subtracted]["A_T"], by_path[subtracted]["worst_seed"]
        cells = [f"{mean[e]:.1f}" + (f" (one seed {worst[e]:.1f})" if mean[e] - worst[e] > 5 else "") for e in mean]
        rows.append([title, *cells])
    return table(["ε", *(f"{float(e):g}" for e in by_path[False]["A_T"])], rows)


def errors(figures: Figures) -> str:
    """Median relative error of g_ref, for the members that were trained with the sum: the ends of all CPU paths."""
    (trained,) = (values for name, values in figures["paths"].items() if not NumericPath.parse(name).subtracted)
    rows = []
    for subtracted, title in ((True, "subtraction"), (False, "sum")):
        cells = []
        for by_name in trained["errors"].values():
            medians = [e["median"] for name, e in by_name.items() if NumericPath.parse(name).subtracted == subtracted]
            cells.append(f"{min(medians):.0e} … {max(medians):.0e}")
        rows.append([title, *cells])
    return table(["ε", *(f"{float(e):g}" for e in trained["errors"])], rows)


def campaigns(figures: Figures) -> str:
    """What each campaign of tests/fuzz tried, and what came of it."""
    rows = [
        [
            name,
            f"{counts['tried']:,}",
            ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in counts.items() if what != "tried"),
        ]
        for name, counts in figures["campaigns"].items()
    ]
    return table(["campaign", "tried", "what came of it"], rows)


def side_by_side(figures: Figures) -> str:
    """Avalanche's strategies and our methods: what was chosen, A_T and F_T."""
    rows = []
    for title, both in figures["rows"].items():
        for library, one in both.items():
            named = f"`avalanche:{one['strategy']}`" if "strategy" in one else f"`{one['method']}`"
            chosen = ", ".join(f"{name} {one['values'][name]:g}" for name in CHOSEN if name in one["values"])
            rows.append(
                [title, library, named, chosen, spread(one["A_T"], 1), spread([100 * value for value in one["F_T"]], 1)]
            )
    return table(["", "by", "named", "chosen", "A_T %", "F_T %"], rows)


CHOSEN = ("lr", "strength", "ewc_lambda")


def causes(figures: Figures) -> str:
    """A-GEM with one setting changed: A_T, and the paired difference to ours."""
    ours, *_ = (np.array(one["A_T"]) for one in figures["causes"].values())
    rows = []
    for title, one in figures["causes"].items():
        apart = np.array(one["A_T"]) - ours
        half = stats.t.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / math.sqrt(len(apart))
        difference = "–" if title == "epsearch" else f"{apart.mean():+.1f} ± {half:.1f}".replace("-", "−")
        rows.append([title, spread(one["A_T"], 1), difference])
    return table(["A-GEM", "A_T %", "difference, points"], rows)


def spread(values: list[float], digits: int) -> str:
    """Mean and standard deviation (of the sample) of the seeds that did not diverge, and how many others there are."""
    finite = np.array(values)[np.isfinite(values)]
    others = len(values) - len(finite)
    diverged = f" ({others} of {len(values)} diverged)" if others else ""
    return f"{finite.mean():.{digits}f} ± {finite.std(ddof=1):.{digits}f}{diverged}"


def resumed(figures: Figures) -> str:
    """A search of Avalanche's A-GEM, and what came of it when it was killed."""
    yes = {True: "yes", False: "no"}
    same, tables = "same members, accuracies and fingerprints", "same tables"
    race, before = figures["race"], figures["stored before the kill"]
    rows = [
        *([name, f"A_T {one['A_T_mean']:.2f} ± {one['A_T_std']:.2f} %"] for name, one in figures["rows"].items()),
        ["members of the search", f"{race['trained']}, without the race {race['plain']}"],
        ["a member once more, alone", f"differs by {figures['difference of the certificate']:g} in accuracy"],
        ["stored when it was killed", f"{before} of {figures['members']} members"],
        [f"{same}, killed or not", yes[figures[same]]],
        [f"{tables} and answer, killed or not", yes[figures[tables]]],
    ]
    return table(["", "found"], rows)


def coverage_cells(figures: Figures) -> str:
    """Curve by way of trying values, seeds and noise: how often the interval has the top, and its mean width."""
    columns = list(dict.fromkeys(tuple(one["cell"][1:]) for one in figures["cells"]))
    by_cell = {tuple(one["cell"]): one for one in figures["cells"]}
    rows = [
        [curve, *(_covered(by_cell.get((curve, *column))) for column in columns)]
        for curve in dict.fromkeys(one["cell"][0] for one in figures["cells"])
    ]
    heads = [f"{tried}, {seeds} seeds{'' if noise == 'equal' else f', {noise}'}" for noise, tried, seeds in columns]
    return table(["% with the top (width)", *heads], rows)


def _covered(one: Figures | None) -> str:
    return "–" if one is None else f"{100 * one['covered'] / one['tables']:.1f} ({one['width']:.2f})"


def losses(figures: Figures) -> str:
    """The loss of the named value and of the best tried one against the top, in points, with equal noise."""
    kept = [one for one in figures["cells"] if one["cell"][1] == "equal" and one["cell"][3] == 5]
    columns = list(dict.fromkeys(one["cell"][2] for one in kept))
    by_cell = {(one["cell"][0], one["cell"][2]): one for one in kept}
    rows = [
        [curve, *(_lost(by_cell.get((curve, tried))) for tried in columns)]
        for curve in dict.fromkeys(one["cell"][0] for one in kept)
    ]
    return table(["points lost: curve (best tried)", *columns], rows)


def _lost(one: Figures | None) -> str:
    return "–" if one is None else f"{one['curve']:.2f} ({one['tried']:.2f})"


def resampled(figures: Figures) -> str:
    """What resamples of few seeds say."""
    rows = [
        [f"{one['seeds']}", f"{100 * one['covered'] / one['samples']:.0f} %", f"{100 * one['share']:.0f} %"]
        for one in figures["resampled"]
    ]
    return table(["seeds", "95 % BCa interval of a mean covers it", "share of the best of 11 equal values"], rows)


TABLES = {
    ("docs/avalanche.md", "avalanche"): (side_by_side, causes),
    ("docs/avalanche.md", "avalanche_resumed"): (resumed,),
    ("docs/coverage.md", "interval_coverage"): (coverage_cells, losses, resampled),
    ("docs/methods.md", "reference_gradient"): (scores, errors),
    ("docs/reliability.md", "reliability"): (campaigns,),
}


def tables() -> Iterator[tuple[str, str]]:
    """(page, a table that it holds)."""
    for (page, name), makes in TABLES.items():
        file = RESULTS / f"{name}.json"
        for make in makes if file.exists() else ():  # what is not measured yet, the page says so
            yield page, make(json.loads(file.read_text(encoding="utf-8")))


if __name__ == "__main__":
    for page, text in tables():
        print(f"{page}:\n{text}\n")
