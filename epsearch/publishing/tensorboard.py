"""A study as runs of TensorBoard: FOLDER/NAME/STREAM/POINT with means over its seeds, and a folder in it for each seed.

Each run is one event file, whose name has a hash of what is in it: written whole or not at all, and never twice.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from epsearch.events import Progress
from epsearch.failures.errors import UsageError
from epsearch.publishing.live import Live
from epsearch.publishing.points import OPEN, Place, Published, curve, metrics
from epsearch.publishing.report import PublishReport
from epsearch.study.description import Study
from results.files import write_atomically
from results.ledger.record import RunRecord, content_key

EVENTS = "events.out.tfevents.epsearch-"  # TensorBoard reads files that have the first part in their name


def publish(found: Published, folder: Path) -> PublishReport:
    """Writes a study into a folder that `tensorboard --logdir FOLDER` shows.

    Raises UsageError where tensorboardX is missing, or the folder cannot be written to.
    """
    root, added = folder / found.study.name, 0
    for one in found.tried:
        for record in one.records:
            write_member(root, one.place, record)
        if one.state != OPEN:
            added += _write(_run(root, one.place), one.key, _point(one.place, one.records))
    _write(root, content_key(dict(found.facts))[:16], _texts(found.facts))
    return PublishReport(len(found.tried), added, 0, f"tensorboard --logdir {folder}")


def write_member(root: Path, place: Place, record: RunRecord) -> bool:
    """Writes the run of one member; whether it was not there."""
    run = _run(root, place) / f"seed-{record.seed}"
    return _write(run, record.key[:16], ((summary, step, record) for summary, step in _scalars([record])))


def _run(root: Path, place: Place) -> Path:
    """The folder of a place: characters that mean something in a path are left out."""
    name = ",".join(f"{name}={value}" for name, value in place.values)
    return root / place.stream / "".join("-" if letter in '/\\:*?"<>|' else letter for letter in name)


def _scalars(records: Sequence[RunRecord]) -> Iterator[tuple[Any, int]]:
    """A_k in percent at step k, then the metrics at the last task, as (summary, step)."""
    summary = _tensorboard("summary")
    values = curve(records)
    for step, value in enumerate(values, start=1):
        yield summary.scalar("A_k", value), step
    for name, value in metrics(records).items():
        yield summary.scalar(name, value), len(values)


def _point(place: Place, records: Sequence[RunRecord]) -> Iterator[tuple[Any, int, RunRecord]]:
    """Means over the seeds, and the hyperparameters for the tab that compares them."""
    means = {name: value for name, value in metrics(records).items() if not name.endswith("_std")}
    for summary in _tensorboard("summary").hparams({**dict(place.values), "stream": place.stream}, means):
        yield summary, 0, records[-1]
    for summary, step in _scalars(records):
        yield summary, step, records[-1]


def _texts(facts: Mapping[str, str]) -> Iterator[tuple[Any, int, None]]:
    for name, text in facts.items():
        shown = "\n".join(f"    {line}" for line in text.splitlines()) if name == "options" else text
        yield _tensorboard("summary").text(name, shown), 0, None


def _write(run: Path, key: str, events: Iterator[tuple[Any, int, RunRecord | None]]) -> bool:
    """Writes a run of (summary, step, member that says when) as one file, in place of others; False if it is there."""
    path = run / f"{EVENTS}{key}"
    if path.exists():
        return False
    event_pb2, writer = _tensorboard("proto.event_pb2"), _tensorboard("event_file_writer").EventsWriter
    try:
        with tempfile.TemporaryDirectory() as folder:
            with closing(writer(f"{folder}/events")) as made:
                for summary, step, record in events:
                    seconds = 0.0 if record is None else datetime.fromisoformat(record.created).timestamp()
                    made.write_event(event_pb2.Event(summary=summary, step=step, wall_time=seconds))
            (file,) = Path(folder).iterdir()
            write_atomically(path, file.read_bytes())
        for other in run.glob(f"{EVENTS}*"):
            if other != path:
                other.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to the TensorBoard folder {run}: {error.strerror}") from error
    return True


def _tensorboard(module: str) -> Any:
    """A module of tensorboardX, which writes what TensorBoard reads."""
    from importlib import import_module

    try:
        return import_module(f"tensorboardX.{module}")
    except ImportError:
        line = "TensorBoard's files need tensorboardX: pip install 'epsearch[tensorboard]'"
        raise UsageError(line) from None


class TensorBoardLive(Live):
    """Writes the run of each member when it is stored, and how far the training is, into FOLDER/NAME/progress."""

    def __init__(self, folder: Path, tell: Callable[[str], None] = lambda line: None) -> None:
        _tensorboard("summary")
        super().__init__(f"tensorboard:{folder}", tell)
        self._folder = folder
        self._writer: Any = None  # until there is a study

    def open(self, study: Study, heading: str) -> None:
        """As `Live` says."""
        self._root = self._folder / study.name
        self._writer = _tensorboard("writer").SummaryWriter(str(self._root / "progress"))
        self._writer.add_text("study", heading)

    def member(self, place: Place, record: RunRecord) -> None:
        """As `Live` says."""
        write_member(self._root, place, record)

    def far(self, now: Progress) -> None:
        """As `Live` says."""
        if self._writer is not None:
            self._writer.add_scalar("members of the stage", now.known, int(now.member_steps))
            self._writer.add_scalar("member-steps per second", now.speed or 0.0, int(now.member_steps))
            self._writer.flush()

    def end(self, status: str) -> None:
        """As `Live` says."""
        if self._writer is not None:
            self._writer.add_text("ended", status)
            self._writer.close()
