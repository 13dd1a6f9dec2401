"""Lists of studies, datasets, plug-ins and checks, as rich renderables or JSON-able values."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from epsearch.ledger.damage import describe_unused
from epsearch.status import UNKNOWN, StudyStatus
from epsearch.terminal.consoles import FittingTable, facts, table
from results.labels import A_T, count_text, dataset_label, method_label
from results.points import point_text

if TYPE_CHECKING:  # a list of studies is printed without what other commands need
    from epsearch.control.removing import Removal
    from epsearch.loop.base import Loop
    from epsearch.plugins.names import InstalledPlugin
    from epsearch.preparation.images import DecodedImages
    from epsearch.study.description import Study
    from search_spaces.published.pack import Pack
    from trainers.streams.images.inspection import Inspection


LONGEST_STATE = 60
"""Letters of a state and its detail that fit into a list."""
UNREADABLE = "unreadable"


def study(loop: "Loop") -> RenderableType:
    """Returns options and state of a study."""
    unused = loop.unused_records()
    return facts(
        {
            "study": loop.study.name,
            "command": loop.study.kind,
            "state": loop.state(),
            "found": loop.headline(),
            **({"damaged": describe_unused(unused)} if unused else {}),
            **{name: _plain(value) for name, value in loop.study.to_dict().items() if value is not None},
        }
    )


def waiting(row: StudyStatus, study: "Study") -> RenderableType:
    """Returns options and state of a study without results."""
    state = {"study": row.name, "command": row.kind, "state": row.status}
    return facts(state | {name: _plain(value) for name, value in study.to_dict().items() if value is not None})


def _plain(value: Any) -> str:
    """Returns an option's value as typed."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return " ".join(
            f"{name}={','.join(map(str, part)) if isinstance(part, list) else part}" for name, part in value.items()
        )
    return " ".join(map(_plain, value)) if isinstance(value, (list, tuple)) else str(value)


def study_as_json(loop: "Loop") -> dict[str, Any]:
    """Returns the same as JSON; score: mean A_T in [0, 1], null without a best point."""
    best = loop.best
    return {
        "name": loop.study.name,
        "command": loop.study.kind,
        "finished": loop.done,
        "stage": loop.stage,
        "damaged": loop.unused_records(),
        "chosen": loop.choice(),
        "score": None if best is None else best.value,
        "inert": loop.inert,
        "config": loop.study.to_dict(),
    }


def studies(rows: Sequence[StudyStatus]) -> RenderableType:
    """Returns a line per study: name, state, best point, its A_T in percent, command, dataset, time of creation.

    Notes below have reasons that are too long for a column, and say what to do if a state is unknown.
    """
    if not rows:
        return Text("no study yet; `epsearch run` makes one")
    titles = ("study", "state", "best", "A_T %", "command", "dataset", "created (UTC)")
    lines = FittingTable(titles, [list(map(Text, _line(row))) for row in rows], "--json has them", folds={0: 2, 2: 3})
    notes = [f"{row.name}: {row.detail}" for row in rows if _is_long(row)]
    if any(row.status == UNKNOWN for row in rows):
        notes.append(f"{UNKNOWN} means unknown: `epsearch show NAME` computes it, `epsearch db upgrade` stores it")
    return Group(lines, *map(Text, notes)) if notes else lines


def as_json(row: StudyStatus) -> dict[str, Any]:
    """Returns a study as JSON."""
    return row.as_json() | {"command": row.kind}


def final_state(status: StudyStatus) -> RenderableType:
    """Returns the state of a study after its training."""
    reason = f": {status.reason}" if status.reason else ""
    summary = f"; {status.summary}" if status.summary and status.summary != status.state else ""
    return Text(f"study {status.name} is {status.state}{reason}{summary}")


def final_state_as_json(status: StudyStatus) -> dict[str, Any]:
    """Returns the same as JSON."""
    return {name: getattr(status, name) for name in ("name", "state", "reason", "summary")}


def removal_text(removal: "Removal") -> str:
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
        (UNREADABLE if row.unreadable else row.state) if _is_long(row) else row.status,
        "none, all are equal" if row.inert else best,
        UNKNOWN
        if row.score is None
        else f"{100 * row.score:.2f}{'' if row.objective == A_T else f' ({row.objective})'}",
        row.kind,
        row.dataset,
        row.created[:19].replace("T", " "),  # to the second
    )


def datasets(rows: Sequence[Mapping[str, str]]) -> RenderableType:
    """Returns a line per dataset: name, title, status, folder."""
    return table((row.values() for row in rows), "dataset", "what it is", "status", "where")


def packs(rows: "Sequence[Pack]") -> RenderableType:
    """Returns a line per pack, a block a source: name, stream, printed number, margin."""
    parts: list[RenderableType] = []
    for source in dict.fromkeys(pack.source for pack in rows):
        lines = [
            (pack.name, dataset_label(pack.dataset), method_label(pack.method), f"{pack.mean:g}", f"±{pack.margin:g}")
            for pack in rows
            if pack.source == source
        ]
        titles = "pack", "stream", "method", "printed", "margin"
        parts += [Text(source, style="bold"), table(lines, *titles), Text("")]
    return Group(*parts, Text("epsearch reproduce PACK trains one; plan reproduce PACK says how long that takes"))


def plugins(rows: "Sequence[InstalledPlugin]") -> RenderableType:
    """Returns a line per plug-in: kind, name, module:attribute, package, note."""
    if not rows:
        return Text("no installed package provides a plug-in; module:attribute names one of your own")
    return table(rows, "kind", "name", "stands for", "package", "note")


def decoded_images(images: "DecodedImages") -> RenderableType:
    """Returns the decoded images of a dataset, and the speed of decoding."""
    counts = ", ".join(f"{count:,} {part}" for part, count in images.counts.items())
    rate = f"in {images.seconds:.1f} s ({images.decoded / images.seconds:,.0f} images/s)"
    return facts(
        {
            "images": f"{counts}; {images.size} × {images.size} pixels, from {images.where}",
            "decoded": f"{images.cache_bytes / 2**20:,.3g} MiB, {rate if images.decoded else 'found in the cache'}",
            "fingerprint": images.fingerprint,
        }
    )


def inspection_text(inspection: "Inspection") -> RenderableType:
    """Returns a dataset's counts, corrupt images, and differences from its description."""
    from trainers.streams.images.sources.base import printable

    # The smallest and the largest class; once if they are equal.
    spans = {part: "–".join(map(str, dict.fromkeys(ends))) for part, ends in inspection.per_class.items()}
    corrupt = [f"{printable(name)} ({inspection.reasons[name]})" for name in inspection.corrupt]
    return facts(
        {
            "images": f"{sum(inspection.counts.values()):,} of {inspection.classes} classes, in {inspection.where}",
            **{part: f"{count:,}; {spans[part]} a class" for part, count in inspection.counts.items()},
            **({} if inspection.attributes is None else {"attributes": f"{inspection.attributes} of each class"}),
            **({"left out": inspection.left_out} if inspection.left_out else {}),
            "levels": "; ".join(inspection.levels) or "none",
            "corrupt": f"{len(corrupt)}: {', '.join(corrupt)}" if corrupt else "none",
            **({"differences": "; ".join(inspection.differences)} if inspection.differences else {}),
        }
    )


def checks(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Returns a line per check of `epsearch doctor`, marked as ok, broken or a note."""
    marks = {True: Text("ok", "green"), False: Text("broken", "red"), None: Text("note", "yellow")}
    return table((marks[row["ok"]], row["subject"], Text(row["detail"])) for row in rows)


def _is_long(row: StudyStatus) -> bool:
    """Returns whether the state of a study, with its detail, is too long for a column."""
    return len(row.status) > LONGEST_STATE
