"""What stands in a ledger, on a disk and on this machine: values in, rich renderables or JSON-able values out."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from epsearch.ledger.damage import unused_in_words
from epsearch.status import UNKNOWN, StudyStatus
from epsearch.terminal.consoles import Fitting, facts, table
from results.labels import A_T, count_text
from results.points import point_text

if TYPE_CHECKING:  # a list of studies is printed without what other commands need
    from epsearch.api import Dataset
    from epsearch.control.removing import Removal
    from epsearch.doctor import Check
    from epsearch.loop.base import Loop
    from epsearch.plugins.naming import Provided
    from epsearch.preparation.images import Prepared
    from epsearch.study.description import Study
    from trainers.streams.images.inspection import Inspection


def study(loop: "Loop") -> RenderableType:
    """Options and state of a study."""
    unused = loop.unused()
    return facts(
        {
            "study": loop.study.name,
            "command": loop.study.kind,
            "state": loop.state(),
            "found": loop.headline(),
            **({"damaged": unused_in_words(unused)} if unused else {}),
            **{name: _plain(value) for name, value in loop.study.shown().items() if value is not None},
        }
    )


def waiting(row: StudyStatus, study: "Study") -> RenderableType:
    """Options and state of a study of which nothing but that is known yet."""
    known = {"study": row.name, "command": row.kind, "state": row.status}
    return facts(known | {name: _plain(value) for name, value in study.shown().items() if value is not None})


def _plain(value: Any) -> str:
    """An option's value as it is typed."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return " ".join(
            f"{name}={','.join(map(str, one)) if isinstance(one, list) else one}" for name, one in value.items()
        )
    return " ".join(map(_plain, value)) if isinstance(value, (list, tuple)) else str(value)


def study_as_json(loop: "Loop") -> dict[str, Any]:
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


def studies(rows: Sequence[StudyStatus]) -> RenderableType:
    """One line a study: name, state, best point, its A_T in percent, command, dataset, time of creation.

    A narrow terminal has room for the first of them. Below, what to do where a study's state is not known.
    """
    if not rows:
        return Text("no study yet; `epsearch run` makes one")
    titles = ("study", "state", "best", "A_T %", "command", "dataset", "created (UTC)")
    lines = Fitting(titles, [list(map(Text, _line(row))) for row in rows], "--json has them")
    if all(row.status != UNKNOWN for row in rows):
        return lines
    return Group(lines, Text(f"{UNKNOWN} is not known: `epsearch show NAME` finds it, `epsearch db upgrade` keeps it"))


def as_json(row: StudyStatus) -> dict[str, Any]:
    """Returns a study as JSON."""
    return row.as_json() | {"command": row.kind}


def followed(status: StudyStatus) -> RenderableType:
    """Returns how a study stands that was followed to its end."""
    reason = f": {status.reason}" if status.reason else ""
    how_far = f"; {status.summary}" if status.summary and status.summary != status.state else ""
    return Text(f"study {status.name} is {status.state}{reason}{how_far}")


def followed_as_json(status: StudyStatus) -> dict[str, Any]:
    """Returns the same as JSON."""
    return {name: getattr(status, name) for name in ("name", "state", "reason", "summary")}


def removed(removal: "Removal") -> str:
    """Returns the contents of a removal in words."""
    parts = [count_text(len(removal.runs), "member")]
    if not removal.studies:
        parts += [count_text(removal.events, "event"), count_text(len(removal.files), "kept task")]
    text = ", ".join(parts)
    if removal.shared:
        text += f" ({removal.shared} that other studies use stay)"
    if removal.unreadable:
        text += f" (all members stay, as {', '.join(removal.unreadable)} cannot be read and may use them)"
    return text


def removal_as_json(removal: "Removal") -> dict[str, Any]:
    """Returns the same as JSON."""
    return asdict(removal) | {"runs": sorted(removal.runs), "files": sorted(map(str, removal.files))}


def _line(row: StudyStatus) -> tuple[str, ...]:
    best = UNKNOWN if row.chosen is None else point_text(tuple(row.chosen), tuple(row.chosen.values()))
    return (
        row.name,
        row.status,
        "none, all are equal" if row.inert else best,
        UNKNOWN
        if row.score is None
        else f"{100 * row.score:.2f}{'' if row.objective == A_T else f' ({row.objective})'}",
        row.kind,
        row.dataset,
        row.created[:19].replace("T", " "),  # to the second
    )


def datasets(rows: "Sequence[Dataset]") -> RenderableType:
    """One line a dataset: name, title, whether it is there, and where."""
    return table(rows, "dataset", "what it is", "status", "where")


def plugins(rows: "Sequence[Provided]") -> RenderableType:
    """One line a plug-in: what it is, its name, what that stands for, and whose it is."""
    if not rows:
        return Text("no installed package provides a plug-in; module:attribute names one of your own")
    return table(rows, "kind", "name", "stands for", "package", "note")


def prepared(found: "Prepared") -> RenderableType:
    """What has been decoded, and how fast."""
    counts = ", ".join(f"{count:,} {part}" for part, count in found.counts.items())
    rate = f"in {found.seconds:.1f} s ({found.decoded / found.seconds:,.0f} images/s)"
    return facts(
        {
            "images": f"{counts}; {found.size} × {found.size} pixels, from {found.where}",
            "decoded": f"{found.cache_bytes / 2**20:,.3g} MiB, {rate if found.decoded else 'found in the cache'}",
            "fingerprint": found.fingerprint,
        }
    )


def inspected(found: "Inspection") -> RenderableType:
    """A dataset's counts, by part and class, and what is wrong with it: images that are corrupt, other counts."""
    from trainers.streams.images.sources.base import printable

    # The fewest and the most of a class; once where they are equal.
    spans = {part: "–".join(map(str, dict.fromkeys(ends))) for part, ends in found.per_class.items()}
    corrupt = [f"{printable(name)} ({found.reasons[name]})" for name in found.corrupt]
    return facts(
        {
            "images": f"{sum(found.counts.values()):,} of {found.classes} classes, in {found.where}",
            **{part: f"{count:,}; {spans[part]} a class" for part, count in found.counts.items()},
            **({} if found.attributes is None else {"attributes": f"{found.attributes} of each class"}),
            **({"left out": found.left_out} if found.left_out else {}),
            "levels": "; ".join(found.levels) or "none",
            "corrupt": f"{len(corrupt)}: {', '.join(corrupt)}" if corrupt else "none",
            **({"differences": "; ".join(found.differences)} if found.differences else {}),
        }
    )


def checks(found: "Sequence[Check]") -> RenderableType:
    """One line a check of `epsearch doctor`, with a mark: what is broken, and what is merely worth knowing."""
    marks = {True: Text("ok", "green"), False: Text("broken", "red"), None: Text("note", "yellow")}
    return table((marks[check.ok], check.subject, Text(check.detail)) for check in found)
