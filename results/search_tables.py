"""The tables of the report: the search, the evaluation beside the printed rows, and comparisons by seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from results.labels import method_label
from results.ledger.certificate import Certificate
from results.ledger.record import RunRecord
from results.metrics import METRICS, mean_std, summarize
from results.paper.reference import printed_row
from results.points import AGEM, EPSILON, SOFT_AGEM, Point, point_label
from results.search import SearchResults
from results.statistics.paired import Paired, paired

if TYPE_CHECKING:
    import pandas as pd


def by_seed(members: Iterable[RunRecord], metric: str) -> dict[int, float]:
    """Returns seed -> metric (units of `summarize`) of the members of one point that did not diverge."""
    frame = summarize(r for r in members if r.status == "ok")
    return dict(zip(frame["seed"].tolist(), frame[metric].astype(float).tolist(), strict=True))


def compare(first: Iterable[RunRecord], second: Iterable[RunRecord], metric: str = "A_T") -> Paired:
    """Returns the metric of the first point's members minus that of the second's, over their common seeds.

    In the units of `summarize`.
    """
    return paired(by_seed(first, metric), by_seed(second, metric))


def baseline_pair(results: SearchResults, metric: str = "A_T", evaluation: bool = False) -> Paired:
    """Returns chosen point minus baseline by seed, in the search or in the evaluation.

    Without any pair where they are the same or there is no baseline.
    """
    members = results.evaluation_of if evaluation else results.members_of
    if results.baseline is None or results.baseline == results.chosen:
        return paired({}, {})
    return compare(members(results.chosen), members(results.baseline), metric)


def by_point(groups: Mapping[Point, Sequence[RunRecord]], names: Sequence[str]) -> pd.DataFrame:
    """Returns one row a point, in order, with the mean and spread of every metric.

    Columns: one for each of `names`, n (seeds averaged), diverged, then <metric>_mean and <metric>_std (see
    `mean_std`). A point without members has n = 0.
    """
    import pandas as pd

    kept = [(i, record) for i, members in enumerate(groups.values()) for record in members]
    frame = summarize(record for _, record in kept).assign(position=[i for i, _ in kept])
    # By position, not by value: pandas cannot group by points of mixed types, and drops groups without rows.
    table = mean_std(frame, by=["position"]).set_index("position").reindex(range(len(groups))).reset_index(drop=True)
    counts = table[["n", "diverged"]].fillna(0).astype(int)
    values = pd.DataFrame({name: [point[i] for point in groups] for i, name in enumerate(names)})
    return pd.concat([values, counts, table.drop(columns=["n", "diverged"])], axis=1)


def search_table(results: SearchResults) -> pd.DataFrame:
    """Returns one row a round and point.

    Columns: repeat, low, high (NaN where the strategy searches no interval), one for each searched parameter, best (1 =
    best, 2 = second best of the round's winners, 0 = neither), n, diverged, then mean and std of every metric. A point
    without members yet has n = 0.
    """
    import pandas as pd

    tried = dict.fromkeys(point for r in results.rounds for point in r.points)
    stats = by_point({point: results.members_of(point) for point in tried}, results.parameters)
    rows = [
        (r.number, *(r.span or (math.nan, math.nan)), rank, list(tried).index(point))
        for r in results.rounds
        for point, rank in zip(r.points, _ranks(r.winners, r.scores), strict=True)
    ]
    table = pd.DataFrame(rows, columns=["repeat", "low", "high", "best", "position"])
    table = table.merge(stats, left_on="position", right_index=True, how="left")
    first = ["repeat", "low", "high", *results.parameters, "best"]
    return table[[*first, *(c for c in stats.columns if c not in first)]]


def evaluation_table(results: SearchResults) -> pd.DataFrame:
    """Returns the chosen point and the baseline on the evaluation stream, then the paper's printed rows, if any.

    Columns: row, source ("this study" | "paper"), one for each searched parameter, n (seeds averaged), diverged, then
    <metric>_mean and <metric>_std for A_T, F_T, a_1, a_t, LCA_10, BWT, FWT (percent, but F_T and LCA_10 fractions;
    population std). Without an evaluation there are only printed rows.
    """
    import pandas as pd

    groups = {s: members for s in results.evaluated if (members := results.evaluation_of(s))}
    measured = by_point(groups, results.parameters)
    labels = [point_label(results.method, results.parameters, point) for point in groups]
    measured.insert(0, "row", labels)
    measured.insert(1, "source", "this study")
    printed = [row for method in printed_methods(results) for row in _printed_rows(results, method)]
    return pd.DataFrame([*measured.to_dict("records"), *printed], columns=measured.columns)


def printed_methods(results: SearchResults) -> tuple[str, ...]:
    """Returns the methods whose printed rows are shown: the study's, and A-GEM in a search of ε-SOFT-GEM's ε."""
    return (results.method, AGEM) if results.zero_is_agem else (results.method,)


def evaluated_rows(results: SearchResults) -> list[tuple[str, tuple[RunRecord, ...]]]:
    """Returns (label, members) of the evaluated points, the chosen one first; points without members are left out.

    Labels are short: with several parameters they do not contain the values.
    """
    groups = [(point, results.evaluation_of(point)) for point in results.evaluated]
    return [(_short_label(results, point), members) for point, members in groups if members]


def difference_table(results: SearchResults) -> pd.DataFrame:
    """Returns chosen point minus baseline by seed on the evaluation stream, one row a metric.

    Columns: metric, mean, standard_error, n, seeds_higher. Empty where the baseline was chosen or there is none.
    """
    import pandas as pd

    columns = ["metric", "mean", "standard_error", "n", "seeds_higher"]
    pairs = {m: baseline_pair(results, m, evaluation=True) for m in METRICS}
    rows = [(m, p.mean, p.error, p.n, p.wins) for m, p in pairs.items() if p.n]
    return pd.DataFrame(rows, columns=columns)


def certificates_table(results: SearchResults) -> pd.DataFrame:
    """Returns one row a member that was trained a second time, alone.

    Columns: key, accuracy_difference (fraction), parameter_difference, created; a difference may be inf.
    """
    import pandas as pd

    return pd.DataFrame(results.certificates, columns=[field.name for field in fields(Certificate)])


def _ranks(winners: tuple[int, int] | None, scores: tuple[float | None, ...]) -> list[int]:
    """Returns 1 for the better winner, 2 for the other, 0 for all other points."""
    ranks = [0] * len(scores)
    if winners is not None:
        ordered = sorted(winners, key=lambda i: math.inf if (s := scores[i]) is None else -s)
        for place, position in enumerate(ordered, start=1):
            ranks[position] = place
    return ranks


def _short_label(results: SearchResults, point: Point) -> str:
    if len(results.parameters) == 1:
        return point_label(results.method, results.parameters, point)
    return "chosen point" if point == results.chosen else "baseline"


def _printed_rows(results: SearchResults, method: str) -> list[dict[str, object]]:
    """Returns the paper's row of a method as a row of `evaluation_table`; none where it prints none."""
    printed = printed_row(results.dataset, method)
    if printed is None:
        return []
    cells: dict[str, object] = {name: math.nan for name in results.parameters}
    if results.of_epsilon:
        printed_epsilon = math.nan if results.printed_epsilon is None else results.printed_epsilon
        cells[EPSILON] = {AGEM: 0.0, SOFT_AGEM: printed_epsilon}.get(method, math.nan)
    for metric, mean, std in zip(printed["metric"], printed["mean"], printed["std"], strict=True):
        cells |= {f"{metric}_mean": mean, f"{metric}_std": std}
    return [{"row": f"{method_label(method)}, printed", "source": "paper", "n": math.nan, **cells}]
