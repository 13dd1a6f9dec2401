"""The section of docs/performance.md about the service."""

from typing import Any

from charts import number, table


def section(figures: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """How long clients wait, and what they take from the studies."""
    head = (
        "ledger",
        "clients",
        "streams",
        "queued",
        "answers",
        "errors",
        "p50, ms",
        "p99, ms",
        "page of a study, ms",
        "submission, ms",
        "service's share of the studies'",
    )
    rows = [
        (
            row["database"],
            *(f"{row.get(key, 0):,}" for key in ("clients", "streams", "queued", "answers", "errors")),
            *(number(row[key]) for key in ("p50_ms", "p99_ms")),
            *("–" if key not in row else number(row[key]) for key in ("page_p50_ms", "submission_p50_ms")),
            f"{100 * row['share']:.1f} %",
        )
        for row in figures["rows"]
    ]
    return table(head, rows), {}
