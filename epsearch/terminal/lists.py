"""What stands in a ledger, on a disk and on this machine: values in, rich renderables or JSON-able values out."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from epsearch.api import Dataset
from epsearch.doctor import Check
from epsearch.findings.listing import UNKNOWN, Listed
from epsearch.ledger.damage import unused_in_words
from epsearch.loop.base import Loop
from epsearch.preparation.images import Prepared
from epsearch.terminal.consoles import facts
from results.points import point_text
from trainers.streams.images.inspection import Inspection
from trainers.streams.images.sources.base import printable


def study(loop: Loop) -> RenderableType:
    """Options and state of a study."""
    table = Table(show_header=False, box=None)
    described = {"study": loop.study.name, "command": loop.study.kind, "state": loop.state(), "found": loop.headline()}
    if unused := loop.unused():
        described["damaged"] = unused_in_words(unused)
    for key, value in (described | loop.study.identity()).items():
        table.add_row(Text(key, style="bold"), str(value))
    return table


def study_as_json(loop: Loop) -> dict[str, Any]:
    """The same as one JSON object; score: mean A_T in [0, 1], null without a best point."""
    best = loop.best
    return {
        "name": loop.study.name,
        "command": loop.study.kind,
        "finished": loop.done,
        "stage": loop.stage,
        "damaged": loop.unused(),
        "chosen": loop.chosen(),
        "score": None if best is None else best.value,
        "inert": loop.inert,
        "config": loop.study.shown(),
    }


def study_list(rows: Sequence[Listed]) -> RenderableType:
    """One line a study; and what to do where a study's state is not known."""
    table = Table("study", "command", "dataset", "state", "best", "A_T %", "created", box=None, header_style="bold")
    for row in rows:
        best = "–" if row.chosen is None else point_text(tuple(row.chosen), tuple(row.chosen.values()))
        best = "none, all are equal" if row.inert else best
        score = "–" if row.score is None else f"{100 * row.score:.2f}"
        table.add_row(row.name, row.command, row.dataset, row.status, best, score, row.created[:19].replace("T", " "))
    if all(row.status != UNKNOWN for row in rows):
        return table
    return Group(table, Text(f"{UNKNOWN} is not known: `epsearch show NAME` finds it, `epsearch db upgrade` keeps it"))


def dataset_list(rows: Sequence[Dataset]) -> RenderableType:
    """One line a dataset."""
    table = Table("dataset", "what it is", "status", "where", box=None, header_style="bold")
    for row in rows:
        table.add_row(*row)
    return table


def prepared(found: Prepared) -> RenderableType:
    """What has been decoded, and how fast."""
    counts = ", ".join(f"{count:,} {part}" for part, count in found.counts.items())
    rate = f"in {found.seconds:.1f} s ({found.decoded / found.seconds:,.0f} images/s)"
    how = rate if found.decoded else "found in the cache"
    return facts(
        {
            "images": f"{counts}; {found.size} × {found.size} pixels, from {found.where}",
            "decoded": f"{found.cache_bytes / 2**20:,.0f} MiB, {how}",
            "fingerprint": found.fingerprint,
        }
    )


def inspected(found: Inspection) -> RenderableType:
    """A dataset's counts, and what is wrong with it."""
    lines = {"images": f"{sum(found.counts.values()):,} of {found.classes} classes, in {found.where}"}
    for part, count in found.counts.items():
        least, most = found.per_class[part]
        lines[part] = f"{count:,}; {least}–{most} a class" if least < most else f"{count:,}; {least} a class"
    if found.attributes is not None:
        lines["attributes"] = f"{found.attributes} of each class"
    corrupt = [f"{printable(name)} ({found.reasons[name]})" for name in found.corrupt]
    lines["corrupt"] = f"{len(corrupt)}: {', '.join(corrupt)}" if corrupt else "none"
    if found.differences:
        lines["differences"] = "; ".join(found.differences)
    return facts(lines)


def checks(found: Sequence[Check]) -> RenderableType:
    """One line a check, with a mark."""
    marks = {True: ("ok", "green"), False: ("broken", "red"), None: ("note", "yellow")}
    table = Table(show_header=False, box=None)
    for check in found:
        word, style = marks[check.ok]
        table.add_row(Text(word, style=style), check.subject, Text(check.detail))
    return table
