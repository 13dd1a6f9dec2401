"""Tables that pages of docs hold, made from benchmarks/results/*.json; a test compares.

uv run python benchmarks/doc_tables.py
"""

import json
from collections.abc import Iterator
from typing import Any

from charts import table
from machine import RESULTS

from trainers.numeric_path import NumericPath

Found = dict[str, Any]


def scores(found: Found) -> str:
    """Mean A_T over seeds, and where a seed is more than five points below that mean, the worst one."""
    by_path = {NumericPath.parse(name).subtracted: values for name, values in found["paths"].items()}
    rows = []
    for subtracted, title in ((True, "subtraction"), (False, "sum")):
        mean, worst = by_path[subtracted]["A_T"], by_path[subtracted]["worst_seed"]
        cells = [f"{mean[e]:.1f}" + (f" (one seed {worst[e]:.1f})" if mean[e] - worst[e] > 5 else "") for e in mean]
        rows.append([title, *cells])
    return table(["ε", *(f"{float(e):g}" for e in by_path[False]["A_T"])], rows)


def errors(found: Found) -> str:
    """Median relative error of g_ref, for the members that were trained with the sum: the ends of all CPU paths."""
    (trained,) = (values for name, values in found["paths"].items() if not NumericPath.parse(name).subtracted)
    rows = []
    for subtracted, title in ((True, "subtraction"), (False, "sum")):
        cells = []
        for by_name in trained["errors"].values():
            medians = [e["median"] for name, e in by_name.items() if NumericPath.parse(name).subtracted == subtracted]
            cells.append(f"{min(medians):.0e} … {max(medians):.0e}")
        rows.append([title, *cells])
    return table(["ε", *(f"{float(e):g}" for e in trained["errors"])], rows)


def campaigns(found: Found) -> str:
    """What each campaign of tests/fuzz tried, and what came of it."""
    rows = [
        [
            name,
            f"{counts['tried']:,}",
            ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in counts.items() if what != "tried"),
        ]
        for name, counts in found["campaigns"].items()
    ]
    return table(["campaign", "tried", "what came of it"], rows)


TABLES = {
    ("docs/methods.md", "reference_gradient"): (scores, errors),
    ("docs/reliability.md", "reliability"): (campaigns,),
}


def tables() -> Iterator[tuple[str, str]]:
    """(page, a table that it holds)."""
    for (page, name), makes in TABLES.items():
        found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        for make in makes:
            yield page, make(found)


if __name__ == "__main__":
    for page, text in tables():
        print(f"{page}:\n{text}\n")
