"""The tables of the report: the search, the evaluation beside the printed rows, and comparisons by seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from results.certificate import Certificate
from results.labels import method_label, setting_label
from results.metrics import METRICS, mean_std, summarize
from results.record import RunRecord
from results.reference import PRINTED_EPSILON, printed_row
from results.statistics import Paired, paired
from results.study import StudyResults

if TYPE_CHECKING:
    import pandas as pd

EVALUATION_COLUMNS = ["row", "source", "epsilon", "n", "diverged"]


def by_seed(records: Iterable[RunRecord], epsilon: float, metric: str) -> dict[int, float]:
    """seed -> metric (units of `summarize`) of the members at ε that did not diverge."""
    frame = summarize(r for r in records if r.epsilon == epsilon and r.status == "ok")
    return dict(zip(frame["seed"].tolist(), frame[metric].astype(float).tolist(), strict=True))


def compare(records: Iterable[RunRecord], first: float, second: float, metric: str = "A_T") -> Paired:
    """Metric at ε = first minus metric at ε = second, over the seeds both have (units of `summarize`)."""
    kept = list(records)
    return paired(by_seed(kept, first, metric), by_seed(kept, second, metric))


def by_epsilon(records: Iterable[RunRecord]) -> pd.DataFrame:
    """`mean_std` of the records by ε: columns epsilon, n, diverged, <metric>_mean, <metric>_std."""
    return mean_std(summarize(records), by=["epsilon"])


def search_table(results: StudyResults) -> pd.DataFrame:
    """One row a repeat and grid point: repeat, low, high, epsilon, best (1 = best, 2 = second of the repeat's
    winners, 0 = neither), n, diverged, then mean and std of every metric. A point without members yet has n =
    0.
    """
    import pandas as pd

    rows = [
        (r.number, r.low, r.high, epsilon, rank)
        for r in results.rounds
        for epsilon, rank in zip(r.epsilons, _ranks(r.winners, r.scores), strict=True)
    ]
    grid = pd.DataFrame(rows, columns=["repeat", "low", "high", "epsilon", "best"])
    table = grid.merge(by_epsilon(results.search), on="epsilon", how="left")
    counts = table[["n", "diverged"]].fillna(0).astype(int)
    return table.assign(n=counts["n"], diverged=counts["diverged"])


def evaluation_table(results: StudyResults) -> pd.DataFrame:
    """The chosen ε and A-GEM (ε = 0) on the evaluation stream, then the paper's printed rows where they
    exist.

    Columns: row, source ("this study" | "paper"), epsilon, n (seeds averaged), diverged, then <metric>_mean
    and <metric>_std for A_T, F_T, a_1, a_t, LCA_10, BWT, FWT (percent, but F_T and LCA_10 fractions;
    population std). Empty `evaluation` leaves only printed rows.
    """
    import pandas as pd

    rows = [_measured_row(label, members) for label, members in evaluated_rows(results)]
    methods = dict.fromkeys((results.method, "agem"))
    rows += [row for method in methods for row in _printed_rows(results.dataset, method)]
    columns = [*EVALUATION_COLUMNS, *(f"{m}_{kind}" for m in METRICS for kind in ("mean", "std"))]
    return pd.DataFrame(rows, columns=columns)


def evaluated_rows(results: StudyResults) -> list[tuple[str, list[RunRecord]]]:
    """(label, members) of the evaluated ε, the chosen one first; none for an ε that was not evaluated."""
    groups = [(e, [r for r in results.evaluation if r.epsilon == e]) for e in results.evaluated_epsilons]
    return [(setting_label(results.method, epsilon), members) for epsilon, members in groups if members]


def difference_table(results: StudyResults) -> pd.DataFrame:
    """Chosen ε minus A-GEM by seed on the evaluation stream: metric, mean, standard_error, n, seeds_higher.
    Empty where ε = 0 was chosen.
    """
    import pandas as pd

    columns = ["metric", "mean", "standard_error", "n", "seeds_higher"]
    if results.chosen_epsilon == 0:
        return pd.DataFrame(columns=columns)
    pairs = {m: compare(results.evaluation, results.chosen_epsilon, 0.0, m) for m in METRICS}
    rows = [(m, p.mean, p.error, p.n, p.wins) for m, p in pairs.items() if p.n]
    return pd.DataFrame(rows, columns=columns)


def certificates_table(results: StudyResults) -> pd.DataFrame:
    """One row a member that was trained again alone: key, accuracy_difference (fraction), parameter_difference,
    created; a difference may be inf.
    """
    import pandas as pd

    return pd.DataFrame(results.certificates, columns=[field.name for field in fields(Certificate)])


def _ranks(winners: tuple[int, int] | None, scores: tuple[float | None, ...]) -> list[int]:
    """1 at the better winner, 2 at the other, 0 elsewhere."""
    ranks = [0] * len(scores)
    if winners is not None:
        ordered = sorted(winners, key=lambda i: math.inf if (s := scores[i]) is None else -s)
        for place, position in enumerate(ordered, start=1):
            ranks[position] = place
    return ranks


def _measured_row(label: str, members: list[RunRecord]) -> dict[str, object]:
    cells = {str(name): value for name, value in by_epsilon(members).iloc[0].items()}
    return {"row": label, "source": "this study", **cells}


def _printed_rows(dataset: str, method: str) -> list[dict[str, object]]:
    printed = printed_row(dataset, method)
    if printed is None:
        return []
    epsilon: Mapping[str, float] = {"agem": 0.0, "soft_agem": PRINTED_EPSILON.get(dataset, math.nan)}
    cells: dict[str, object] = {}
    for metric, mean, std in zip(printed["metric"], printed["mean"], printed["std"], strict=True):
        cells |= {f"{metric}_mean": mean, f"{metric}_std": std}
    label = f"{method_label(method)}, printed"
    return [{"row": label, "source": "paper", "epsilon": epsilon.get(method, math.nan), "n": math.nan, **cells}]
