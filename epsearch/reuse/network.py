"""Trains the network of a stored run again, and writes it as a state_dict of torch."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from epsearch.events import Listener, ignore
from epsearch.failures.errors import UsageError
from epsearch.findings.listing import load
from epsearch.loop.base import Loop
from epsearch.loop.jobs import Run
from epsearch.loop.protocols import ProtocolLoop
from epsearch.loop.search import SearchLoop
from epsearch.loop.table import Row, TableLoop
from epsearch.reuse.transfer import check_target
from epsearch.reuse.verification import label_of
from epsearch.session.reruns import Reruns, train_again
from epsearch.study.kinds import Comparison, MemoryStudy, ProtocolStudy, Search
from results.files import write_atomically
from results.labels import on_one_line
from results.ledger.record import Certificate, RunRecord, array_to_json
from results.ledger.url import LedgerUrl
from results.metrics import average_accuracy
from results.points import point_text
from trainers.cohort import Learner
from trainers.forks import Fork
from trainers.methods import Columns
from trainers.spelling import did_you_mean

CHOSEN, BASELINE = "chosen", "baseline"


class SavedNetwork(NamedTuple):
    """The trained network and its files."""

    file: Path
    """The state_dict."""
    described: Path
    """JSON: the run, its scores, the inputs and layers of the network."""
    record: RunRecord
    """The run as trained now."""
    label: str
    """Its method and values, as tables name them."""
    certificate: Certificate | None
    """Its difference to the stored run; None where the ledger has no such run."""


def save_network(  # noqa: PLR0913  an option each
    name: str | None,
    file: Path,
    storage: LedgerUrl,
    out: Path,
    data_dir: Path,
    row: str | None = None,
    seed: int | None = None,
    stream: str = "eval",
    listener: Listener = ignore,
) -> SavedNetwork:
    """Trains one run of a stored study once more, alone, and writes its network's state_dict; see networks/plain.py.

    name: of the study, None for the newest; data_dir: folder of datasets; row: for a search CHOSEN or BASELINE, for
    other studies a row of their table, None for the first; seed: None for the study's first on that stream; stream:
    `cv` or `eval`. Nothing is stored in the ledger. Raises UsageError for a study that cannot be read, an unknown row,
    a run that diverges; Interrupted and TrainingFailed.
    """
    check_target(file)  # first, as the training takes a while
    loop = load(name, storage, out)
    rows = ROWS[loop.study.kind](loop)
    row = next(iter(rows)) if row is None else _row_of(row, list(rows))
    seed = loop.study.stream_seeds(stream)[0] if seed is None else seed
    run = Run(stream, rows[row](seed))
    if isinstance(run.learner, Fork) and stream != "eval":
        raise UsageError(f"stream must be eval for {row}, whose values change from task to task there, got {stream}")
    again = train_again(loop, [run], loop.records_of([run]), data_dir, listener)
    (record,) = again.records.values()
    if record.status != "ok":
        raise UsageError(
            f"{label_of(loop.study, record)} with seed {record.unit} diverges: there is no network to save"
        )
    saved = SavedNetwork(
        file,
        file.with_name(f"{file.name}.json"),
        record,
        label_of(loop.study, record),
        again.certificates.get(record.key),
    )
    state, about = _state(again, run)
    try:
        write_atomically(file, state)
        write_atomically(saved.described, _json({**_describe(saved, loop), **about}))
    except OSError as error:
        raise UsageError(f"cannot write {on_one_line(file)}: {error.strerror or error}") from error
    return saved


def _json(values: Mapping[str, Any]) -> bytes:
    return (json.dumps(values, indent=1, ensure_ascii=False) + "\n").encode()


def _of_search(loop: SearchLoop) -> dict[str, Callable[[int], Learner]]:
    def chosen_learner(seed: int) -> Learner:
        if loop.best is None:
            raise UsageError(f"study {loop.study.name!r} has chosen no value; run it again to go on")
        return loop.study.learner(loop.best.point, seed)

    if loop.study.foreign:
        raise UsageError(f"study {loop.study.name!r} has a trainer of its own, whose network epsearch does not know")
    learners: dict[str, Callable[[int], Learner]] = {CHOSEN: chosen_learner}
    for point in loop.study.compared:
        learners[BASELINE] = partial(loop.study.learner, point)
    return learners


def _of_table(loop: TableLoop) -> dict[str, Callable[[int], Learner]]:
    def name(row: Row) -> str:
        values = row.short_values()
        return f"{row.label}, {point_text(tuple(values), tuple(values.values()))}" if values else row.label

    return {name(row): row.learner for row in loop.rows}


def _of_protocols(loop: ProtocolLoop) -> dict[str, Callable[[int], Learner]]:
    """Returns the choices of protocols in the stream's own order of tasks, then every candidate unchanged."""
    chosen: dict[str, Callable[[int], Learner]] = {
        name: partial(lambda walk, seed: walk.learner(seed), loop.walks[name, 0])
        for name in loop.study.protocols
        if loop.walks[name, 0].chosen
    }
    names = loop.study.space.names
    points = ((value,) for value in loop.study.candidates)
    return chosen | {point_text(names, point): partial(loop.study.learner, point) for point in points}


def _row_of(name: str, rows: Sequence[str]) -> str:
    """Returns the row of a name: a whole one, or its beginning, as tables have it, where no other row begins alike."""
    alike = [row for row in rows if row == name] or [row for row in rows if row.startswith(f"{name}, ")]
    if len(alike) != 1:
        known = "; ".join(alike or rows)  # names of rows have commas
        raise UsageError(f"no row {name!r}; known: {known}{did_you_mean(name, rows)}")
    return alike[0]


ROWS: dict[str, Callable[[Any], dict[str, Callable[[int], Learner]]]] = {
    Search.kind: _of_search,
    Comparison.kind: _of_table,
    MemoryStudy.kind: _of_table,
    ProtocolStudy.kind: _of_protocols,
}
"""Kind of study -> of its loop, the name of each row, in order -> its learner with a seed."""


def _state(again: Reruns, run: Run) -> tuple[bytes, Mapping[str, Any]]:
    """Returns the file of the state_dict, and the network's inputs and layers."""
    import torch

    from trainers.networks.plain import state_dict

    study, value = again.study, again.results[again.key(run)].value
    assert value is not None
    stream, averages = study.request(run.phase).open(), value.statistics[0]
    columns = isinstance(run.learner.declared.rule, Columns)
    state = state_dict(
        study.architecture,
        stream,
        columns,
        torch.from_numpy(value.params[0]),
        None if averages is None else torch.from_numpy(averages),
    )
    file = io.BytesIO()
    torch.save(state, file)
    largest = getattr(stream, "largest", None)
    return file.getvalue(), {
        "network": study.network,
        "columns": columns,
        "inputs": "bytes / 255 - mean of the stream" if largest is None else f"bytes / {largest:g}",
        "layers": {name: list(value.shape) for name, value in state.items()},
    }


def _describe(saved: SavedNetwork, loop: Loop) -> dict[str, Any]:
    record = saved.record
    return {
        "epsearch": version("epsearch"),
        "study": loop.study.name,
        "dataset": loop.study.dataset,
        "run": saved.label,
        "method": record.method,
        "seed": record.seed,
        "stream": record.phase,
        "tasks": list(loop.study.request(record.phase).open().tasks),
        "key": record.key,
        "content": record.content,
        "average_accuracy": float(average_accuracy(record.accuracies)),
        "accuracies": json.loads(array_to_json(record.accuracies)),
        "same_as_stored": None if saved.certificate is None else saved.certificate.within(0.0),
    }
