"""Verification: a random sample of a study's runs, trained again, alone, and compared."""

import random
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from epsearch.events import Listener, Warned, ignore, warner
from epsearch.failures.errors import UsageError
from epsearch.findings.listing import load
from epsearch.ledger.damage import as_unreadable
from epsearch.loop.base import Loop
from epsearch.loop.certificates import tolerance
from epsearch.loop.content import run_of
from epsearch.loop.jobs import Run
from epsearch.session.reruns import train_again
from epsearch.session.session import open_store
from epsearch.study.description import Study
from results.labels import count_text
from results.ledger.record import Certificate, RunRecord, StudyRow
from results.ledger.retry import RetryPolicy
from results.ledger.store import StoreError
from results.ledger.url import LedgerUrl
from results.points import point_label, point_of, point_text
from trainers import methods
from trainers.forks import schedule_of

SAMPLE = 5


class Rerun(NamedTuple):
    """A run that was trained again, and its difference to the stored one."""

    record: RunRecord
    """The stored run."""
    label: str
    """Its method and values, as tables name them."""
    certificate: Certificate
    """The differences."""
    same_machine: bool | None
    """Whether this kind of machine trained the stored run; None where the ledger does not say."""
    tolerance: float
    """Largest difference of an accuracy, a fraction, that may come from rounding; 0: no bit may differ."""

    @property
    def agrees(self) -> bool:
        """True if the differences are within the tolerance."""
        return self.certificate.within(self.tolerance)


class Verification(NamedTuple):
    """Result of `epsearch verify`."""

    study: Study
    """As it is stored."""
    reruns: tuple[Rerun, ...]
    """In the order of stream, label and seed."""
    stored: int
    """Readable runs of the study in the ledger."""
    seed: int
    """Draws the same sample again."""
    damaged: Mapping[str, str]
    """Key -> why the run cannot be read."""
    seconds: float
    """Seconds of training, all cores together."""

    @property
    def agrees(self) -> bool:
        """True if every run agrees, and none is damaged."""
        return not self.damaged and all(rerun.agrees for rerun in self.reruns)


def verify(
    name: str | None,
    storage: LedgerUrl,
    out: Path,
    data_dir: Path,
    sample: int | None = SAMPLE,
    seed: int | None = None,
    listener: Listener = ignore,
) -> Verification:
    """Trains a sample of a stored study's runs again, of search and evaluation, and compares them with the stored ones.

    name: of the study, None for the newest; sample: number of runs, None for all; seed: of the sample, None for another
    one at each call; data_dir: folder of datasets. The certificates are stored in place of those of earlier reruns, and
    nothing else; the study may be training meanwhile. Raises UsageError for a study that cannot be read, has no runs,
    or lacks its data; Interrupted and TrainingFailed, then nothing is stored.
    """
    loop = load(name, storage, out)
    runs = {key: _run(loop.study, record) for key, record in loop.records.items()}
    if not runs:
        raise UsageError(f"study {loop.study.name!r} has no runs yet that could be verified")
    seed = secrets.randbelow(2**31) if seed is None else seed
    # Sorted: the order of the records must not change the draw.
    drawn = random.Random(seed).sample(sorted(runs), len(runs) if sample is None else min(sample, len(runs)))
    again = train_again(loop, [runs[key] for key in drawn], [loop.records[key] for key in drawn], data_dir, listener)
    _store(storage, list(again.certificates.values()), listener)
    reruns = []
    for key in drawn:
        record = loop.records[key]
        same_machine = record.machine == again.results[key].machine if record.machine else None
        allowed = tolerance(again.study, loop.images, alike=same_machine is True)
        reruns.append(Rerun(record, label_of(loop.study, record), again.certificates[key], same_machine, allowed))
    reruns.sort(key=lambda rerun: (rerun.record.phase, rerun.label, rerun.record.unit))
    seconds = sum(result.seconds for result in again.results.values())
    return Verification(loop.study, tuple(reruns), len(runs), seed, _damaged_runs(loop), seconds)


def label_of(study: Study, record: RunRecord) -> str:
    """Returns the method of a run with its values of the searched hyperparameters, or of those in tables.

    With the values that change from a task on, and the part of the stream where that is not all.
    """
    space, method = getattr(study, "space", None), methods.method(record.method)
    of_method = (hyperparameter.name for hyperparameter in method.hyperparameters if hyperparameter.per_method)
    names = tuple(of_method) if space is None else space.names
    if method.union is not None:  # a reference row, whose record has ε = 0 as that of every method without it
        names = tuple(hyperparameter.name for hyperparameter in method.hyperparameters if hyperparameter.name in names)
    used = {name: value for name, value in zip(names, point_of(record, names), strict=True) if value is not None}
    label = point_label(record.method, tuple(used), tuple(used.values())) if used else method.title
    run = run_of(record)
    changes = (
        f"from task {task + 1} {point_text(names, [values.get(name) for name in names])}"
        for task, values in schedule_of(run.learner)[1:]
    )
    tasks, steps = run.prefix or (0, None)
    part = f"first {count_text(tasks, 'task')}" * (steps is None) or f"up to step {steps} of task {tasks}"
    return ", ".join([label, *changes, *([part] if tasks else [])])


def _run(study: Study, record: RunRecord) -> Run:
    """Returns the run of a record. Raises Unreadable where this version does not know its fields."""
    with as_unreadable(StudyRow(study.name, {}, "")):
        return run_of(record)


def _damaged_runs(loop: Loop) -> dict[str, str]:
    """Returns damaged runs, without damaged certificates, whose keys are longer."""
    return {key: why for key, why in loop.unused_records().items() if " " not in key}


def _store(storage: LedgerUrl, certificates: Sequence[Certificate], listener: Listener) -> None:
    """Stores the certificates; warns if the ledger cannot be written to."""
    try:
        with open_store(storage, retries=RetryPolicy(notify=warner(listener))) as store:
            store.certify(certificates)
    except (StoreError, UsageError) as error:
        listener(Warned(f"the verification is not stored in the ledger: {error}"))
