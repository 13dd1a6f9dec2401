"""Runs of a stored study trained once more, alone, on the cores of this machine; nothing of that is stored."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from epsearch.events import Listener
from epsearch.failures.errors import UsageError
from epsearch.ledger.location import kept_within
from epsearch.loop.base import Loop
from epsearch.loop.jobs import Run
from epsearch.machine import cuda_present
from epsearch.preparation import growth
from epsearch.preparation.arithmetic import numeric_path
from epsearch.preparation.data import prepare
from epsearch.preparation.memory import limit_workers
from epsearch.runners.local import ready
from epsearch.runners.progress import Monitor
from epsearch.session.reruns import Reruns
from epsearch.session.session import open_store, passing_warnings
from results.ledger.record import RunRecord
from results.ledger.store import Store


def train_again(
    loop: Loop, runs: Sequence[Run], known: Sequence[RunRecord], data_dir: Path, listener: Listener
) -> Reruns:
    """Trains runs of a stored study on the data and the numeric path that it began with; returns what came of them.

    loop: the study, as far as the ledger knows it; runs: no two have the same result; known: what is stored of them;
    data_dir: where datasets lie; listener: hears everything on the way.

    Raises UsageError where the data cannot be had or are not the study's, or this machine cannot train it; Interrupted
    and TrainingFailed.
    """
    study = replace(loop.study, data_dir=data_dir, runner="local", address="local")
    if study.device == "cuda" and not cuda_present():
        raise UsageError(f"study {study.name!r} was trained on a CUDA GPU, and torch finds none here")
    with passing_warnings(listener):
        prepared = prepare(study, listener)
        path = numeric_path(study, prepared.stream, study.numeric_path, listener)
        study = limit_workers(replace(study, numeric_path=path), prepared.stream, listener)
        with kept_within(), open_store(study.storage, Store.read) as store:
            # Refused in the same words as a run of the study, on other data or with changed code.
            growth.keep(store, study, prepared.images, prepared.proof, extend=False, write=False)
            again = Reruns(study, prepared.images, store, runs, {record.key: record for record in known})
            monitor = Monitor(again, listener)
            with ready(study) as train:
                train(again, monitor)
            return again
