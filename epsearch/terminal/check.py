"""Report of `epsearch check`, as lines of a table or JSON."""

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from epsearch.terminal.consoles import table
from results.labels import settings_text

if TYPE_CHECKING:
    from epsearch.checking.check_cache import CheckReport, Finding

SUBJECT, MARK = len("peak memory"), 3  # letters of the first columns; rows are printed one by one
MARKS = {True: ("yes", "green"), False: ("no", "red"), None: ("?", "yellow")}


def row_of(finding: "Finding") -> RenderableType:
    """Returns a marked line of a finding, in columns as wide as those of others."""
    subject = Text(finding.subject.ljust(SUBJECT), style="bold")
    mark, style = MARKS[finding.trusted]
    return table([(Text(mark.ljust(MARK), style), subject, Text(finding.text, overflow="fold"))])


def verdict_of(report: "CheckReport") -> RenderableType:
    """Returns whether the trainer can be trusted, with its values."""
    with_values = f", with {settings_text(report.values)}" if report.values else ""
    below = "it can be trusted" if report.trusted else "not all of it can be trusted"
    return Group(Text(""), Text(f"{report.trainer}{with_values}: {below}"))


def as_json(report: "CheckReport") -> dict[str, Any]:
    """Returns the same as JSON; trusted is null if undecided; units are seconds and bytes."""
    return {
        "trainer": report.trainer,
        "trusted": report.trusted,
        "values": dict(report.values),
        "findings": [
            {"subject": finding.subject, "trusted": finding.trusted, "text": finding.text}
            for finding in report.findings
        ],
        "inert": {name: list(values) for name, values in report.inert.items()},
        "seconds_a_task": report.seconds,
        "peak_bytes": report.bytes,
        "created": report.created,
    }
