"""Reruns: runs of a stored study trained again, each alone, on this machine, and compared."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsearch.events import Listener
from epsearch.failures.errors import UsageError
from epsearch.ledger.location import hide_storage
from epsearch.loop.base import Loop
from epsearch.loop.certificates import compare
from epsearch.loop.cohorts import CohortRuns
from epsearch.loop.content import content, records
from epsearch.loop.estimates import MemberCounts
from epsearch.loop.jobs import Certify, Job, JobResult, Run
from epsearch.machine import cuda_present, mps_present
from epsearch.preparation import history
from epsearch.preparation.arithmetic import numeric_path
from epsearch.preparation.data import prepare
from epsearch.preparation.memory import limit_workers
from epsearch.runners.local import ready
from epsearch.runners.progress import Monitor
from epsearch.session.session import open_store, pass_warnings
from epsearch.study.description import Study
from results.labels import count_text
from results.ledger.record import RERUN, Certificate, RunRecord
from results.ledger.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Reruns(Loop):
    """Trains runs without storing them; `results` and `certificates` have the outcome, by key.

    study, images, store   see `Loop`
    runs                   the runs to train; no two have the same result
    stored                 their stored records, by key; a run without one gets no certificate
    """

    def __init__(
        self,
        study: Study,
        images: Mapping[str, Any],
        store: Store,
        runs: Sequence[Run],
        stored: Mapping[str, RunRecord],
    ) -> None:
        super().__init__(study, images, store)
        self.runs, self._before = tuple(runs), dict(stored)
        self.results: dict[str, JobResult] = {}
        self.certificates: dict[str, Certificate] = {}

    @property
    def done(self) -> bool:
        """True if all runs are trained."""
        return not self.missing()

    @property
    def stage(self) -> str:
        """The stage, in words."""
        return "once more, alone"

    def headline(self) -> str:
        """Returns how many runs differ so far, in words."""
        differ = sum(not certificate.within(0.0) for certificate in self.certificates.values())
        return f"{differ or 'none'} of {len(self.certificates)} so far other than stored"

    def heading(self) -> str:
        """Returns the number of runs, in words."""
        return f"{count_text(len(self.runs), 'stored run')}, trained once more, alone"

    def counts(self) -> MemberCounts:
        """Returns the remaining runs."""
        return MemberCounts(len(self.records), len(self.missing()), 0, 0, 0, 0, 0)

    def remaining(self) -> list[tuple[int, list[Run]]]:
        """Returns the remaining runs, of all streams together."""
        return [(len(missing), missing)] if (missing := self.missing()) else []

    def work_of(self, counts: MemberCounts) -> tuple[float, float, float]:
        """Returns the same work three times, in FLOP."""
        work = sum(self._work(run) for run in self.missing())
        return work, work, work

    def scores(self) -> "NDArray[np.float64]":
        """Returns no scores, as runs are not compared with each other."""
        import numpy as np

        return np.empty((0, 0))

    def key(self, run: Run) -> str:
        """Returns a run's key, on the data of this machine."""
        return self._key(run)

    def _stage_runs(self) -> list[Run]:
        return list(self.runs)

    def _advance(self) -> None:
        """Does nothing: there is one stage."""

    def _cohorts(self, runs: Sequence[Run], workers: int) -> list[CohortRuns]:
        # A certificate's job uses no cached checkpoints, which may be damaged.
        before = {key: record.fingerprint for key, record in self._before.items()}
        return [([run], Certify((), before.get(self._key(run), ""))) for run in runs]

    def _store_result(self, job: Job, result: JobResult) -> None:
        (record,) = records(job, result, [content(self.study, self.images, run) for run in job.runs])
        self.records[record.key], self.results[record.key] = record, result
        if record.key in self._before:
            self.certificates[record.key] = compare(self._before[record.key], result, RERUN)


def train_again(
    loop: Loop, runs: Sequence[Run], stored: Sequence[RunRecord], data_dir: Path, listener: Listener
) -> Reruns:
    """Trains runs of a stored study again, on its data and numeric path, without storing the results.

    loop: the study; runs: no two have the same result; stored: their records; data_dir: folder of datasets; listener:
    called with all events. Raises UsageError for missing or other data, or a machine that cannot train the study;
    Interrupted and TrainingFailed.
    """
    study = replace(loop.study, data_dir=data_dir, runner="local", address="local")
    if not {"cpu": True, "cuda": cuda_present(), "mps": mps_present()}[study.device]:
        raise UsageError(f"study {study.name!r} was trained on a {study.device.upper()} GPU, and torch finds none here")
    with pass_warnings(listener):
        prepared = prepare(study, listener)
        path = numeric_path(study, prepared.stream, study.numeric_path, listener)
        study = limit_workers(replace(study, numeric_path=path), prepared.stream, listener)
        with hide_storage(), open_store(study.storage, Store.read) as store:
            # Refuses other data and changed code, as a run of the study does.
            history.save(store, study, prepared.images, prepared.disjointness, extend=False, write=False)
            again = Reruns(study, prepared.images, store, runs, {record.key: record for record in stored})
            monitor = Monitor(again, listener)
            with ready(study) as train:
                train(again, monitor)
            return again
