"""A study as runs of TensorBoard: FOLDER/NAME/STREAM/POINT with means over its seeds, and a folder in it for each seed.

Each run is one event file with a hash of its content in its name: written whole or not at all, and never twice.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from epsearch.events import Progress
from epsearch.failures.errors import UsageError
from epsearch.publishing.points import OPEN, Publication, Trial, curve, metrics
from epsearch.publishing.report import PublishReport
from epsearch.study.description import Study
from results.files import write_atomically
from results.ledger.record import RunRecord, content_key

EVENTS = "events.out.tfevents.epsearch-"  # TensorBoard reads files that have the first part in their name


def publish(publication: Publication, folder: Path) -> PublishReport:
    """Writes a study into a folder for `tensorboard --logdir FOLDER`.

    Raises UsageError where tensorboardX is missing, or the folder cannot be written to.
    """
    root, added = folder / publication.study.name, 0
    for trial in publication.trials:
        for record in trial.records:
            write_member(root, trial, record)
        if trial.state != OPEN:
            added += _write(_run(root, trial), trial.version, _means(trial))
    _write(root, content_key(dict(publication.facts))[:16], _texts(publication.facts))
    return PublishReport(len(publication.trials), added, 0, f"tensorboard --logdir {folder}")


def write_member(root: Path, trial: Trial, record: RunRecord) -> None:
    """Writes the run of one member."""
    run = _run(root, trial) / f"seed-{record.unit}".replace(" ", "-")
    _write(run, record.key[:16], ((summary, step, record) for summary, step in _scalars([record])))


def _run(root: Path, trial: Trial) -> Path:
    """Returns the folder of a trial, with a hyphen for characters that have a meaning in paths."""
    name = ",".join(f"{name}={value}" for name, value in trial.values)
    return root / trial.stream / "".join("-" if letter in '/\\:*?"<>|' else letter for letter in name)


def _scalars(records: Sequence[RunRecord]) -> Iterator[tuple[Any, int]]:
    """Yields (summary, step): A_k in percent at step k, then the metrics at the last task."""
    summary = _tensorboard("summary")
    values = curve(records)
    for step, value in enumerate(values, start=1):
        yield summary.scalar("A_k", value), step
    for name, value in metrics(records).items():
        yield summary.scalar(name, value), len(values)


def _means(trial: Trial) -> Iterator[tuple[Any, int, RunRecord]]:
    """Yields means over the seeds, and hyperparameters for TensorBoard's tab HPARAMS."""
    means = {name: value for name, value in metrics(trial.records).items() if not name.endswith("_std")}
    for summary in _tensorboard("summary").hparams({**dict(trial.values), "stream": trial.stream}, means):
        yield summary, 0, trial.records[-1]
    for summary, step in _scalars(trial.records):
        yield summary, step, trial.records[-1]


def _texts(facts: Mapping[str, str]) -> Iterator[tuple[Any, int, None]]:
    for name, text in facts.items():
        indented = "\n".join(f"    {line}" for line in text.splitlines()) if name == "options" else text
        yield _tensorboard("summary").text(name, indented), 0, None


def _write(run: Path, key: str, events: Iterator[tuple[Any, int, RunRecord | None]]) -> bool:
    """Writes (summary, step, member with the time) as one file, in place of others; False if it exists."""
    path = run / f"{EVENTS}{key}"
    if path.exists():
        return False
    event_pb2, writer = _tensorboard("proto.event_pb2"), _tensorboard("event_file_writer").EventsWriter
    try:
        with tempfile.TemporaryDirectory() as folder:
            with closing(writer(f"{folder}/events")) as file:
                for summary, step, record in events:
                    seconds = 0.0 if record is None else datetime.fromisoformat(record.created).timestamp()
                    file.write_event(event_pb2.Event(summary=summary, step=step, wall_time=seconds))
            (written,) = Path(folder).iterdir()
            write_atomically(path, written.read_bytes())
        for other in run.glob(f"{EVENTS}*"):
            if other != path:
                other.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to the TensorBoard folder {run}: {error.strerror}") from error
    return True


def _tensorboard(module: str) -> Any:
    """Returns a module of tensorboardX, which writes TensorBoard's files. Raises UsageError without it."""
    from importlib import import_module

    try:
        return import_module(f"tensorboardX.{module}")
    except ImportError:
        line = "TensorBoard's files need tensorboardX: pip install 'epsearch[tensorboard]'"
        raise UsageError(line) from None


def live_log(folder: Path) -> Callable[[Study, str], "_TensorBoardLog"]:
    """Returns a function that opens the log of a study, for `Live`. Raises UsageError without tensorboardX."""
    _tensorboard("summary")
    return partial(_TensorBoardLog, folder)


class _TensorBoardLog:
    """Writes runs of stored members, and progress into FOLDER/NAME/progress, while a study trains."""

    def __init__(self, folder: Path, study: Study, heading: str) -> None:
        self._root = folder / study.name
        self._writer = _tensorboard("writer").SummaryWriter(str(self._root / "progress"))
        self._writer.add_text("study", heading)

    def member(self, trial: Trial, record: RunRecord) -> None:
        """Writes a stored member."""
        write_member(self._root, trial, record)

    def progress(self, now: Progress) -> None:
        """Writes members and speed."""
        self._writer.add_scalar("members of the stage", now.known, int(now.member_steps))
        self._writer.add_scalar("member-steps per second", now.speed or 0.0, int(now.member_steps))
        self._writer.flush()

    def end(self, status: str) -> None:
        """Closes the log."""
        self._writer.add_text("ended", status)
        self._writer.close()
