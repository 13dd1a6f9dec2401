"""Runs of a study that are trained once more, each alone, and compared with what is stored of them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from epsearch.loop.ahead import Outlook
from epsearch.loop.base import Loop
from epsearch.loop.certificates import compare
from epsearch.loop.cohorts import Order
from epsearch.loop.content import content, records
from epsearch.loop.jobs import Certify, Job, JobResult, Run
from epsearch.study.description import Study
from results.labels import count_text
from results.ledger.record import RERUN, Certificate, RunRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from results.ledger.store import Store


class Reruns(Loop):
    """Trains the runs and stores nothing: what came of them are `results`, and the certificates of those known before.

    study, images, store   as of `Loop`
    runs                   what is trained; no two have the same result
    known                  what the ledger has of them, by key; of a run that it lacks there is no certificate
    """

    def __init__(
        self,
        study: Study,
        images: Mapping[str, Any],
        store: "Store",
        runs: Sequence[Run],
        known: Mapping[str, RunRecord],
    ) -> None:
        super().__init__(study, images, store)
        self.runs, self._before = tuple(runs), dict(known)
        self.results: dict[str, JobResult] = {}
        self.certificates: dict[str, Certificate] = {}

    @property
    def done(self) -> bool:
        """Whether all of them are trained."""
        return not self.missing()

    @property
    def stage(self) -> str:
        """What is being trained, in words."""
        return "once more, alone"

    def headline(self) -> str:
        """How many differ so far."""
        differ = sum(not one.within(0.0) for one in self.certificates.values())
        return f"{differ or 'none'} of {len(self.certificates)} so far other than stored"

    def heading(self) -> str:
        """How many runs, in words."""
        return f"{count_text(len(self.runs), 'stored run')}, trained once more, alone"

    def outlook(self) -> Outlook:
        """All is known beforehand."""
        return Outlook(len(self.records), len(self.missing()), 0, 0, 0, 0)

    def ahead(self) -> list[tuple[int, list[Run]]]:
        """Of all streams together."""
        return [(len(missing), missing)] if (missing := self.missing()) else []

    def work_of(self, ahead: Outlook) -> tuple[float, float]:
        """Fewest and most are the same, in FLOP."""
        work = sum(self._work(run) for run in self.missing())
        return work, work

    def scores(self) -> "NDArray[np.float64]":
        """None: nothing is compared with anything but itself."""
        import numpy as np

        return np.empty((0, 0))

    def key(self, run: Run) -> str:
        """The run's key, on the data that are here."""
        return self._key(run)

    def _wanted(self) -> list[Run]:
        return list(self.runs)

    def _advance(self) -> None:
        """There is one stage."""

    def _cohorts(self, runs: Sequence[Run], workers: int) -> list[Order]:
        # A certificate's job takes nothing from the cache folder, where damage could hide.
        before = {key: record.fingerprint for key, record in self._before.items()}
        return [([run], Certify((), before.get(self._key(run), ""))) for run in runs]

    def _store_result(self, job: Job, result: JobResult) -> None:
        (record,) = records(job, result, [content(self.study, self.images, run) for run in job.runs])
        self.records[record.key], self.results[record.key] = record, result
        if record.key in self._before:
            self.certificates[record.key] = compare(self._before[record.key], result, RERUN)
