"""What a trainer can be trusted with, as `epsearch check` prints it."""

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from epsearch.terminal.consoles import table
from results.labels import settings_text

if TYPE_CHECKING:
    from epsearch.checking.check_cache import CheckReport

MARKS = {True: ("yes", "green"), False: ("no", "red"), None: ("?", "yellow")}


def shown(found: "CheckReport") -> RenderableType:
    """A line for each finding, with a mark, and with which values the trainer was trained."""
    rows = [
        (Text(*MARKS[one.trusted]), Text(one.subject, style="bold"), Text(one.text, overflow="fold"))
        for one in found.findings
    ]
    with_values = f", with {settings_text(found.values)}" if found.values else ""
    below = "it can be trusted" if found.trusted else "not all of it can be trusted"
    return Group(table(rows), Text(""), Text(f"{found.trainer}{with_values}: {below}"))


def as_json(found: "CheckReport") -> dict[str, Any]:
    """The same as one JSON object; trusted is null where that cannot be told, sizes are in seconds and bytes."""
    return {
        "trainer": found.trainer,
        "trusted": found.trusted,
        "values": dict(found.values),
        "findings": [{"subject": one.subject, "trusted": one.trusted, "text": one.text} for one in found.findings],
        "inert": {name: list(values) for name, values in found.inert.items()},
        "seconds_a_task": found.seconds,
        "peak_bytes": found.bytes,
        "created": found.created,
    }
