"""The section of docs/performance.md on many workers, from benchmarks/results/cluster.json."""

from typing import Any

from charts import table

Found = dict[str, Any]


def section(found: Found) -> tuple[str, dict[str, str]]:
    """Three tables, of those parts that were measured."""
    parts = [make(found[part]) for part, make in PARTS.items() if part in found]
    clock = "the processor time of its thread" if found.get("clock") == "processor" else "the wall clock"
    parts.append(f"The driver's own work in virtual time is measured by {clock}.")
    loads = ", ".join(f"{part} {load:.1f}" for part, load in found["load_before"].items())
    parts.append(f"Processes that ran or waited on the machine before each part (its load): {loads}.")
    return "\n\n".join(parts), {}


def _overhead(found: Found) -> str:
    rows = [[part, _seconds(one)] for part, one in found["parts"].items()]
    rows += [["whole command", _seconds(found["wall"])], ["cohorts, all together", _seconds(found["compute"])]]
    text = (
        f"A search of the digits by two workers, {found['members']} members, {found['turns']} turn(s): the cohorts, "
        f"shared out over two, are {100 * found['share']['median']:.0f} % of the wall time."
    )
    return f"{text}\n\n{table(['part', 'seconds'], rows)}"


def _ray(found: list[Found]) -> str:
    rows = [
        [
            str(row["workers"]),
            f"{row['cohort_seconds']:g}",
            *(_seconds(row[key]) for key in ("to_last_worker", "hand_over")),
            f"{100 * row['efficiency']['median']:.1f} %",
            f"{row['jobs_per_second']['median']:.1f}",
        ]
        for row in found
    ]
    head = ["workers", "cohort, s", "all started, s", "hand-over, s", "asleep", "cohorts/s"]
    return f"Ray itself, with workers that sleep:\n\n{table(head, rows)}"


def _virtual(found: list[Found]) -> str:
    rows = []
    for row in found:
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


def _seconds(found: Found) -> str:
    span = f" ({found['low']:.2f}…{found['high']:.2f})" if found["low"] < found["high"] else ""
    return f"{found['median']:.2f}{span}"


PARTS = {"overhead": _overhead, "ray": _ray, "virtual": _virtual}
