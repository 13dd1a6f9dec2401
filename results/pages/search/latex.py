"""The evaluation of a search as a LaTeX table."""

import math
from dataclasses import replace

from results.labels import MISSING, dataset_label
from results.metrics import METRICS
from results.pages.cells import units_text
from results.pages.latex import remarks, with_scores
from results.pages.sheet import Line, Sheet
from results.paper.differences import spread_name
from results.search import SearchResults
from results.search_tables import by_seed, evaluation_table


def evaluation_sheet(results: SearchResults) -> Sheet:
    """Returns the evaluated points, and the paper's rows, with every metric that was measured.

    Means in bold, decimals and directions as in `results.pages.latex`; empty before the evaluation.
    """
    frame = evaluation_table(results)
    metrics = [name for name in METRICS if len(frame) and frame[f"{name}_mean"].notna().any()]
    groups = [results.evaluation_of(point) for point in results.evaluated if results.evaluation_of(point)]
    printed = bool((frame["source"] == "paper").any()) if len(frame) else False
    rows = tuple(
        (
            (Line(str(row["row"])),),
            *((Line(METRICS[m].mean_std_text(row[f"{m}_mean"], row[f"{m}_std"])),) for m in metrics),
            (Line(MISSING if math.isnan(float(row["n"])) else str(int(row["n"]))),),
        )
        for row in frame.to_dict("records")
    )
    header = (("method", ""), *((name, METRICS[name].display_unit) for name in metrics), ("n", "seeds"))
    sheet, bold = Sheet(f"Evaluation on {dataset_label(results.dataset)}", header, rows), False
    for place, metric in enumerate(metrics, start=1):
        factor = METRICS[metric].display_factor
        scores = [{seed: factor * score for seed, score in by_seed(group, metric).items()} for group in groups]
        spreads = [factor * float(std) for std in frame[f"{metric}_std"]]
        sheet, best = with_scores(sheet, place, metric, [*scores, *({} for _ in rows[len(scores) :])], spreads)
        bold = bold or best
    text = f"Mean ± {spread_name(printed)} over seeds. {units_text(metrics)}"
    return replace(sheet, remarks=(text, *remarks(bold))) if metrics else sheet
