"""The section of docs/performance.md on many workers, from benchmarks/results/cluster.json."""

from charts import table
from machine import Figures


def section(figures: Figures) -> tuple[str, dict[str, str]]:
    """Three tables, of those parts that were measured."""
    parts = [make(figures[part]) for part, make in PARTS.items() if part in figures]
    clock = "the processor time of its thread" if figures.get("clock") == "processor" else "the wall clock"
    parts.append(f"The driver's own work in virtual time is measured by {clock}.")
    loads = ", ".join(f"{part} {load:.1f}" for part, load in figures["load_before"].items())
    parts.append(f"Processes that ran or waited on the machine before each part (its load): {loads}.")
    return "\n\n".join(parts), {}


def _overhead(figures: Figures) -> str:
    rows = [[part, _seconds(one)] for part, one in figures["parts"].items()]
    rows += [["whole command", _seconds(figures["wall"])], ["cohorts, all together", _seconds(figures["compute"])]]
    text = (
        f"A search of the digits by two workers, {figures['members']} members, {figures['turns']} turn(s): the "
        f"cohorts, shared out over two, are {100 * figures['share']['median']:.0f} % of the wall time."
    )
    return f"{text}\n\n{table(['part', 'seconds'], rows)}"


def _ray(runs: list[Figures]) -> str:
    rows = [
        [
            str(row["workers"]),
            f"{row['cohort_seconds']:g}",
            *(_seconds(row[key]) for key in ("to_last_worker", "hand_over")),
            f"{100 * row['efficiency']['median']:.1f} %",
            f"{row['jobs_per_second']['median']:.1f}",
        ]
        for row in runs
    ]
    head = ["workers", "cohort, s", "all started, s", "hand-over, s", "asleep", "cohorts/s"]
    return f"Ray itself, with workers that sleep:\n\n{table(head, rows)}"


def _virtual(runs: list[Figures]) -> str:
    rows = []
    for row in runs:
        each = row["driver"] / row["jobs"]
        rows.append(
            [
                row["study"],
                str(row["workers"]),
                f"{row['member_seconds']:g}",
                f"{100 * row['busy_search'] / row['workers'] / row['search']:.1f} %",
                f"{100 * row['bound'] / row['whole']:.1f} %",
                f"{1000 * each:.1f}",
                f"{row['workers'] * each:.2f}",
            ]
        )
    head = [
        "study",
        "workers",
        "member, s",
        "search: at work",
        "bound / whole",
        "driver, ms a cohort",
        "saturated below, s",
    ]
    return f"The driver with workers in virtual time:\n\n{table(head, rows)}"


def _seconds(figures: Figures) -> str:
    span = f" ({figures['low']:.2f}…{figures['high']:.2f})" if figures["low"] < figures["high"] else ""
    return f"{figures['median']:.2f}{span}"


PARTS = {"overhead": _overhead, "ray": _ray, "virtual": _virtual}
