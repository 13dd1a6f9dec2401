"""The two tables of docs/methods.md that benchmarks/reference_gradient.py measures.

uv run python benchmarks/reference_gradient_tables.py
"""

import json
from typing import Any

from charts import table
from machine import RESULTS

from trainers.numeric_path import NumericPath

Found = dict[str, Any]


def tables(found: Found) -> str:
    """A_T by ε of both arithmetics, and the error of g_ref; as Markdown."""
    return f"{scores(found)}\n\n{errors(found)}"


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


if __name__ == "__main__":
    print(tables(json.loads((RESULTS / "reference_gradient.json").read_text(encoding="utf-8"))))
