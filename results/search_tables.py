"""The tables of the report of a search.

The search, the evaluation beside the printed rows, and comparisons by seed.
"""

import math
from collections.abc import Iterable
from dataclasses import fields

import pandas as pd

from results.labels import method_label
from results.ledger.record import Certificate, RunRecord
from results.metrics import METRICS
from results.paper.reference import printed_row
from results.points import AGEM, EPSILON, SOFT_AGEM, Point, by_point, point_label
from results.search import SearchResults
from results.statistics.paired import Paired, paired


def by_seed(members: Iterable[RunRecord], metric: str) -> dict[int, float]:
    """Returns unit -> metric (scaled as in `summarize`) of the members of one point that did not diverge."""
    return {record.unit: METRICS[metric].of(record) for record in members if record.status == "ok"}


def compare(first: Iterable[RunRecord], second: Iterable[RunRecord], metric: str = "A_T") -> Paired:
    """Returns the metric of the first point's members minus that of the second's, over their common seeds.

    In the units of `summarize`.
    """
    return paired(by_seed(first, metric), by_seed(second, metric))


def baseline_pair(results: SearchResults, metric: str = "", evaluation: bool = False) -> Paired:
    """Returns chosen point minus baseline by seed, in the search or in the evaluation; by default what was maximised.

    Without any pair where they are the same or there is no baseline.
    """
    members = results.evaluation_of if evaluation else results.members_of
    if results.baseline is None or results.baseline == results.chosen:
        return paired({}, {})
    return compare(members(results.chosen), members(results.baseline), metric or results.objective)


def search_table(results: SearchResults) -> pd.DataFrame:
    """Returns one row a round and point.

    Columns: repeat, low, high (NaN where the strategy searches no interval), one for each searched parameter, best (1 =
    best, 2 = second best of the round's winners, 0 = neither), n, diverged, then mean and std of every metric. A point
    without members yet has n = 0.
    """
    tried = dict.fromkeys(point for r in results.rounds for point in r.points)
    stats = by_point({point: results.members_of(point) for point in tried}, results.parameters)
    rows = [
        (r.number, *(r.span or (math.nan, math.nan)), rank, list(tried).index(point))
        for r in results.rounds
        for point, rank in zip(r.points, _ranks(r.winners, r.predicted or r.scores), strict=True)
    ]
    # A point that two rounds tried has the same members in both, so its statistics are computed once and joined.
    table = pd.DataFrame(rows, columns=["repeat", "low", "high", "best", "position"]).join(stats, on="position")
    first = ["repeat", "low", "high", *results.parameters, "best"]
    return table[[*first, *(c for c in stats.columns if c not in first)]]


def evaluation_table(results: SearchResults) -> pd.DataFrame:
    """Returns the chosen point and the baseline on the evaluation stream, then the paper's printed rows, if any.

    Columns: row, source ("this study" | "paper"), one for each searched parameter, n (seeds averaged), diverged, then
    <metric>_mean and <metric>_std for A_T, F_T, a_1, a_t, LCA_10, BWT, FWT (percent, but F_T and LCA_10 fractions). The
    standard deviations are those of the population where there are printed rows, else of the sample. Without an
    evaluation there are only printed rows; there are none where the sizes are not the paper's, unless they are wanted.
    """
    groups = {s: members for s in results.evaluated if (members := results.evaluation_of(s))}
    printed = [row for method in printed_methods(results) for row in _printed_rows(results, method)]
    measured = by_point(groups, results.parameters, population=bool(printed))
    # Both before the parameters: what a row is comes first in every table.
    measured.insert(0, "row", [point_label(results.method, results.parameters, point) for point in groups])
    measured.insert(1, "source", "this study")
    return pd.DataFrame([*measured.to_dict("records"), *printed], columns=measured.columns)


def printed_methods(results: SearchResults) -> tuple[str, ...]:
    """Returns the methods whose printed rows are shown: the study's, and A-GEM in a search of ε-SOFT-GEM's ε.

    None where the sizes are not the paper's, unless printed rows are wanted all the same.
    """
    if not results.printed_beside:
        return ()
    return tuple(method for method in _in_print(results) if printed_row(results.dataset, method))


def leaves_out(results: SearchResults) -> bool:
    """Returns whether the paper has printed rows that are not shown, because the sizes are others."""
    return not results.printed_beside and any(printed_row(results.dataset, method) for method in _in_print(results))


def _in_print(results: SearchResults) -> tuple[str, ...]:
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
    pairs = {m: baseline_pair(results, m, evaluation=True) for m in METRICS}
    rows = [(m, p.mean, p.error, p.n, p.wins) for m, p in pairs.items() if p.n]
    return pd.DataFrame(rows, columns=["metric", "mean", "standard_error", "n", "seeds_higher"])


def reference_label(row: str) -> str:
    """Returns the name of a reference row: that of its method, which is a way of training."""
    return f"{method_label(row)} training"


def reference_table(results: SearchResults) -> pd.DataFrame:
    """Returns one row a reference row, on the stream and with the seeds of the search.

    Columns: row, method, n (seeds averaged), diverged, then <metric>_mean and <metric>_std as `evaluation_table`; lead
    and lead_error, of what was maximised: row minus chosen point, paired by seed, and its standard error.
    """
    groups = {(reference_label(row), row): members for row, members in results.references.items()}
    table = by_point(groups, ("row", "method"))
    leads = [compare(members, results.members_of(results.chosen), results.objective) for members in groups.values()]
    return table.assign(lead=[lead.mean for lead in leads], lead_error=[lead.error for lead in leads])


def certificates_table(results: SearchResults) -> pd.DataFrame:
    """Returns one row a member that was trained a second time, alone.

    Columns: key, accuracy_difference (fraction), parameter_difference, created; a difference may be inf.
    """
    # The columns are named, because without a certificate there is no row that could name them.
    table = pd.DataFrame(results.certificates, columns=[field.name for field in fields(Certificate)])
    return table.drop(columns="kind")  # one for all of them


def _ranks(winners: tuple[int, int] | None, scores: tuple[float | None, ...]) -> list[int]:
    """Returns 1 for the better winner, 2 for the other, 0 for all other points."""
    # Winners come in any order; their scores tell the better one, and one without a score comes last.
    ordered = sorted(winners or (), key=lambda i: math.inf if (s := scores[i]) is None else -s)
    return [ordered.index(i) + 1 if i in ordered else 0 for i in range(len(scores))]


def _short_label(results: SearchResults, point: Point) -> str:
    if len(results.parameters) == 1:
        return point_label(results.method, results.parameters, point)
    return "chosen point" if point == results.chosen else "baseline"


def _printed_rows(results: SearchResults, method: str) -> list[dict[str, object]]:
    """Returns the paper's row of a method as a row of `evaluation_table`; none where it prints none."""
    printed = printed_row(results.dataset, method)
    if not printed:
        return []
    # The paper prints a value for no other hyperparameter, and that of ε only for some datasets.
    point: dict[str, object] = dict.fromkeys(results.parameters, math.nan)
    epsilon = {AGEM: 0.0, SOFT_AGEM: results.printed_epsilon}.get(method)
    if results.of_epsilon and epsilon is not None:
        point[EPSILON] = epsilon
    cells = {f"{m}_{name}": getattr(cell, name) for m, cell in printed.items() for name in ("mean", "std")}
    label = f"{method_label(method)}, printed"
    return [{"row": label, "source": "paper", **point, "n": math.nan, **cells}]
